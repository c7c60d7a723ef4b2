"""Queue policies over many machines, the slow and obvious way: every question asked of all jobs.

They plan from the same view as the compiled ones, with plain numbers; nothing is remembered while
a plan is made but what it starts and reserves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from grid.model.time import NEVER
from grid.policies.interface import ClusterView, Plan


@dataclass
class Holding:
    """CPUs, licenses and resources of a machine, held until `end`."""

    machine: int
    processors: int
    licenses: int
    resources: list[float]
    end: int


@dataclass
class SlowView:
    """A view as plain Python."""

    view: ClusterView
    holdings: list[Holding] = field(default_factory=list)

    def __post_init__(self) -> None:
        jobs, machines = self.view.jobs, self.view.machines
        self.cpus = machines.cpus.tolist()
        self.order = sorted(
            range(len(self.cpus)), key=lambda m: (-machines.mips[m], -machines.cpus[m], m)
        )
        for slot in self.view.running.tolist():
            self.holdings.append(
                Holding(
                    int(jobs.machine[slot]),
                    int(jobs.processors[slot]),
                    int(jobs.licenses[slot]),
                    jobs.resources[:, slot].tolist(),
                    int(jobs.expected_end_us[slot]),
                )
            )
        self.copies = self.view.license_copies_free.tolist()
        for number in range(len(self.copies)):
            holders = {h.machine for h in self.holdings if h.licenses >> number & 1}
            self.copies[number] += len(holders)

        self.amounts = machines.resources.tolist()
        self.alone = len(self.amounts) - machines.shared

    def job(self, slot: int) -> tuple[int, int, list[float]]:
        jobs = self.view.jobs
        resources = jobs.resources[:, slot].tolist()
        return int(jobs.processors[slot]), int(jobs.licenses[slot]), resources

    def enough(self, number: int, machine: int, holdings: list[Holding]) -> bool:
        """Whether they hold no more of that resource than there is on the machine."""
        of_all = number >= self.alone
        held = [h.resources[number] for h in holdings if of_all or h.machine == machine]
        return sum(held) <= self.amounts[number][machine]

    def resize(self, slot: int, size: int) -> None:
        """Give the moldable job the columns of that size."""
        jobs, (cpus, factor, *held) = self.view.jobs, self.sizes(slot)[size]
        jobs.processors[slot], jobs.resources[:, slot] = int(cpus), held
        jobs.estimate_us[slot] = math.ceil(int(jobs.requested_estimate_us[slot]) * factor)

    def reset_sizes(self) -> None:
        for slot in self.view.queue.tolist():
            if self.view.jobs.sizes[slot]:
                self.resize(slot, 0)

    def sizes(self, slot: int) -> list[list[float]]:
        each = 2 + len(self.amounts)
        return self.view.jobs.size_table[:, slot].reshape(-1, each).tolist()

    def able(self, slot: int, machine: int) -> bool:
        processors, licenses, _ = self.job(slot)
        bound = int(self.view.jobs.bound_machine[slot])
        software = int(self.view.machines.licenses[machine])
        return (
            processors <= self.cpus[machine]
            and bound in (-1, machine)
            and not (licenses & ~software)
        )

    def length(self, slot: int, machine: int) -> int:
        jobs = self.view.jobs
        scale = float(jobs.reference_mips[slot]), float(self.view.machines.mips[machine])
        return max(1, round(int(jobs.estimate_us[slot]) * scale[0] / scale[1]))

    def fits(self, slot: int, machine: int, holdings: list[Holding], at: int | None = None) -> bool:
        """Whether the job fits on the machine beside the given holdings."""
        if not self.able(slot, machine):
            return False
        start = self.view.now if at is None else at
        mine = Holding(machine, *self.job(slot), start + self.left(slot, machine))
        if self.too_full([*holdings, mine], machine, start, mine.end):
            return False
        processors, licenses, _ = self.job(slot)
        if not all(self.enough(n, machine, [*holdings, mine]) for n in range(len(self.amounts))):
            return False
        if (
            processors + sum(h.processors for h in holdings if h.machine == machine)
            > (self.cpus[machine])
        ):
            return False
        for number, copies in enumerate(self.copies):
            if licenses >> number & 1:
                holders = {h.machine for h in holdings if h.licenses >> number & 1}
                if machine not in holders and len(holders) >= copies:
                    return False
        return True

    def left(self, slot: int, machine: int) -> int:
        jobs = self.view.jobs
        work = int(jobs.estimate_us[slot])
        if jobs.machine[slot] == machine or jobs.checkpointable[slot]:
            work -= int(jobs.done_us[slot])
        scale = float(jobs.reference_mips[slot]), float(self.view.machines.mips[machine])
        return max(1, round(work * scale[0] / scale[1]))

    def too_full(self, holdings: list[Holding], machine: int, start: int, end: int) -> bool:
        """Whether the last of the jobs, which run at `start`, runs into a window until `end`."""
        for window in self.view.machines.windows.tolist():
            place, begin, until, cpus, resource = window
            at = max(begin, start)
            held = [
                h.processors if resource < 0 else h.resources[resource]
                for h in holdings
                if h.machine == machine and h.end > at
            ]
            is_in_the_way = place == machine and at < min(until, end) and held[-1]
            if is_in_the_way and sum(held) + cpus > self.cpus[machine]:
                return True
        return False

    def hold(self, slot: int, machine: int, now: int) -> Holding:
        return Holding(machine, *self.job(slot), now + self.length(slot, machine))


class SlowFcfs:
    def plan(self, view: ClusterView, now: int) -> Plan:
        slow, plan = SlowView(view), Plan()
        blocked: set[int] = set()
        for slot in self.sorted(view):
            open_ones = [m for m in slow.order if m not in blocked]
            found = [m for m in open_ones if slow.fits(slot, m, slow.holdings)]
            if found:
                slow.holdings.append(slow.hold(slot, found[0], now))
                plan.start.append((slot, found[0]))
            elif view.jobs.bound_machine[slot] < 0:
                break
            else:
                blocked.add(int(view.jobs.bound_machine[slot]))
        return plan

    def sorted(self, view: ClusterView) -> list[int]:
        return view.queue.tolist()


class SlowSjf(SlowFcfs):
    def sorted(self, view: ClusterView) -> list[int]:
        return shortest_first(view, view.queue.tolist())


class SlowEdf:
    def plan(self, view: ClusterView, now: int) -> Plan:
        slow, plan = SlowView(view), Plan()
        for slot in sorted(view.queue.tolist(), key=lambda slot: view.jobs.deadline_us[slot]):
            found = [m for m in slow.order if slow.fits(slot, m, slow.holdings)]
            if found:
                slow.holdings.append(slow.hold(slot, found[0], now))
                plan.start.append((slot, found[0]))
        return plan


class SlowEasy:
    """EASY with reservations as `grid.policies.easy_kernels` describes them."""

    kept = -1
    """The machine on which the first job of all has its reservation, if it may not move."""

    def __init__(self, shortest: bool = False) -> None:
        self.shortest = shortest

    def plan(self, view: ClusterView, now: int) -> Plan:
        slow, plan = SlowView(view), Plan()
        reserved: dict[int, tuple[int, Holding]] = {}
        first: tuple[int, Holding] | None = None
        passed: list[int] = []
        someone_waits = False

        def now_on(slot: int) -> list[tuple[int, int]]:
            return [
                (now, machine)
                for machine in slow.order
                if slow.fits(slot, machine, slow.holdings)
                and not delays(machine, slow.hold(slot, machine, now))
            ]

        def start(slot: int) -> bool:
            for _, machine in now_on(slot)[:1]:
                slow.holdings.append(slow.hold(slot, machine, now))
                plan.start.append((slot, machine))
                return True
            return False

        def mold(slot: int, only: int, waits: bool) -> None:
            """Choose the size with which the job ends first; it may have to start now."""
            ends = []
            for size in range(view.jobs.sizes[slot]):
                slow.resize(slot, size)
                for time, machine in (now_on(slot) or (later_on(slot, only) if waits else []))[:1]:
                    end = time + slow.length(slot, machine)
                    ends.append((end, int(view.jobs.processors[slot]), size))
            if view.jobs.sizes[slot]:
                slow.resize(slot, min(ends)[2] if ends else 0)

        def delays(machine: int, mine: Holding) -> bool:
            if machine in reserved and mine.end > reserved[machine][0]:
                time, head = reserved[machine]
                later = [h for h in slow.holdings if h.end > time and h.machine == machine]
                everyone = [*later, head, mine]
                if (
                    sum(h.processors for h in everyone) > slow.cpus[machine]
                    or slow.too_full(everyone, machine, time, mine.end)
                    or not all(slow.enough(n, machine, everyone) for n in range(slow.alone))
                ):
                    return True
            if first is None or mine.end <= first[0]:
                return False
            later = [h for h in slow.holdings if h.end > first[0]] + [first[1]]
            for number in range(slow.alone, len(slow.amounts)):
                if not slow.enough(number, machine, [*later, mine]):
                    return True
            for number, copies in enumerate(slow.copies):
                if mine.licenses >> number & 1:
                    holders = {h.machine for h in later if h.licenses >> number & 1}
                    if machine not in holders and len(holders) >= copies:
                        return True
            return False

        def later_on(slot: int, only: int) -> list[tuple[int, int]]:
            edges = {until for _, _, until, *_ in view.machines.windows.tolist() if until > now}
            for time in sorted({h.end for h in slow.holdings} | edges):
                later = [h for h in slow.holdings if h.end > time]
                for machine in slow.order if only < 0 else [only]:
                    if machine not in reserved and slow.fits(slot, machine, later, time):
                        return [(time, machine)]
            return []

        def reserve(slot: int, only: int) -> tuple[int, Holding] | None:
            for time, machine in later_on(slot, only):
                plan.reserve.append((slot, machine, time))
                return reserved.setdefault(machine, (time, slow.hold(slot, machine, time)))
            return None

        slow.reset_sizes()
        order = self.sorted(view, now)
        for slot in order:
            bound = int(view.jobs.bound_machine[slot])
            if (bound in reserved) if bound >= 0 else someone_waits:
                passed.append(slot)
                continue
            only = self.kept if slot == order[0] else -1
            mold(slot, only, True)
            if not start(slot):
                made = reserve(slot, only)
                first = first or made
                someone_waits |= bound < 0
        for slot in shortest_first(view, passed) if self.shortest else passed:
            mold(slot, -1, False)
            start(slot)
        return plan

    def sorted(self, view: ClusterView, now: int) -> list[int]:
        return view.queue.tolist()


class SlowFlexible(SlowEasy):
    """EG 3.1, transcribed; seconds."""

    def sorted(self, view: ClusterView, now: int) -> list[int]:
        jobs: Any = view.jobs
        fastest = max(view.machines.mips.tolist())
        queue = view.queue.tolist()
        minext = min(int(jobs.estimate_us[slot]) / 1e6 for slot in queue) if queue else 0.0

        # In the order of operations of the compiled one: where priorities are equal but for the
        # last bit, that bit decides.
        def priority(slot: int) -> float:
            estimated = jobs.estimate_us[slot] / 1e6
            extime = estimated * jobs.reference_mips[slot] / fastest
            deadline = (jobs.deadline_us[slot] - now) / 1e6
            t = deadline - 2.0 * extime
            value = 0.01 * ((now - jobs.submit_us[slot]) / 1e6) + 0.1
            if t < extime <= deadline:
                value += (20.0 - 0.1) * (extime - t) / (2.0 * extime)
            return value + 2.0 * minext / estimated

        return sorted(queue, key=lambda slot: -priority(slot))


class SlowKept(SlowFlexible):
    """C07's BF-unrm: who has the first reservation keeps it, on its machine, until it starts."""

    serial = -1

    def plan(self, view: ClusterView, now: int) -> Plan:
        serials = [int(view.jobs.serial[slot]) for slot in view.queue.tolist()]
        machine, self.kept = self.kept, -1
        if self.serial in serials:
            self.kept = machine
        plan = super().plan(view, now)
        holders = {slot: machine for slot, machine, _ in plan.reserve}
        first = [slot for slot in self.sorted(view, now) if slot in holders][:1]
        self.serial, self.kept = -1, -1
        for slot in first:
            self.serial, self.kept = int(view.jobs.serial[slot]), holders[slot]
        return plan

    def sorted(self, view: ClusterView, now: int) -> list[int]:
        order = super().sorted(view, now)
        return sorted(order, key=lambda slot: int(view.jobs.serial[slot]) != self.serial)


class SlowPreemptiveEdf:
    """C07, section 6: by deadline, and in the place of jobs with later ones where nothing is free.

    The latest deadlines go first, on the fastest machine where that is enough. Who would start
    again where it is goes on.
    """

    def plan(self, view: ClusterView, now: int) -> Plan:
        slow, plan, jobs = SlowView(view), Plan(), view.jobs
        deadline, serial = jobs.deadline_us.tolist(), jobs.serial.tolist()
        slow.holdings = []
        ends = jobs.expected_end_us.tolist()
        held = {
            slot: Holding(int(jobs.machine[slot]), *slow.job(slot), ends[slot])
            for slot in view.running.tolist()
        }
        runs = set(held)

        def fits(slot: int, machine: int) -> bool:
            return slow.fits(slot, machine, list(held.values()))

        def left(slot: int, machine: int) -> int:
            own, mips = int(jobs.machine[slot]), view.machines.mips.tolist()
            if own < 0:
                return slow.length(slot, machine)
            if jobs.expected_end_us[slot] < NEVER:
                on_own = int(jobs.expected_end_us[slot]) - now
                if machine == own:
                    return on_own
                if jobs.checkpointable[slot]:
                    return max(1, round(on_own * mips[own] / mips[machine]))
                return slow.length(slot, machine)
            done = int(jobs.done_us[slot]) if machine == own or jobs.checkpointable[slot] else 0
            work = (int(jobs.estimate_us[slot]) - done) * float(jobs.reference_mips[slot])
            return max(1, round(work / mips[machine]))

        def make_way(slot: int, machine: int) -> bool:
            victims = [
                other
                for other in runs
                if held[other].machine == machine and deadline[other] > deadline[slot]
            ]
            gone = {}
            for other in sorted(victims, key=lambda one: (-deadline[one], -serial[one])):
                gone[other] = held.pop(other)
                if fits(slot, machine):
                    runs.difference_update(gone)
                    plan.preempt.extend(gone)
                    return True
            held.update(gone)
            return False

        everyone = [*view.queue.tolist(), *view.running.tolist()]
        for slot in sorted(everyone, key=lambda one: (deadline[one], serial[one])):
            if slot in runs:
                continue
            fitting = [m for m in slow.order if fits(slot, m)]
            machine = min(fitting, key=lambda m: left(slot, m), default=None)
            if machine is None:
                machine = next((m for m in slow.order if make_way(slot, m)), None)
            if machine is not None:
                held[slot] = Holding(machine, *slow.job(slot), now + slow.left(slot, machine))
                plan.start.append((slot, machine))
        for slot in list(plan.preempt):
            where = (slot, int(jobs.machine[slot]))
            if where in plan.start:
                plan.start.remove(where)
                plan.preempt.remove(slot)
        return plan


def shortest_first(view: ClusterView, slots: list[int]) -> list[int]:
    jobs = view.jobs
    return sorted(slots, key=lambda slot: jobs.estimate_us[slot] * jobs.reference_mips[slot])
