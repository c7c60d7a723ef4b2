"""Small grids whose VOs are lost and return: each job has one final state, by all rules.

The grids are those of `random_timings`, with faults of all kinds, VOs that are lost after about a
few periods of snapshots, and recall of jobs. As a script it runs a range of seeds:
`python -m tests.protocol.lost_vos 0 20000`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from grid.config.build import Grid
from grid.config.load import load_scenario
from grid.config.random_scenarios import random_faults
from grid.config.workload import realize
from grid.model.errors import InputError
from grid.model.time import to_seconds
from grid.results.checkers import check
from grid.runtime.sequential import NeverEnds, run_sequential
from tests.protocol import random_timings
from tests.protocol.random_timings import EVENTS_A_JOB


class Trial(NamedTuple):
    """What is wrong with the run of a seed, if anything, and what happened in it."""

    wrong: str = ""
    resubmissions: int = 0
    duplicate_cpu_s: float = 0.0
    is_refused: bool = False


def scenario(seed: int) -> dict[str, Any]:
    """The scenario of that seed without faults, as in YAML."""
    rng = np.random.default_rng((seed, 1))
    given = random_timings.scenario(seed)
    protocol, network = given["protocol"], given["network"]
    protocol["information"] = str(rng.choice(["all", "all", "ring"]))
    protocol["ttl"] = int(rng.choice([1, 2, 5]))
    if rng.random() < 0.3:
        protocol["discount"] = "own_dispatches"
    period_s = protocol["snapshots"]["period_s"]
    longest_s = max(network["latency_s"], network["local_latency_s"])
    if rng.random() < 0.8:
        protocol["lost_after_s"] = 1.01 * (period_s + longest_s) * 10 ** float(rng.uniform(0, 1))
    if rng.random() < 0.5 or "lost_after_s" not in protocol:
        protocol["recall_after_s"] = float(longest_s * 10 ** rng.uniform(0, 2))
    return given


def faulty_grid(seed: int) -> Grid:
    """That grid with faults for about as long as it runs without. Raises InputError."""
    grid, _ = realize(load_scenario(scenario(seed)), "lost.yaml")
    ends_us = run_sequential(grid, limit=limit_of(grid)).results().outcome.end_us
    lasts_s = max(1.0, to_seconds(int(ends_us.max(initial=0))))
    faults = random_faults(seed, grid.names, grid.vos, grid.settings.network, lasts_s)
    return replace(grid, settings=grid.settings.model_copy(update={"faults": faults}))


def limit_of(grid: Grid) -> int:
    """More events than any run handles that makes progress."""
    return 4 * EVENTS_A_JOB * max(1, sum(grid.jobs_by_vo()))


def attempt(seed: int) -> Trial:
    """Run the grid of that seed."""
    try:
        grid = faulty_grid(seed)
        run = run_sequential(grid, limit=limit_of(grid))
    except InputError as error:
        return Trial(error.errors[0].field, is_refused=True)
    except NeverEnds as error:
        return Trial(f"never ends: {error}")
    broken = run.broken_rules()
    broken += check(run.results(), grid.directory, sum(grid.jobs_by_vo()))
    counts: dict[str, float] = {}
    for one in run.decisions:
        counts[one.figure] = counts.get(one.figure, 0) + one.value
    wrong = run.stalled or (broken[0] if broken else "")
    copies = int(counts.get("resubmissions", 0))
    return Trial(wrong, copies, counts.get("duplicate_cpu_s", 0))


def main(first: int, count: int) -> int:
    """Run seeds and print a summary; returns how many broke a rule."""
    wrong = refused = copies = duplicated = 0
    for seed in range(first, first + count):
        trial = attempt(seed)
        refused += trial.is_refused
        copies += trial.resubmissions
        duplicated += trial.duplicate_cpu_s > 0
        if trial.wrong and not trial.is_refused:
            wrong += 1
            print(f"seed {seed}: {trial.wrong}", flush=True)
    print(
        f"{count} seeds, {refused} refused, {wrong} wrong; {copies} copies, "
        f"{duplicated} runs with duplicate work"
    )
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), int(sys.argv[2])) else 0)
