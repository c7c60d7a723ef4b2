"""The grid and the jobs of the EG-EDF and tabu search study (EG section 4).

What the paper gives: 150 machines of 1 to 16 CPUs and speeds of 200 to 600; 3000 jobs of 1 to 8
CPUs and 500 to 3000 s, 70 % of them with a deadline, all uniform; exponential times between jobs,
with means that are "chosen in a way that the available computational power is able to avoid the
job queue increasing when it is fixed equal to 5". What it leaves open, and how it is read here:

- Mean times between jobs: 1, 2, 3, 4, 5 s.
- Speed of the machine that execution times are given for: 300. A job then is 1750 s x 4.5 CPUs
  x 300 on average, the grid 150 x 8.5 CPUs x 400, which can take a job every 4.6 s: 5 is the first
  of the five times at which the queue need not grow, as the paper says. (Given for a machine of
  the mean speed, 400, it would take one every 6.2 s, and the queue would grow at 5 as well.)
- Deadlines: as in the studies of the same authors, submission + run time * (1 + U[25, 150] / 100).
- Speeds are real numbers, CPUs whole ones. No job is wider than the widest machine.
- Run times are known exactly. `estimate_per_run` draws estimates that are wrong, for the paper's
  future work. Run times stay as they are, and deadlines count from them: only what is known of the
  jobs changes, and with it what a schedule is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from grid.model.job_table import JobTable
from grid.model.platform import Machine, VirtualOrganization
from grid.model.time import NEVER, SECOND_US
from grid.workload.ranges import in_order

_Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
_Positive = Annotated[float, Field(ge=1e-3, le=1e9)]
_Mips = Annotated[float, Field(ge=1, le=1e9)]


_Counts = Annotated[tuple[_Count, _Count], AfterValidator(in_order)]
_Range = Annotated[tuple[_Positive, _Positive], AfterValidator(in_order)]
_Speeds = Annotated[tuple[_Mips, _Mips], AfterValidator(in_order)]
_Percents = Annotated[
    tuple[Annotated[float, Field(ge=0, le=1e6)], Annotated[float, Field(ge=0, le=1e6)]],
    AfterValidator(in_order),
]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EgEdfMachines(_Settings):
    """Settings of the machines; the defaults are the paper's."""

    cpus: _Counts = Field(default=(1, 16), description="least and most of a machine")
    mips: _Speeds = Field(default=(200.0, 600.0), description="least and most of a machine")


class EgEdfJobs(_Settings):
    """Settings of the jobs; the defaults are the paper's where it names a figure."""

    jobs: _Count = Field(default=3000, description="how many")
    mean_interarrival_s: Annotated[float, Field(ge=0, le=1e9)] = Field(
        default=5.0, description="between two submissions"
    )
    run_s: _Range = Field(
        default=(500.0, 3000.0), description="least and most, on the reference machine"
    )
    cpus: _Counts = Field(default=(1, 8), description="least and most of a job")
    with_deadline: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.7, description="share of the jobs"
    )
    deadline_percent: _Percents = Field(
        default=(25.0, 150.0), description="least and most, of the run time, beyond its end"
    )
    reference_mips: _Mips = Field(default=300.0, description="that run times are given for")
    estimate_per_run: _Range = Field(
        default=(1.0, 1.0), description="least and most, as a multiple of the run time"
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
    """The jobs of each VO in order of submission: one stream, dealt over the VOs at random.

    Of two streams from equal `rng`s that differ in `mean_interarrival_s` or `estimate_per_run`
    only, all else is the same, so that they can be compared pair by pair.
    """
    count = settings.jobs
    gaps_us = np.rint(rng.exponential(1.0, count) * settings.mean_interarrival_s * SECOND_US)
    submit_us = np.cumsum(gaps_us.astype(np.int64))
    run_us = np.rint(rng.uniform(*settings.run_s, count) * SECOND_US).astype(np.int64)
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
