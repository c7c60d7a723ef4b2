"""What a sweep would do: how many runs, and how long that takes, going by what ran here before."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from grid.config.shipped import experiments_folder
from grid.lab.cases import expand, key_of
from grid.lab.code import code_version
from grid.lab.costs import Costs
from grid.lab.schema import ExperimentSection
from grid.lab.store import Store, other_sweep
from grid.model.errors import InputError
from grid.results.run_folder import SWEEP_FILE
from grid.runtime.cpus import usable_cpus

SAMPLE = 200
"""So many earlier runs are asked how long they took."""


def dry_run_lines(
    experiment: ExperimentSection,
    file: Path | None,
    folder: Path,
    cpus: int | None = None,
    *,
    quick: bool = False,
) -> list[str]:
    """Runs, what `folder` has of them, and about how long the rest takes on `cpus` CPUs.

    Raises InputError where a combination makes no right scenario, or `folder` is no sweep's.
    """
    store = Store(folder)
    store.refuse_other_folders()
    cases, wrong = expand(experiment, file)
    if wrong:
        raise InputError(list(dict.fromkeys(one for _, error in wrong for one in error.mistakes)))
    code = code_version()
    keys = dict.fromkeys(key_of(case, code) for case in cases)
    kept = sum(store.has(key) for key in keys)
    axes = " x ".join(f"{len(values)} {name}" for name, values in experiment.axes.items())
    lines = [
        f"{experiment.name}: {len(cases):,} runs"
        + f" ({' x '.join(filter(None, [axes, f'{len(experiment.seed_list)} seeds']))})",
        f"{kept:,} of them are in {folder}, {len(keys) - kept:,} are to be run",
    ]
    if other := other_sweep(folder, experiment.name):
        lines.append(f"{folder} has the sweep {other}: to replace its tables takes --force")
    if kept == len(keys):
        return lines
    count = cpus or usable_cpus()
    found = _seconds_a_run(experiment, cases[0].scenario.name, len(cases), folder, quick)
    if found is None:
        return [*lines, "how long they take is not known: none like them ran here before"]
    seconds, known_from = found
    minutes = seconds * (len(keys) - kept) / count / 60
    took = f"{minutes:,.0f} minutes" if minutes >= 2 else f"{60 * minutes:,.0f} seconds"
    return [*lines, f"about {took} on {count} CPUs, beside some seconds for Ray, {known_from}"]


def _seconds_a_run(
    experiment: ExperimentSection, scenario: str, runs: int, folder: Path, quick: bool
) -> tuple[float, str] | None:
    """Processor seconds of a run like these, and how that is known."""
    took = _seconds_of(folder)
    if took:
        return sum(took) / len(took), f"as {len(took)} runs in {folder} took"
    places = Path("reproduction"), Path("reproduction-quick")
    costs = Costs.read(*places, shipped=experiments_folder() / "reproduced")
    known = costs.of(experiment.name, quick)
    if known is not None:
        return known[0] / runs, f"as the same experiment took {known[1]}"
    others = sorted(path.parent for path in folder.parent.glob(f"*/{SWEEP_FILE}"))
    # Another experiment on the same scenario may change it so that its runs take other times.
    for other in sorted(others, key=lambda one: other_sweep(one, experiment.name) is not None):
        if _is_of(other, scenario):
            took = _seconds_of(other)
            if took:
                mean = sum(took) / len(took)
                return mean, f"as {len(took)} runs of {scenario} in {other} took"
    return None


def _is_of(folder: Path, scenario: str) -> bool:
    """Whether the first run of the sweep in a folder is one of the scenario of this name."""
    for path in sorted((folder / "runs").glob("*.json"))[:1]:
        with suppress(InputError):
            return bool(Store(folder).record(path.stem)["scenario"].get("name") == scenario)
    return False


def _seconds_of(folder: Path) -> list[float]:
    """Processor seconds of runs of the sweep in a folder, of whatever code and settings."""
    took = []
    for path in sorted((folder / "clock").glob("*.json"))[:SAMPLE]:
        with suppress(InputError):
            took.append(float(sum(Store(folder).clock(path.stem)["cpu_seconds"].values())))
    return took
