"""Views of clusters for tests, written by hand or random, and random clusters with their jobs."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields, replace
from typing import Any

import numpy as np

from grid.cluster import make_cluster
from grid.model.job import dtypes
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import NEVER, SECOND_US, Time
from grid.policies.interface import ClusterView, JobColumns, MachineColumns, Plan, Policy
from grid.policies.registry import make_policy
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
        if name not in ("resources", "size_table")
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
        machines.resources,
    )


class Recorder:
    """A policy that keeps a copy of each view in which there are jobs."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.views: list[ClusterView] = []

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.queue) + len(view.running):
            copied = deepcopy(view)
            names = (one.name for one in fields(JobColumns) if one.name != "tables")
            copied.jobs = JobColumns(**{name: getattr(copied.jobs, name) for name in names})
            self.views.append(copied)
        return self.policy.plan(view, now)


def random_view(seed: int, *, one_a_machine: bool = False) -> ClusterView:
    """A view of a random cluster in a run: running, preempted and new jobs, late and early ones.

    Estimates are wrong, and one of the jobs is bound to a machine if it waits.
    """
    rng = np.random.default_rng(seed)
    platform, jobs = random_cluster(seed)
    run_us = np.rint(jobs.estimate_us * rng.uniform(0.3, 1.7, len(jobs))).astype(np.int64)
    recorder = Recorder(make_policy("cs_i_p" if one_a_machine else "cs2", {}))
    cluster = make_cluster(replace(platform, overrun="extend"), recorder)
    cluster.submit_rows(replace(jobs, run_us=run_us))
    cluster.advance(NEVER)
    view = recorder.views[rng.integers(len(recorder.views))]
    view.jobs.bound_machine[view.queue[:1]] = rng.integers(len(view.free))
    return view


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
