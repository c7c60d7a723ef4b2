"""Options that several commands have."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
        autocompletion=_both,
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
        metavar="KEY=VALUE[,VALUE...]",
        help="Set a parameter, or any key by its path. Several values form an axis of a sweep. "
        "Quote text with a comma: --set 'name=\"a,b\"'.",
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a parameter, or any key by its path."),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The address of a running Ray cluster; default: RAY_ADDRESS, else this machine.",
        show_default=False,
        rich_help_panel=ON_RAY,
    ),
]
Cpus = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Maximum number of concurrent runs; default: the CPUs of this machine, or of the Ray "
        "cluster.",
        show_default=False,
        rich_help_panel=ON_RAY,
    ),
]
InProcess = Annotated[
    bool,
    typer.Option("--in-process", help="Run in one process, without Ray.", rich_help_panel=ON_RAY),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Run few seeds, as defined in the experiment's file.")
]
ShowTraceback = Annotated[
    bool,
    typer.Option(
        "--traceback", help="Print the traceback if a plugin fails.", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no progress.", rich_help_panel=OUTPUT)
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the results as JSON.", rich_help_panel=OUTPUT)
]
NO_EVENTS = "--events requires a single run: grid run SCENARIO --set KEY=VALUE --seed N --events"
SEEDS = "the seeds 1 to N, or those of a list with ranges, such as 101-110,200"
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", help=f"Use {SEEDS}.", show_default=False, metavar="N|LIST"),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace results of another scenario, experiment or kind in the folder.",
        rich_help_panel=OUTPUT,
    ),
]
Watch = Annotated[
    bool,
    typer.Option(
        "--watch", help="Show the progress on a page in the browser.", rich_help_panel=OUTPUT
    ),
]


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
