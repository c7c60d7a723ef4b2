"""Arguments and options of commands, which `options.yaml` declares, and their values."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from functools import cache
from glob import escape, glob
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
import yaml  # type: ignore[import-untyped]

DIGITS = 18
"""Of a number in an option."""
MAX_SEEDS = 10_000
"""As in an experiment, whose schema would slow down every command."""
METAVARS = {"Path": "PATH", "int": "N", "float": "NUMBER", "str": "TEXT"}
"""By the name of a type in an annotation."""
NO_EVENTS = "--events requires a single run: grid run SCENARIO --set KEY=VALUE --seed N --events"
SEEDS = "seeds 1 to N, or a list of seeds and ranges, such as 101-110,200"


@cache
def _declarations() -> dict[str, dict[str, dict[str, Any]]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    declared: dict[str, Any] = yaml.load(Path(__file__).with_suffix(".yaml").read_bytes(), loader)
    return declared


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its arguments and options as annotations, in the form of Typer."""
    declarations = _declarations()
    own = declarations["shared"] | declarations.get(command.__name__, {})
    hints = get_type_hints(command)
    command.__annotations__ = {
        name: Annotated[hint, _parameter(name, hint, **own[name])] if name in own else hint
        for name, hint in hints.items()
    }
    return command


def _parameter(
    name: str,
    hint: Any,
    *,
    names: list[str] | None = None,
    argument: str | None = None,
    panel: str | None = None,
    complete: str | None = None,
    **more: Any,
) -> Any:
    more |= {"rich_help_panel": panel, "show_default": more.get("show_default", False)}
    more["autocompletion"] = None if complete is None else COMPLETIONS[complete]
    if argument is not None:
        return typer.Argument(metavar=argument, **more)
    for value_type, metavar in METAVARS.items():
        if value_type in str(hint):
            more.setdefault("metavar", metavar)
    # A flag would also have a negative form.
    names = names or ([f"--{name.replace('_', '-')}"] if hint is bool else [])
    return typer.Option(*names, **more)


def help_of(command: Callable[..., None]) -> str:
    """The docstring of the command, without line breaks within paragraphs."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(one.split()) for one in paragraphs)


def _completion(*of: bool, files: bool = True) -> Callable[[str], list[str]]:
    """Complete folders and YAML files, then shipped scenarios (False) and experiments (True)."""

    def complete(incomplete: str) -> list[str]:
        from grid.config.shipped import all_shipped

        found = glob(f"{escape(incomplete)}*") if files else []  # noqa: PTH207
        paths = [f"{path}/" if Path(path).is_dir() else path for path in found]
        here = sorted(path for path in paths if path.endswith(("/", ".yaml", ".yml")))
        names = dict.fromkeys(one.name for one in all_shipped() if one.is_experiment in of)
        return [*here, *(name for name in names if name.startswith(incomplete))]

    return complete


COMPLETIONS = {
    "scenarios": _completion(False),
    "experiments": _completion(True),
    "both": _completion(False, True),
    "names": _completion(False, True, files=False),
}


def seeds_of(text: str | None) -> int | list[int] | None:
    """The number of seeds from 1 ("10"), or the seeds ("101-110,200"). Raises InputError."""
    from grid.model.errors import input_error, shorten

    if text is None:
        return None
    if text.isdecimal() and text.isascii():
        if not 1 <= int(text[:DIGITS]) <= MAX_SEEDS:
            raise input_error("--seeds", shorten(text), f"1 to {MAX_SEEDS:,} seeds")
        return int(text)
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ends = first, last if dash else first
        if not all(end.isdecimal() and end.isascii() and len(end) <= DIGITS for end in ends):
            raise input_error("--seeds", shorten(text), SEEDS)
        low, high = map(int, ends)
        if not low <= high < low + MAX_SEEDS:
            expected = f"the lower seed first and at most {MAX_SEEDS:,} seeds"
            raise input_error("--seeds", shorten(part), expected)
        seeds += range(low, high + 1)
    again = next((seed for seed, count in Counter(seeds).items() if count > 1), None)
    if again is not None:
        raise input_error("--seeds", f"{again} twice", "each seed once")
    return seeds
