"""Machines of gang clusters that go down: what becomes of the gangs that have a task there.

A gang with a task on a processor that goes down, be it running, in its queue or kept for the gang,
is taken off all of its processors at that instant, and joins the shortest queues anew, of those
processors that are up: like one that has just come, and in order of arrival. Nothing is left to
wait for of a migration that was under way. A gang of more tasks than there are processors up waits
until there are, and others pass it. What the tasks had done is lost; those of a checkpointable gang
all go on from where the slowest one was, for the tasks of a gang need each other. A priority job
begins anew, before those that came later. Processors that were promised to another cluster's gang
are no longer kept for it if one of them goes down.

A processor that is down gets no task and has no queue. The load that a cluster tells (GM Eq. 2) is
still by all of its processors: as with other clusters, no dispatcher sees outages. The paper has
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numba import njit

from grid.cluster.gang import GangCluster
from grid.cluster.gang_instant import carry_out, end_tasks
from grid.cluster.gang_moves import (
    ARRIVALS,
    KEPT_GANGS,
    WAITING,
    State,
    dequeue_gang,
    duration_us,
    free_tasks,
    make_idle,
    stop_watching,
    take_idle,
)
from grid.cluster.gang_runs import interrupt, release
from grid.cluster.outages import Outages
from grid.model.job_row import Levels
from grid.model.platform import Cluster, MachineOutage
from grid.model.time import NEVER, Time
from grid.policies.gang_policy import GangPolicy
from grid.policies.gang_view import ARRIVED, NONE, QUEUED, RESERVED, RUNNING


class FailingGangCluster(GangCluster):
    """A `GangCluster` whose machines go down, with all of their CPUs."""

    def __init__(
        self, cluster: Cluster, policy: GangPolicy, outages: Sequence[MachineOutage]
    ) -> None:
        super().__init__(cluster, policy)
        cpus = [machine.cpus for machine in cluster.machines]
        self.outages = Outages(outages)
        self.played_us: Time = 0
        self._processors_of = list(pairwise(np.cumsum([0, *cpus]).tolist()))

    def next_instant(self) -> Time:
        return min(super().next_instant(), self._next_change_us())

    def horizon(self) -> Time:
        last, change = super().horizon(), self._next_change_us()
        return min(last, change) if NEVER in (last, change) else max(last, change)

    def take_history(self) -> Levels:
        times, machines_down = self.outages.levels(np.diff(self._processors_of).ravel())
        return super().take_history()._replace(down_us=times, down=machines_down)

    def busy_machines(self) -> list[int]:
        """The machines of which a processor runs something."""
        busy = self._state.processors.task != NONE
        spans = enumerate(self._processors_of)
        return [machine for machine, (first, after) in spans if busy[first:after].any()]

    def _next_change_us(self) -> Time:
        """NEVER where no gang is here that could notice."""
        return self.outages.next_us() if self._tenants else NEVER

    def _advance(self, until: Time) -> None:
        while (change_us := self.outages.next_us()) < until:
            super()._advance(change_us)
            end_tasks(self._state, change_us)
            for _, machine, down in self.outages.take(change_us):
                if down:
                    break_down(self._state, *self._processors_of[machine], change_us)
                else:
                    come_up(self._state, *self._processors_of[machine])
            if self._tenants:
                carry_out(self._state, self._rules, change_us)
                # So that those that ended are taken note of.
                self._next_us = change_us
            super()._advance(change_us + 1)
        super()._advance(until)
        self.played_us = max(self.played_us, until)


@njit(cache=True)
def break_down(state: State, first: int, after: int, now: Time) -> None:
    """Processors from `first` to before `after` go down. Tasks that end now have ended."""
    processors, gang_of = state.processors, state.tasks.gang
    for p in range(first, after):
        processors.down[p] = True
        if processors.idle_place[p] != NONE:
            take_idle(state, p)
    for p in range(first, after):
        # A priority job may run on what is kept for a gang.
        if processors.keeper[p] != NONE:
            _displace(state, processors.keeper[p], now)
        if processors.task[p] != NONE:
            _displace(state, gang_of[processors.task[p]], now)
        while processors.head[p] != NONE:
            _displace(state, gang_of[processors.head[p]], now)


@njit(cache=True)
def come_up(state: State, first: int, after: int) -> None:
    """Processors from `first` to before `after` are up again."""
    for p in range(first, after):
        state.processors.down[p] = False
        make_idle(state, p)


@njit(cache=True)
def _displace(state: State, gang: int, now: Time) -> None:
    """Take a gang off all of its processors; it comes anew. Of a reservation nothing is left."""
    gangs, number = state.gangs, state.number
    if gangs.state[gang] == RUNNING:
        interrupt(state, gang, now)
    if gangs.state[gang] == RESERVED:
        release(state, gang)
        return
    _undo(state, gang)
    if gangs.state[gang] == QUEUED:
        stop_watching(state, gang)
        dequeue_gang(state, gang)
        free_tasks(state, gang)
    else:
        _keep_no_longer(state, gang)
        release(state, gang)
    number[WAITING] += gangs.size[gang] - gangs.unfinished[gang]
    gangs.unfinished[gang] = gangs.size[gang]
    gangs.state[gang] = ARRIVED
    _insert_arrival(state, gang)


@njit(cache=True)
def _undo(state: State, gang: int) -> None:
    """Book what the tasks of a gang that does not run have done, and what is lost of it."""
    gangs, tasks = state.gangs, state.tasks
    done, left = 0, 0.0
    task = gangs.first_task[gang]
    while task != NONE:
        p, remaining_us = tasks.processor[task], tasks.remaining_us[task]
        done += duration_us(state, gang, p) - remaining_us
        left = max(left, remaining_us * state.processors.mips[p])
        task = tasks.sibling[task]
    if done == 0:
        return
    lost = done
    if gangs.checkpointable[gang]:
        gangs.run_us[gang] = min(gangs.run_us[gang], left)
        lost = 0
        task = gangs.first_task[gang]
        while task != NONE:
            again_us = duration_us(state, gang, tasks.processor[task])
            lost += again_us - tasks.remaining_us[task]
            task = tasks.sibling[task]
    else:
        gangs.restarts[gang] += 1
    gangs.held_us[gang] += done // gangs.size[gang]
    gangs.lost_us[gang] += lost // gangs.size[gang]


@njit(cache=True)
def _keep_no_longer(state: State, gang: int) -> None:
    """Take a gang out of the list of those whose processors are kept."""
    kept, number = state.lists.kept, state.number
    left = 0
    for place in range(number[KEPT_GANGS]):
        if kept[place] != gang:
            kept[left] = kept[place]
            left += 1
    number[KEPT_GANGS] = left


@njit(cache=True)
def _insert_arrival(state: State, gang: int) -> None:
    """Put a gang among those that have come, in order of arrival."""
    arrivals, serial, number = state.lists.arrivals, state.gangs.serial, state.number
    place = number[ARRIVALS]
    while place > 0 and serial[arrivals[place - 1]] > serial[gang]:
        arrivals[place] = arrivals[place - 1]
        place -= 1
    arrivals[place] = gang
    number[ARRIVALS] += 1
