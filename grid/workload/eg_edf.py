"""The grid and the jobs of the EG-EDF and tabu search study (EG section 4).

The paper specifies 150 machines of 1 to 16 CPUs and speeds of 200 to 600; 3000 jobs of 1 to 8 CPUs
and 500 to 3000 s, 70 % of them with a deadline, all uniform; exponential interarrival times, with
means that are "chosen in a way that the available computational power is able to avoid the job
queue increasing when it is fixed equal to 5". What it leaves open, and how it is interpreted here:

- Mean interarrival times: 1, 2, 3, 4, 5 s.
- Reference speed of execution times: 300. A job then is 1750 s x 4.5 CPUs x 300 on average, the
  grid 150 x 8.5 CPUs x 400, which can run a job every 4.6 s: 5 is the first of the five times at
  which the queue need not grow, as the paper says. (With the mean speed, 400, as the reference,
  the grid would run a job every 6.2 s, and the queue would also grow at 5.)
- Deadlines: as in the studies of the same authors, submission + run time * (1 + U[25, 150] / 100).
- Speeds are real numbers, CPUs integers. No job is wider than the widest machine.
- Run times are known exactly. `estimate_per_run` draws inaccurate estimates, for the paper's future
  work. Run times and deadlines do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from grid.model.job_table import JobTable
from grid.model.platform import Machine, VirtualOrganization
from grid.model.time import NEVER
from grid.workload.generators import GeneratorSettings, Range, microseconds

_Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
_Positive = Annotated[float, Field(ge=1e-3, le=1e9)]
_Mips = Annotated[float, Field(ge=1, le=1e9)]

_Percent = Annotated[float, Field(ge=0, le=1e6)]


class EgEdfMachines(GeneratorSettings):
    """Settings of the machines; the defaults are those of the paper."""

    cpus: Range[_Count] = Field(
        default=(1, 16), description="minimum and maximum of CPUs of a machine"
    )
    mips: Range[_Mips] = Field(
        default=(200.0, 600.0), description="minimum and maximum of the speed of a machine"
    )


class EgEdfJobs(GeneratorSettings):
    """Settings of the jobs; the defaults are those of the paper, if stated."""

    jobs: _Count = Field(default=3000, description="number of jobs")
    mean_interarrival_s: Annotated[float, Field(ge=0, le=1e9)] = Field(
        default=5.0, description="mean time between two submissions"
    )
    run_s: Range[_Positive] = Field(
        default=(500.0, 3000.0),
        description="minimum and maximum of run times on the reference machine",
    )
    cpus: Range[_Count] = Field(default=(1, 8), description="minimum and maximum of CPUs of a job")
    with_deadline: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.7, description="share of jobs with a deadline"
    )
    deadline_percent: Range[_Percent] = Field(
        default=(25.0, 150.0),
        description=(
            "minimum and maximum of the time between the earliest end and the deadline, in "
            "percent of the run time"
        ),
    )
    reference_mips: _Mips = Field(default=300.0, description="speed to which run times refer")
    estimate_per_run: Range[_Positive] = Field(
        default=(1.0, 1.0), description="minimum and maximum of the estimate over the run time"
    )


def eg_edf_machines(
    count: int, rng: np.random.Generator, settings: EgEdfMachines
) -> tuple[Machine, ...]:
    """`count` machines."""
    cpus = rng.integers(*settings.cpus, size=count, endpoint=True).tolist()
    mips = rng.uniform(*settings.mips, size=count).tolist()
    return tuple(Machine(f"m{number}", cpus[number], mips[number]) for number in range(count))


def eg_edf_jobs(
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    rng: np.random.Generator,
    settings: EgEdfJobs,
) -> dict[str, JobTable]:
    """The jobs of each VO in order of submission: one stream, assigned to the VOs at random.

    Two streams from equal `rng`s that differ only in `mean_interarrival_s` or `estimate_per_run`
    are otherwise equal, so they can be compared job by job.
    """
    count = settings.jobs
    gaps_s = rng.exponential(1.0, count) * settings.mean_interarrival_s
    submit_us = np.cumsum(microseconds(gaps_s))
    run_us = microseconds(rng.uniform(*settings.run_s, count))
    allowance = 1.0 + rng.uniform(*settings.deadline_percent, count) / 100.0
    deadline_us = submit_us + np.rint(run_us * allowance).astype(np.int64)
    deadline_us[rng.random(count) >= settings.with_deadline] = NEVER
    owner = rng.integers(len(names), size=count)
    draws = rng.random(count)
    low, high = settings.estimate_per_run
    shares = low + rng.random(count) * (high - low)
    estimate_us = np.maximum(1, np.rint(run_us * shares)).astype(np.int64)
    tables = {}
    for position, (name, vo) in enumerate(zip(names, vos, strict=True)):
        rows = np.flatnonzero(owner == position)
        least, most = settings.cpus
        most = min(most, max(m.cpus for cluster in vo.clusters for m in cluster.machines))
        if least > most:
            raise ValueError(f"no machine of {name} has {least} CPUs")
        tables[name] = JobTable.of(
            number=rows,
            submit_us=submit_us[rows],
            processors=least + np.floor(draws[rows] * (most - least + 1)).astype(np.int64),
            estimate_us=estimate_us[rows],
            run_us=run_us[rows],
            reference_mips=np.full(len(rows), settings.reference_mips),
            deadline_us=deadline_us[rows],
        )
    return tables
