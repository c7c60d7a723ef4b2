"""What no schedule can beat: a lower bound of the mean slowdown, from the work that arrives.

A farm does at most all its CPUs' instructions in a second. So whatever it does could be done, at
the same times or sooner, by one machine of that speed which may switch between jobs at will and
share itself among them. For such a machine the least sum of weighted completion times has a known
bound: sum of w (M + p / 2), where p is a job's time on that machine, and M its mean busy time if
at every instant the job with the highest w / p is served (Goemans, Queyranne, Schulz, Skutella and
Wang, "Single machine scheduling with release dates", SIAM J. Discrete Math. 15, 2002). With the
slowdown of a job as response time / run time, w is one over the longest run time that a machine of
the farm could give it.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from grid.model.job_table import JobTable
from grid.model.platform import Cluster
from grid.model.time import SECOND_US
from grid.scenario.build import Grid

FloatColumn = npt.NDArray[np.float64]


def slowdown_bound(grid: Grid) -> float | None:
    """The least mean slowdown that any schedule of the grid's jobs can have; None where unknown.

    Known where there is one VO with one cluster, all of whose jobs run for their whole length.
    """
    tables = [jobs for jobs in (*grid.submitted, *grid.fed) if jobs is not None]
    if len(grid.vos) != 1 or len(grid.vos[0].clusters) != 1 or len(tables) != 1:
        return None
    jobs = tables[0]
    if not len(jobs) or (jobs.run_us > jobs.estimate_us).any():
        return None
    return _mean_slowdown_bound(jobs, grid.vos[0].clusters[0])


def _mean_slowdown_bound(jobs: JobTable, cluster: Cluster) -> float:
    speed = sum(machine.cpus * machine.mips for machine in cluster.machines)
    slowest = min(machine.mips for machine in cluster.machines)
    instructions = jobs.run_us / SECOND_US * jobs.reference_mips
    alone = instructions * jobs.processors / speed
    longest = instructions / slowest
    release = jobs.submit_us / SECOND_US
    busy = mean_busy_times(release, alone, 1.0 / longest)
    completion = busy + alone / 2
    return max(1.0, float(((completion - release) / longest).mean()))


def mean_busy_times(release: FloatColumn, length: FloatColumn, weight: FloatColumn) -> FloatColumn:
    """When each job is served on average, if the one with the highest weight / length always is.

    `release` is in rising order, `length` above zero; shapes (jobs,), in seconds.
    """
    moments = np.zeros(len(length))
    left = length.astype(np.float64).copy()
    waiting: list[tuple[float, int]] = []
    now, coming = 0.0, 0
    while coming < len(release) or waiting:
        if not waiting:
            now = max(now, float(release[coming]))
        while coming < len(release) and release[coming] <= now:
            heapq.heappush(waiting, (-float(weight[coming] / length[coming]), coming))
            coming += 1
        job = waiting[0][1]
        until = now + float(left[job])
        if coming < len(release):
            until = min(until, float(release[coming]))
        moments[job] += (until**2 - now**2) / 2
        if until >= now + left[job]:
            heapq.heappop(waiting)
            left[job] = 0.0
        else:
            left[job] -= until - now
        now = until
    means: FloatColumn = moments / length
    return means
