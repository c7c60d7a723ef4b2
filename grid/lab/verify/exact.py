"""Cases in which theory gives every time of every job, to the microsecond.

How long jobs take is worked out from what their users submitted and from the speed of the machines.
So a grid that serves them too slowly, kills them or begins them again is found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grid.config.schema import Scenario
from grid.lab.verify import theory
from grid.model.arrays import Ints
from grid.model.errors import one_mistake
from grid.model.platform import REFERENCE_MIPS
from grid.model.time import from_seconds
from grid.runtime.run import Run

DIFFERING = ("starts that differ", "ends that differ")
Starts = Callable[[Ints, Ints, Ints], Ints]
"""When jobs start by a recursion, from submissions, run times and processors, in their order."""


def no_difference(_: Scenario) -> dict[str, float]:
    """What is expected of `lindley` and `fcfs`."""
    return dict.fromkeys(DIFFERING, 0.0)


def lindley(run: Run) -> dict[str, float]:
    """How many times of jobs at one server are not those of Lindley's recursion."""
    return _differing(
        run,
        lambda submit_us, run_us, _: (
            submit_us + np.array(theory.lindley_waits(submit_us, run_us), np.int64)
        ),
    )


def fcfs(run: Run) -> dict[str, float]:
    """The same at a pool of servers, by the recursion of Kiefer and Wolfowitz."""
    servers = sum(run.directory.clusters[0].cpus)
    return _differing(
        run,
        lambda submit_us, run_us, processors: np.array(
            theory.fcfs_starts(submit_us, run_us, processors, servers), np.int64
        ),
    )


def _differing(run: Run, starts: Starts) -> dict[str, float]:
    results = run.results
    rows = np.argsort(results.submit_us, kind="stable")
    run_us = _run_us(run)[rows]
    start_us = starts(results.submit_us[rows], run_us, results.processors[rows])
    found = results.outcome.start_us[rows], results.outcome.end_us[rows]
    pairs = zip(DIFFERING, (start_us, start_us + run_us), found, strict=True)
    return {name: float((one != other).sum()) for name, one, other in pairs}


def _run_us(run: Run) -> Ints:
    """How long each job takes on machines of one speed: its estimate is exact."""
    speeds = {machine.mips for machine in run.directory.clusters[0].machines}
    if len(speeds) != 1:
        raise one_mistake("machines", f"{len(speeds)} speeds", "one, for the recursion")
    run_us: Ints = np.rint(run.results.estimate_us * REFERENCE_MIPS / speeds.pop()).astype(np.int64)
    return np.maximum(run_us, 1)


def two_vos(run: Run) -> dict[str, float]:
    """Assignment, start and end of each job against what follows from the two latencies."""
    assert run.scenario is not None
    network = run.scenario.network
    d, between = from_seconds(network.local_latency_s), from_seconds(network.latency_s)
    second = from_seconds(1)
    # Submission, assignment after it, run time: on the machine where the job ends up.
    home, away, refused = 4 * d, 4 * d + between, 8 * d + between
    by_pencil = {
        (0, 1): (100 * second, home, 500 * second),
        (0, 2): (200 * second, away, 50 * second),
        (1, 1): (300 * second, refused, 50 * second),
        (1, 2): (400 * second, home, 25 * second),
    }
    results, wrong = run.results, {"assignments": 0, "starts": 0, "ends": 0}
    free_at = 100 * second + 5 * d + 500 * second
    for row in range(len(results)):
        key = (int(results.vo[row]), int(results.number[row]))
        submitted, to_assign, run_us = by_pencil[key]
        start = submitted + to_assign + d
        if key == (1, 1):
            start = max(start, free_at)
        placement, outcome = results.placement, results.outcome
        wrong["assignments"] += int(placement.assigned_us[row] != submitted + to_assign)
        wrong["starts"] += int(outcome.start_us[row] != start)
        wrong["ends"] += int(outcome.end_us[row] != start + run_us)
    return {f"{name} that differ": float(count) for name, count in wrong.items()}


def no_pencil_difference(scenario: Scenario) -> dict[str, float]:
    """What is expected of `two_vos`."""
    return {"assignments that differ": 0.0, **no_difference(scenario)}
