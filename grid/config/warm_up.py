"""Compiling before the clock starts: what a run costs is not what its compiler costs.

Compiled functions are kept on disk, but a first run on a machine, or after a change, compiles them
when they are first called. So each kind of cluster of a grid plays a few jobs that do not count,
and each selection makes a choice, before a run is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from grid.cluster import ClusterShell, make_cluster
from grid.cluster.gang.core import GangExchange
from grid.config.build import Grid, migrating
from grid.kernel.board import LeastOfClass
from grid.kernel.entity import random_stream
from grid.model.job import Job, Option, Requirement, RequirementKind
from grid.model.job_table import JobTable
from grid.model.messages import NEVER_RAN
from grid.model.platform import Cluster, MachineOutage, VirtualOrganization
from grid.model.resources import STATUS_COLUMNS, ResourceTable, SomeResources, resources_of
from grid.model.time import SECOND_US
from grid.policies.batsim.policy import Batsim
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Policy
from grid.protocol import names
from grid.protocol.known_state import NO_PLACES, NO_ROWS, fill_in, own_among, status_now
from grid.protocol.registry import ThirdPartySelection
from grid.protocol.selection import Selection, best_choice

LONG_ENOUGH_US = 1000 * SECOND_US
AN_OUTAGE = MachineOutage(0, SECOND_US // 2, SECOND_US)
"""Of a machine that a job runs on then."""


class _Kind(NamedTuple):
    """What tells clusters apart that need other code compiled."""

    policy: str
    settings: str
    pool: bool
    licensed: bool
    may_break: bool
    breaks: bool
    migrates: bool


def warm_up(grid: Grid, members: Collection[str] | None = None, *, may_break: bool = False) -> None:
    """Compile, or load, what a run of `grid` will call; of `members` of it, if they are given.

    With `may_break`, of a run in which machines may be taken down.
    """
    here = frozenset(grid.names if members is None else members)
    for call in _of_entities(grid, here, may_break):
        call()


def _of_entities(grid: Grid, here: frozenset[str], may_break: bool) -> list[Callable[[], None]]:
    kinds: dict[_Kind, Cluster] = {}
    for vo in grid.vos:
        moving = migrating(grid, vo)
        for number, cluster in enumerate(vo.clusters):
            if names.local_dispatcher(vo.name, cluster.name) in here:
                kind = _Kind(
                    policy=cluster.policy,
                    settings=repr(cluster.policy_settings),
                    pool=len(cluster.machines) == 1,
                    licensed=bool(cluster.licenses),
                    may_break=may_break,
                    breaks=bool(grid.outages_of(vo, cluster)),
                    migrates=len(moving) > 1 and number in moving,
                )
                kinds.setdefault(kind, cluster)
    found: list[Callable[[], None]] = []
    memory = grid.asks_for_memory
    for kind, cluster in kinds.items():
        policy = grid.policy_of(cluster)
        # What others decide has nothing of ours to compile, and is asked only in earnest.
        if not hasattr(policy, "origin") and not isinstance(policy, Batsim):
            found.append(partial(_play, cluster, policy, memory, kind))
            if kind.migrates:
                found.append(partial(_migrate, cluster, policy, memory, kind))
    choosing = (names.scheduler, names.information_service)
    if any(kind(vo.name) in here for vo in grid.vos for kind in choosing):
        selections = {type(made := grid.selection_of(vo)): (vo, made) for vo in grid.vos}
        for vo, selection in selections.values():
            found.append(partial(_select, vo, selection))
    return found


def _select(vo: VirtualOrganization, selection: Selection) -> None:
    """A selection among the resources of a VO, and an update of a table without any snapshot."""
    resources = resources_of(vo, 0)
    table = ResourceTable(resources, np.zeros(len(resources)))
    by_class = replace(table, columns=SomeResources(resources, np.arange(len(resources))))
    kinds_asked = (Requirement(RequirementKind.CORES, (Option(1.0, 1.0),)),)
    for asked in ((), kinds_asked):
        job = _job(vo.name, 0, 1, asked)
        if not isinstance(selection, ThirdPartySelection):
            selection.choose(job, table, 0, False, random_stream(0, "warm-up"))
        best_choice(np.ones(len(resources)), job, by_class, 0, False)
    one, status, none = np.zeros(1, np.int64), np.zeros((4, 0)), np.zeros(0)
    LeastOfClass(one, one, np.zeros((1, STATUS_COLUMNS)), [], 1).read(0, -1)
    fill_in(status, NO_ROWS, NO_PLACES, NO_PLACES, 0)
    status_now(status, NO_ROWS, NO_PLACES, NO_PLACES, 0, -1, none, none, 0)
    own_among(NO_PLACES, NO_ROWS, 0, 0, none, none, 0)


def _job(vo: str, number: int, processors: int, requirements: tuple[Requirement, ...] = ()) -> Job:
    return Job(
        number=number,
        vo=vo,
        submit_us=0,
        processors=processors,
        estimate_us=SECOND_US,
        run_us=SECOND_US,
        requirements=requirements,
    )


def _play(cluster: Cluster, policy: Policy | GangPolicy, memory: bool, kind: _Kind) -> None:
    """Some jobs on a cluster like this one: more than fit at once, routed and direct."""
    state = _with_jobs(cluster, policy, memory, kind)
    state.advance(LONG_ENOUGH_US)
    state.take_ended()
    state.take_ended_rows()


def _with_jobs(
    cluster: Cluster, policy: Policy | GangPolicy, memory: bool, kind: _Kind
) -> ClusterShell:
    # Of a license with one copy two jobs at once ask for more than there is.
    licenses = tuple(replace(one, copies=1) for one in cluster.licenses)
    cluster = replace(cluster, licenses=licenses)
    outages, may_break = (AN_OUTAGE,) * kind.breaks, kind.may_break
    state = make_cluster(cluster, policy, outages=outages, memory=memory, may_break=may_break)
    for number, processors in enumerate((cluster.widest, cluster.widest, 1)):
        job = _job("", number, processors)
        state.submit(job, 0 if cluster.by_machine else -1, 0)
    ones = np.full(4, SECOND_US)
    state.submit_rows(
        JobTable.of(
            number=[3, 4, 5, 6],
            submit_us=ones,
            processors=np.ones(4),
            estimate_us=ones,
            run_us=ones,
            licenses=np.array([0, 0, 1, 1]) * bool(licenses),
        )
    )
    return state


def _migrate(cluster: Cluster, policy: Policy | GangPolicy, memory: bool, kind: _Kind) -> None:
    """A waiting gang leaves the cluster, and returns when the cluster is idle."""
    state = _with_jobs(cluster, policy, memory, kind)
    exchange, leaves_us, idle_us = GangExchange(state), SECOND_US // 2, LONG_ENOUGH_US // 2
    state.advance(leaves_us)
    waiting = exchange.waiting_gang()
    left = exchange.send_away(waiting, leaves_us) if waiting is not None else None
    job, progress = left or (_job("", 7, 1), NEVER_RAN)
    state.advance(idle_us)
    for comes in (False, True):
        reservation = exchange.reserve(job.processors)
        if reservation is not None and comes:
            exchange.receive(job, progress, reservation, idle_us)
        elif reservation is not None:
            exchange.cancel(reservation, idle_us)
