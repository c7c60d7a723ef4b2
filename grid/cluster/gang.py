"""A cluster of processors with a queue each, under a gang policy (GM III to V)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.cluster.gang_instant import Rules, advance
from grid.cluster.gang_moves import (
    BUSY,
    ENDED_GANGS,
    INTERRUPTIONS,
    MIGRATED,
    MOVED_TASKS,
    NOTED,
    WAITING,
)
from grid.cluster.gang_runs import arrive
from grid.cluster.gang_state import new_state, with_more_slots, with_room_for
from grid.cluster.gang_transfer import fill_reservation, reserve, unreserve, withdraw
from grid.cluster.state import Ended, EndedRows, TimedPlans
from grid.model.arrays import Ints
from grid.model.job import Job, JobOutcome, JobState, outcome_columns
from grid.model.job_row import Levels
from grid.model.job_table import JobTable, concatenate
from grid.model.platform import Cluster
from grid.model.time import NEVER, Time
from grid.policies.gang import gang_to_send
from grid.policies.gang_policy import GangPolicy
from grid.policies.gang_view import FREE, NONE, QUEUED


class WaitingGang(NamedTuple):
    """A gang that might be sent away: where it is, its place in the policy's order, its size."""

    slot: int
    rank: int
    processors: int


class _Tenant(NamedTuple):
    """The job in a slot, and which of the fed rows it is; NONE: it was submitted."""

    job: Job
    row: int


class GangCluster:
    """A `ClusterState` in which every CPU of every machine of `cluster` is a processor.

    The paper's processors have clock rates; here a clock of 2000 MHz, on which its processing
    times are given, is a CPU of the job's `reference_mips` (Eq. 1).
    """

    def __init__(self, cluster: Cluster, policy: GangPolicy) -> None:
        cpus = [machine.cpus for machine in cluster.machines]
        mips = np.repeat([machine.mips for machine in cluster.machines], cpus)
        self.policy = policy
        self._rules = Rules(
            policy.adaptive,
            policy.local_migration,
            policy.local_overhead_us,
            policy.whole_queues,
            policy.aging,
            policy.priority_limit,
        )
        self._kills = cluster.overrun == "kill"
        self._processors = len(mips)
        self._state = new_state(mips.astype(np.float64))
        self._tenants: dict[int, _Tenant] = {}
        self._free_slots = list(range(len(self._state.gangs.state)))
        self._tasks = 0
        self._serial = 0
        self._next_us: Time = NEVER
        self._fed: JobTable = concatenate([])
        self._fed_next = 0
        self._fed_before = 0
        self._history: list[Ints] = []
        self._taken_in = 0
        self._ended: list[Ended] = []
        self._ended_fed: list[tuple[int, JobOutcome[int]]] = []

    def submit(self, job: Job, machine: int, now: Time) -> None:
        if machine != NONE:
            raise ValueError(f"job {job.key} is bound to machine {machine}; gangs are not")
        self._arrive(job, NONE, now)

    def feed(self, jobs: JobTable) -> None:
        left = self._fed.take(slice(self._fed_next, None))
        self._fed, self._fed_next = concatenate([left, jobs]), 0

    def advance(self, until: Time) -> None:
        while self._fed_next < len(self._fed):
            arrival = int(self._fed.submit_us[self._fed_next])
            if arrival >= until:
                break
            self._advance(arrival)
            self._arrive(self._fed.job(self._fed_next, ""), self._fed_before, arrival)
            self._fed_next += 1
            self._fed_before += 1
        self._advance(until)

    def next_instant(self) -> Time:
        if self._fed_next < len(self._fed):
            return min(self._next_us, int(self._fed.submit_us[self._fed_next]))
        return self._next_us

    def horizon(self) -> Time:
        ends = self._state.processors.end_us
        latest = int(ends.max(initial=NONE, where=ends != NEVER))
        if self._fed_next < len(self._fed):
            latest = max(latest, int(self._fed.submit_us[-1]))
        return self._next_us if latest == NONE else latest

    def take_ended(self) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def take_ended_rows(self) -> EndedRows:
        ended, self._ended_fed = self._ended_fed, []
        rows = np.array([row for row, _ in ended], np.int64)
        return EndedRows(rows, outcome_columns([outcome for _, outcome in ended]))

    def load(self) -> float:
        number = self._state.number
        return float(number[WAITING] + number[BUSY]) / self._processors

    def figures(self) -> dict[str, float]:
        """Gangs that migrated, tasks that moved for it, and interruptions by priority jobs.

        An external migration counts where the gang comes in.
        """
        number = self._state.number
        return {
            "migrations_local": int(number[MIGRATED]),
            "migrations_external": self._taken_in,
            "tasks_migrated_local": int(number[MOVED_TASKS]),
            "interruptions": int(number[INTERRUPTIONS]),
        }

    def plan_times(self) -> list[TimedPlans]:
        return []

    def take_history(self) -> Levels:
        """Where nothing waits, the smallest gang has one task more than there are processors."""
        self._keep_history()
        rows, self._history = self._history, []
        return Levels(*np.ascontiguousarray(np.concatenate(rows).T))

    def waiting_gang(self, largest: int) -> WaitingGang | None:
        """The gang to send away next, of at most `largest` tasks, if there is one."""
        state = self._state
        slot = int(gang_to_send(state.processors, state.gangs, state.tasks, largest))
        if slot == NONE:
            return None
        return WaitingGang(slot, int(state.gangs.rank[slot]), int(state.gangs.size[slot]))

    def send_away(self, gang: WaitingGang, now: Time) -> Job | None:
        """Take a gang out of the cluster; None if it waits no more."""
        self._advance(now)
        gangs = self._state.gangs
        if gangs.state[gang.slot] != QUEUED or gangs.rank[gang.slot] != gang.rank:
            return None
        withdraw(self._state, gang.slot, now)
        self._next_us = min(self._next_us, now)
        return self._forget(gang.slot).job

    def reserve(self, processors: int) -> int | None:
        """Keep so many idle processors for a gang that may come; None if there are not so many.

        Returns the number of the reservation. Nothing but priority jobs runs there until it is
        cancelled or the gang has been taken in.
        """
        slot = self._take_slot(processors)
        if reserve(self._state, slot, processors, self.policy.aging):
            return slot
        self._free_slot(slot, processors)
        return None

    def cancel(self, reservation: int, now: Time) -> None:
        """The gang does not come: its processors are free again."""
        self._advance(now)
        unreserve(self._state, reservation, now)
        self._free_slot(reservation, int(self._state.gangs.size[reservation]))
        self._next_us = min(self._next_us, now)

    def take_in(self, job: Job, reservation: int, now: Time) -> bool:
        """The gang of a reservation is here; it starts when its tasks have been transferred.

        False, and nothing is done, where an outage has ended the reservation; it is to be cancelled
        all the same.
        """
        self._advance(now)
        if self._state.gangs.first_task[reservation] == NONE:
            return False
        self._fill(reservation, job, NONE)
        ready_us = now + self.policy.external_overhead_us
        fill_reservation(self._state, reservation, ready_us, now)
        self._taken_in += 1
        self._next_us = min(self._next_us, ready_us)
        return True

    def take_in_late(self, job: Job, now: Time) -> None:
        """A gang of another cluster is here with all its tasks, and nothing is kept for it."""
        self._arrive(job, NONE, now)
        self._taken_in += 1

    def _advance(self, until: Time) -> None:
        """Play every instant before `until`; what comes at `until` must find nothing older."""
        number = self._state.number
        while self._next_us < until:
            self._next_us = int(advance(self._state, self._rules, until))
            if number[ENDED_GANGS]:
                self._collect()
            if 2 * number[NOTED] > len(self._state.lists.history):
                self._keep_history()

    def _keep_history(self) -> None:
        rows = int(self._state.number[NOTED])
        self._state.number[NOTED] = 0
        self._history.append(self._state.lists.history[:rows].copy())

    def _arrive(self, job: Job, row: int, now: Time) -> None:
        self._advance(now)
        slot = self._take_slot(job.processors)
        self._fill(slot, job, row)
        arrive(self._state, slot, now)
        self._next_us = min(self._next_us, now)

    def _fill(self, slot: int, job: Job, row: int) -> None:
        """Write down what a slot has to say of its job."""
        gangs = self._state.gangs
        run_us = min(job.run_us, job.estimate_us) if self._kills else job.run_us
        gangs.priority[slot] = job.processors == 1 and self.policy.priority_jobs
        gangs.checkpointable[slot] = job.checkpointable
        gangs.serial[slot] = self._serial
        gangs.rank[slot] = self.policy.rank(job.processors, self._serial)
        gangs.size[slot] = gangs.unfinished[slot] = job.processors
        gangs.run_us[slot] = run_us * job.reference_mips
        gangs.start_us[slot] = NEVER
        gangs.overtaken[slot] = gangs.interruptions[slot] = gangs.restarts[slot] = 0
        gangs.held_us[slot] = gangs.lost_us[slot] = 0
        self._tenants[slot] = _Tenant(job, row)
        self._serial += 1

    def _take_slot(self, tasks: int) -> int:
        """A slot for a gang of so many tasks, and room for them."""
        self._tasks += tasks
        self._state = with_room_for(self._state, self._tasks)
        if not self._free_slots:
            old = len(self._state.gangs.state)
            self._state = with_more_slots(self._state)
            self._free_slots = list(range(old, len(self._state.gangs.state)))
        return self._free_slots.pop()

    def _forget(self, slot: int) -> _Tenant:
        """Free a slot; who had it."""
        tenant = self._tenants.pop(slot)
        self._free_slot(slot, tenant.job.processors)
        return tenant

    def _free_slot(self, slot: int, tasks: int) -> None:
        self._state.gangs.state[slot] = FREE
        self._free_slots.append(slot)
        self._tasks -= tasks

    def _collect(self) -> None:
        """Write down how the gangs ended whose last task has, in order of (end, arrival)."""
        gangs, number = self._state.gangs, self._state.number
        slots = self._state.lists.ended[: number[ENDED_GANGS]].tolist()
        number[ENDED_GANGS] = 0
        slots.sort(key=lambda slot: (gangs.end_us[slot], gangs.serial[slot]))
        for slot in slots:
            job, row = self._forget(slot)
            killed = self._kills and job.run_us > job.estimate_us
            outcome = JobOutcome(
                0,
                int(JobState.FAILED if killed else JobState.COMPLETED),
                int(gangs.start_us[slot]),
                int(gangs.end_us[slot]),
                int(gangs.interruptions[slot]),
                int(gangs.restarts[slot]),
                int(gangs.lost_us[slot]),
                int(gangs.held_us[slot]),
            )
            if row == NONE:
                self._ended.append(Ended(job.key, outcome))
            else:
                self._ended_fed.append((row, outcome))
