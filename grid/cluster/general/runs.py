"""The life of a run: from its start on a machine to its end, or to where it is cut short."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from grid.cluster.estimates import Estimates
from grid.cluster.general.licenses import LicensePool
from grid.cluster.general.machine_columns import machine_columns
from grid.cluster.general.orders import ByExpectedEnd, Queue
from grid.cluster.general.slots import Slots
from grid.cluster.general.switching import Switching
from grid.cluster.outcomes import Outcomes
from grid.cluster.shell import PlanError
from grid.model.job import JobOutcome, JobState
from grid.model.platform import Cluster
from grid.model.time import NEVER, Time

GONE, WAITING, RUNNING = 0, int(JobState.WAITING), int(JobState.RUNNING)


class Runs:
    """The jobs of a cluster, those that wait and those that run, and what the latter hold.

    `padding` is what every machine and every job has more of CPUs, see `GeneralCore`. `label` names
    the policy whose plans are carried out.
    """

    def __init__(
        self, platform: Cluster, padding: int, estimates: Estimates, outcomes: Outcomes, label: str
    ) -> None:
        names = [license.name for license in platform.licenses]
        self._estimates = estimates
        self._outcomes = outcomes
        self._label = label
        self.extend = platform.overrun == "extend" or estimates.predicts
        self._overheads = platform.overheads
        self.machines = machine_columns(platform, names, padding)
        self._watts = [(one.watts_busy, one.watts_idle) for one in platform.machines]
        self._draws = any(map(any, self._watts))
        may_be_off = any(machine.switch_off for machine in platform.machines)
        self.switching = Switching(platform.machines) if may_be_off else None
        self._boot_us: dict[int, Time] = {}
        self._mips: list[float] = self.machines.mips.tolist()
        self.free = self.machines.cpus.copy()
        self.free_ram_mb = self.machines.ram_mb.copy()
        self.memory = bool(np.isfinite(self.free_ram_mb).any())
        self._copies = [license.copies for license in platform.licenses]
        self.licenses = LicensePool(self._copies, len(self.free))
        self.slots = Slots()
        self.queue = Queue()
        self.running = ByExpectedEnd()
        self._ends: list[tuple[Time, int, int]] = []
        self.busy = self.waiting = self.requested = self.moves = 0

    def next_end(self) -> Time:
        """When next a job ends, or passes its estimate where that is extended."""
        self._forget_stale_ends()
        first = self._ends[0][0] if self._ends else NEVER
        if self.extend and len(self.running):
            first = min(first, self.running.first())
        return first

    def start(self, slot: int, machine: int, now: Time) -> None:
        jobs, hidden = self.slots.jobs, self.slots.hidden
        processors = int(jobs.processors[slot])
        if not 0 <= machine < len(self._mips) or self.free[machine] < processors:
            raise self.error(f"starts a job of {processors} CPUs on machine {machine}")
        if self.memory and self.free_ram_mb[machine] < jobs.ram_mb[slot]:
            raise self.error(f"starts a job of {jobs.ram_mb[slot]:g} MB on machine {machine}")
        if jobs.bound_machine[slot] not in (-1, machine):
            raise self.error(f"starts a job of machine {jobs.bound_machine[slot]} on {machine}")
        needs = int(jobs.licenses[slot])
        if needs and (
            needs & ~int(self.machines.licenses[machine])
            or not self.licenses.acquire(needs, machine)
        ):
            raise self.error(f"starts a job on machine {machine} without its licenses")
        self.free[machine] -= processors
        if self.memory:
            self.free_ram_mb[machine] -= jobs.ram_mb[slot]
        self.busy += processors
        self.waiting -= processors
        self._resume(slot, machine)
        if self.switching is not None and (boot_us := self.switching.start(machine, now)):
            hidden.overhead_us[slot] += boot_us
            self._boot_us[slot] = boot_us
        jobs.start_us[slot] = now
        if hidden.first_start_us[slot] == NEVER:
            hidden.first_start_us[slot] = now
        begins = now + int(hidden.overhead_us[slot])
        expected = begins + int(hidden.left_estimate_us[slot])
        end = begins + int(hidden.left_us[slot])
        if not self.extend:
            end = min(end, expected)
        jobs.expected_end_us[slot] = expected
        hidden.end_us[slot] = end
        hidden.state[slot] = RUNNING
        serial = int(jobs.serial[slot])
        self.running.add(expected, serial, slot)
        heappush(self._ends, (end, serial, slot))

    def _resume(self, slot: int, machine: int) -> None:
        """Set what is left of the job on `machine`, from the start or from where it was."""
        jobs, hidden = self.slots.jobs, self.slots.hidden
        before = int(jobs.machine[slot])
        if before >= 0:
            again = self._overheads.resume_us if before == machine else self._overheads.move_us
            hidden.overhead_us[slot] = self._overheads.suspend_us + again
        if before == machine:
            return
        jobs.machine[slot] = machine
        self.moves += before >= 0
        if before >= 0 and jobs.checkpointable[slot]:
            moved = self._mips[before] / self._mips[machine]
            for column in (hidden.left_us, hidden.left_estimate_us):
                column[slot] = max(1, round(int(column[slot]) * moved))
            return
        hidden.left_us[slot] = self._duration(int(hidden.run_us[slot]), slot, machine)
        hidden.left_estimate_us[slot] = self._duration(int(jobs.estimate_us[slot]), slot, machine)
        if before >= 0:
            self._lose_work(slot)

    def complete(self, now: Time) -> list[int]:
        """End those that end by `now`; their slots are not given back yet."""
        gone = []
        ends, jobs, hidden = self._ends, self.slots.jobs, self.slots.hidden
        while ends and ends[0][0] <= now:
            _, serial, slot = ends[0]
            self.running.remove(int(jobs.expected_end_us[slot]), serial)
            self._count_run(slot, now)
            passed = not self.extend and hidden.left_us[slot] > hidden.left_estimate_us[slot]
            killed = passed or hidden.fails[slot]
            self._estimates.ended(jobs.user[slot], hidden.run_us[slot] * jobs.reference_mips[slot])
            self._release(slot, now)
            self._end(slot, JobState.FAILED if killed else JobState.COMPLETED, now)
            gone.append(slot)
            self._forget_stale_ends()
        if self.extend:
            self._extend_estimates(now)
        return gone

    def _extend_estimates(self, now: Time) -> None:
        """A job that has passed its estimate is expected to take as long again as it has so far."""
        jobs, hidden = self.slots.jobs, self.slots.hidden
        while len(self.running) and self.running.first() <= now:
            slot = int(self.running.slots[0])
            self.running.remove(self.running.first(), int(jobs.serial[slot]))
            start, limit = int(jobs.start_us[slot]), int(hidden.killed_after_us[slot])
            latest = start + self._duration(limit, slot, int(jobs.machine[slot]))
            expected = now + max(1, now - start)
            if limit < NEVER and now < latest:
                expected = min(expected, latest)
            jobs.expected_end_us[slot] = expected
            self.running.add(expected, int(jobs.serial[slot]), slot)

    def preempt(self, slot: int, now: Time) -> None:
        jobs, hidden = self.slots.jobs, self.slots.hidden
        if hidden.state[slot] != RUNNING:
            raise self.error("preempts a job that does not run")
        expected = int(jobs.expected_end_us[slot])
        self.running.remove(expected, int(jobs.serial[slot]))
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
        self._release(slot, now)
        self.waiting += int(jobs.processors[slot])
        self.queue.put_back(slot, jobs.serial)

    def end_at(self, slot: int, now: Time) -> None:
        """The job of `slot`, which runs, ends at `now`, as whoever really runs it says."""
        self.slots.hidden.end_us[slot] = now
        heappush(self._ends, (now, int(self.slots.jobs.serial[slot]), slot))

    def kill(self, slot: int, now: Time) -> None:
        """The plan ends the job of `slot`, which runs; its slot is not given back yet."""
        jobs = self.slots.jobs
        if self.slots.hidden.state[slot] != RUNNING:
            raise self.error("kills a job that does not run")
        self.running.remove(int(jobs.expected_end_us[slot]), int(jobs.serial[slot]))
        self._count_run(slot, now)
        self._release(slot, now)
        self._end(slot, JobState.FAILED, now)

    def machine_down(self, machine: int, now: Time) -> None:
        """What runs there is stopped, and what was done there is lost; see `GeneralCore`."""
        jobs, hidden = self.slots.jobs, self.slots.hidden
        running = self.running.slots
        for slot in running[jobs.machine[running] == machine].tolist():
            self.preempt(slot, now)
        self.free[machine] = 0
        if self.switching is not None:
            self.switching.machine_down(machine, now)
        waiting = self.queue.slots
        lost = (jobs.machine[waiting] == machine) & ~jobs.checkpointable[waiting]
        for slot in waiting[lost].tolist():
            self._lose_work(slot)
            jobs.machine[slot] = -1
            jobs.start_us[slot] = NEVER
            hidden.overhead_us[slot] = 0

    def machine_up(self, machine: int, now: Time) -> None:
        self.free[machine] = self.machines.cpus[machine]
        if self.switching is not None:
            self.switching.machine_up(machine, now)

    def reject(self, slot: int, now: Time) -> None:
        """The plan rejects the job of `slot`, which has left the queue."""
        began = self.slots.hidden.first_start_us[slot] != NEVER
        self.waiting -= int(self.slots.jobs.processors[slot])
        self._end(slot, JobState.FAILED if began else JobState.REJECTED, now)
        self.slots.give_back(slot)

    def broken_limits(self) -> Iterator[str]:
        jobs, cpus = self.slots.jobs, self.machines.cpus
        running = self.running.slots
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

    def _lose_work(self, slot: int) -> None:
        """The job begins from the start when it runs again."""
        hidden = self.slots.hidden
        self.slots.jobs.done_us[slot] = 0
        hidden.restarts[slot] += 1
        hidden.lost_us[slot] += hidden.kept_us[slot]
        hidden.kept_us[slot] = 0

    def _duration(self, time_us: Time, slot: int, machine: int) -> Time:
        """How long what takes a CPU of the job's `reference_mips` that time takes the machine."""
        scaled = time_us * float(self.slots.jobs.reference_mips[slot]) / self._mips[machine]
        return max(1, round(scaled))

    def _count_run(self, slot: int, now: Time) -> int:
        """A run ends or is cut short: book its time; returns for how long the job got on."""
        jobs, hidden = self.slots.jobs, self.slots.hidden
        ran = now - int(jobs.start_us[slot])
        overhead = min(ran, int(hidden.overhead_us[slot]))
        hidden.kept_us[slot] += ran - overhead
        hidden.lost_us[slot] += overhead
        booted = min(ran, self._boot_us.pop(slot, 0))
        if self._draws:
            busy, idle = self._watts[int(jobs.machine[slot])]
            hidden.watts_busy[slot] += (ran - booted) * busy
            hidden.watts_idle[slot] += (ran - booted) * idle
        return ran - overhead

    def _release(self, slot: int, now: Time) -> None:
        """Give back the CPUs, memory and licenses that the job of `slot` holds."""
        jobs = self.slots.jobs
        machine, processors = int(jobs.machine[slot]), int(jobs.processors[slot])
        self.free[machine] += processors
        if self.memory:
            self.free_ram_mb[machine] += jobs.ram_mb[slot]
        self.busy -= processors
        if needs := int(jobs.licenses[slot]):
            self.licenses.release(needs, machine)
        if self.switching is not None and self.free[machine] == self.machines.cpus[machine]:
            self.switching.empty(machine, now)

    def _end(self, slot: int, state: JobState, now: Time) -> None:
        jobs, hidden = self.slots.jobs, self.slots.hidden
        hidden.state[slot] = GONE
        hidden.end_us[slot] = NEVER
        self.requested -= int(jobs.licenses[slot]).bit_count()
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

    def error(self, what: str) -> PlanError:
        return PlanError(f"{self._label} {what}")

    def _forget_stale_ends(self) -> None:
        """Drop ends of runs that were cut short by a preemption."""
        ends, jobs, hidden = self._ends, self.slots.jobs, self.slots.hidden
        while ends:
            end, serial, slot = ends[0]
            if jobs.serial[slot] == serial and hidden.end_us[slot] == end:
                break
            heappop(ends)
