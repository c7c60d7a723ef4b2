"""Placement of the entities of a grid on processes. It never changes a result."""

from __future__ import annotations

from collections.abc import Sequence

from grid.config.build import Grid

JOB_US = 150.0
"""CPU time of the messages of a job."""
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
    "selective": 420.0,
    "tabu": 260.0,
}
"""Measured CPU time a job by policy, on 150 machines with long queues."""
OTHER_US = 200.0


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
    work = expected_work_us(grid)
    loads = [0.0] * max(1, min(actors, len(work)))
    process_of_vo = [0] * len(work)
    for vo in sorted(range(len(work)), key=lambda v: (-work[v], v)):
        lightest = loads.index(min(loads))
        process_of_vo[vo] = lightest
        loads[lightest] += work[vo] + 1
    return [process_of_vo[vo] for vo in grid.sites]


def expected_work_us(grid: Grid) -> Sequence[float]:
    """Expected CPU time of the jobs of each VO in microseconds, if they stay there."""
    per_job = [
        JOB_US
        + max((PLANS_US.get(cluster.policy.name, OTHER_US) for cluster in vo.clusters), default=0.0)
        for vo in grid.vos
    ]
    return [jobs * each for jobs, each in zip(grid.jobs_by_vo(), per_job, strict=True)]
