"""A stream of gangs and priority jobs like that of the gang migration study (GM sections III, VII).

The paper specifies 1500 jobs of 24,152 tasks in all, "extracted from a real distributed
environment" that it does not name; gangs of 2 to 64 tasks and priority jobs of one; random clock
rates from 1500 to 3000 MHz, and processing times for 2000 MHz. What it leaves open, and how it is
interpreted here:

- Gang sizes are as in logs of parallel machines: the logarithm of the size is uniform. Every tenth
  job is a priority job, which gives the paper's mean size (16.1); random gangs gain or lose tasks
  until the number of tasks equals the paper's.
- Arrivals are Poisson and processing times exponential, as in the studies that the paper builds on
  (Karatza's). The mean processing time is an hour; only its ratio to the cost of a migration and to
  latencies matters.
- The load is 0.75: arriving work keeps three quarters of all processors busy. The paper gives none.
  Its S3 uses about 75 % and loses little capacity to fragmentation, so that this is about the
  offered load; its S1, which uses 50 %, could not process it in the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from grid.model.arrays import Ints
from grid.model.fields import REFERENCE_MIPS
from grid.model.job_table import JobTable
from grid.model.platform import Machine, VirtualOrganization
from grid.model.time import SECOND_US
from grid.workload.generators import GeneratorSettings, capacity, rows_by_vo

STANDARD_MHZ = 2000.0
"""The clock rate of processing times, which is `REFERENCE_MIPS`."""

_Count = Annotated[int, Field(ge=1, le=10_000_000, strict=True)]
_Positive = Annotated[float, Field(ge=1e-3, le=1e9)]
_Mhz = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


class GangMachines(GeneratorSettings):
    """Settings of the processors; the defaults are those of the paper."""

    slowest_mhz: _Mhz = 1500
    """clock rate of the slowest processor"""
    fastest_mhz: _Mhz = 3000
    """clock rate of the fastest processor"""

    @model_validator(mode="after")
    def _in_order(self) -> GangMachines:
        if self.slowest_mhz > self.fastest_mhz:
            raise ValueError("slowest_mhz above fastest_mhz")
        return self


class GangJobs(GeneratorSettings):
    """Settings of the jobs; the defaults are those of the paper, if stated."""

    jobs: _Count = 1500
    """number of gangs and priority jobs"""
    tasks: _Count = 24152
    """total number of tasks"""
    largest: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = 64
    """tasks of the largest gang"""
    priority_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """share of priority jobs"""
    mean_run_s: _Positive = 3600.0
    """mean run time of a task at 2000 MHz"""
    load: _Positive = 0.75
    """offered load of all processors"""

    @property
    def priority_jobs(self) -> int:
        return round(self.jobs * self.priority_share)

    @model_validator(mode="after")
    def _enough_tasks(self) -> GangJobs:
        gangs, tasks = self.jobs - self.priority_jobs, self.tasks - self.priority_jobs
        if not 2 * gangs <= tasks <= self.largest * gangs:
            raise ValueError(f"{tasks} tasks for {gangs} gangs of 2 to {self.largest} tasks")
        return self


def gang_machines(
    count: int, rng: np.random.Generator, settings: GangMachines
) -> tuple[Machine, ...]:
    """`count` processors, each with its own integer clock rate in MHz."""
    clocks = rng.integers(settings.slowest_mhz, settings.fastest_mhz, size=count, endpoint=True)
    mips = clocks * (REFERENCE_MIPS / STANDARD_MHZ)
    return tuple(Machine(f"p{number}", 1, speed) for number, speed in enumerate(mips.tolist()))


def gang_jobs(
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    rng: np.random.Generator,
    settings: GangJobs,
) -> dict[str, JobTable]:
    """Jobs in order of submission: one stream, assigned to the VOs at random.

    The load refers to the processors of `vos`. Raises ValueError if no cluster of a VO can ever run
    the largest gang.
    """
    widest = min(max(cluster.widest for cluster in vo.clusters) for vo in vos)
    if widest < settings.largest:
        raise ValueError(f"gangs of up to {settings.largest} tasks, and {widest} processors")
    count = settings.jobs
    sizes = _sizes(settings, rng)
    run_us = np.maximum(1, np.rint(rng.exponential(settings.mean_run_s * SECOND_US, count)))
    gap_us = float((sizes * run_us).sum()) / capacity(vos) / settings.load / count
    submit_us = np.cumsum(rng.exponential(gap_us, count)).astype(np.int64)
    return {
        name: JobTable.of(
            number=rows,
            user=np.zeros(len(rows)),
            submit_us=submit_us[rows],
            processors=sizes[rows],
            estimate_us=run_us[rows],
            run_us=run_us[rows],
        )
        for name, rows in rows_by_vo(names, count, rng)
    }


def _sizes(settings: GangJobs, rng: np.random.Generator) -> Ints:
    """The number of tasks of each job, in random order, as many in all as the settings say."""
    gangs = settings.jobs - settings.priority_jobs
    logs = rng.uniform(np.log(2.0), np.log(settings.largest + 1.0), gangs)
    sizes = np.clip(np.floor(np.exp(logs)).astype(np.int64), 2, settings.largest)
    missing = settings.tasks - settings.priority_jobs - int(sizes.sum())
    while missing:
        step = 1 if missing > 0 else -1
        room = sizes < settings.largest if step > 0 else sizes > 2
        chosen = rng.permutation(np.flatnonzero(room))[: abs(missing)]
        sizes[chosen] += step
        missing -= step * len(chosen)
    return rng.permutation(np.concatenate([np.ones(settings.priority_jobs, np.int64), sizes]))
