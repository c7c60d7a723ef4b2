"""Conservative and selective backfilling the slow way: a list of reservations, and every
question answered from it. Shares no code with the project."""

from __future__ import annotations

from dataclasses import dataclass, replace

NEVER = 2**62


@dataclass(eq=False)
class SlowJob:
    """Times are integers. The last three are the outcome; `promised` is the first reservation."""

    submit: int
    processors: int
    estimate: int
    run: int
    licenses: frozenset[int] = frozenset()
    bound: int = -1
    gpus: int = 0
    io: int = 0
    machine: int = -1
    start: int = -1
    end: int = -1
    promised: int = NEVER
    sizes: tuple[dict[str, int], ...] = ()
    """Of a moldable job: changes of `processors`, `estimate`, `run` and others for other sizes."""


@dataclass(frozen=True)
class SlowMachine:
    """`speed` divides run times and estimates, which must come out even."""

    cpus: int
    speed: int = 1
    licenses: frozenset[int] = frozenset()
    gpus: int = 0


@dataclass(eq=False)
class Held:
    """A machine's CPUs and licenses, held by a job of that `shape` from start to end."""

    job: SlowJob
    shape: SlowJob
    machine: int
    start: int
    end: int


class SlowReserving:
    """`play` sets the outcome of all jobs, in order of submission; each must fit some machine."""

    def __init__(
        self,
        machines: list[SlowMachine],
        copies: list[int],
        limit: float,
        io: int = 0,
        windows: list[tuple[int, int, int, int]] | None = None,
    ) -> None:
        self.windows = windows or []
        """Machine, start, end and CPUs of each reservation for maintenance."""
        self.io = io
        """Of a resource that all machines share."""
        self.machines = machines
        self.copies = copies
        self.limit = limit
        self.held: list[Held] = []
        # The fastest machine first, then the one with more CPUs.
        self.order = sorted(
            range(len(machines)), key=lambda m: (-machines[m].speed, -machines[m].cpus)
        )

    def play(self, jobs: list[SlowJob]) -> None:
        coming, queue, running = list(jobs), [], []
        now = -1
        while coming or running or queue:
            reserved = [one.start for one in self.held if one.job in queue]
            edges = [one for _, *pair, _ in self.windows for one in pair if one > now]
            edges = edges if running or queue else []
            now = min(
                [job.submit for job in coming[:1]] + [job.end for job in running] + reserved + edges
            )
            over = [job for job in running if job.end == now]
            running = [job for job in running if job.end > now]
            early = any(self.of(job).end > now for job in over)
            self.held = [one for one in self.held if one.job not in over]
            while coming and coming[0].submit == now:
                queue.append(coming.pop(0))
            started = self.plan(now, queue, early)
            for job in started:
                one = self.of(job)
                job.machine, job.start = one.machine, now
                job.processors = one.shape.processors
                job.end = (
                    now + min(one.shape.run, one.shape.estimate) // self.machines[one.machine].speed
                )
            running += started
            queue = [job for job in queue if job not in started]

    def plan(self, now: int, queue: list[SlowJob], early: bool) -> list[SlowJob]:
        for job in queue if early else []:
            old = self.of(job)
            if old is not None and (old.start > now or job.sizes):
                self.held.remove(old)
                new = self.earliest(job, now)
                self.held.append(new if self.rank(new) < self.rank(old) else old)
        for job in queue:
            shortest = min(self.length(job, m) for m in self.order if self.may_run(job, m))
            if self.of(job) is None and now - job.submit + shortest > self.limit * shortest:
                self.held.append(self.earliest(job, now))
                job.promised = self.of(job).start
        started = []
        for job in queue:
            if self.of(job) is None:
                found = self.earliest(job, now)
                if found.start == now:
                    self.held.append(found)
            if self.of(job) is not None and self.of(job).start == now:
                started.append(job)
        return started

    def of(self, job: SlowJob) -> Held | None:
        return next((one for one in self.held if one.job is job), None)

    def length(self, job: SlowJob, machine: int) -> int:
        return job.estimate // self.machines[machine].speed

    def may_run(self, job: SlowJob, machine: int) -> bool:
        it = self.machines[machine]
        return (
            job.processors <= it.cpus
            and job.bound in (-1, machine)
            and job.licenses <= it.licenses
            and job.gpus <= it.gpus
        )

    def earliest(self, job: SlowJob, now: int) -> Held:
        """The first of the machines, in order of speed, on which it could start first.

        A moldable job has the size and machine with which it ends first, with few CPUs.
        """
        found = [
            Held(job, shape, m, start, start + self.length(shape, m))
            for m in self.order
            for shape in [job, *(replace(job, **size) for size in job.sizes)]
            if self.may_run(shape, m)
            for start in [self.earliest_on(shape, m, now)]
        ]
        return min(found, key=self.rank)

    def rank(self, one: Held) -> tuple[int, ...]:
        return (one.end, one.shape.processors) if one.job.sizes else (one.start,)

    def earliest_on(self, job: SlowJob, machine: int, now: int) -> int:
        own = [(begin, end) for m, begin, end, _ in self.windows if m == machine]
        ends = {one.end for one in self.held} | {end for _, end in own}
        ends = sorted({now} | {end for end in ends if end > now})
        for start in ends:
            end = start + self.length(job, machine)
            begins = [one.start for one in self.held] + [begin for begin, _ in own]
            times = [start] + [begin for begin in begins if start < begin < end]
            if all(self.fits(job, machine, at) for at in times):
                return start
        raise AssertionError("everything ends")

    def fits(self, job: SlowJob, machine: int, at: int) -> bool:
        there = [one for one in self.held if one.start <= at < one.end]
        used = sum(one.shape.processors for one in there if one.machine == machine)
        used += sum(n for m, begin, end, n in self.windows if m == machine and begin <= at < end)
        if used + job.processors > self.machines[machine].cpus:
            return False
        gpus = sum(one.shape.gpus for one in there if one.machine == machine)
        if gpus + job.gpus > self.machines[machine].gpus:
            return False
        if sum(one.shape.io for one in there) + job.io > self.io:
            return False
        return all(
            len({one.machine for one in there if number in one.job.licenses} | {machine})
            <= self.copies[number]
            for number in job.licenses
        )
