"""Views of clusters for tests, written by hand or random, and random clusters with their jobs."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.model.job import dtypes
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import ClusterView, JobColumns, MachineColumns
from grid.workload.convergent import (
    ConvergentJobs,
    ConvergentMachines,
    convergent_jobs,
    convergent_licenses,
    convergent_machines,
)

S = SECOND_US

_DEFAULTS: dict[str, Any] = {
    "submit_us": 0,
    "arrival_us": 0,
    "processors": 1,
    "estimate_us": 100 * S,
    "reference_mips": 100.0,
    "deadline_us": NEVER,
    "licenses": 0,
    "user": 0,
    "input_mb": 0.0,
    "checkpointable": False,
    "bound_machine": -1,
    "machine": -1,
    "start_us": NEVER,
    "expected_end_us": NEVER,
    "done_us": 0,
}


def waiting(**columns: Any) -> dict[str, Any]:
    """A job that waits, by default 10,000 MI of work and nothing else asked for."""
    return {**_DEFAULTS, **columns}


def running(machine: int, start_s: float, end_s: float, **columns: Any) -> dict[str, Any]:
    """A job that has run on `machine` since `start_s` and is expected to end at `end_s`."""
    times = {"start_us": round(start_s * S), "expected_end_us": round(end_s * S)}
    return {**_DEFAULTS, "machine": machine, **times, **columns}


def view_of(
    now_s: float,
    jobs: list[dict[str, Any]],
    mips: list[float],
    *,
    cpus: list[int] | None = None,
    usable: list[int] | None = None,
    copies: tuple[int, ...] = (),
) -> ClusterView:
    """The view of a cluster; machines have 8 CPUs and can run all licenses if nothing is said."""
    count = len(mips)
    everything = (1 << len(copies)) - 1
    columns = {
        name: np.array([job.get(name, 0) for job in jobs], dtype)
        for name, dtype in dtypes(JobColumns).items()
    }
    columns["serial"] = np.arange(len(jobs))
    table = JobColumns(**columns)
    runs = np.array([job["expected_end_us"] != NEVER for job in jobs], np.bool_)
    ends = np.lexsort((table.serial, table.expected_end_us))
    size = np.array(cpus or [8] * count, np.int64)
    free, held = size.copy(), np.zeros(count, np.int64)
    for slot in np.flatnonzero(runs):
        free[table.machine[slot]] -= table.processors[slot]
        held[table.machine[slot]] |= table.licenses[slot]
    used = [int((held >> license_ & 1).sum()) for license_ in range(len(copies))]
    nothing = np.zeros(0, np.int64)
    machines = MachineColumns(
        size,
        np.array(mips, np.float64),
        np.array(usable if usable is not None else [everything] * count, np.int64),
        np.zeros(count, np.int64),
        np.lexsort((np.arange(count), -size, -np.array(mips))),
        np.full(count, np.inf),
    )
    return ClusterView(
        round(now_s * S),
        machines,
        free,
        table,
        np.flatnonzero(~runs),
        ends[runs[ends]],
        nothing,
        nothing,
        np.array(copies, np.int64) - np.array(used, np.int64),
        (held[:, None] >> np.arange(len(copies))) & 1,
        machines.ram_mb,
    )


def random_view(
    seed: int,
    *,
    jobs: int = 30,
    machines: int = 8,
    licenses: int = 5,
    copies: tuple[int, int] = (0, 7),
    one_a_machine: bool = False,
) -> ClusterView:
    """A state that a farm may be in: running, preempted and new jobs, late and early ones."""
    rng = np.random.default_rng(seed)
    now_s = 5000
    mips = rng.integers(200, 601, machines).astype(float).tolist()
    cpus = rng.integers(1, 9, machines).tolist()
    usable = (rng.random((machines, licenses)) < 0.9) @ (1 << np.arange(licenses))
    left = rng.integers(*copies, licenses, endpoint=True).tolist()
    total = tuple(left)
    free = list(cpus)
    held = [0] * machines
    made = []
    for _ in range(jobs):
        estimate_s = float(rng.uniform(500, 3000))
        submit_s = float(rng.uniform(0, now_s))
        due_s = submit_s + estimate_s * (1 + rng.uniform(25, 150) / 100)
        wanted = int((rng.random(licenses) < 0.2) @ (1 << np.arange(licenses)))
        job = waiting(
            submit_us=round(submit_s * S),
            processors=int(rng.integers(1, 9)),
            estimate_us=round(estimate_s * S),
            reference_mips=float(rng.integers(200, 601)),
            deadline_us=NEVER if rng.random() < 0.3 else round(due_s * S),
            licenses=wanted,
            user=int(rng.integers(0, 100)),
            input_mb=float(rng.uniform(100, 800)),
            checkpointable=bool(rng.random() < 0.3),
            bound_machine=int(rng.integers(machines)) if rng.random() < 0.05 else -1,
        )
        made.append(job)
        m = int(rng.integers(machines))
        kind = rng.random()
        if kind < 0.5:
            continue
        done = float(rng.random()) * estimate_s
        ratio = job["reference_mips"] / mips[m]
        if kind < 0.7:
            job.update(machine=m, done_us=round(done * S), start_us=round(submit_s * S))
            continue
        new = [n for n in range(licenses) if wanted >> n & 1 and not held[m] >> n & 1]
        fits = free[m] >= job["processors"] and wanted & ~int(usable[m]) == 0
        fits &= job["bound_machine"] in (-1, m) and all(left[n] for n in new)
        if not fits or (one_a_machine and free[m] < cpus[m]):
            continue
        free[m] -= job["processors"]
        held[m] |= wanted
        for n in new:
            left[n] -= 1
        start_s = float(rng.uniform(submit_s, now_s))
        end_s = max(now_s + 1e-3, start_s + (estimate_s - done) * ratio)
        job.update(running(m, start_s, end_s, **_without_times(job)), done_us=round(done * S))
    return view_of(now_s, made, mips, cpus=cpus, usable=usable.tolist(), copies=total)


def _without_times(job: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in job.items() if k not in ("machine", "start_us", "expected_end_us")}


def random_cluster(seed: int) -> tuple[Cluster, JobTable]:
    """Few machines, scarce licenses, jobs that come faster than they can be done."""
    rng = np.random.default_rng(seed)
    kind = ConvergentMachines(
        licenses=int(rng.integers(0, 7)),
        license_suitability=float(rng.uniform(0.6, 1)),
        license_ratio=(0.2, 0.7),
    )
    machines = convergent_machines(int(rng.integers(2, 7)), rng, kind)
    licenses = convergent_licenses(machines, kind, rng)
    platform = Cluster("c", machines, licenses=licenses)
    settings = ConvergentJobs(
        jobs=int(rng.integers(5, 26)),
        mean_interarrival_s=float(rng.uniform(1, 600)),
        checkpointable=0.3,
        cpus=(1, max(machine.cpus for machine in machines)),
    )
    vo = VirtualOrganization("v", (platform,))
    return platform, convergent_jobs(["v"], [vo], rng, settings)["v"]
