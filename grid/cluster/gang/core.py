"""A cluster of processors with a queue each, under a gang policy (GM III to V)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from grid.cluster.arrivals import Arrivals
from grid.cluster.gang import outages, runs, transfer
from grid.cluster.gang import state as at
from grid.cluster.gang.decisions import gang_to_send
from grid.cluster.gang.history import GangHistory
from grid.cluster.gang.instant import (
    GangRules,
    advance,
    assigning_piece,
    end_tasks,
    first_piece,
    last_piece,
    next_piece_us,
)
from grid.cluster.gang.processor_choices import ProcessorChoice, ProcessorQueues, ald, ld
from grid.cluster.gang.state import NONE, new_state, with_more_slots, with_room_for
from grid.cluster.outcomes import Outcomes
from grid.cluster.shell import NOT_MEASURED, TimedPlans
from grid.model.job import JobOutcome, JobState, rejected
from grid.model.migration_messages import NEVER_RAN, GangProgress
from grid.model.platform import Cluster
from grid.model.records import Levels
from grid.model.time import NEVER, Time
from grid.policies.gang_policy import GangPolicy


class WaitingGang(NamedTuple):
    """A gang that might be sent away: where it is, its place in the policy's order, its size."""

    slot: int
    rank: int
    processors: int


class GangCore:
    """A `Core` in which every CPU of every machine of `platform` is a processor."""

    binds = False

    def __init__(
        self,
        platform: Cluster,
        policy: GangPolicy,
        choice: ProcessorChoice,
        arrivals: Arrivals,
        outcomes: Outcomes,
    ) -> None:
        cpus = [machine.cpus for machine in platform.machines]
        draws = [(one.mips, one.watts_busy, one.watts_idle) for one in platform.machines]
        mips, *watts = np.ascontiguousarray(np.repeat(np.array(draws), cpus, axis=0).T)
        self.policy = policy
        self.processors = len(mips)
        self._rules = GangRules(
            choice is ald,
            policy.local_migration,
            policy.local_overhead_us,
            policy.whole_queues,
            policy.aging,
            policy.priority_limit,
            policy.begins_again,
        )
        # Of ours the compiled form is played; any other one is asked.
        self._choice = None if choice is ld or choice is ald else choice
        self._arrivals = arrivals
        self._outcomes = outcomes
        self._kills = platform.overrun == "kill"
        self._processors_of = list(pairwise(np.cumsum([0, *cpus]).tolist()))
        self._state = new_state(mips, *watts)
        self._state.number[at.HOLDS] = policy.holds_together
        self._rows: dict[int, int] = {}
        self._killed: dict[int, bool] = {}
        self._expected: dict[int, GangProgress] = {}
        """By row, of gangs that ran in other clusters before."""
        self._free_slots = list(range(len(self._state.gangs.state)))
        self._tasks = 0
        self._serial = 0
        self._next_us: Time = NEVER
        self._history = GangHistory([first for first, _ in self._processors_of])
        self._taken_in = 0

    def play(self, until: Time) -> None:
        while (now := self._arrivals.next_us) < until:
            self._play(now)
            self.admit(now)
        self._play(until)

    def admit(self, now: Time) -> None:
        """Take in those that arrive at `now`, or reject those that can never run here."""
        arrivals = self._arrivals
        due = arrivals.due(now)
        for place in due:
            columns = arrivals.columns
            if columns.licenses[place] or columns.processors[place] > self.processors:
                self._outcomes.add(int(columns.row[place]), rejected(now))
                continue
            slot = self._take_slot(int(columns.processors[place]))
            self._fill(slot, place)
            runs.arrive(self._state, slot, now)
            self._next_us = min(self._next_us, now)
        arrivals.taken(due.stop)

    def machine_down(self, machine: int, now: Time) -> None:
        self._notice_change(now)
        outages.break_down(self._state, *self._processors_of[machine], now)

    def machine_up(self, machine: int, now: Time) -> None:
        self._notice_change(now)
        outages.come_up(self._state, *self._processors_of[machine])

    def next_instant(self) -> Time:
        return self._next_us

    def last_instant(self) -> Time:
        ends = self._state.processors.end_us
        latest = int(ends.max(initial=NONE, where=ends != NEVER))
        return self._next_us if latest == NONE else latest

    def has_jobs(self) -> bool:
        return len(self._rows) > 0

    def processors_wanted(self) -> int:
        number = self._state.number
        return int(number[at.WAITING] + number[at.BUSY])

    def occupancy(self) -> tuple[int, int, int]:
        count = np.bincount(self._state.gangs.state, minlength=at.ENDED + 1).tolist()
        waiting = count[at.ARRIVED] + count[at.QUEUED] + count[at.KEPT]
        return int(self._state.number[at.BUSY]), count[at.RUNNING], waiting

    def busy_machines(self) -> Sequence[int]:
        busy = self._state.processors.task != NONE
        spans = enumerate(self._processors_of)
        return [machine for machine, (first, after) in spans if busy[first:after].any()]

    def broken_limits(self) -> Iterator[str]:
        processors, gangs, tasks, *_ = self._state
        slots = len(gangs.state)
        running = np.bincount(tasks.gang[processors.task[processors.task != NONE]], minlength=slots)
        wanted = np.where(gangs.state == at.RUNNING, gangs.unfinished, 0)
        for slot in np.flatnonzero(running != wanted).tolist():
            tasks_run = f"{running[slot]} tasks run of a gang"
            yield f"{tasks_run} that runs with {wanted[slot]} or not at all"
        kept = np.bincount(processors.keeper[processors.keeper != NONE], minlength=slots)
        for slot in np.flatnonzero(kept > gangs.size).tolist():
            yield f"{kept[slot]} processors are kept for a gang of {gangs.size[slot]} tasks"

    def figures(self) -> dict[str, float]:
        """Gangs that migrated, tasks that moved for it, and interruptions by priority jobs.

        An external migration counts where the gang comes in.
        """
        number = self._state.number
        return {
            "migrations_local": int(number[at.MIGRATED]),
            "migrations_external": self._taken_in,
            "tasks_migrated_local": int(number[at.MOVED_TASKS]),
            "interruptions": int(number[at.INTERRUPTIONS]),
        }

    def plan_times(self) -> list[TimedPlans]:
        return [NOT_MEASURED]

    def take_levels(self) -> Levels:
        return self._history.take(self._state)

    # Gangs that migrate to other clusters, or come from there. All before `now` has been played.

    def waiting_gang(self, largest: int) -> WaitingGang | None:
        """The gang to send away next, of at most `largest` tasks, if there is one."""
        state = self._state
        smallest, waiting = state.number[at.SMALLEST], state.number[at.WAITING]
        # What is clear without compiled code, whose call costs more than it does.
        if not waiting or smallest > largest:
            return None
        slot = int(
            gang_to_send(
                state.processors, state.gangs, state.tasks, largest, self.policy.idle_queues_only
            )
        )
        if slot == NONE:
            return None
        return WaitingGang(slot, int(state.gangs.rank[slot]), int(state.gangs.size[slot]))

    def withdraw(self, gang: WaitingGang, now: Time) -> tuple[int, GangProgress] | None:
        """Take a gang out of the cluster; the row of its job, and what it has behind it.

        None if it waits no more.
        """
        gangs = self._state.gangs
        if gangs.state[gang.slot] != at.QUEUED or gangs.rank[gang.slot] != gang.rank:
            return None
        transfer.withdraw(self._state, gang.slot, now)
        self._next_us = min(self._next_us, now)
        progress = self._progress(gang.slot)
        return self._forget(gang.slot), progress

    def expect(self, row: int, progress: GangProgress) -> None:
        """The job of that row, which has been submitted and not arrived, ran elsewhere before."""
        if progress != NEVER_RAN:
            self._expected[row] = progress

    def reserve(self, processors: int) -> int | None:
        """Keep so many idle processors for a gang that may come; None if there are not so many.

        Returns the number of the reservation. Nothing but priority jobs runs there until it is
        cancelled or the gang has been taken in.
        """
        if processors > self._state.number[at.IDLE]:
            return None
        slot = self._take_slot(processors)
        if transfer.reserve(self._state, slot, processors, self.policy.aging):
            return slot
        self._free_slot(slot, processors)
        return None

    def cancel(self, reservation: int, now: Time) -> None:
        """The gang does not come: its processors are free again."""
        transfer.unreserve(self._state, reservation, now)
        self._free_slot(reservation, int(self._state.gangs.size[reservation]))
        self._next_us = min(self._next_us, now)

    def stands(self, reservation: int) -> bool:
        """Whether processors are still kept for it: an outage may have ended that."""
        return bool(self._state.gangs.first_task[reservation] != NONE)

    def fill_reservation(self, reservation: int, now: Time) -> None:
        """The next job to arrive is the gang of a reservation that stands.

        It starts when its tasks have been transferred.
        """
        place = self._arrivals.first
        self._fill(reservation, place)
        self._arrivals.taken(place + 1)
        ready_us = now + self.policy.external_overhead_us
        transfer.fill_reservation(self._state, reservation, ready_us, now)
        self._next_us = min(self._next_us, ready_us)

    def count_taken_in(self) -> None:
        """A gang of another cluster is here."""
        self._taken_in += 1

    def _notice_change(self, now: Time) -> None:
        """What ends now has ended; there will be a plan now if a gang is there."""
        end_tasks(self._state, now)
        if self._rows:
            self._state.number[at.DUE_US] = self._next_us = now

    def _play(self, until: Time) -> None:
        """Play every instant before `until`; what comes at `until` must find nothing older."""
        number = self._state.number
        while self._next_us < until:
            self._next_us = self._advance(until)
            if number[at.ENDED_GANGS]:
                self._collect()
            if 2 * number[at.NOTED] > len(self._state.lists.history):
                self._history.keep(self._state)

    def _advance(self, until: Time) -> Time:
        """Carry out all instants before `until`, or some; when the next is."""
        if self._choice is None:
            return int(advance(self._state, self._rules, until))
        now = int(next_piece_us(self._state, self._rules))
        if now >= until:
            return now
        first_piece(self._state, self._rules, now)
        self._assign_arrivals(self._choice, now)
        last_piece(self._state, self._rules, now)
        return int(next_piece_us(self._state, self._rules))

    def _assign_arrivals(self, choice: ProcessorChoice, now: Time) -> None:
        """Put the gangs that have come into the queues that a choice says, which is asked."""
        state = self._state
        processors, number = state.processors, state.number
        up = ~processors.down
        waiting = state.lists.arrivals[: number[at.ARRIVALS]].tolist()
        left = []
        for gang in waiting:
            size, ready_us = int(state.gangs.size[gang]), int(state.gangs.ready_us[gang])
            if ready_us > now:
                number[at.DUE_US] = min(number[at.DUE_US], ready_us)
            if ready_us > now or size > up.sum():
                left.append(gang)
                continue
            waits, busy = processors.waiting.copy(), processors.task != NONE
            queues = ProcessorQueues(waits, busy, up.copy(), processors.mips.copy())
            chosen = np.array(choice(size, queues, int(number[at.ROUND])), np.int64)
            assigning_piece(state, gang, chosen)
        state.lists.arrivals[: len(left)] = left
        number[at.ARRIVALS] = len(left)

    def _fill(self, slot: int, place: int) -> None:
        """Write down what a slot has to say of the arrival at that place."""
        gangs, columns = self._state.gangs, self._arrivals.columns
        size, run_us = int(columns.processors[place]), int(columns.run_us[place])
        estimate_us = int(columns.estimate_us[place])
        self._rows[slot] = int(columns.row[place])
        self._killed[slot] = self._kills and run_us > estimate_us
        before = self._expected.pop(self._rows[slot], NEVER_RAN)
        work = (estimate_us if self._killed[slot] else run_us) * columns.reference_mips[place]
        gangs.priority[slot] = size == 1 and self.policy.priority_jobs
        gangs.power[slot] = columns.power[place]
        gangs.checkpointable[slot] = columns.checkpointable[place]
        gangs.serial[slot] = self._serial
        gangs.rank[slot] = self.policy.rank(size, self._serial)
        gangs.size[slot] = gangs.unfinished[slot] = size
        gangs.work[slot] = work - before.done
        gangs.start_us[slot] = before.start_us
        gangs.ready_us[slot] = gangs.overtaken[slot] = 0
        gangs.interruptions[slot], gangs.restarts[slot] = before.interruptions, before.restarts
        gangs.held_us[slot], gangs.lost_us[slot] = before.held_us, before.lost_us
        gangs.watts_busy[slot], gangs.watts_idle[slot] = before.watts_busy, before.watts_idle
        self._serial += 1

    def _progress(self, slot: int) -> GangProgress:
        """What the gang of that slot, which does not run, has behind it."""
        gangs, job = self._state.gangs, self._arrivals.routed[self._rows[slot]]
        work = (job.estimate_us if self._killed[slot] else job.run_us) * job.reference_mips
        return GangProgress(
            int(gangs.start_us[slot]),
            work - float(gangs.work[slot]),
            int(gangs.interruptions[slot]),
            int(gangs.restarts[slot]),
            int(gangs.held_us[slot]),
            int(gangs.lost_us[slot]),
            float(gangs.watts_busy[slot]),
            float(gangs.watts_idle[slot]),
        )

    def _take_slot(self, tasks: int) -> int:
        """A slot for a gang of so many tasks, and room for them."""
        self._tasks += tasks
        self._state = with_room_for(self._state, self._tasks)
        if not self._free_slots:
            old = len(self._state.gangs.state)
            self._state = with_more_slots(self._state)
            self._free_slots = list(range(old, len(self._state.gangs.state)))
        return self._free_slots.pop()

    def _forget(self, slot: int) -> int:
        """Free a slot; the row of the job that had it."""
        self._free_slot(slot, int(self._state.gangs.size[slot]))
        return self._rows.pop(slot)

    def _free_slot(self, slot: int, tasks: int) -> None:
        self._state.gangs.state[slot] = at.FREE
        self._free_slots.append(slot)
        self._tasks -= tasks

    def _collect(self) -> None:
        """Hand over how the gangs ended whose last task has, in order of (end, arrival)."""
        gangs, number = self._state.gangs, self._state.number
        slots = self._state.lists.ended[: number[at.ENDED_GANGS]].tolist()
        number[at.ENDED_GANGS] = 0
        slots.sort(key=lambda slot: (gangs.end_us[slot], gangs.serial[slot]))
        for slot in slots:
            held_us = int(gangs.held_us[slot])
            total_us = max(held_us, 1) * int(gangs.size[slot])
            outcome = JobOutcome(
                0,
                int(JobState.FAILED if self._killed[slot] else JobState.COMPLETED),
                int(gangs.start_us[slot]),
                int(gangs.end_us[slot]),
                int(gangs.interruptions[slot]),
                int(gangs.restarts[slot]),
                int(gangs.lost_us[slot]),
                held_us,
                float(gangs.watts_busy[slot]) / total_us,
                float(gangs.watts_idle[slot]) / total_us,
            )
            self._outcomes.add(self._forget(slot), outcome)
