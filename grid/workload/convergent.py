"""The machines and jobs of the studies of Convergent Scheduling and EG-EDF, by the same group.

The papers of Convergent Scheduling (C07 section 6, CS2 section V) specify the ranges of all values,
which are uniform; exponential interarrival times; 30 % of the jobs without a deadline; in CS2 2 %
that are checkpointable. What they leave open, and how it is interpreted here:

- "Deadline [25-150]" is a percentage: deadline = submission + estimate * (1 + U[25, 150] / 100),
  the estimate being on the job's own reference machine. `deadline` selects another interpretation:
  U percent of the estimate alone, or U seconds beyond the estimate.
- A license has floor(ratio * machines on which it is usable) copies, the ratio drawn for each.
- "CPUs [1-8]" and benchmarks are integers. Run times are known exactly.
- CPUs and licenses of a job that no machine of the farm can run are drawn again.
- C07's jobs keep their progress on every machine (its formulas have one `Progress` for all), so for
  it `checkpointable` is 1.
- Input of 100 to 800 MB is stored on one machine of the farm, that of the job's user: the data of
  user number u are on machine u.

EG section 4 specifies 150 machines of 1 to 16 CPUs and speeds of 200 to 600; 3000 jobs of 1 to 8
CPUs and 500 to 3000 s, 70 % of them with a deadline, all uniform; exponential interarrival times,
with means that are "chosen in a way that the available computational power is able to avoid the job
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
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Ints
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, License, Machine, VirtualOrganization
from grid.model.time import NEVER
from grid.workload.generators import (
    GeneratedMachines,
    GeneratorSettings,
    Range,
    microseconds,
    rows_by_vo,
)

_ATTEMPTS = 1000

_Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
_Probability = Annotated[float, Field(ge=0, le=1)]
_Amount = Annotated[float, Field(ge=0, le=1e9)]
_Positive = Annotated[float, Field(ge=1e-3, le=1e9)]
_Mips = Annotated[float, Field(ge=1, le=1e9)]
_Percent = Annotated[float, Field(ge=0, le=1e6)]


class ConvergentMachines(GeneratorSettings):
    """Settings of the machines; the defaults are those of both papers."""

    cpus: Range[_Count] = (1, 8)
    """minimum and maximum of CPUs of a machine"""
    mips: Range[_Count] = (200, 600)
    """minimum and maximum speed of a machine"""
    licenses: Annotated[int, Field(ge=0, le=62, strict=True)] = 20
    """number of different licenses"""
    license_suitability: _Probability = 0.9
    """share of machines that support a license"""
    license_ratio: Range[_Probability] = (0.55, 0.65)
    """minimum and maximum of copies over machines that support the license"""


class ConvergentJobs(GeneratorSettings):
    """Settings of the jobs; the defaults are those of CS2 if the papers differ."""

    jobs: _Count = 1500
    """number of jobs"""
    mean_interarrival_s: _Amount = 4.0
    """mean time between two submissions"""
    estimate_s: Range[_Positive] = (500.0, 3000.0)
    """minimum and maximum estimate on the reference machine"""
    deadline_percent: Range[_Amount] = (25.0, 150.0)
    """minimum and maximum of the value that `deadline` defines"""
    deadline: Literal["beyond_estimate", "of_estimate", "seconds"] = "beyond_estimate"
    """meaning of `deadline_percent`: percent of the estimate after its end, percent of the estimate
    after the submission, or seconds after the end of the estimate"""
    without_deadline: _Probability = 0.3
    """share of jobs without a deadline"""
    cpus: Range[_Count] = (1, 8)
    """minimum and maximum of CPUs of a job"""
    reference_mips: Range[_Count] = (200, 600)
    """minimum and maximum of the speed to which estimates refer"""
    license_needs: _Probability = 0.2
    """share of the licenses that a job requests"""
    checkpointable: _Probability = 0.02
    """share of checkpointable jobs"""
    input_mb: Range[_Amount] = (100.0, 800.0)
    """minimum and maximum input of a job"""


def convergent_machines(
    count: int, rng: np.random.Generator, settings: ConvergentMachines
) -> tuple[Machine, ...]:
    """`count` machines with the licenses l0, l1, ... that each can run."""
    cpus = rng.integers(*settings.cpus, size=count, endpoint=True)
    mips = rng.integers(*settings.mips, size=count, endpoint=True)
    usable = rng.random((count, settings.licenses)) < settings.license_suitability
    return tuple(
        Machine(
            f"m{number}",
            int(cpus[number]),
            float(mips[number]),
            licenses=tuple(f"l{license_}" for license_ in np.flatnonzero(usable[number])),
        )
        for number in range(count)
    )


def convergent_farm(
    count: int, rng: np.random.Generator, settings: ConvergentMachines
) -> GeneratedMachines:
    """The machines of the Convergent Scheduling papers, with floating licenses."""
    machines = convergent_machines(count, rng, settings)
    return GeneratedMachines(machines, convergent_licenses(machines, settings, rng))


def convergent_licenses(
    machines: Sequence[Machine], settings: ConvergentMachines, rng: np.random.Generator
) -> tuple[License, ...]:
    """The licenses of a farm, floating, each with its number of copies."""
    names = [f"l{number}" for number in range(settings.licenses)]
    usable = [sum(name in machine.licenses for machine in machines) for name in names]
    ratios = rng.uniform(*settings.license_ratio, size=len(names))
    copies = np.floor(ratios * usable).astype(int).tolist()
    return tuple(License(name, number) for name, number in zip(names, copies, strict=True))


def convergent_jobs(
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    rng: np.random.Generator,
    settings: ConvergentJobs,
) -> dict[str, JobTable]:
    """Jobs in order of submission: one stream, assigned to the VOs at random.

    Raises ValueError if no machine of a VO can run the jobs.
    """
    count = settings.jobs
    submit_us = np.cumsum(microseconds(rng.exponential(settings.mean_interarrival_s, count)))
    estimate_us = microseconds(rng.uniform(*settings.estimate_s, count))
    deadline_us = submit_us + _allowed_us(settings, estimate_us, rng)
    deadline_us[rng.random(count) < settings.without_deadline] = NEVER
    reference_mips = rng.integers(*settings.reference_mips, size=count, endpoint=True)
    input_mb = rng.uniform(*settings.input_mb, count)
    checkpointable = rng.random(count) < settings.checkpointable
    tables = {}
    for (name, rows), vo in zip(rows_by_vo(names, count, rng), vos, strict=True):
        processors, licenses = _requirements(vo, settings, len(rows), rng)
        machines = sum(len(cluster.machines) for cluster in vo.clusters)
        tables[name] = JobTable.of(
            number=rows,
            user=rng.integers(machines, size=len(rows)),
            submit_us=submit_us[rows],
            processors=processors,
            estimate_us=estimate_us[rows],
            run_us=estimate_us[rows],
            reference_mips=reference_mips[rows],
            deadline_us=deadline_us[rows],
            licenses=licenses,
            input_mb=input_mb[rows],
            checkpointable=checkpointable[rows],
        )
    return tables


def _allowed_us(settings: ConvergentJobs, estimate_us: Ints, rng: np.random.Generator) -> Ints:
    """Time from submission to the deadline, by how [25-150] is read."""
    drawn = rng.uniform(*settings.deadline_percent, len(estimate_us))
    if settings.deadline == "seconds":
        return estimate_us + microseconds(drawn)
    least = 0.0 if settings.deadline == "of_estimate" else 1.0
    return np.rint(estimate_us * (least + drawn / 100.0)).astype(np.int64)


def _requirements(
    vo: VirtualOrganization, settings: ConvergentJobs, jobs: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """CPUs and license mask of each job, such that some machine of the VO has and can run them."""
    processors, licenses = np.zeros((2, jobs), np.int64)
    machines = [_usable(cluster) for cluster in vo.clusters]
    cpus = np.concatenate([cpus for cpus, _ in machines])
    usable = np.concatenate([usable for _, usable in machines])
    bits = 1 << np.arange(max(len(cluster.licenses) for cluster in vo.clusters), dtype=np.int64)
    missing = np.arange(jobs)
    for _ in range(_ATTEMPTS):
        if len(missing) == 0:
            return processors, licenses
        size = len(missing)
        processors[missing] = rng.integers(*settings.cpus, size=size, endpoint=True)
        licenses[missing] = (rng.random((size, len(bits))) < settings.license_needs) @ bits
        fits = cpus >= processors[missing, None]
        fits &= licenses[missing, None] & ~usable == 0
        missing = missing[~fits.any(axis=1)]
    raise ValueError(f"no machine of {vo.name} can run jobs with {settings.cpus} processors")


def _usable(cluster: Cluster) -> tuple[Ints, Ints]:
    """CPUs of each machine, and the bit mask of the cluster's licenses that it can run."""
    names = [license_.name for license_ in cluster.licenses if license_.copies]
    bit = {license_.name: 1 << number for number, license_ in enumerate(cluster.licenses)}
    cpus = np.array([machine.cpus for machine in cluster.machines], np.int64)
    usable = np.array(
        [sum(bit[name] for name in names if name in m.licenses) for m in cluster.machines], np.int64
    )
    return cpus, usable


# EG-EDF


class EgEdfMachines(GeneratorSettings):
    """Settings of the machines; the defaults are those of the paper."""

    cpus: Range[_Count] = (1, 16)
    """minimum and maximum of CPUs of a machine"""
    mips: Range[_Mips] = (200.0, 600.0)
    """minimum and maximum speed of a machine"""


class EgEdfJobs(GeneratorSettings):
    """Settings of the jobs; the defaults are those of the paper, if stated."""

    jobs: _Count = 3000
    """number of jobs"""
    mean_interarrival_s: _Amount = 5.0
    """mean time between two submissions"""
    run_s: Range[_Positive] = (500.0, 3000.0)
    """minimum and maximum run time on the reference machine"""
    cpus: Range[_Count] = (1, 8)
    """minimum and maximum of CPUs of a job"""
    with_deadline: _Probability = 0.7
    """share of jobs with a deadline"""
    deadline_percent: Range[_Percent] = (25.0, 150.0)
    """minimum and maximum of the time between the earliest end and the deadline, in percent of the
    run time"""
    reference_mips: _Mips = 300.0
    """speed to which run times refer"""
    estimate_per_run: Range[_Positive] = (1.0, 1.0)
    """minimum and maximum of the estimate over the run time"""


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
    """Jobs in order of submission: one stream, assigned to the VOs at random.

    Streams from the same seed with different `mean_interarrival_s` or `estimate_per_run` are
    otherwise identical, so they can be compared job by job.
    """
    count = settings.jobs
    gaps_s = rng.exponential(1.0, count) * settings.mean_interarrival_s
    submit_us = np.cumsum(microseconds(gaps_s))
    run_us = microseconds(rng.uniform(*settings.run_s, count))
    allowance = 1.0 + rng.uniform(*settings.deadline_percent, count) / 100.0
    deadline_us = submit_us + np.rint(run_us * allowance).astype(np.int64)
    deadline_us[rng.random(count) >= settings.with_deadline] = NEVER
    owned = rows_by_vo(names, count, rng)
    draws = rng.random(count)
    low, high = settings.estimate_per_run
    shares = low + rng.random(count) * (high - low)
    estimate_us = np.maximum(1, np.rint(run_us * shares)).astype(np.int64)
    tables = {}
    for (name, rows), vo in zip(owned, vos, strict=True):
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
