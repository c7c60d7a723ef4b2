"""The loop over instants that asks a policy for a plan at each, and carries it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

import numpy as np

from grid.cluster.arrivals import Arrivals
from grid.cluster.estimates import Estimates
from grid.cluster.general.licenses import LicensePool
from grid.cluster.general.machine_columns import in_kilobytes, machine_columns
from grid.cluster.general.orders import ByExpectedEnd, Queue
from grid.cluster.general.plan_clock import PlanClock
from grid.cluster.general.slots import Slots
from grid.cluster.general.usage import LevelNotes, Usage
from grid.cluster.outcomes import Outcomes
from grid.cluster.shell import PlanError, TimedPlans
from grid.model.job import JobOutcome, JobState, rejected
from grid.model.platform import Cluster
from grid.model.records import Levels
from grid.model.time import NEVER, Time
from grid.parts.origin import label_of
from grid.policies.interface import ClusterView, Plan, Policy

GONE, WAITING, RUNNING = 0, int(JobState.WAITING), int(JobState.RUNNING)
PADDING = 2**20
"""More CPUs than the jobs that are in a cluster at a time can ask for together."""


class GeneralCore:
    """A `Core` over machines that hold a job's CPUs from start to end.

    A job that was preempted goes on where it was if it is started on its own machine; on another
    one it starts again, unless it is checkpointable. One that no machine could ever run is rejected
    when it comes, and the policy does not see it. A job that passes its estimate is killed, or with
    `overrun: extend` it is expected to take as long again as it has since its last start. `clock`
    measures the plans in seconds, if somebody wants that.

    What runs on a machine that goes down is stopped, and waits in its old place of the queue. What
    was done there is lost, also of a job that was preempted there, unless it is checkpointable; to
    the policy the job is then one that has never run. A machine that is down has no free CPUs.

    With `one_job_a_machine` every job asks for `PADDING` CPUs more and every machine has as many
    more: any two jobs are then too much for a machine, a job fits where it fitted before, and
    policies need not know. Usage then counts machines and jobs, as C07's does (its Fig. 6).
    """

    binds = True

    def __init__(
        self,
        platform: Cluster,
        policy: Policy,
        arrivals: Arrivals,
        estimates: Estimates,
        outcomes: Outcomes,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._policy = policy
        self._arrivals = arrivals
        self._estimates = estimates
        self._outcomes = outcomes
        self._kills = platform.overrun == "kill"
        self._extend = platform.overrun == "extend" or estimates.predicts
        self._clock = PlanClock(clock)
        names = [license.name for license in platform.licenses]
        copies = [license.copies for license in platform.licenses]
        self._padding = PADDING if platform.one_job_a_machine else 0
        self._cpus_a_unit = max(1, self._padding)
        self._overheads = platform.overheads
        self.machines = machine_columns(platform, names, self._padding)
        self._watts = [(one.watts_busy, one.watts_idle) for one in platform.machines]
        self._draws = any(map(any, self._watts))
        self._mips: list[float] = self.machines.mips.tolist()
        self._widest = int(self.machines.cpus.max())
        self.processors = int(self.machines.cpus.sum())
        self._never_free = sum(1 << number for number, count in enumerate(copies) if count == 0)
        self._free = self.machines.cpus.copy()
        self._free_ram_mb = self.machines.ram_mb.copy()
        self._memory = bool(np.isfinite(self._free_ram_mb).any())
        self._copies = tuple(copies)
        self._licenses = LicensePool(copies, len(self._free))
        self._slots = Slots()
        self._queue = Queue()
        self._running = ByExpectedEnd()
        self._ends: list[tuple[Time, int, int]] = []
        self._wake_us = NEVER
        self._serial = 0
        self._arrived: list[int] = []
        self._gone: list[int] = []
        self._busy = self._waiting = self._requested = self._moves = 0
        self._machine_usage = Usage(self.processors // self._cpus_a_unit)
        self._license_usage = Usage(sum(copies)) if copies else None
        self._levels = LevelNotes(sum(copies) if copies else None)

    def play(self, until: Time) -> None:
        arrivals = self._arrivals
        while (now := min(self.next_instant(), arrivals.next_us)) < until:
            self._complete(now)
            self._admit(now)
            arrived = len(self._arrived) > 0
            self._apply(self._ask(now), now)
            unit = self._cpus_a_unit
            required = (self._busy + self._waiting) // unit
            active = self._busy // unit
            held, requested = self._licenses.held, self._requested
            self._machine_usage.change(now, active, required, arrived=arrived)
            self._levels.note(now, self._busy - active * self._padding, held)
            if self._license_usage is not None:
                self._license_usage.change(now, held, requested, arrived=arrived)

    def next_instant(self) -> Time:
        self._forget_stale_ends()
        first = self._wake_us
        if self._ends:
            first = min(first, self._ends[0][0])
        if self._extend and len(self._running):
            first = min(first, self._running.first())
        return first

    def last_instant(self) -> Time:
        running = self._running.slots
        last = self._wake_us
        if len(running):
            end = int(self._slots.hidden.end_us[running].max())
            last = end if last == NEVER else max(last, end)
        return last

    def has_jobs(self) -> bool:
        return len(self._queue) > 0 or len(self._running) > 0

    def processors_wanted(self) -> int:
        return self._busy + self._waiting

    def figures(self) -> dict[str, float]:
        """`machine_usage`, the same while jobs still arrive, and both of licenses (see `Usage`).

        `migrations_local` counts how often a job went on, or began again, on another machine.
        """
        figures: dict[str, float] = {"migrations_local": self._moves}
        figures |= self._machine_usage.figures("machine_usage")
        if self._license_usage is not None:
            figures |= self._license_usage.figures("license_usage")
        return figures

    def take_levels(self) -> Levels:
        return self._levels.take()

    def plan_times(self) -> list[TimedPlans]:
        return self._clock.times()

    def busy_machines(self) -> list[int]:
        machines: list[int] = self._slots.jobs.machine[self._running.slots].tolist()
        return machines

    def broken_limits(self) -> Iterator[str]:
        jobs, cpus = self._slots.jobs, self.machines.cpus
        running = self._running.slots
        machine = jobs.machine[running]
        busy = np.bincount(machine, jobs.processors[running], len(cpus))
        for over in np.flatnonzero(busy > cpus).tolist():
            yield f"{busy[over]:g} CPUs of {cpus[over]} of machine {over} are busy"
        ram_mb = np.bincount(machine, jobs.ram_mb[running], len(cpus))
        for over in np.flatnonzero(ram_mb > self.machines.ram_mb).tolist():
            limit = f"{self.machines.ram_mb[over]:g} MB of machine {over}"
            yield f"{ram_mb[over]:g} MB of {limit} are held"
        for number, copies in enumerate(self._copies):
            users = len(np.unique(machine[jobs.licenses[running] >> number & 1 == 1]))
            if users > copies:
                yield f"{users} machines hold license {number}, of which there are {copies} copies"

    def _forget_stale_ends(self) -> None:
        """Drop ends of runs that were cut short by a preemption."""
        ends, jobs, hidden = self._ends, self._slots.jobs, self._slots.hidden
        while ends:
            end, serial, slot = ends[0]
            if jobs.serial[slot] == serial and hidden.end_us[slot] == end:
                break
            heappop(ends)

    # Completions, machines that go down and come up, arrivals

    def _complete(self, now: Time) -> None:
        ends, jobs, hidden = self._ends, self._slots.jobs, self._slots.hidden
        while ends and ends[0][0] <= now:
            _, serial, slot = ends[0]
            self._running.remove(int(jobs.expected_end_us[slot]), serial)
            self._count_run(slot, now)
            passed = not self._extend and hidden.left_us[slot] > hidden.left_estimate_us[slot]
            killed = passed or hidden.fails[slot]
            self._estimates.ended(jobs.user[slot], hidden.run_us[slot] * jobs.reference_mips[slot])
            self._release(slot)
            self._end(slot, JobState.FAILED if killed else JobState.COMPLETED, now)
            self._gone.append(slot)
            self._forget_stale_ends()
        if self._extend:
            self._extend_estimates(now)

    def _extend_estimates(self, now: Time) -> None:
        """A job that has passed its estimate is expected to take as long again as it has so far."""
        jobs, hidden = self._slots.jobs, self._slots.hidden
        while len(self._running) and self._running.first() <= now:
            slot = int(self._running.slots[0])
            self._running.remove(self._running.first(), int(jobs.serial[slot]))
            start, limit = int(jobs.start_us[slot]), int(hidden.killed_after_us[slot])
            latest = start + self._duration(limit, slot, int(jobs.machine[slot]))
            expected = now + max(1, now - start)
            if limit < NEVER and now < latest:
                expected = min(expected, latest)
            jobs.expected_end_us[slot] = expected
            self._running.add(expected, int(jobs.serial[slot]), slot)

    def machine_down(self, machine: int, now: Time) -> None:
        self._notice_change(now)
        jobs, hidden = self._slots.jobs, self._slots.hidden
        running = self._running.slots
        for slot in running[jobs.machine[running] == machine].tolist():
            self._preempt(slot, now)
        self._free[machine] = 0
        waiting = self._queue.slots
        lost = (jobs.machine[waiting] == machine) & ~jobs.checkpointable[waiting]
        for slot in waiting[lost].tolist():
            self._lose_work(slot)
            jobs.machine[slot] = -1
            jobs.start_us[slot] = NEVER
            hidden.overhead_us[slot] = 0

    def machine_up(self, machine: int, now: Time) -> None:
        self._notice_change(now)
        self._free[machine] = self.machines.cpus[machine]

    def _notice_change(self, now: Time) -> None:
        """There will be a plan now if there is a job that could notice."""
        if self.has_jobs():
            self._wake_us = min(self._wake_us, now)
        self._complete(now)

    def _admit(self, now: Time) -> None:
        arrivals, columns = self._arrivals, self._arrivals.columns
        due = arrivals.due(now)
        for place in due:
            processors = columns.processors.item(place) + self._padding
            licenses, bound = columns.licenses.item(place), columns.bound_machine.item(place)
            ram_mb = in_kilobytes(columns.ram_mb.item(place)) if self._memory else 0.0
            if not self._may_ever_run(processors, ram_mb, licenses, bound):
                self._outcomes.add(int(columns.row[place]), rejected(now))
                continue
            slot = self._slots.take(arrivals.arrays, place, self._serial)
            self._slots.jobs.processors[slot] = processors
            if self._memory:
                self._slots.jobs.ram_mb[slot] = ram_mb
            self._slots.hidden.state[slot] = WAITING
            if self._estimates.predicts:
                self._predict(slot)
            self._serial += 1
            self._queue.append(slot)
            self._arrived.append(slot)
            self._waiting += processors
            self._requested += licenses.bit_count()
        arrivals.taken(due.stop)

    def _predict(self, slot: int) -> None:
        """The policy sees a prediction; what the user says is when the job is killed, if it is."""
        jobs, hidden = self._slots.jobs, self._slots.hidden
        limit_us, run_us = int(jobs.estimate_us[slot]), int(hidden.run_us[slot])
        mips = float(jobs.reference_mips[slot])
        jobs.estimate_us[slot] = self._estimates.predicted(int(jobs.user[slot]), limit_us, mips)
        if self._kills:
            hidden.killed_after_us[slot] = limit_us
            hidden.fails[slot] = run_us > limit_us
            hidden.run_us[slot] = min(run_us, limit_us)

    def _may_ever_run(self, processors: int, ram_mb: float, licenses: int, bound: int) -> bool:
        """Whether there is a machine for such a job when nothing else runs."""
        if bound < 0 and licenses == 0 and ram_mb == 0:
            return processors <= self._widest
        machines = self.machines
        able = (machines.cpus >= processors) & (machines.ram_mb >= ram_mb)
        able &= licenses & ~machines.licenses == 0
        return bool(able.any() if bound < 0 else able[bound]) and not licenses & self._never_free

    # Plans

    def _ask(self, now: Time) -> Plan:
        self._wake_us = NEVER
        view = ClusterView(
            now,
            self.machines,
            self._free,
            self._slots.jobs,
            self._queue.slots,
            self._running.slots,
            np.array(self._arrived, np.int64),
            np.array(self._gone, np.int64),
            self._licenses.free,
            self._licenses.users,
            self._free_ram_mb,
        )
        for slot in self._gone:
            self._slots.give_back(slot)
        self._arrived, self._gone = [], []
        return self._clock.plan(self._policy, view, now)

    def _apply(self, plan: Plan, now: Time) -> None:
        for slot in plan.preempt:
            self._preempt(slot, now)
        if plan.reject or plan.start:
            self._queue.remove(self._leaving(plan))
        for slot in plan.reject:
            began = self._slots.hidden.first_start_us[slot] != NEVER
            self._waiting -= int(self._slots.jobs.processors[slot])
            self._end(slot, JobState.FAILED if began else JobState.REJECTED, now)
            self._slots.give_back(slot)
        for slot, machine in plan.start:
            self._start(slot, machine, now)
        if plan.wake_us <= now:
            raise self._error(f"wants to wake at {plan.wake_us}, and it is {now}")
        self._wake_us = plan.wake_us

    def _leaving(self, plan: Plan) -> list[int]:
        """The slots that the plan rejects and starts: different ones, and all of them wait."""
        leaving = plan.reject + [slot for slot, _ in plan.start]
        state = self._slots.hidden.state
        if len(set(leaving)) < len(leaving) or any(state[slot] != WAITING for slot in leaving):
            raise self._error("starts or rejects a job that does not wait, or does it twice")
        return leaving

    def _start(self, slot: int, machine: int, now: Time) -> None:
        jobs, hidden = self._slots.jobs, self._slots.hidden
        processors = int(jobs.processors[slot])
        if not 0 <= machine < len(self._mips) or self._free[machine] < processors:
            raise self._error(f"starts a job of {processors} CPUs on machine {machine}")
        if self._memory and self._free_ram_mb[machine] < jobs.ram_mb[slot]:
            raise self._error(f"starts a job of {jobs.ram_mb[slot]:g} MB on machine {machine}")
        if jobs.bound_machine[slot] not in (-1, machine):
            raise self._error(f"starts a job of machine {jobs.bound_machine[slot]} on {machine}")
        needs = int(jobs.licenses[slot])
        if needs and (
            needs & ~int(self.machines.licenses[machine])
            or not self._licenses.acquire(needs, machine)
        ):
            raise self._error(f"starts a job on machine {machine} without its licenses")
        self._free[machine] -= processors
        if self._memory:
            self._free_ram_mb[machine] -= jobs.ram_mb[slot]
        self._busy += processors
        self._waiting -= processors
        self._resume(slot, machine)
        jobs.start_us[slot] = now
        if hidden.first_start_us[slot] == NEVER:
            hidden.first_start_us[slot] = now
        begins = now + int(hidden.overhead_us[slot])
        expected = begins + int(hidden.left_estimate_us[slot])
        end = begins + int(hidden.left_us[slot])
        if not self._extend:
            end = min(end, expected)
        jobs.expected_end_us[slot] = expected
        hidden.end_us[slot] = end
        hidden.state[slot] = RUNNING
        serial = int(jobs.serial[slot])
        self._running.add(expected, serial, slot)
        heappush(self._ends, (end, serial, slot))

    def _resume(self, slot: int, machine: int) -> None:
        """Set what is left of the job on `machine`, from the start or from where it was."""
        jobs, hidden = self._slots.jobs, self._slots.hidden
        before = int(jobs.machine[slot])
        if before >= 0:
            again = self._overheads.resume_us if before == machine else self._overheads.move_us
            hidden.overhead_us[slot] = self._overheads.suspend_us + again
        if before == machine:
            return
        jobs.machine[slot] = machine
        self._moves += before >= 0
        if before >= 0 and jobs.checkpointable[slot]:
            moved = self._mips[before] / self._mips[machine]
            for column in (hidden.left_us, hidden.left_estimate_us):
                column[slot] = max(1, round(int(column[slot]) * moved))
            return
        hidden.left_us[slot] = self._duration(int(hidden.run_us[slot]), slot, machine)
        hidden.left_estimate_us[slot] = self._duration(int(jobs.estimate_us[slot]), slot, machine)
        if before >= 0:
            self._lose_work(slot)

    def _lose_work(self, slot: int) -> None:
        """The job begins from the start when it runs again."""
        hidden = self._slots.hidden
        self._slots.jobs.done_us[slot] = 0
        hidden.restarts[slot] += 1
        hidden.lost_us[slot] += hidden.kept_us[slot]
        hidden.kept_us[slot] = 0

    def _duration(self, time_us: Time, slot: int, machine: int) -> Time:
        """How long what takes a CPU of the job's `reference_mips` that time takes the machine."""
        scaled = time_us * float(self._slots.jobs.reference_mips[slot]) / self._mips[machine]
        return max(1, round(scaled))

    def _preempt(self, slot: int, now: Time) -> None:
        jobs, hidden = self._slots.jobs, self._slots.hidden
        if hidden.state[slot] != RUNNING:
            raise self._error("preempts a job that does not run")
        expected = int(jobs.expected_end_us[slot])
        self._running.remove(expected, int(jobs.serial[slot]))
        worked = self._count_run(slot, now)
        hidden.left_us[slot] -= worked
        if worked:
            hidden.left_estimate_us[slot] = expected - now
        machine = int(jobs.machine[slot])
        left_estimate = int(hidden.left_estimate_us[slot])
        left = left_estimate * self._mips[machine] / float(jobs.reference_mips[slot])
        jobs.done_us[slot] = max(0, int(jobs.estimate_us[slot]) - round(left))
        jobs.expected_end_us[slot] = hidden.end_us[slot] = NEVER
        hidden.state[slot] = WAITING
        hidden.preemptions[slot] += 1
        self._release(slot)
        self._waiting += int(jobs.processors[slot])
        self._queue.put_back(slot, jobs.serial)

    def _count_run(self, slot: int, now: Time) -> int:
        """A run ends or is cut short: book its time; returns for how long the job got on."""
        jobs, hidden = self._slots.jobs, self._slots.hidden
        ran = now - int(jobs.start_us[slot])
        overhead = min(ran, int(hidden.overhead_us[slot]))
        hidden.kept_us[slot] += ran - overhead
        hidden.lost_us[slot] += overhead
        if self._draws:
            busy, idle = self._watts[int(jobs.machine[slot])]
            hidden.watts_busy[slot] += ran * busy
            hidden.watts_idle[slot] += ran * idle
        return ran - overhead

    def _release(self, slot: int) -> None:
        """Give back the CPUs, memory and licenses that the job of `slot` holds."""
        jobs = self._slots.jobs
        machine, processors = int(jobs.machine[slot]), int(jobs.processors[slot])
        self._free[machine] += processors
        if self._memory:
            self._free_ram_mb[machine] += jobs.ram_mb[slot]
        self._busy -= processors
        if needs := int(jobs.licenses[slot]):
            self._licenses.release(needs, machine)

    def _end(self, slot: int, state: JobState, now: Time) -> None:
        jobs, hidden = self._slots.jobs, self._slots.hidden
        hidden.state[slot] = GONE
        hidden.end_us[slot] = NEVER
        self._requested -= int(jobs.licenses[slot]).bit_count()
        began, lost = int(hidden.first_start_us[slot]), int(hidden.lost_us[slot])
        held = int(hidden.kept_us[slot]) + lost
        outcome = JobOutcome(
            int(jobs.machine[slot]),
            int(state),
            -1 if began == NEVER else began,
            now,
            int(hidden.preemptions[slot]),
            int(hidden.restarts[slot]),
            lost,
            held,
            float(hidden.watts_busy[slot]) / max(held, 1),
            float(hidden.watts_idle[slot]) / max(held, 1),
        )
        self._outcomes.add(int(hidden.row[slot]), outcome)

    def _error(self, what: str) -> PlanError:
        return PlanError(f"{label_of(self._policy)} {what}")
