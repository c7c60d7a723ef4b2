"""Options that several commands have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from glob import escape, glob
from pathlib import Path
from typing import Annotated

import typer

DIGITS = 18
"""No number of an option is longer."""
MAX_SEEDS = 10_000
"""As many as an experiment may have; to read its schema here would make every command slower."""


def _names(incomplete: str, of: Sequence[bool]) -> list[str]:
    """Names of scenarios (False), experiments (True) or both that begin so, each once."""
    from grid.config.shipped import all_shipped

    names = dict.fromkeys(one.name for one in all_shipped() if one.is_experiment in of)
    return [name for name in names if name.startswith(incomplete)]


def _files_or_names(incomplete: str, of: Sequence[bool]) -> list[str]:
    """Folders and files in YAML that begin so, then names of what comes with the emulator."""
    found = glob(f"{escape(incomplete)}*")  # noqa: PTH207
    files = [f"{path}/" if Path(path).is_dir() else path for path in found]
    here = sorted(path for path in files if path.endswith(("/", ".yaml", ".yml")))
    return [*here, *_names(incomplete, of)]


def shipped_names(incomplete: str) -> list[str]:
    """What a shell may complete the name of something shipped to."""
    return _names(incomplete, [False, True])


def _scenarios(incomplete: str) -> list[str]:
    return _files_or_names(incomplete, [False])


def _experiments(incomplete: str) -> list[str]:
    return _files_or_names(incomplete, [True])


def _any_files(incomplete: str) -> list[str]:
    return _files_or_names(incomplete, [False, True])


ScenarioFile = Annotated[
    Path,
    typer.Argument(
        autocompletion=_scenarios,
        metavar="SCENARIO",
        help="A scenario in YAML: a file, or the name of one that `grid scenarios` lists.",
        show_default=False,
    ),
]
ScenarioOrExperimentFiles = Annotated[
    list[Path],
    typer.Argument(
        autocompletion=_any_files,
        metavar="FILE...",
        help="Scenarios and experiments in YAML: files, or names that `grid scenarios` lists.",
        show_default=False,
    ),
]
ExperimentFile = Annotated[
    Path,
    typer.Argument(
        autocompletion=_experiments,
        metavar="EXPERIMENT",
        help="An experiment in YAML: a file, or the name of one that `grid scenarios` lists.",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a parameter, or any key by its path; the last change counts.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="The address of a running Ray cluster; default: RAY_ADDRESS, else this machine.",
        show_default=False,
    ),
]
Cpus = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Runs at once; default: the CPUs of this machine, or of the Ray cluster.",
        show_default=False,
    ),
]
InProcess = Annotated[bool, typer.Option("--in-process", help="Run in one process, without Ray.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Few repetitions, as the experiment's file says.")
]
ShowTraceback = Annotated[
    bool, typer.Option("--traceback", help="Show where a part that you plugged in failed.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
NO_EVENTS = (
    "--events is for a single run: a sweep keeps a few kilobytes of each. The run that you want to "
    "see is the same by itself: grid run SCENARIO --set KEY=VALUE --seed N --events"
)
"""What is said where the events of many runs are asked for."""
SEEDS = "The seeds 1 to N, or those of a list with ranges, such as 101-110,200"
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", help=f"{SEEDS}.", show_default=False, metavar="N|LIST"),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Replace the run in the folder, even one of another scenario or kind."
    ),
]
Watch = Annotated[
    bool,
    typer.Option("--watch", help="Show it on a page in the browser while it goes on."),
]


def seeds_of(text: str | None) -> int | list[int] | None:
    """How many seeds, from 1, or which, from "10" or "101-110,200". Raises InputError."""
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
            raise input_error("--seeds", shorten(text), SEEDS[0].lower() + SEEDS[1:])
        low, high = map(int, ends)
        if not low <= high < low + MAX_SEEDS:
            expected = f"the lower seed first, and no more than {MAX_SEEDS:,} seeds"
            raise input_error("--seeds", shorten(part), expected)
        seeds += range(low, high + 1)
    again = next((seed for seed, count in Counter(seeds).items() if count > 1), None)
    if again is not None:
        raise input_error("--seeds", f"{again} again", "each seed once")
    return seeds
