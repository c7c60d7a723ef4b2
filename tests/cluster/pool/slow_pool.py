"""Queue policies on one pool of processors, the slow and obvious way: lists, searched from end to
end at every instant. Shares no code with the project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class SlowJob:
    """Times are integers in any unit. `start`, `end` and `killed` are the outcome."""

    submit: int
    processors: int
    estimate: int
    run: int
    deadline: int = 2**62
    start: int = -1
    end: int = -1
    killed: bool = False

    @property
    def expected_end(self) -> int:
        return self.start + self.estimate


@dataclass
class Flexible:
    """Flexible backfilling in the priority of EG 3.1; times are in seconds there.

    `kept` has the job whose reservation is kept; None: reservations are made anew.
    """

    age_factor: float
    k: float
    maximum: float
    minimum: float
    boost_value: float
    kept: list[SlowJob] | None

    def ordered(self, waiting: list[SlowJob], now: int) -> list[SlowJob]:
        shortest = min((job.estimate for job in waiting), default=0) / 1e6
        order = sorted(waiting, key=lambda job: -self._priority(job, now, shortest))
        first = self.kept or []
        return first + [job for job in order if job not in first]

    def _priority(self, job: SlowJob, now: int, shortest: float) -> float:
        takes = job.estimate / 1e6
        deadline = (job.deadline - now) / 1e6
        begin = deadline - self.k * takes
        rise = 0.0
        if begin < takes <= deadline:
            rise = (self.maximum - self.minimum) * (takes - begin) / (self.k * takes)
        age = (now - job.submit) / 1e6
        aging, boost = self.age_factor * age, self.boost_value * shortest / takes
        return aging + self.minimum + rise + boost


def simulate(jobs: list[SlowJob], cpus: int, policy: str | Flexible) -> None:
    """Set start and end of all jobs, given in order of submission. Too wide ones never start."""
    coming = list(jobs)
    queue: list[SlowJob] = []
    running: list[SlowJob] = []
    while coming or running:
        now = min([job.submit for job in coming[:1]] + [job.end for job in running])
        running = [job for job in running if job.end > now]
        while coming and coming[0].submit == now:
            job = coming.pop(0)
            queue += [job] if job.processors <= cpus else []
        for job in _to_start(queue, running, now, cpus, policy):
            job.start = now
            job.end = now + min(job.run, job.estimate)
            job.killed = job.run > job.estimate
            running.append(job)
        queue = [job for job in queue if job.start < 0]
    assert not queue


def _to_start(
    queue: list[SlowJob], running: list[SlowJob], now: int, cpus: int, policy: str | Flexible
) -> list[SlowJob]:
    waiting = _in_order(queue, now, policy)
    free = cpus - sum(job.processors for job in running)
    started: list[SlowJob] = []
    if policy == "edf":
        for job in waiting:
            if job.processors <= free:
                free -= job.processors
                started.append(job)
        return started
    while waiting and waiting[0].processors <= free:
        free -= waiting[0].processors
        started.append(waiting.pop(0))
    if isinstance(policy, Flexible) and policy.kept is not None:
        policy.kept[:] = waiting[:1]
    if not waiting or policy in ("fcfs", "sjf"):
        return started
    ends = [(job.expected_end, job.processors) for job in running]
    ends += [(now + job.estimate, job.processors) for job in started]
    head, rest = waiting[0], waiting[1:]
    shadow = min(t for t, _ in ends if free + _freed(ends, t) >= head.processors)
    extra = free + _freed(ends, shadow) - head.processors
    if policy == "easy_sjbf":
        rest.sort(key=lambda job: job.estimate)
    for job in rest:
        if job.processors > free:
            continue
        if now + job.estimate > shadow:
            if job.processors > extra:
                continue
            extra -= job.processors
        free -= job.processors
        started.append(job)
    return started


def _in_order(queue: list[SlowJob], now: int, policy: str | Flexible) -> list[SlowJob]:
    if isinstance(policy, Flexible):
        return policy.ordered(queue, now)
    if policy == "sjf":
        return sorted(queue, key=lambda job: job.estimate)
    if policy == "edf":
        return sorted(queue, key=lambda job: job.deadline)
    return list(queue)


def _freed(ends: list[tuple[int, int]], until: int) -> int:
    return sum(processors for end, processors in ends if end <= until)
