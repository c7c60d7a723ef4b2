"""Options that several commands have."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from grid.integrations.watch.page_process import LivePage

DIGITS = 18
"""Of a number in an option."""
MAX_SEEDS = 10_000
"""As in an experiment, whose schema would slow down every command."""


def _names(incomplete: str, *of: bool) -> list[str]:
    """Names of shipped scenarios (False), experiments (True) or both for completion."""
    from grid.config.shipped import all_shipped

    names = dict.fromkeys(one.name for one in all_shipped() if one.is_experiment in of)
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str, *of: bool) -> list[str]:
    """Folders and YAML files for completion, then names of what is shipped."""
    found = glob(f"{escape(incomplete)}*")  # noqa: PTH207
    files = [f"{path}/" if Path(path).is_dir() else path for path in found]
    here = sorted(path for path in files if path.endswith(("/", ".yaml", ".yml")))
    return [*here, *_names(incomplete, *of)]


def shipped_names(incomplete: str) -> list[str]:
    """Completions of the name of a shipped scenario or experiment."""
    return _names(incomplete, False, True)


def _scenarios(incomplete: str) -> list[str]:
    return _files(incomplete, False)


def _experiments(incomplete: str) -> list[str]:
    return _files(incomplete, True)


def _both(incomplete: str) -> list[str]:
    return _files(incomplete, False, True)


ON_RAY, OUTPUT, LIVE = "Ray", "Output", "Live runs"
"""Panels of options in the help."""


def option(panel: str | None, help: str, *names: str, **more: Any) -> Any:
    """An option of a command, in `panel` of its help, without its default."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """An argument of a command, without its default."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **more)


_NAMED = "a file, or the name of one that `grid scenarios` lists."
ScenarioFile = Annotated[
    Path, argument("SCENARIO", f"A scenario in YAML: {_NAMED}", autocompletion=_scenarios)
]
ScenarioOrExperimentFiles = Annotated[
    list[Path],
    argument(
        "FILE...",
        "Scenarios and experiments in YAML: files, or names that `grid scenarios` lists.",
        autocompletion=_both,
    ),
]
ExperimentFile = Annotated[
    Path, argument("EXPERIMENT", f"An experiment in YAML: {_NAMED}", autocompletion=_experiments)
]
Overrides = Annotated[
    list[str] | None,
    option(
        None,
        "Set a parameter, or any key by its path. Several values form an axis of a sweep. "
        "Quote text with a comma: --set 'name=\"a,b\"'.",
        "--set",
        metavar="KEY=VALUE[,VALUE...]",
    ),
]
Setting = Annotated[
    list[str] | None,
    option(None, "Set a parameter, or any key by its path.", "--set", metavar="KEY=VALUE"),
]
Address = Annotated[
    str | None,
    option(
        ON_RAY,
        "The address of a running Ray cluster; default: RAY_ADDRESS, else this machine.",
        metavar="ADDRESS",
    ),
]
Cpus = Annotated[
    int | None,
    option(
        ON_RAY,
        "Maximum number of concurrent runs; default: the CPUs of this machine, or of the Ray "
        "cluster.",
        min=1,
        metavar="N",
    ),
]
InProcess = Annotated[bool, option(ON_RAY, "Run in one process, without Ray.", "--in-process")]
Quick = Annotated[
    bool, option(None, "Run few seeds, as defined in the experiment's file.", "--quick")
]
ShowTraceback = Annotated[
    bool, option(OUTPUT, "Print the traceback if a plugin fails.", "--traceback")
]
Quiet = Annotated[bool, option(OUTPUT, "Print no progress.", "--quiet", "-q")]
AsJson = Annotated[bool, option(OUTPUT, "Print the results as JSON.", "--json")]
NO_EVENTS = "--events requires a single run: grid run SCENARIO --set KEY=VALUE --seed N --events"
SEEDS = "the seeds 1 to N, or those of a list with ranges, such as 101-110,200"
Seeds = Annotated[str | None, option(None, f"Use {SEEDS}.", "--seeds", metavar="N|LIST")]
Force = Annotated[
    bool,
    option(
        OUTPUT, "Replace results of another scenario, experiment or kind in the folder.", "--force"
    ),
]
Watch = Annotated[bool, option(OUTPUT, "Show the progress on a page in the browser.", "--watch")]


def live_page_if(wanted: bool) -> AbstractContextManager[LivePage | None]:
    """A page whose address is printed when what it shows begins; None if it is not wanted."""
    if not wanted:
        return nullcontext()
    from grid.integrations.watch.page_process import live_page

    return live_page(lambda address: typer.echo(f"watch it at {address}", err=True))


def seeds_of(text: str | None) -> int | list[int] | None:
    """The number of seeds from 1 ("10"), or the seeds ("101-110,200"). Raises InputError."""
    from grid.model.errors import input_error, shorten

    if text is None:
        return None
    if text.isdecimal() and text.isascii():
        if not 1 <= int(text[:DIGITS]) <= MAX_SEEDS:
            raise input_error("--seeds", shorten(text), f"1 to {MAX_SEEDS} seeds")
        return int(text)
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ends = first, last if dash else first
        if not all(end.isdecimal() and end.isascii() and len(end) <= DIGITS for end in ends):
            raise input_error("--seeds", shorten(text), SEEDS)
        low, high = map(int, ends)
        if not low <= high < low + MAX_SEEDS:
            expected = f"the lower seed first, and no more than {MAX_SEEDS:,} seeds"
            raise input_error("--seeds", shorten(part), expected)
        seeds += range(low, high + 1)
    again = next((seed for seed, count in Counter(seeds).items() if count > 1), None)
    if again is not None:
        raise input_error("--seeds", f"{again} again", "each seed once")
    return seeds
