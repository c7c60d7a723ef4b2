"""Compile or load kernels before a run is timed.

Each kind of cluster of the grid runs a few jobs that do not count, and each selection makes a
choice. In a live run, a kernel that is compiled at a job's arrival would delay the clock.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from grid.cluster import make_cluster
from grid.config.build import Grid
from grid.kernel.board import LeastOfClass
from grid.kernel.entity import random_stream
from grid.model.job import Job, Option, Requirement, RequirementKind
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, MachineOutage, VirtualOrganization
from grid.model.resources import STATUS_COLUMNS, ResourceTable, SomeResources, resources_of
from grid.model.time import SECOND_US
from grid.policies.batsim.policy import Batsim
from grid.protocol import names
from grid.protocol.known_state import NO_PLACES, NO_ROWS, fill_in, own_among, status_now
from grid.protocol.registry import ThirdPartySelection
from grid.protocol.selection import Selection, best_choice

AN_OUTAGE = MachineOutage(0, SECOND_US // 2, SECOND_US)
"""Of a machine that a job runs on then."""


def warm_up(grid: Grid, members: Collection[str] | None = None, *, may_break: bool = False) -> None:
    """Compile, or load, what a run of `grid` calls; of `members` of it, if they are given.

    With `may_break`, of a run in which machines may be taken down. Third-party plugins are called
    in runs only.
    """
    here = frozenset(grid.names if members is None else members)
    done: dict[str, None] = {}
    for vo in grid.vos:
        for cluster in vo.clusters:
            if names.local_dispatcher(vo.name, cluster.name) in here and not cluster.is_real:
                breaks = bool(grid.outages_of(vo, cluster))
                shape = cluster.policy, len(cluster.machines) == 1, bool(cluster.licenses), breaks
                if repr(shape) not in done:
                    done[repr(shape)] = None
                    _run_jobs(grid, cluster, breaks, may_break)
        if here & {names.scheduler(vo.name), names.information_service(vo.name)}:
            selection = grid.selection_of(vo)
            if repr(type(selection)) not in done:
                done[repr(type(selection))] = None
                _select(vo, selection)


def _run_jobs(grid: Grid, cluster: Cluster, breaks: bool, may_break: bool) -> None:
    """Run jobs on such a cluster, more than fit at once, routed and direct."""
    policy = grid.policy_of(cluster)
    if hasattr(policy, "origin") or isinstance(policy, Batsim):
        return
    # Two jobs at once request more than one copy of a license.
    licenses = tuple(replace(one, copies=1) for one in cluster.licenses)
    state = make_cluster(
        replace(cluster, licenses=licenses),
        policy,
        outages=(AN_OUTAGE,) * breaks,
        jobs=grid.job_features,
        may_break=may_break,
    )
    for number, cpus in enumerate((cluster.widest, cluster.widest, 1)):
        state.submit(_job("", number, cpus), 0 if cluster.by_machine else -1, 0)
    one = np.full(4, SECOND_US)
    state.submit_rows(
        JobTable.of(
            number=[3, 4, 5, 6],
            submit_us=one,
            processors=np.ones(4),
            estimate_us=one,
            run_us=one,
            licenses=np.array([0, 0, 1, 1]) * bool(licenses),
        )
    )
    state.advance(1000 * SECOND_US)
    state.take_ended()
    state.take_ended_rows()


def _select(vo: VirtualOrganization, selection: Selection) -> None:
    """A selection among the resources of a VO, and an update of a table without any snapshot."""
    resources = resources_of(vo, 0)
    table = ResourceTable(resources, np.zeros(len(resources)))
    by_class = replace(table, columns=SomeResources(resources, np.arange(len(resources))))
    cores = (Requirement(RequirementKind.CORES, (Option(1.0, 1.0),)),)
    for requirements in ((), cores):
        job = replace(_job(vo.name, 0, 1), requirements=requirements)
        if not isinstance(selection, ThirdPartySelection):
            selection.choose(job, table, 0, False, random_stream(0, "warm-up"))
        best_choice(np.ones(len(resources)), job, by_class, 0, False)
    one, status, none = np.zeros(1, np.int64), np.zeros((4, 0)), np.zeros((1, 0))
    LeastOfClass(one, one, np.zeros((1, STATUS_COLUMNS)), [], 1).read(0)
    fill_in(status, NO_ROWS, NO_PLACES, NO_PLACES, 0)
    status_now(status, NO_ROWS, NO_PLACES, NO_PLACES, 0, -1, none, none[0], 0)
    own_among(NO_PLACES, NO_ROWS, 0, 0, none, none[0], 0)


def _job(vo: str, number: int, cpus: int) -> Job:
    times = {"submit_us": 0, "estimate_us": SECOND_US, "run_us": SECOND_US}
    return Job(number=number, vo=vo, processors=cpus, **times)  # type: ignore[arg-type]
