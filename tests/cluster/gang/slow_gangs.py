"""A cluster with a queue a processor, played the slow and direct way: the oracle of the fast one.

Every instant looks at everything: each gang, each processor, each queue as a plain list.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grid.cluster.gang.processor_choices import ProcessorChoice, ld
from grid.model.job import Job
from grid.model.platform import MachineOutage
from grid.model.time import SECOND_US
from grid.policies.gang_policy import GangPolicy


@dataclass(eq=False)
class Gang:
    job: Job
    serial: int
    rank: int
    priority: bool
    where: list[int] = field(default_factory=list)
    left: dict[int, int] = field(default_factory=dict)
    """Time that the unfinished task on each processor still needs."""
    whole: dict[int, int] = field(default_factory=dict)
    """Time that each task takes since the gang last began from the start or a checkpoint."""
    work: float = 0.0
    """What a task takes on a processor of one MIPS."""
    held: int = 0
    lost: int = 0
    restarts: int = 0
    running: bool = False
    kept: bool = False
    holds: bool = False
    """The resources of its unfinished tasks."""
    ready: int = 0
    start: int = -1
    end: int = -1
    interruptions: int = 0
    overtaken: int = 0


@dataclass(eq=False)
class Processor:
    mips: float
    machine: int
    down: bool = False
    queue: list[Gang] = field(default_factory=list)
    runs: Gang | None = None
    end: int = 0
    keeper: Gang | None = None

    @property
    def idle(self) -> bool:
        return self.runs is None and self.keeper is None and not self.down

    @property
    def waiting(self) -> int:
        return len(self.queue) + (self.keeper is not None)


class SlowGangs:
    """`mips` are those of the processors of each machine.

    `amounts` of resources are those of each machine, and then what all share, as numbers.
    """

    def __init__(
        self,
        mips: Sequence[Sequence[float]],
        policy: GangPolicy,
        choice: ProcessorChoice = ld,
        outages: Sequence[MachineOutage] = (),
        amounts: Sequence[Mapping[str, int]] = (),
    ) -> None:
        self.amounts = {(name, m): of[name] for m, of in enumerate(amounts) for name in of}
        self.shared = len(mips)
        self.held_s: Counter[str] = Counter()
        self.processors = [Processor(m, number) for number, of in enumerate(mips) for m in of]
        self.policy = policy
        self.adaptive = choice is not ld
        self.outages = outages
        self.round = 0
        self.serial = 0
        self.here: list[Gang] = []
        self.ended: list[Gang] = []
        self.started_in: dict[int, int] = {}
        self.migrations = self.moved = self.interruptions = 0
        self.history: list[tuple[int, int, int]] = []
        self.now = -1

    def play(self, jobs: list[Job]) -> None:
        """Jobs in order of submission, until all have ended."""
        left = list(jobs)
        while left or self.here:
            times = [p.end for p in self.processors if p.runs]
            times += [g.ready for g in self.here if g.kept and not self.blocked(g)]
            times += [g.ready for g in self.here if not g.where and g.ready > self.now]
            times += [left[0].submit_us] if left else []
            if any(g.priority and not g.running for g in self.here):
                times += [(self.now // SECOND_US + 1) * SECOND_US]
            times += [t for t in self.changes() if t > self.now and self.here]
            now = min(times)
            arrived = [job for job in left if job.submit_us == now]
            left = left[len(arrived) :]
            self.instant(now, arrived)

    def demand(self, gang: Gang, places: Iterable[int]) -> dict[tuple[str, int], float]:
        """What its tasks on these processors hold, by resource and machine: rounded up to 1/1024.

        All of them hold the last column.
        """
        there = Counter(self.processors[p].machine for p in places)
        there[self.shared] = sum(there.values())
        return {
            (name, m): -(-int(amount * 1024) * tasks // gang.job.processors) / 1024
            for m, tasks in there.items()
            for name, amount in gang.job.resources
        }

    def held(self) -> dict[tuple[str, int], float]:
        held = dict.fromkeys(self.amounts, 0.0)
        for gang in self.here:
            for key, amount in self.demand(gang, gang.left).items() if gang.holds else ():
                held[key] = held.get(key, 0.0) + amount
        return held

    def fits(
        self, gang: Gang, places: Iterable[int], held: Mapping[tuple[str, int], float]
    ) -> bool:
        """Whether machines have enough for tasks there, next to what is held."""
        return all(
            held.get(key, 0.0) + amount <= self.amounts.get(key, math.inf)
            for key, amount in self.demand(gang, places).items()
        )

    def can_ever_run(self, job: Job) -> bool:
        gang, count = Gang(job, 0, 0, False), len(self.processors)
        return len(self.within(gang, range(count), [], job.processors, {})) == job.processors

    def within(
        self,
        gang: Gang,
        order: Iterable[int],
        before: list[int],
        wanted: int,
        held: Mapping[tuple[str, int], float],
    ) -> list[int]:
        """The first processors that have room for tasks, if others are where they were before."""
        chosen: list[int] = []
        for p in order:
            if len(chosen) < wanted and self.fits(gang, [*before, *chosen, p], held):
                chosen.append(p)
        return chosen

    def changes(self) -> list[int]:
        return [time for one in self.outages for time in (one.start_us, one.end_us)]

    def instant(self, now: int, arrived: list[Job]) -> None:  # noqa: PLR0912
        for key in self.amounts:
            self.held_s[key[0]] += self.held()[key] * (now - max(self.now, 0))
        for p in range(len(self.processors)):
            processor = self.processors[p]
            if processor.runs and processor.end == now:
                self.end_task(p, now)
        for processor in self.processors:
            processor.down = any(
                one.machine == processor.machine and one.start_us <= now < one.end_us
                for one in self.outages
            )
        for gang in self.here:
            if any(self.processors[p].down for p in gang.left):
                self.displace(gang, now)
        # Nobody notices that a machine was down between two instants.
        self.here += [self.gang(job) for job in arrived]
        while any(self.run_priority(g, now) for g in self.here if g.priority and not g.running):
            pass
        up = [p for p, processor in enumerate(self.processors) if not processor.down]
        for gang in [g for g in self.here if not g.where]:
            if not gang.priority and gang.job.processors <= len(up) and gang.ready <= now:
                load = [p.waiting + (self.adaptive and p.runs is not None) for p in self.processors]
                gang.where = self.join(gang, up, load, [], gang.job.processors, {})
                for p in gang.where:
                    self.place(gang, p)
                    self.processors[p].queue.append(gang)
                    self.processors[p].queue.sort(key=lambda g: g.rank)
        for gang in [g for g in self.here if g.kept]:
            if not self.blocked(gang) and gang.ready <= now:
                self.run(gang, now)
        for gang in sorted(self.queued(), key=lambda g: g.rank):
            is_idle = all(self.processors[p].idle for p in gang.where)
            if is_idle and self.fits(gang, gang.where, self.held()):
                self.run(gang, now)
        if self.policy.local_migration:
            while self.migrate(now):
                pass
        self.now = now
        assert all(amount <= self.amounts.get(key, math.inf) for key, amount in self.held().items())
        busy = sum(p.runs is not None for p in self.processors)
        waiting = [g.job.processors for g in self.here if not g.running]
        row = (now, busy, min(waiting, default=len(self.processors) + 1))
        if not self.history or self.history[-1][1:] != row[1:]:
            self.history.append(row)

    def gang(self, job: Job) -> Gang:
        serial = self.serial
        self.serial += 1
        priority = job.processors == 1 and self.policy.priority_jobs
        rank = self.policy.rank(job.processors, serial)
        return Gang(job, serial, rank, priority, work=job.run_us * job.reference_mips)

    def queued(self) -> list[Gang]:
        return [g for g in self.here if g.where and not (g.running or g.kept or g.priority)]

    def displace(self, gang: Gang, now: int) -> None:
        for p, processor in enumerate(self.processors):
            if processor.runs is gang:
                gang.left[p] = processor.end - now
                processor.runs = None
            if processor.keeper is gang:
                processor.keeper = None
            processor.queue = [g for g in processor.queue if g is not gang]
        if gang.running:
            gang.interruptions += 1
        if gang.whole:
            done = sum(time - gang.left.get(p, 0) for p, time in gang.whole.items())
            kept = 0
            if gang.job.checkpointable:
                lefts = [time * self.processors[p].mips for p, time in gang.left.items()]
                # Held together, all have the time of the slowest one left.
                left = min(lefts) if self.policy.holds_together else max(lefts)
                gang.work = min(gang.work, left)
                again = {p: max(1, round(gang.work / self.processors[p].mips)) for p in gang.whole}
                if self.policy.holds_together:
                    again = dict.fromkeys(again, max(again.values()))
                kept = sum(time - again[p] for p, time in gang.whole.items())
            else:
                gang.restarts += 1
            gang.held += done // gang.job.processors
            gang.lost += (done - kept) // gang.job.processors
        gang.where, gang.left, gang.whole = [], {}, {}
        gang.running = gang.kept = gang.holds = False

    def blocked(self, gang: Gang) -> bool:
        return any(self.processors[p].runs is not None for p in gang.where if p in gang.left)

    def place(self, gang: Gang, p: int) -> None:
        gang.left[p] = max(1, round(gang.work / self.processors[p].mips))

    def join(
        self,
        gang: Gang,
        eligible: Iterable[int],
        load: list[int],
        before: list[int],
        wanted: int,
        held: Mapping[tuple[str, int], float],
    ) -> list[int]:
        """The shortest queues with room for tasks; none if there are too few."""
        n = len(self.processors)
        order = sorted(eligible, key=lambda p: (load[p], (p - self.round) % n))
        chosen = self.within(gang, order, before, wanted, held)
        if len(chosen) < wanted:
            return []
        # The round goes on behind the last one in its own order, not behind the longest queue.
        chosen = sorted(chosen, key=lambda p: (p - self.round) % n)
        self.round = (chosen[-1] + 1) % n
        return chosen

    def run(self, gang: Gang, now: int) -> None:
        if gang.start < 0:
            gang.start = now
        if self.policy.holds_together:
            gang.left = dict.fromkeys(gang.left, max(gang.left.values()))
        gang.whole = gang.whole or dict(gang.left)
        for p, time in gang.left.items():
            processor = self.processors[p]
            processor.queue = [g for g in processor.queue if g is not gang]
            processor.keeper = None
            assert processor.runs is None
            processor.runs, processor.end = gang, now + time
        gang.running, gang.kept, gang.holds = True, False, True

    def run_priority(self, gang: Gang, now: int) -> bool:
        """Start a priority job if it can start; returns whether it has."""
        second = now // SECOND_US
        if self.started_in.get(second, 0) >= self.policy.priority_limit:
            return False
        n = len(self.processors)
        places = []
        for p, processor in enumerate(self.processors):
            if processor.down:
                continue
            if processor.runs is None:
                kind = 0 if processor.keeper is None else 1
            elif processor.runs.priority:
                continue
            else:
                kind = 2
            held = self.held()
            if kind == 2 and self.policy.begins_again:
                assert processor.runs is not None
                for key, amount in self.demand(processor.runs, processor.runs.left).items():
                    held[key] -= amount
            if not self.fits(gang, [p], held):
                continue
            places.append((kind, processor.waiting, (p - self.round) % n, p))
        if not places:
            return False
        self.started_in[second] = self.started_in.get(second, 0) + 1
        kind, _, _, p = min(places)
        self.round = (p + 1) % n
        processor = self.processors[p]
        if kind == 2 and self.policy.begins_again:
            assert processor.runs is not None
            self.displace(processor.runs, now)
            self.interruptions += 1
        elif kind == 2:
            self.interrupt(processor.runs, now)
        self.place(gang, p)
        gang.where, gang.whole, gang.running, gang.holds = [p], dict(gang.left), True, True
        gang.start = now if gang.start < 0 else gang.start
        processor.runs, processor.end = gang, now + gang.left[p]
        return True

    def interrupt(self, gang: Gang | None, now: int) -> None:
        assert gang is not None
        for p in gang.left:
            processor = self.processors[p]
            gang.left[p] = processor.end - now
            processor.runs, processor.keeper = None, gang
        gang.running, gang.kept, gang.ready = False, True, now
        gang.interruptions += 1
        self.interruptions += 1

    def end_task(self, p: int, now: int) -> None:
        gang = self.processors[p].runs
        assert gang is not None
        self.processors[p].runs = None
        del gang.left[p]
        if not gang.left:
            gang.end = now
            gang.held += sum(gang.whole.values()) // gang.job.processors
            self.here = [g for g in self.here if g is not gang]
            self.ended.append(gang)

    def migrate(self, now: int) -> bool:
        idle = [p for p, processor in enumerate(self.processors) if processor.idle]
        best = None
        for gang in self.queued():
            first = [p for p in gang.where if self.processors[p].queue[0] is gang]
            looked_at = gang.where if self.policy.whole_queues else first
            if not any(p in idle for p in looked_at) or gang.job.processors > len(idle):
                continue
            takers = [
                p
                for p in idle
                if all(
                    head.overtaken < self.policy.aging or head.serial >= gang.serial
                    for head in self.processors[p].queue[:1]
                )
            ]
            here = [p for p in gang.where if p in takers]
            staying = self.within(gang, here, [], len(here), self.held())
            moving = [p for p in gang.where if p not in staying]
            free = [p for p in takers if p not in staying]
            if len(self.within(gang, free, staying, len(moving), self.held())) < len(moving):
                continue
            if best is None or (len(moving), gang.rank) < best[0]:
                best = ((len(moving), gang.rank), gang, moving, free)
        if best is None:
            return False
        _, gang, moving, free = best
        for p in gang.where:
            self.processors[p].queue.remove(gang)
        load = [p.waiting for p in self.processors]
        staying = [p for p in gang.where if p not in moving]
        chosen = self.join(gang, free, load, staying, len(moving), self.held())
        for p in moving:
            del gang.left[p]
        to = dict(zip(moving, chosen, strict=True))
        gang.where = [to.get(p, p) for p in gang.where]
        heads = {g.serial: g for p in gang.where for g in self.processors[p].queue[:1]}
        for head in heads.values():
            head.overtaken += 1
        for p in chosen:
            self.place(gang, p)
        self.migrations += 1
        self.moved += len(moving)
        if self.policy.local_overhead_us:
            gang.kept, gang.ready = True, now + self.policy.local_overhead_us
            gang.holds = True
            for p in gang.where:
                self.processors[p].keeper = gang
        else:
            self.run(gang, now)
        return True
