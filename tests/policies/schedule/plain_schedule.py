"""The schedule-based policies written down plainly: lists, sets of instants, everything anew.

The oracle of the compiled ones. It plans the same, job by job, and is a thousand times slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from grid.model.time import NEVER
from grid.policies.interface import ClusterView, Plan

Planned = tuple[int, int, int]
"""(slot, start, end)."""


@dataclass
class PlainJob:
    """A job, and how long it takes on each machine: 0 where it can never run."""

    processors: int
    deadline: int
    lengths: list[int]
    requests: list[float] = field(default_factory=list)
    """Of each resource."""


@dataclass
class PlainMachine:
    """Running jobs with their times, and the order of the waiting ones."""

    cpus: int
    up: bool = True
    running: list[Planned] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)


class PlainSchedule:
    def __init__(self, cpus: list[int], *, wide_gaps: bool = False) -> None:
        self.wide_gaps = wide_gaps
        self.windows: list[list[int]] = []
        """As of `MachineColumns`."""
        self.jobs: dict[int, PlainJob] = {}
        self.known: dict[tuple[object, ...], list[Planned]] = {}
        """What `timed` found at this instant, for all copies."""
        self.machines = [PlainMachine(count) for count in cpus]

    def copy(self) -> PlainSchedule:
        other = PlainSchedule([], wide_gaps=self.wide_gaps)
        other.jobs, other.known, other.windows = self.jobs, self.known, self.windows
        other.machines = [
            PlainMachine(m.cpus, m.up, list(m.running), list(m.waiting)) for m in self.machines
        ]
        return other

    def timed(self, number: int, now: int) -> list[Planned]:
        """All jobs of a machine with their times, in order of their starts."""
        machine = self.machines[number]
        asked = (number, now, tuple(machine.running), tuple(machine.waiting))
        if asked not in self.known:
            self.known[asked] = self._timed(number, now)
        return self.known[asked]

    def _timed(self, number: int, now: int) -> list[Planned]:
        machine = self.machines[number]
        planned = list(machine.running)
        earliest = now
        for slot in machine.waiting:
            start = next(
                t
                for t in self._tries(number, planned, earliest)
                if self._fits(number, planned, slot, t)
            )
            planned.append((slot, start, start + self.jobs[slot].lengths[number]))
            earliest = start
        return planned

    def all_timed(self, now: int) -> list[list[Planned]]:
        return [self.timed(number, now) for number in range(len(self.machines))]

    def figures(self, now: int) -> tuple[int, int]:
        """(makespan, jobs in time)."""
        planned = [entry for entries in self.all_timed(now) for entry in entries]
        makespan = max((end for _, _, end in planned), default=now)
        return makespan, sum(end <= self.jobs[slot].deadline for slot, _, end in planned)

    def gap(self, number: int, slot: int, now: int) -> int | None:
        """Start of the machine's earliest gap for the job."""
        job, machine = self.jobs[slot], self.machines[number]
        planned = self.timed(number, now)
        if not machine.up or not job.lengths[number] or not planned:
            return None
        if not (machine.waiting or self.wide_gaps):
            return None
        limit = max(end for _, _, end in planned) if self.wide_gaps else planned[-1][1]
        for start in self._tries(number, planned, now):
            if start + job.lengths[number] <= limit and self._fits(number, planned, slot, start):
                return start
        return None

    def _tries(self, number: int, planned: list[Planned], first: int) -> list[int]:
        """When a job could start on the machine."""
        ends = [end for _, _, end in planned] + [w[2] for w in self.windows if w[0] == number]
        return sorted({first, *(end for end in ends if end > first)})

    def _fits(self, number: int, planned: list[Planned], slot: int, start: int) -> bool:
        end = start + self.jobs[slot].lengths[number]
        begins = [s for _, s, _ in planned] + [w[1] for w in self.windows]
        for t in {start, *(begin for begin in begins if start < begin < end)}:
            there = [slot, *(s for s, b, e in planned if b <= t < e)]
            if sum(self.jobs[s].processors for s in there) > self.machines[number].cpus:
                return False
            for place, begin, until, cpus, resource in self.windows:
                held = [
                    self.jobs[s].processors if resource < 0 else self.jobs[s].requests[resource]
                    for s in there
                ]
                is_open = place == number and begin <= t < until and held[0]
                if is_open and sum(held) + cpus > self.machines[number].cpus:
                    return False
        return True

    def insert_in_gap(self, number: int, slot: int, start: int, now: int) -> None:
        planned = self.timed(number, now)[len(self.machines[number].running) :]
        self.machines[number].waiting.insert(sum(s <= start for _, s, _ in planned), slot)

    def insert_by_deadline(self, number: int, slot: int) -> None:
        waiting = self.machines[number].waiting
        later = [self.jobs[other].deadline > self.jobs[slot].deadline for other in waiting]
        waiting.insert(later.index(True) if True in later else len(waiting), slot)

    def take_out(self, slot: int) -> None:
        for machine in self.machines:
            machine.running = [entry for entry in machine.running if entry[0] != slot]
            machine.waiting = [other for other in machine.waiting if other != slot]

    def times_of(self, slot: int, now: int) -> tuple[int, int]:
        return next((b, e) for entries in self.all_timed(now) for s, b, e in entries if s == slot)


def weight(old: tuple[int, int], new: tuple[int, int], origin: int) -> float:
    """EG Eq. 1."""
    makespan_old, makespan_new = old[0] - origin, new[0] - origin
    return (makespan_old - makespan_new) / max(makespan_old, 1) + (new[1] - old[1]) / max(old[1], 1)


class PlainPolicy:
    """`eg_edf`, or with iterations `tabu`, as a policy."""

    def __init__(
        self, iterations: int = 0, tabu_list: int = 100, moves: bool = True, wide_gaps: bool = False
    ) -> None:
        self.wide_gaps = wide_gaps
        self.iterations, self.tabu_list, self.moves = iterations, tabu_list, moves
        self.tabu: list[tuple[int, int]] = []
        self.schedule: PlainSchedule | None = None
        self.origin = 0
        self.serial: dict[int, int] = {}

    def plan(self, view: ClusterView, now: int) -> Plan:
        if self.schedule is None:
            cpus = view.machines.cpus.tolist()
            self.schedule, self.origin = PlainSchedule(cpus, wide_gaps=self.wide_gaps), now
            self.schedule.windows = view.machines.windows.tolist()
        self.schedule.known.clear()
        for slot in view.arrived.tolist():
            self._learn(view, slot)
        early = self._repair(view, now)
        rejected = []
        for slot in view.queue.tolist():
            if not any(self.schedule.jobs[slot].lengths):
                rejected.append(slot)
            elif slot not in self._scheduled() and not self._place(slot, now):
                continue
        for number in early if self.moves else []:
            while self._fill(number, now):
                pass
        for _ in range(self.iterations * len(view.arrived)):
            if not self._search(now):
                break
        return Plan(start=list(self._due(now)), reject=rejected)

    def _learn(self, view: ClusterView, slot: int) -> None:
        jobs, machines = view.jobs, view.machines
        self.serial[slot] = int(jobs.serial[slot])
        lengths = []
        for number, (cpus, mips) in enumerate(zip(machines.cpus, machines.mips, strict=True)):
            able = jobs.processors[slot] <= cpus and jobs.bound_machine[slot] in (-1, number)
            time = int(jobs.estimate_us[slot]) * jobs.reference_mips[slot] / mips
            lengths.append(max(1, round(float(time))) if able else 0)
        assert self.schedule is not None
        self.schedule.jobs[slot] = PlainJob(
            int(jobs.processors[slot]),
            int(jobs.deadline_us[slot]),
            lengths,
            jobs.resources[:, slot].tolist(),
        )

    def _scheduled(self) -> list[int]:
        assert self.schedule is not None
        return [s for m in self.schedule.machines for s in [*(e[0] for e in m.running), *m.waiting]]

    def _repair(self, view: ClusterView, now: int) -> list[int]:
        """Machines on which a job ended early."""
        schedule = self.schedule
        assert schedule is not None
        early = []
        for slot in view.ended.tolist():
            for number, machine in enumerate(schedule.machines):
                early += [number for s, _, end in machine.running if s == slot and end > now]
            schedule.take_out(slot)
        for number, machine in enumerate(schedule.machines):
            stopped = [s for s, _, _ in machine.running if view.jobs.expected_end_us[s] == NEVER]
            machine.running = [entry for entry in machine.running if entry[0] not in stopped]
            held = sum(schedule.jobs[s].processors for s, _, _ in machine.running)
            known = [w for w in schedule.windows if w[1] <= now < w[2] and w[4] < 0]
            in_maintenance = any(w[0] == number and w[3] == machine.cpus for w in known)
            machine.up = bool(view.free[number] == machine.cpus - held) or in_maintenance
            running = [
                (s, start, int(view.jobs.expected_end_us[s])) for s, start, _ in machine.running
            ]
            if not machine.up:
                machine.running, machine.waiting = [], []
            elif running != machine.running:
                machine.running = running
                if self.moves and len(schedule.machines) > 1:
                    machine.waiting = []
        return [number for number in sorted(set(early)) if schedule.machines[number].up]

    def _fill(self, number: int, now: int) -> bool:
        """Start one more waiting job on the machine that delays nobody."""
        schedule = self.schedule
        assert schedule is not None
        candidates = []
        for place, entries in enumerate(schedule.all_timed(now)):
            for position, (slot, start, end) in enumerate(entries):
                length = schedule.jobs[slot].lengths[number]
                if start > now and length and now + length < end:
                    deadline = schedule.jobs[slot].deadline
                    candidates.append((deadline, start, place, position, slot))
        for _, _, _, _, slot in sorted(candidates):
            trial = schedule.copy()
            trial.take_out(slot)
            trial.machines[number].waiting.insert(self._due_count(number, now), slot)
            if self._nobody_later(schedule, trial, slot, now):
                self.schedule = trial
                return True
        return False

    def _due_count(self, number: int, now: int) -> int:
        assert self.schedule is not None
        running = len(self.schedule.machines[number].running)
        return sum(start <= now for _, start, _ in self.schedule.timed(number, now)[running:])

    def _nobody_later(
        self, before: PlainSchedule, after: PlainSchedule, slot: int, now: int
    ) -> bool:
        starts = {s: start for entries in before.all_timed(now) for s, start, _ in entries}
        then = {s: start for entries in after.all_timed(now) for s, start, _ in entries}
        return then[slot] == now and all(then[s] <= starts[s] for s in starts if s != slot)

    def _place(self, slot: int, now: int) -> bool:
        schedule = self.schedule
        assert schedule is not None
        old = schedule.figures(now)
        options = []
        for number in range(len(schedule.machines)):
            start = schedule.gap(number, slot, now)
            if start is not None:
                trial = schedule.copy()
                trial.insert_in_gap(number, slot, start, now)
                gain = weight(old, trial.figures(now), self.origin)
                options.append((-gain, *trial.times_of(slot, now), number, trial))
        if not options:
            for number, machine in enumerate(schedule.machines):
                if machine.up and schedule.jobs[slot].lengths[number]:
                    trial = schedule.copy()
                    trial.insert_by_deadline(number, slot)
                    gain = weight(old, trial.figures(now), self.origin)
                    options.append((-gain, *trial.times_of(slot, now), number, trial))
        if not options:
            return False
        self.schedule = min(options, key=lambda option: option[:4])[4]
        return True

    def _search(self, now: int) -> bool:
        """One iteration; False if there is nothing left to do."""
        schedule = self.schedule
        assert schedule is not None
        barred = [slot for slot, serial in self.tabu if self.serial[slot] == serial]
        timed = schedule.all_timed(now)
        late = [
            [s for s, _, end in timed[n] if s in m.waiting and end > schedule.jobs[s].deadline]
            for n, m in enumerate(schedule.machines)
        ]
        if all(slot in barred for slots in late for slot in slots):
            return False
        source = max(
            (n for n, m in enumerate(schedule.machines) if any(s not in barred for s in m.waiting)),
            key=lambda n: (len(late[n]), -n),
        )
        slot = [s for s in schedule.machines[source].waiting if s not in barred][-1]
        self.tabu = [*self.tabu, (slot, self.serial[slot])][-self.tabu_list :]
        old, count = schedule.figures(now), len(schedule.machines)
        for number in ((source + step) % count for step in range(1, count)):
            start = schedule.gap(number, slot, now)
            if start is not None:
                trial = schedule.copy()
                trial.take_out(slot)
                trial.insert_in_gap(number, slot, start, now)
                if weight(old, trial.figures(now), self.origin) > 0:
                    self.schedule = trial
                    break
        return True

    def _due(self, now: int) -> Iterator[tuple[int, int]]:
        assert self.schedule is not None
        for number, machine in enumerate(self.schedule.machines):
            for entry in self.schedule.timed(number, now)[len(machine.running) :]:
                if entry[1] <= now:
                    machine.running.append(entry)
                    machine.waiting.remove(entry[0])
                    yield entry[0], number
