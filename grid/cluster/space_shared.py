"""Any number of machines, any policy: the loop over instants that asks for a plan at each."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np

from grid.cluster.licenses import LicensePool
from grid.cluster.slots import Slots
from grid.cluster.state import Ended, EndedColumns, PlanError
from grid.model.job import Job, JobState
from grid.model.job_table import JobTable
from grid.model.platform import Cluster
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, MachineColumns, Plan, Policy

Arrival = tuple[JobTable, int, int]
"""(table, row in it, row of all that was fed)."""


class SpaceSharedCluster:
    """A `ClusterState` over machines that hold a job's CPUs from start to end.

    A job that was preempted goes on where it was if it is started on its own machine; on another
    one it starts again, unless it is checkpointable. `clock` measures the plans in seconds, if
    somebody wants that.
    """

    def __init__(
        self, platform: Cluster, policy: Policy, clock: Callable[[], float] | None = None
    ) -> None:
        self._policy = policy
        self._extend = platform.overrun == "extend"
        self._clock = clock
        self._plans = 0
        self._plan_seconds = self._longest_plan_seconds = 0.0
        names = [license.name for license in platform.licenses]
        self.machines = machine_columns(platform, names)
        self._mips: list[float] = self.machines.mips.tolist()
        self._free = self.machines.cpus.copy()
        self._licenses = LicensePool([one.copies for one in platform.licenses], len(self._free))
        self._slots = Slots()
        self._queue: list[int] = []
        self._running: list[tuple[Time, int, int]] = []
        self._ends: list[tuple[Time, int, int, int]] = []
        self._inbox: deque[tuple[Job, int, Time]] = deque()
        self._fed: deque[tuple[JobTable, int, int]] = deque()
        self._fed_rows = 0
        self._next_fed_us = NEVER
        self._wake_us = NEVER
        self._serial = 0
        self._arrived: list[int] = []
        self._gone: list[int] = []
        self._ended: list[Ended] = []
        self._ended_rows: list[tuple[int, ...]] = []

    def submit(self, job: Job, machine: int, now: Time) -> None:
        self._inbox.append((job, machine, now))

    def feed(self, jobs: JobTable) -> None:
        if len(jobs):
            self._fed.append((jobs, 0, self._fed_rows))
            self._fed_rows += len(jobs)
            self._next_fed_us = self._first_fed_us()

    def advance(self, until: Time) -> None:
        while (now := self.next_instant()) < until:
            self._complete(now)
            self._arrive(now)
            self._apply(self._ask(now), now)

    def next_instant(self) -> Time:
        self._forget_stale_ends()
        first = min(self._next_fed_us, self._wake_us)
        if self._ends:
            first = min(first, self._ends[0][0])
        if self._extend and self._running:
            first = min(first, self._running[0][0])
        if self._inbox:
            first = min(first, self._inbox[0][2])
        return first

    def horizon(self) -> Time:
        self._forget_stale_ends()
        last = max((end[0] for end in self._ends), default=-1)
        if self._fed:
            last = max(last, int(self._fed[-1][0].submit_us[-1]))
        if self._wake_us != NEVER:
            last = max(last, self._wake_us)
        return NEVER if last < 0 else last

    def take_ended(self) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def take_ended_columns(self) -> EndedColumns:
        rows, self._ended_rows = self._ended_rows, []
        table = np.array(rows, np.int64).reshape(-1, len(EndedColumns.__dataclass_fields__))
        return EndedColumns(*np.ascontiguousarray(table.T))

    def figures(self) -> dict[str, float]:
        return {}

    def plan_times(self) -> tuple[int, float, float]:
        return self._plans, self._plan_seconds, self._longest_plan_seconds

    def load(self) -> float:
        jobs = self._slots.jobs
        waiting = sum(int(jobs.processors[slot]) for slot in self._queue)
        waiting += sum(job.processors for job, _, _ in self._inbox)
        cpus = int(self.machines.cpus.sum())
        return (cpus - int(self._free.sum()) + waiting) / cpus

    def _forget_stale_ends(self) -> None:
        """Drop ends of runs that were cut short by a preemption."""
        ends, runs = self._ends, self._slots.hidden.runs
        while ends and runs[ends[0][2]] != ends[0][3]:
            heappop(ends)

    # Completions and arrivals

    def _complete(self, now: Time) -> None:
        ends, jobs, hidden = self._ends, self._slots.jobs, self._slots.hidden
        self._gone = []
        while ends and ends[0][0] <= now:
            _, serial, slot, run = heappop(ends)
            if hidden.runs[slot] != run:
                continue
            self._running.remove((int(jobs.expected_end_us[slot]), serial, slot))
            hidden.kept_us[slot] += now - jobs.start_us[slot]
            killed = not self._extend and hidden.left_us[slot] > hidden.left_estimate_us[slot]
            self._release(slot)
            self._end(slot, JobState.FAILED if killed else JobState.COMPLETED, now)
        if self._extend:
            self._extend_estimates(now)

    def _extend_estimates(self, now: Time) -> None:
        """A job that has passed its estimate is expected to take as long again as it has so far."""
        jobs = self._slots.jobs
        while self._running and self._running[0][0] <= now:
            _, serial, slot = self._running.pop(0)
            expected = now + max(1, now - int(jobs.start_us[slot]))
            jobs.expected_end_us[slot] = expected
            insort(self._running, (expected, serial, slot))

    def _arrive(self, now: Time) -> None:
        self._arrived = []
        while self._next_fed_us <= now:
            jobs, row, first = self._fed[0]
            self._take_in(jobs.job(row, ""), -1, now, first + row)
            if row + 1 < len(jobs):
                self._fed[0] = (jobs, row + 1, first)
            else:
                self._fed.popleft()
            self._next_fed_us = self._first_fed_us()
        while self._inbox and self._inbox[0][2] <= now:
            job, machine, _ = self._inbox.popleft()
            self._take_in(job, machine, now, -1)

    def _first_fed_us(self) -> Time:
        if not self._fed:
            return NEVER
        jobs, row, _ = self._fed[0]
        return int(jobs.submit_us[row])

    def _take_in(self, job: Job, machine: int, now: Time, row: int) -> None:
        slot = self._slots.take()
        jobs, hidden = self._slots.jobs, self._slots.hidden
        jobs.serial[slot] = self._serial
        jobs.submit_us[slot] = job.submit_us
        jobs.arrival_us[slot] = now
        jobs.processors[slot] = job.processors
        jobs.estimate_us[slot] = job.estimate_us
        jobs.reference_mips[slot] = job.reference_mips
        jobs.deadline_us[slot] = job.deadline_us
        jobs.licenses[slot] = job.licenses
        jobs.user[slot] = job.user
        jobs.input_mb[slot] = job.input_mb
        jobs.checkpointable[slot] = job.checkpointable
        jobs.bound_machine[slot] = machine
        hidden.run_us[slot] = job.run_us
        hidden.row[slot] = row
        self._slots.keys[slot] = job.key if row < 0 else None
        self._serial += 1
        self._queue.append(slot)
        self._arrived.append(slot)

    # Plans

    def _ask(self, now: Time) -> Plan:
        self._wake_us = NEVER
        view = ClusterView(
            now,
            self.machines,
            self._free,
            self._slots.jobs,
            np.array(self._queue, np.int64),
            np.array([slot for _, _, slot in self._running], np.int64),
            np.array(self._arrived, np.int64),
            np.array(self._gone, np.int64),
            self._licenses.free,
        )
        for slot in self._gone:
            self._slots.give_back(slot)
        if self._clock is None:
            return self._policy.plan(view, now)
        started = self._clock()
        plan = self._policy.plan(view, now)
        seconds = self._clock() - started
        self._plans += 1
        self._plan_seconds += seconds
        self._longest_plan_seconds = max(self._longest_plan_seconds, seconds)
        return plan

    def _apply(self, plan: Plan, now: Time) -> None:
        for slot in plan.preempt:
            self._preempt(slot, now)
        for slot in plan.reject:
            self._leave_queue(slot)
            began = self._slots.hidden.first_start_us[slot] != NEVER
            self._end(slot, JobState.FAILED if began else JobState.REJECTED, now, gone=False)
            self._slots.give_back(slot)
        for slot, machine in plan.start:
            self._start(slot, machine, now)
        if plan.wake_us <= now:
            raise self._wrong(f"wants to wake at {plan.wake_us}, and it is {now}")
        self._wake_us = plan.wake_us

    def _start(self, slot: int, machine: int, now: Time) -> None:
        jobs, hidden = self._slots.jobs, self._slots.hidden
        processors = int(jobs.processors[slot])
        self._leave_queue(slot)
        if not 0 <= machine < len(self._free) or self._free[machine] < processors:
            raise self._wrong(f"starts a job of {processors} CPUs on machine {machine}")
        if jobs.bound_machine[slot] not in (-1, machine):
            raise self._wrong(f"starts a job of machine {jobs.bound_machine[slot]} on {machine}")
        needs = int(jobs.licenses[slot])
        if needs and (
            needs & ~int(self.machines.licenses[machine])
            or not self._licenses.acquire(needs, machine)
        ):
            raise self._wrong(f"starts a job on machine {machine} without its licenses")
        self._free[machine] -= processors
        self._resume(slot, machine)
        jobs.start_us[slot] = now
        hidden.first_start_us[slot] = min(hidden.first_start_us[slot], now)
        hidden.runs[slot] += 1
        expected = now + int(hidden.left_estimate_us[slot])
        end = now + int(hidden.left_us[slot])
        if not self._extend:
            end = min(end, expected)
        jobs.expected_end_us[slot] = expected
        serial = int(jobs.serial[slot])
        insort(self._running, (expected, serial, slot))
        heappush(self._ends, (end, serial, slot, int(hidden.runs[slot])))

    def _resume(self, slot: int, machine: int) -> None:
        """Set what is left of the job on `machine`, from the start or from where it was."""
        jobs, hidden = self._slots.jobs, self._slots.hidden
        before = int(jobs.machine[slot])
        scale = float(jobs.reference_mips[slot]) / self._mips[machine]
        if before == machine:
            return
        if before >= 0 and jobs.checkpointable[slot]:
            moved = self._mips[before] / self._mips[machine]
            for column in (hidden.left_us, hidden.left_estimate_us):
                column[slot] = max(1, round(int(column[slot]) * moved))
        else:
            hidden.left_us[slot] = max(1, round(int(hidden.run_us[slot]) * scale))
            hidden.left_estimate_us[slot] = max(1, round(int(jobs.estimate_us[slot]) * scale))
            jobs.done_us[slot] = 0
            if before >= 0:
                hidden.restarts[slot] += 1
                hidden.lost_us[slot] += hidden.kept_us[slot]
                hidden.kept_us[slot] = 0
        jobs.machine[slot] = machine

    def _preempt(self, slot: int, now: Time) -> None:
        jobs, hidden = self._slots.jobs, self._slots.hidden
        entry = (int(jobs.expected_end_us[slot]), int(jobs.serial[slot]), slot)
        if entry not in self._running:
            raise self._wrong("preempts a job that does not run")
        self._running.remove(entry)
        ran = now - int(jobs.start_us[slot])
        hidden.kept_us[slot] += ran
        hidden.left_us[slot] -= ran
        hidden.left_estimate_us[slot] = max(1, entry[0] - now)
        machine = int(jobs.machine[slot])
        left = hidden.left_estimate_us[slot] * self._mips[machine] / jobs.reference_mips[slot]
        jobs.done_us[slot] = max(0, int(jobs.estimate_us[slot]) - int(np.rint(left)))
        jobs.expected_end_us[slot] = NEVER
        hidden.preemptions[slot] += 1
        hidden.runs[slot] += 1
        self._release(slot)
        place = len(self._queue)
        while place and jobs.serial[self._queue[place - 1]] > jobs.serial[slot]:
            place -= 1
        self._queue.insert(place, slot)

    def _release(self, slot: int) -> None:
        """Give back the CPUs and licenses that the job of `slot` holds."""
        jobs = self._slots.jobs
        machine = int(jobs.machine[slot])
        self._free[machine] += jobs.processors[slot]
        if needs := int(jobs.licenses[slot]):
            self._licenses.release(needs, machine)

    def _leave_queue(self, slot: int) -> None:
        try:
            self._queue.remove(slot)
        except ValueError:
            raise self._wrong("starts or rejects a job that does not wait") from None

    def _end(self, slot: int, state: JobState, now: Time, gone: bool = True) -> None:
        jobs, hidden = self._slots.jobs, self._slots.hidden
        ran = hidden.first_start_us[slot] != NEVER
        key = self._slots.keys[slot]
        figures = (
            int(jobs.machine[slot]),
            int(state),
            int(hidden.first_start_us[slot]) if ran else -1,
            now,
            int(hidden.preemptions[slot]),
            int(hidden.restarts[slot]),
            int(hidden.lost_us[slot]),
            int(hidden.kept_us[slot] + hidden.lost_us[slot]),
        )
        if key is not None:
            self._ended.append(Ended(key, *figures))
        else:
            self._ended_rows.append((int(hidden.row[slot]), *figures))
        if gone:
            self._gone.append(slot)

    def _wrong(self, what: str) -> PlanError:
        return PlanError(f"policy {type(self._policy).__name__} {what}")


def machine_columns(platform: Cluster, licenses: list[str]) -> MachineColumns:
    """The machines of a cluster as columns; bit n of a mask stands for the n-th license."""
    machines = platform.machines
    types = sorted({machine.cpu_type for machine in machines})
    cpus = np.array([machine.cpus for machine in machines], np.int64)
    mips = np.array([machine.mips for machine in machines], np.float64)
    return MachineColumns(
        cpus=cpus,
        mips=mips,
        licenses=np.array(
            [sum(1 << licenses.index(name) for name in m.licenses) for m in machines], np.int64
        ),
        cpu_type=np.array([types.index(machine.cpu_type) for machine in machines], np.int64),
        speed_order=np.lexsort((np.arange(len(machines)), -cpus, -mips)),
    )
