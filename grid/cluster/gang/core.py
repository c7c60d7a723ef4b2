"""A cluster of processors with a queue each, under a gang policy (GM III to V)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from grid.cluster.arrivals import NAMES
from grid.cluster.gang import instant, resources
from grid.cluster.gang import state as at
from grid.cluster.gang.instant import GangRules
from grid.cluster.gang.processor_choices import ProcessorChoice, ProcessorQueues, ald, ld
from grid.cluster.gang.state import NONE, new_state, with_room
from grid.cluster.state import ClusterState
from grid.model.arrays import Floats, Ints
from grid.model.job import (
    Amounts,
    Job,
    JobOutcome,
    JobState,
    cancelled,
    rejected,
    rounded,
    share,
    unlisted,
)
from grid.model.messages import NEVER_RAN, GangProgress
from grid.model.platform import Cluster, GangLimits, MachineOutage
from grid.model.records import Draw, Levels
from grid.model.time import NEVER, Time
from grid.policies.gang_policy import GangPolicy


class WaitingGang(NamedTuple):
    """A gang that external migration may send: slot, rank, size and what it requests."""

    slot: int
    rank: int
    processors: int
    resources: Amounts


class GangCluster(ClusterState):
    """A cluster in which every CPU of every machine of `platform` is a processor.

    Jobs may hold resources if `may_hold`.
    """

    def __init__(
        self,
        platform: Cluster,
        policy: GangPolicy,
        choice: ProcessorChoice,
        outages: Sequence[MachineOutage] = (),
        *,
        may_hold: bool = True,
    ) -> None:
        self._names = platform.resource_names if may_hold else ()
        super().__init__(platform, outages, resources=self._names)
        cpus = [machine.cpus for machine in platform.machines]
        speeds = [(one.mips, one.watts_busy, one.watts_idle) for one in platform.machines]
        rows = np.ascontiguousarray(np.repeat(np.array(speeds, np.float64), cpus, axis=0).T)
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
            external_migration=policy.external_migration,
        )
        self._limits = GangLimits.of(platform)
        self._others: Sequence[GangLimits] = (self._limits,)
        """The clusters to which gangs may migrate."""
        self._choice = choice
        self._kills = platform.overrun == "kill"
        self._processors_of = list(pairwise(np.cumsum([0, *cpus]).tolist()))
        machine = np.repeat(np.arange(len(cpus)), cpus)
        whole = _amounts(platform, self._names)
        self.state = new_state(rows, machine, whole, policy.holds_together)
        self._rows: dict[int, int] = {}
        """Rows of the arrivals by slot."""
        self._killed: dict[int, bool] = {}
        self.expected: dict[int, GangProgress] = {}
        """By row of the arrivals, for gangs that ran in other clusters before."""
        self._free_slots = list(range(self.state.gangs.shape[1]))
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
            requests, size = self._requests(place), int(columns.processors[place])
            if columns.licenses[place] or not self._limits.hold(size, requests):
                self._outcomes.add(int(columns.row[place]), rejected(now))
                continue
            slot = self._take_slot(size)
            self._fill(slot, place, requests)
            instant.arrive(self.state, slot, now)
            self._plan_at(now)
        arrivals.taken(due.stop)

    def _requests(self, place: int) -> Amounts:
        """The amounts of resources that the arrival at that place requests."""
        if not self._names:
            return ()
        return tuple(zip(self._names, self._arrivals.values(place)[len(NAMES) :], strict=True))

    def _cancel(self, row: int, running: bool, now: Time) -> None:
        """A gang that has started stays, also with `running`."""
        slot = next((slot for slot, one in self._rows.items() if one == row), NONE)
        gangs = self.state.gangs
        if slot == NONE or gangs[at.START, slot] < NEVER:
            return
        instant.withdraw(self.state, self.rules, slot, now)
        self._plan_at(now)
        self._outcomes.add(self._forget(slot), cancelled(now))

    def _change_machine(self, machine: int, down: bool, now: Time) -> None:
        if self._rows:
            self.state.counters[at.DUE_US] = self._next_us = now
        instant.change_machine(self.state, *self._processors_of[machine], down, now)

    def _next_event_us(self) -> Time:
        return self._next_us

    def _plan_at(self, now: Time) -> None:
        """Schedule an instant at `now`."""
        self._next_us = min(self._next_us, now)

    def _last_event_us(self) -> Time:
        ends = self.state.processors[at.ENDS]
        latest = int(ends.max(initial=NONE, where=ends != NEVER))
        return self._next_us if latest == NONE else latest

    def _has_jobs(self) -> bool:
        return len(self._rows) > 0

    def _processors_wanted(self) -> int:
        return int(self.state.counters[at.WAITING] + self.state.counters[at.BUSY])

    def occupancy(self) -> tuple[int, int, int]:
        count = np.bincount(self.state.gangs[at.STATE], minlength=at.ENDED + 1).tolist()
        waiting = count[at.ARRIVED] + count[at.QUEUED] + count[at.PAUSED]
        return int(self.state.counters[at.BUSY]), count[at.RUNNING], waiting

    def _busy_machines(self) -> Sequence[int]:
        busy = self.state.processors[at.GANG] != NONE
        spans = enumerate(self._processors_of)
        return [machine for machine, (first, after) in spans if busy[first:after].any()]

    def _broken_limits(self) -> Iterator[str]:
        processors, gangs = self.state.processors, self.state.gangs
        slots = gangs.shape[1]
        runs, holders = processors[at.GANG], processors[at.HELD_FOR]
        running = np.bincount(runs[runs != NONE], minlength=slots)
        wanted = np.where(gangs[at.STATE] == at.RUNNING, gangs[at.UNFINISHED], 0)
        for slot in (running != wanted).nonzero()[0].tolist():
            yield f"{running[slot]} tasks of a gang are running instead of {wanted[slot]}"
        reserved, size = np.bincount(holders[holders != NONE], minlength=slots), gangs[at.SIZE]
        for slot in (reserved > size).nonzero()[0].tolist():
            yield f"{reserved[slot]} processors are reserved for {size[slot]} tasks"
        for number, name in enumerate(self._names):
            whole, free, _ = self._amounts_of(number)
            held = self._held(number)
            for machine in np.flatnonzero((held > whole) | (free != whole - held)).tolist():
                where = f"machine {machine}" if machine < len(self._cpus) else "the cluster"
                yield f"{held[machine]:g} of {whole[machine]:g} {name} of {where} are held"

    def _amounts_of(self, resource: int) -> Floats:
        """See `State.amounts`: the rows of a resource."""
        return self.state.amounts[at.WHOLE + resource :: len(self._names)]

    def _held(self, resource: int) -> Floats:
        """What gangs hold of a resource by their tasks. Shape (machines + 1,)."""
        state = self.state
        held = np.zeros(state.amounts.shape[1])
        for slot in np.flatnonzero(state.gangs[at.TAKEN] < NEVER).tolist():
            size = int(state.gangs[at.SIZE, slot])
            places, left = state.tasks[:, slot, :size]
            machines = state.processors[at.MACHINE, places[left > 0]]
            for column, tasks in (*Counter(machines.tolist()).items(), (-1, len(machines))):
                held[column] += share(state.numbers[at.REQUESTS + resource, slot], tasks, size)
        return held

    def figures(self) -> dict[str, float]:
        """Gangs that migrated, tasks that moved for it, and interruptions by priority jobs.

        An external migration counts in the cluster that receives the gang.
        """
        counters = self.state.counters
        figures: dict[str, float] = {
            "migrations_local": int(counters[at.MIGRATED]),
            "migrations_external": self.received,
            "tasks_migrated_local": int(counters[at.MOVED_TASKS]),
            "interruptions": int(counters[at.STOPS]),
        }
        for number, name in enumerate(self._names):
            whole, _, held_s = self._amounts_of(number)
            limited = np.isfinite(whole)
            figures[f"held.{name}"] = float(held_s[limited].sum())
            figures[f"amount.{name}"] = float(whole[limited].sum())
        return figures

    def _take_levels(self) -> Levels:
        self._take_history()
        rows, self._levels = self._levels, []
        # As floats, since many processors over a long time may exceed 64 bits.
        firsts = [first for first, _ in self._processors_of]
        busy_us = np.add.reduceat(self.state.processors[at.BUSY_TIME].astype(np.float64), firsts)
        times, busy, smallest = np.ascontiguousarray(np.concatenate(rows).T)
        draw = None
        if self._watts:
            steps_us, watts = map(np.concatenate, zip(*self._watts, strict=True))
            draw = Draw(steps_us, np.diff(watts, prepend=0.0))
        return Levels(times, busy, smallest, busy_us=busy_us, draw=draw)

    def _take_history(self) -> None:
        state, counters = self.state, self.state.counters
        rows = int(counters[at.NOTED])
        counters[at.NOTED] = 0
        self._levels.append(state.history[:rows].copy())
        if counters[at.DRAWS]:
            self._watts.append((state.history[:rows, 0].copy(), state.watts[:rows].copy()))

    def _advance(self, until: Time) -> None:
        """Simulate every instant before `until`, where no job arrives before."""
        counters = self.state.counters
        while self._next_us < until:
            if counters[at.ASKED] != NONE:
                self._ask(int(counters[at.ASKED]))
            self._next_us = int(instant.advance(self.state, self.rules, until))
            if counters[at.N_ENDED]:
                self._collect()
            if 2 * counters[at.NOTED] > len(self.state.history):
                self._take_history()

    def _ask(self, gang: int) -> None:
        """Let the plugin choose the processors whose queues the gang joins."""
        state = self.state
        waits, runs, down = state.processors[[at.WAITS, at.GANG, at.DOWN]]
        machine = state.processors[at.MACHINE].copy()
        room = resources.room(state, gang, True)[machine]
        mips = state.speeds[at.MIPS].copy()
        queues = ProcessorQueues(waits, runs != NONE, down == 0, mips, machine, room)
        size = int(state.gangs[at.SIZE, gang])
        chosen = self._choice(size, queues, int(state.counters[at.ROUND]))
        state.processors[at.CHOSEN, :size] = chosen

    def _fill(self, slot: int, place: int, requests: Amounts) -> None:
        """Set the rows of a slot from the arrival at that place."""
        gangs, numbers, columns = self.state.gangs, self.state.numbers, self._arrivals.columns
        size, run_us = int(columns.processors[place]), int(columns.run_us[place])
        estimate_us = int(columns.estimate_us[place])
        self._rows[slot] = int(columns.row[place])
        self._killed[slot] = self._kills and run_us > estimate_us
        before = self.expected.pop(self._rows[slot], NEVER_RAN)
        work = (estimate_us if self._killed[slot] else run_us) * columns.reference_mips[place]
        gangs[at.PRIORITY, slot] = size == 1 and self.policy.priority_jobs
        gangs[at.CHECKPOINTABLE, slot] = columns.checkpointable[place]
        gangs[at.SERIAL, slot] = self._serial
        gangs[at.RANK, slot] = self.policy.rank(size, self._serial)
        gangs[at.SIZE, slot] = gangs[at.UNFINISHED, slot] = size
        gangs[at.READY, slot] = gangs[at.OVERTAKEN, slot] = 0
        job = self._arrivals.routed.get(self._rows[slot])
        whole = requests if job is None else job.resources
        gangs[at.STAYS, slot] = not any(one.hold(size, whole) for one in self._others)
        numbers[at.REQUESTS :, slot] = [amount for _, amount in requests]
        numbers[at.POWER, slot] = columns.power[place]
        numbers[at.WORK, slot] = work - before.done
        for name, row in at.CARRIED.items():
            gangs[row, slot] = getattr(before, name)
        for name, row in at.CARRIED_NUMBERS.items():
            numbers[row, slot] = getattr(before, name)
        self._serial += 1

    def _progress(self, slot: int) -> GangProgress:
        """The progress of the gang of that slot, which does not run."""
        gangs, numbers = self.state.gangs[:, slot].tolist(), self.state.numbers[:, slot].tolist()
        job = self._arrivals.routed[self._rows[slot]]
        work = (job.estimate_us if self._killed[slot] else job.run_us) * job.reference_mips
        carried = {name: gangs[row] for name, row in at.CARRIED.items()}
        carried |= {name: numbers[row] for name, row in at.CARRIED_NUMBERS.items()}
        return GangProgress(done=work - numbers[at.WORK], **carried)

    def _take_slot(self, tasks: int) -> int:
        """A slot for a gang of that many tasks."""
        slots, before = self.state.gangs.shape[1], self.state.tasks.shape[2]
        if tasks > before or not self._free_slots:
            self.state = with_room(self.state, slots + (not self._free_slots), tasks)
            self._free_slots += range(slots, self.state.gangs.shape[1])
        slot = self._free_slots.pop()
        self.state.gangs[at.TAKEN, slot] = NEVER
        return slot

    def _forget(self, slot: int) -> int:
        """Free a slot; returns the row of its job."""
        self.state.gangs[at.STATE, slot] = at.FREE
        self._free_slots.append(slot)
        return self._rows.pop(slot)

    def _collect(self) -> None:
        """Report the outcomes of ended gangs, in order of (end, arrival)."""
        state, counters = self.state, self.state.counters
        slots = state.lists[at.ENDINGS, : counters[at.N_ENDED]]
        counters[at.N_ENDED] = 0
        slots = slots[np.lexsort((state.gangs[at.SERIAL, slots], state.gangs[at.END, slots]))]
        rows = (at.SIZE, at.START, at.END, at.INTERRUPTIONS, at.RESTARTS, at.LOST, at.HELD)
        gangs = state.gangs[:, slots]
        watts = state.numbers[at.WATTS_BUSY : at.WATTS_IDLE + 1, slots]
        for place, slot in enumerate(slots.tolist()):
            size, start, end, stops, restarts, lost_us, held_us = gangs[rows, place].tolist()
            total_us = max(held_us, 1) * size
            killed = int(JobState.FAILED if self._killed[slot] else JobState.COMPLETED)
            busy, idle = (watts[:, place] / total_us).tolist()
            outcome = JobOutcome(
                0, killed, start, end, stops, restarts, lost_us, held_us, 0, busy, idle
            )
            self._outcomes.add(self._forget(slot), outcome)

    # External migration (GM V-A): gangs that leave for another cluster, or come from there

    def waiting_gang(self) -> WaitingGang | None:
        """The gang to send next, if there is one. All before now has been simulated."""
        slot = int(self.state.counters[at.TO_SEND])
        if slot == NONE:
            return None
        rank, size = self.state.gangs[at.RANK : at.SIZE + 1, slot].tolist()
        # Other clusters may limit what this one does not.
        requests = self._arrivals.routed[self._rows[slot]].resources
        return WaitingGang(slot, rank, size, requests)

    def send_to(self, others: Sequence[GangLimits]) -> None:
        """Send only gangs that any of the `others` can run; no gang has arrived yet."""
        self._others = others

    def send_away(self, gang: WaitingGang, now: Time) -> tuple[Job, GangProgress] | None:
        """Remove a gang from the cluster, with its progress; None if it no longer waits."""
        self.advance(now)
        gangs = self.state.gangs
        if gangs[at.STATE, gang.slot] != at.QUEUED or gangs[at.RANK, gang.slot] != gang.rank:
            return None
        instant.withdraw(self.state, self.rules, gang.slot, now)
        self._plan_at(now)
        progress = self._progress(gang.slot)
        return self._arrivals.routed.pop(self._forget(gang.slot)), progress

    def reserve(self, processors: int, now: Time, requests: Amounts = ()) -> int | None:
        """Reserve idle processors and resources for a gang that may arrive; None if they lack.

        Returns the number of the reservation. Only priority jobs run there until it is cancelled
        or the gang has been received.
        """
        idle = self.processors - self.state.counters[at.BUSY]
        if processors > idle or not self._limits.hold(processors, requests):
            return None
        slot, amounts = self._take_slot(processors), dict(requests)
        held = [amounts.get(name, 0.0) for name in self._names]
        self.state.numbers[at.REQUESTS :, slot] = held
        if instant.reserve(self.state, self.rules, slot, processors, now):
            return slot
        self._free_slots.append(slot)
        return None

    def cancel(self, reservation: int, now: Time) -> None:
        """Free the processors of a reservation."""
        self.advance(now)
        instant.cancel(self.state, self.rules, reservation, now)
        self._free_slots.append(reservation)
        self._plan_at(now)

    def receive(self, job: Job, progress: GangProgress, reservation: int, now: Time) -> bool:
        """The gang of a reservation arrives; it starts when its tasks have been transferred.

        False, without any effect, if an outage has ended the reservation, which must still be
        cancelled.
        """
        self.advance(now)
        if self.state.gangs[at.SIZE, reservation] == 0:
            return False
        self._admit(now)
        self.receive_late(job, progress, now)
        place, ready_us = self._arrivals.first, now + self.policy.external_overhead_us
        self._fill(reservation, place, self._requests(place))
        self._arrivals.taken(place + 1)
        instant.fill_reservation(self.state, reservation, ready_us, now)
        self._plan_at(ready_us)
        return True

    def receive_late(self, job: Job, progress: GangProgress, now: Time) -> None:
        """A gang of another cluster arrives with all its tasks, without a reservation."""
        row = self.submit(job, -1, now)
        if progress != NEVER_RAN:
            self.expected[row] = progress
        self.received += 1


def _amounts(platform: Cluster, names: Sequence[str]) -> Floats:
    """How much there is of each resource, see `State.amounts`. Shape (resources, machines + 1)."""
    rows = [
        [np.inf] * len(platform.machines) + [platform.resources[name]]
        if name in platform.resources
        else [one.limits.get(name, unlisted(name)) for one in platform.machines] + [np.inf]
        for name in names
    ]
    return rounded(np.array(rows, np.float64).reshape(len(names), len(platform.machines) + 1))  # type: ignore[no-any-return]
