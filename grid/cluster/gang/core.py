"""A cluster of processors with a queue each, under a gang policy (GM III to V)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from grid.cluster.gang import instant
from grid.cluster.gang import state as at
from grid.cluster.gang.decisions import GangRules
from grid.cluster.gang.processor_choices import ProcessorChoice, ProcessorQueues, ald, ld
from grid.cluster.gang.state import NONE, new_state, with_more_slots, with_room_for
from grid.cluster.state import NOT_MEASURED, ClusterState, TimedPlans
from grid.model.arrays import Floats, Ints
from grid.model.job import Job, JobOutcome, JobState, cancelled, rejected
from grid.model.messages import NEVER_RAN, GangProgress
from grid.model.platform import Cluster, MachineOutage
from grid.model.records import Draw, Levels
from grid.model.time import NEVER, Time
from grid.policies.gang_policy import GangPolicy

_CARRIED = tuple(name for name in GangProgress._fields if name != "done")
"""Columns of a gang that go with it to another cluster."""


class WaitingGang(NamedTuple):
    """A gang that external migration may send: its slot, its rank, its size."""

    slot: int
    rank: int
    processors: int


class GangCluster(ClusterState):
    """A cluster in which every CPU of every machine of `platform` is a processor."""

    def __init__(
        self,
        platform: Cluster,
        policy: GangPolicy,
        choice: ProcessorChoice,
        outages: Sequence[MachineOutage] = (),
    ) -> None:
        super().__init__(platform, outages)
        cpus = [machine.cpus for machine in platform.machines]
        machines = [(one.mips, one.watts_busy, one.watts_idle) for one in platform.machines]
        mips, *watts = np.ascontiguousarray(np.repeat(np.array(machines), cpus, axis=0).T)
        self.policy = policy
        self.rules = GangRules(
            adaptive=choice is ald,
            asks=choice is not ld and choice is not ald,
            local_migration=policy.local_migration,
            local_overhead_us=policy.local_overhead_us,
            whole_queues=policy.whole_queues,
            aging=policy.aging,
            priority_limit=policy.priority_limit,
            restarts=policy.begins_again,
            idle_queues_only=policy.idle_queues_only,
            largest=self.processors if policy.external_migration else 0,
        )
        self._choice = choice
        self._kills = platform.overrun == "kill"
        self._processors_of = list(pairwise(np.cumsum([0, *cpus]).tolist()))
        self.state = new_state(mips, *watts)
        self.state.number[at.HOLDS] = policy.holds_together
        self._rows: dict[int, int] = {}
        """Rows of the arrivals by slot."""
        self._killed: dict[int, bool] = {}
        self.expected: dict[int, GangProgress] = {}
        """By row of the arrivals, for gangs that ran in other clusters before."""
        self._free_slots = list(range(len(self.state.gangs.state)))
        self._tasks = 0
        self._serial = 0
        self._next_us: Time = NEVER
        self._levels: list[Ints] = []
        self._watts: list[tuple[Ints, Floats]] = []
        """Times, and the watts from then on, of the whole run; empty if no watts are known."""
        self.received = 0
        """Gangs that came from other clusters."""

    def _simulate(self, until: Time) -> None:
        while (now := self._arrivals.next_us) < until:
            self._advance(now)
            self._admit(now)
        self._advance(until)

    def _admit(self, now: Time) -> None:
        """Admit the arrivals at `now`; reject those that can never run here."""
        arrivals = self._arrivals
        due = arrivals.due(now)
        for place in due:
            columns = arrivals.columns
            if columns.licenses[place] or columns.processors[place] > self.processors:
                self._outcomes.add(int(columns.row[place]), rejected(now))
                continue
            slot = self._take_slot(int(columns.processors[place]))
            self._fill(slot, place)
            instant.arrive(self.state, slot, now)
            self._next_us = min(self._next_us, now)
        arrivals.taken(due.stop)

    def _cancel(self, row: int, running: bool, now: Time) -> None:
        """A gang that has started stays, also with `running`."""
        slot = next((slot for slot, one in self._rows.items() if one == row), NONE)
        gangs = self.state.gangs
        if slot == NONE or gangs.state[slot] != at.QUEUED or gangs.start_us[slot] < NEVER:
            return
        instant.withdraw(self.state, self.rules, slot, now)
        self._next_us = min(self._next_us, now)
        self._outcomes.add(self._forget(slot), cancelled(now))

    def _change_machine(self, machine: int, down: bool, now: Time) -> None:
        if self._rows:
            self.state.number[at.DUE_US] = self._next_us = now
        instant.change_machine(self.state, *self._processors_of[machine], down, now)

    def _next_event_us(self) -> Time:
        return self._next_us

    def _plan_at(self, now: Time) -> None:
        """There is an instant at `now`."""
        self._next_us = min(self._next_us, now)

    def _last_event_us(self) -> Time:
        ends = self.state.processors.end_us
        latest = int(ends.max(initial=NONE, where=ends != NEVER))
        return self._next_us if latest == NONE else latest

    def _has_jobs(self) -> bool:
        return len(self._rows) > 0

    def _processors_wanted(self) -> int:
        number = self.state.number
        return int(number[at.WAITING] + number[at.BUSY])

    def occupancy(self) -> tuple[int, int, int]:
        count = np.bincount(self.state.gangs.state, minlength=at.ENDED + 1).tolist()
        waiting = count[at.ARRIVED] + count[at.QUEUED] + count[at.PAUSED]
        return int(self.state.number[at.BUSY]), count[at.RUNNING], waiting

    def _busy_machines(self) -> Sequence[int]:
        busy = self.state.processors.task != NONE
        spans = enumerate(self._processors_of)
        return [machine for machine, (first, after) in spans if busy[first:after].any()]

    def _broken_limits(self) -> Iterator[str]:
        processors, gangs, tasks, *_ = self.state
        slots = len(gangs.state)
        running = np.bincount(tasks.gang[processors.task[processors.task != NONE]], minlength=slots)
        wanted = np.where(gangs.state == at.RUNNING, gangs.unfinished, 0)
        for slot in (running != wanted).nonzero()[0].tolist():
            yield f"{running[slot]} tasks of a gang run instead of {wanted[slot]}"
        holders = processors.reserved_for[processors.reserved_for != NONE]
        reserved = np.bincount(holders, minlength=slots)
        for slot in (reserved > gangs.size).nonzero()[0].tolist():
            yield f"{reserved[slot]} processors are reserved for {gangs.size[slot]} tasks"

    def figures(self) -> dict[str, float]:
        """Gangs that migrated, tasks that moved for it, and interruptions by priority jobs.

        An external migration counts in the cluster that receives the gang.
        """
        number = self.state.number
        return {
            "migrations_local": int(number[at.MIGRATED]),
            "migrations_external": self.received,
            "tasks_migrated_local": int(number[at.MOVED_TASKS]),
            "interruptions": int(number[at.INTERRUPTIONS]),
        }

    def plan_times(self) -> list[TimedPlans]:
        return [NOT_MEASURED]

    def _take_levels(self) -> Levels:
        self._take_history()
        rows, self._levels = self._levels, []
        # As floats, since many processors over a long time may exceed 64 bits.
        firsts = [first for first, _ in self._processors_of]
        busy_us = np.add.reduceat(self.state.processors.busy_us.astype(np.float64), firsts)
        times, busy, smallest = np.ascontiguousarray(np.concatenate(rows).T)
        draw = None
        if self._watts:
            steps_us, watts = map(np.concatenate, zip(*self._watts, strict=True))
            draw = Draw(steps_us, np.diff(watts, prepend=0.0))
        return Levels(times, busy, smallest, busy_us=busy_us, draw=draw)

    def _take_history(self) -> None:
        number, lists = self.state.number, self.state.lists
        rows = int(number[at.NOTED])
        number[at.NOTED] = 0
        self._levels.append(lists.history[:rows].copy())
        if number[at.DRAWS]:
            self._watts.append((lists.history[:rows, 0].copy(), lists.watts[:rows].copy()))

    def _advance(self, until: Time) -> None:
        """Simulate every instant before `until`, where no job arrives before."""
        number = self.state.number
        while self._next_us < until:
            if number[at.ASKED] != NONE:
                self._ask(int(number[at.ASKED]))
            self._next_us = int(instant.advance(self.state, self.rules, until))
            if number[at.N_ENDED]:
                self._collect()
            if 2 * number[at.NOTED] > len(self.state.lists.history):
                self._take_history()

    def _ask(self, gang: int) -> None:
        """Have the plugin choose the processors whose queues the gang joins."""
        processors, _, _, lists, number = self.state
        waits, busy = processors.waiting.copy(), processors.task != NONE
        queues = ProcessorQueues(waits, busy, ~processors.down, processors.mips.copy())
        size = int(self.state.gangs.size[gang])
        lists.chosen[:size] = self._choice(size, queues, int(number[at.ROUND]))

    def _fill(self, slot: int, place: int) -> None:
        """Set the columns of a slot from the arrival at that place."""
        gangs, columns = self.state.gangs, self._arrivals.columns
        size, run_us = int(columns.processors[place]), int(columns.run_us[place])
        estimate_us = int(columns.estimate_us[place])
        self._rows[slot] = int(columns.row[place])
        self._killed[slot] = self._kills and run_us > estimate_us
        before = self.expected.pop(self._rows[slot], NEVER_RAN)
        work = (estimate_us if self._killed[slot] else run_us) * columns.reference_mips[place]
        gangs.priority[slot] = size == 1 and self.policy.priority_jobs
        gangs.power[slot] = columns.power[place]
        gangs.checkpointable[slot] = columns.checkpointable[place]
        gangs.serial[slot] = self._serial
        gangs.rank[slot] = self.policy.rank(size, self._serial)
        gangs.size[slot] = gangs.unfinished[slot] = size
        gangs.work[slot] = work - before.done
        gangs.ready_us[slot] = gangs.overtaken[slot] = 0
        for name in _CARRIED:
            getattr(gangs, name)[slot] = getattr(before, name)
        self._serial += 1

    def _progress(self, slot: int) -> GangProgress:
        """The progress of the gang of that slot, which does not run."""
        gangs, job = self.state.gangs, self._arrivals.routed[self._rows[slot]]
        work = (job.estimate_us if self._killed[slot] else job.run_us) * job.reference_mips
        carried = {name: getattr(gangs, name)[slot].item() for name in _CARRIED}
        return GangProgress(done=work - float(gangs.work[slot]), **carried)

    def _take_slot(self, tasks: int) -> int:
        """A slot for a gang of that many tasks, and room for them."""
        self._tasks += tasks
        self.state = with_room_for(self.state, self._tasks)
        if not self._free_slots:
            old = len(self.state.gangs.state)
            self.state = with_more_slots(self.state)
            self._free_slots = list(range(old, len(self.state.gangs.state)))
        return self._free_slots.pop()

    def fill_reservation(self, reservation: int, now: Time) -> None:
        """The next arrival is the gang of a valid reservation; its transfer begins."""
        place = self._arrivals.first
        self._fill(reservation, place)
        self._arrivals.taken(place + 1)
        ready_us = now + self.policy.external_overhead_us
        instant.fill_reservation(self.state, reservation, ready_us, now)
        self._plan_at(ready_us)

    def _forget(self, slot: int) -> int:
        """Free a slot; returns the row of its job."""
        self._free_slot(slot)
        return self._rows.pop(slot)

    def _free_slot(self, slot: int) -> None:
        self.state.gangs.state[slot] = at.FREE
        self._free_slots.append(slot)
        self._tasks -= int(self.state.gangs.size[slot])

    def _collect(self) -> None:
        """Report the outcomes of ended gangs, in order of (end, arrival)."""
        gangs, number = self.state.gangs, self.state.number
        slots = self.state.lists.ended[: number[at.N_ENDED]].tolist()
        number[at.N_ENDED] = 0
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

    # External migration (GM V-A): gangs that leave for another cluster, or come from there

    def waiting_gang(self) -> WaitingGang | None:
        """The gang to send next, if there is one. All before now has been simulated."""
        state = self.state
        slot = int(state.number[at.TO_SEND])
        if slot == NONE:
            return None
        return WaitingGang(slot, int(state.gangs.rank[slot]), int(state.gangs.size[slot]))

    def send_only(self, largest: int) -> None:
        """From now on, send only gangs of at most `largest` tasks."""
        self.rules = self.rules._replace(largest=largest)

    def send_away(self, gang: WaitingGang, now: Time) -> tuple[Job, GangProgress] | None:
        """Remove a gang from the cluster, with its progress; None if it no longer waits."""
        self.advance(now)
        gangs = self.state.gangs
        if gangs.state[gang.slot] != at.QUEUED or gangs.rank[gang.slot] != gang.rank:
            return None
        instant.withdraw(self.state, self.rules, gang.slot, now)
        self._plan_at(now)
        progress = self._progress(gang.slot)
        return self._arrivals.routed.pop(self._forget(gang.slot)), progress

    def reserve(self, processors: int) -> int | None:
        """Reserve idle processors for a gang that may come; None if there are too few.

        Returns the number of the reservation. Only priority jobs run there until it is cancelled
        or the gang has been received.
        """
        if processors > self.state.number[at.IDLE]:
            return None
        slot = self._take_slot(processors)
        if instant.reserve(self.state, self.rules, slot, processors):
            return slot
        self.state.gangs.size[slot] = processors
        self._free_slot(slot)
        return None

    def cancel(self, reservation: int, now: Time) -> None:
        """Free the processors of a reservation."""
        self.advance(now)
        instant.cancel(self.state, self.rules, reservation, now)
        self._free_slot(reservation)
        self._plan_at(now)

    def receive(self, job: Job, progress: GangProgress, reservation: int, now: Time) -> bool:
        """The gang of a reservation is here; it starts when its tasks have been transferred.

        False, without any effect, if an outage has ended the reservation, which must still be
        cancelled.
        """
        self.advance(now)
        if self.state.gangs.first_task[reservation] == NONE:
            return False
        self._admit(now)
        self.receive_late(job, progress, now)
        self.fill_reservation(reservation, now)
        return True

    def receive_late(self, job: Job, progress: GangProgress, now: Time) -> None:
        """A gang of another cluster is here with all its tasks, and has no reservation."""
        row = self.submit(job, -1, now)
        if progress != NEVER_RAN:
            self.expected[row] = progress
        self.received += 1
