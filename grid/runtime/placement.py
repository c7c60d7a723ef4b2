"""Which process has which entities of a grid. It never changes a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.config.build import Grid
from grid.policies.batsim.policy import Batsim

JOB_US = 150.0
"""What the messages of a job take, about."""
PLANS_US = {
    "conservative": 400.0,
    "cs2": 800.0,
    "cs2_cs": 800.0,
    "cs2_cs_td": 800.0,
    "cs2_td": 800.0,
    "cs_i_np": 600.0,
    "cs_i_p": 600.0,
    "cs_ni_np": 600.0,
    "cs_ni_p": 600.0,
    "eg_edf": 80.0,
    "easy": 110.0,
    "fcfs": 70.0,
    "flexible": 200.0,
    "selective": 420.0,
    "tabu": 260.0,
}
"""Measured CPU time a job by policy, on 150 machines with long queues."""
OTHER_US = 200.0
ENOUGH_SECONDS = 0.1
"""Rebalancing needs this much measured time of VOs."""
WORTH_IT = 1.1
"""Rebalancing needs this ratio of the largest load before to that after."""


def deal(grid: Grid, placement: str, actors: int) -> list[int]:
    """The process of each entity of the grid, processes numbered from zero without gaps.

    Placement `entity` gives each its own; `cluster` one to each cluster, and one to the other
    entities of a VO; `vo` keeps the entities of a VO together and assigns VOs to `actors` processes
    by expected work, largest first, to the process with the least work.
    """
    if placement == "entity":
        return list(range(len(grid.names)))
    if placement == "cluster":
        together = zip(grid.names, grid.sites, strict=True)
        homes = [name if "/cluster/" in name else site for name, site in together]
        number = {home: process for process, home in enumerate(dict.fromkeys(homes))}
        return [number[home] for home in homes]
    process_of_vo = dealt_by_work(expected_work_us(grid), actors)
    return [process_of_vo[vo] for vo in grid.sites]


def dealt_by_work(work: Sequence[float], actors: int) -> list[int]:
    """The process of each VO: largest work first, to the process with the least."""
    loads = [0.0] * min(actors, len(work))
    process_of_vo = [0] * len(work)
    for vo in sorted(range(len(work)), key=lambda v: (-work[v], v)):
        lightest = min(range(len(loads)), key=lambda p: (loads[p], p))
        process_of_vo[vo] = lightest
        loads[lightest] += work[vo] + 1
    return process_of_vo


def better_process_of(
    grid: Grid, process_of: Sequence[int], seconds: Sequence[float]
) -> list[int] | None:
    """The process of each entity after rebalancing by `better_dealing`.

    None as well if the entities of a VO are in several processes, or an external scheduler, which
    cannot be moved, decides for a cluster.
    """
    of_vo = dict(zip(grid.sites, process_of, strict=True))
    is_by_vo = all(of_vo[vo] == p for vo, p in zip(grid.sites, process_of, strict=True))
    found = better_dealing([of_vo[vo] for vo in range(len(grid.vos))], seconds)
    policies = (grid.policy_of(cluster) for vo in grid.vos for cluster in vo.clusters)
    if not is_by_vo or found is None or any(isinstance(one, Batsim) for one in policies):
        return None
    return [found[vo] for vo in grid.sites]


def better_dealing(process_of_vo: Sequence[int], seconds: Sequence[float]) -> list[int] | None:
    """The process of each VO by measured `seconds` of VOs; None if that hardly pays."""
    count = max(process_of_vo) + 1
    found = dealt_by_work([1e6 * one for one in seconds], count)
    heaviest = [
        np.bincount(placed, weights=seconds, minlength=count).max()
        for placed in (process_of_vo, found)
    ]
    is_better = sum(seconds) > ENOUGH_SECONDS and heaviest[0] > WORTH_IT * heaviest[1]
    return found if is_better else None


def expected_work_us(grid: Grid) -> list[float]:
    """Expected CPU time of the jobs of each VO in microseconds, if they stay there."""
    per_job = [
        JOB_US
        + max((PLANS_US.get(cluster.policy.name, OTHER_US) for cluster in vo.clusters), default=0.0)
        for vo in grid.vos
    ]
    return [jobs * each for jobs, each in zip(grid.jobs_by_vo(), per_job, strict=True)]
