"""Placement of the entities of a grid on processes. It never changes a result."""

from __future__ import annotations

from grid.config.build import Grid
from grid.model.platform import Cluster

JOB_US = 150.0
"""CPU time of the messages of a job."""
PLANS_US = {
    "fcfs": 70.0,
    "eg_edf": 80.0,
    "easy": 110.0,
    "tabu": 260.0,
    **dict.fromkeys(("conservative", "selective"), 400.0),
    **dict.fromkeys(("cs_i_np", "cs_i_p", "cs_ni_np", "cs_ni_p"), 600.0),
    **dict.fromkeys(("cs2", "cs2_cs", "cs2_cs_td", "cs2_td"), 800.0),
}
"""Measured CPU time a job by policy, on 150 machines with long queues."""
OTHER_US = 200.0


def processes_of(grid: Grid, placement: str, actors: int) -> list[int]:
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
    work = [
        jobs * (JOB_US + max((_plans_us(cluster) for cluster in vo.clusters), default=0.0))
        for jobs, vo in zip(grid.jobs_by_vo(), grid.vos, strict=True)
    ]
    loads = [0.0] * max(1, min(actors, len(work)))
    process_of_vo = [0] * len(work)
    for vo in sorted(range(len(work)), key=lambda v: (-work[v], v)):
        lightest = loads.index(min(loads))
        process_of_vo[vo] = lightest
        loads[lightest] += work[vo] + 1
    return [process_of_vo[vo] for vo in grid.sites]


def _plans_us(cluster: Cluster) -> float:
    return PLANS_US.get(cluster.policy.name, OTHER_US)
