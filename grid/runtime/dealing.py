"""Which process has which entities of a grid. It never changes a result."""

from __future__ import annotations

from grid.scenario.build import Grid

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
"""What a policy takes for a job on 150 machines where many wait, measured (see the page on costs).

A wrong figure costs time and nothing else."""
OTHER_US = 200.0


def deal(grid: Grid, placement: str, actors: int) -> list[int]:
    """The process of each entity of the grid, processes numbered from zero without gaps.

    Placement `entity` gives each its own; `cluster` does so to each cluster, and one to what else a
    VO has; `vo` keeps the entities of a VO together and deals the VOs over `actors` processes, the
    one that is expected to work most first, always to the process with least work so far.
    """
    if placement == "entity":
        return list(range(len(grid.names)))
    if placement == "cluster":
        together = zip(grid.names, grid.sites, strict=True)
        homes = [name if name in grid.local_dispatchers else site for name, site in together]
        number = {home: process for process, home in enumerate(dict.fromkeys(homes))}
        return [number[home] for home in homes]
    work = expected_work_us(grid)
    loads = [0.0] * min(actors, len(work))
    process_of_vo = [0] * len(work)
    for vo in sorted(range(len(work)), key=lambda v: (-work[v], v)):
        lightest = min(range(len(loads)), key=lambda p: (loads[p], p))
        process_of_vo[vo] = lightest
        loads[lightest] += work[vo] + 1
    return [process_of_vo[vo] for vo in grid.sites]


def expected_work_us(grid: Grid) -> list[float]:
    """What the jobs of each VO take, if they stay there, in microseconds of a processor."""
    per_job = [
        JOB_US
        + max((PLANS_US.get(cluster.policy, OTHER_US) for cluster in vo.clusters), default=0.0)
        for vo in grid.vos
    ]
    return [jobs * each for jobs, each in zip(grid.jobs_by_vo(), per_job, strict=True)]
