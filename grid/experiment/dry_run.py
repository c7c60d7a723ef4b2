"""What a sweep would do: how many runs, and how long that takes, going by what ran here before."""

from __future__ import annotations

from pathlib import Path

from grid.experiment.cases import expand, key_of
from grid.experiment.code import code_version
from grid.experiment.costs import Costs
from grid.experiment.schema import ExperimentSection
from grid.experiment.store import Store, read_json
from grid.model.errors import InputError
from grid.runtime.cpus import usable_cpus
from grid.scenario.shipped import experiments_folder

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

    Raises InputError where a combination makes no right scenario.
    """
    cases, wrong = expand(experiment, file)
    if wrong:
        raise InputError(list(dict.fromkeys(one for _, error in wrong for one in error.mistakes)))
    code, store = code_version(), Store(folder)
    keys = dict.fromkeys(key_of(case, code) for case in cases)
    kept = sum(store.has(key) for key in keys)
    axes = " x ".join(f"{len(values)} {name}" for name, values in experiment.axes.items())
    lines = [
        f"{experiment.name}: {len(cases):,} runs"
        + f" ({' x '.join(filter(None, [axes, f'{len(experiment.seed_list)} seeds']))})",
        f"{kept:,} of them are in {folder}, {len(keys) - kept:,} are to be run",
    ]
    count = cpus or usable_cpus()
    found = _seconds_a_run(experiment, len(cases), folder, quick)
    if found is None:
        return [*lines, "how long they take is not known: none like them ran here before"]
    seconds, known_from = found
    minutes = seconds * (len(keys) - kept) / count / 60
    took = f"{minutes:,.0f} minutes" if minutes >= 2 else f"{60 * minutes:,.0f} seconds"
    return [*lines, f"about {took} on {count} CPUs, beside some seconds for Ray, {known_from}"]


def _seconds_a_run(
    experiment: ExperimentSection, runs: int, folder: Path, quick: bool
) -> tuple[float, str] | None:
    """Processor seconds of a run like these, and how that is known."""
    took = []
    for path in sorted((folder / "clock").glob("*.json"))[:SAMPLE]:
        cpu = read_json(path).get("cpu_seconds")
        if isinstance(cpu, dict):
            took.append(sum(cpu.values()))
    if took:
        return sum(took) / len(took), f"as {len(took)} runs in {folder} took"
    places = Path("reproduction"), Path("reproduction-quick"), experiments_folder() / "reproduced"
    cost = Costs.read(*places).of(experiment.name, quick)
    return None if cost is None else (cost / runs, "as the same experiment took before")
