"""The life of a run: from its start on a machine to its end, or to where it is cut short."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from grid.cluster.estimates import Estimates
from grid.cluster.general.licenses import LicensePool
from grid.cluster.general.machine_columns import machine_columns
from grid.cluster.general.orders import InOrder
from grid.cluster.general.slots import GONE, RUNNING, WAITING, JobRecord, Slots
from grid.cluster.general.switching import Switching
from grid.cluster.general.usage import RunDraw
from grid.cluster.outcomes import Outcomes
from grid.cluster.shell import PlanError
from grid.model.job import JobOutcome, JobState
from grid.model.platform import Cluster
from grid.model.time import NEVER, Time

FAILED, COMPLETED, REJECTED = (
    int(state) for state in (JobState.FAILED, JobState.COMPLETED, JobState.REJECTED)
)


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
        self.draw = RunDraw() if any(map(any, self._watts)) else None
        self.busy_us = [0] * len(platform.machines)
        """CPU time for which jobs have held each machine."""
        self._padding = padding
        may_be_off = any(machine.switch_off for machine in platform.machines)
        self.switching = Switching(platform.machines) if may_be_off else None
        self._boot_us: dict[int, Time] = {}
        self._mips: list[float] = self.machines.mips.tolist()
        self.free = self.machines.cpus.copy()
        self._free: list[int] = self.free.tolist()
        self.free_ram_mb = self.machines.ram_mb.copy()
        self.memory = bool(np.isfinite(self.free_ram_mb).any())
        self._copies = [license.copies for license in platform.licenses]
        self.licenses = LicensePool(self._copies, len(self.free))
        self.slots = Slots()
        self.queue = InOrder()
        """Waiting jobs by serial number, which is in order of arrival."""
        self.running = InOrder()
        """Running jobs by (expected end, serial number)."""
        self._ends: list[tuple[Time, int, int]] = []
        self.busy = self.waiting = self.requested = self.moves = 0

    def next_end(self) -> Time:
        """When next a job ends, or passes its estimate where that is extended."""
        end = self._first_end()
        if self.extend and self.running.keys:
            end = min(end, self._first_expected())
        return end

    def last_end(self) -> Time:
        """When the last of the running jobs ends; -1 if none runs."""
        records = self.slots.records
        return max((records[slot].end_us for slot in self.running.slots.tolist()), default=-1)

    def _first_end(self) -> Time:
        """When next a job ends; ends of runs that were cut short are dropped."""
        ends, records = self._ends, self.slots.records
        while ends:
            end, serial, slot = ends[0]
            job = records[slot]
            if job.end_us == end and job.serial == serial:
                return end
            heappop(ends)
        return NEVER

    def _first_expected(self) -> Time:
        expected: Time = self.running.keys[0][0]
        return expected

    def start(self, slot: int, machine: int, now: Time) -> None:
        job, shown = self.slots.records[slot], self.slots.shown
        self._hold(job, machine)
        # A policy may have taken them from an array.
        slot, machine = job.slot, int(machine)
        self.waiting -= job.processors
        self._resume(job, machine)
        if self.switching is not None and (boot_us := self.switching.start(machine, now)):
            job.overhead_us += boot_us
            self._boot_us[slot] = boot_us
        job.start_us = shown.start_us[slot] = now
        if job.first_start_us == NEVER:
            job.first_start_us = now
        begins = now + job.overhead_us
        expected, end = begins + job.left_estimate_us, begins + job.left_us
        if not self.extend:
            end = min(end, expected)
        job.expected_end_us = shown.expected_end_us[slot] = expected
        job.end_us = end
        job.state = RUNNING
        self.running.add((expected, job.serial), slot)
        heappush(self._ends, (end, job.serial, slot))

    def _hold(self, job: JobRecord, machine: int) -> None:
        """Take the CPUs, memory and licenses that the job asks for."""
        processors = job.processors
        if not 0 <= machine < len(self._mips):
            raise self.error(f"starts a job on machine {machine} of {len(self._mips)}")
        if self._free[machine] < processors:
            free = f"which has {self._free[machine]} free"
            raise self.error(f"starts a job of {processors} CPUs on machine {machine}, {free}")
        if self.memory and self.free_ram_mb[machine] < job.ram_mb:
            free = f"which has {self.free_ram_mb[machine]:g} MB free"
            raise self.error(f"starts a job of {job.ram_mb:g} MB on machine {machine}, {free}")
        if job.bound_machine not in (-1, machine):
            raise self.error(f"starts a job of machine {job.bound_machine} on {machine}")
        needs = job.licenses
        if needs and (
            needs & ~int(self.machines.licenses[machine])
            or not self.licenses.acquire(needs, machine)
        ):
            raise self.error(f"starts a job on machine {machine} without its licenses")
        if self.memory:
            self.free_ram_mb[machine] -= job.ram_mb
        self._set_free(machine, self._free[machine] - processors)
        self.busy += processors

    def _set_free(self, machine: int, cpus: int) -> None:
        self._free[machine] = self.free[machine] = cpus

    def _resume(self, job: JobRecord, machine: int) -> None:
        """Set what is left of the job on `machine`, from the start or from where it was."""
        before = job.machine
        if before >= 0:
            again = self._overheads.resume_us if before == machine else self._overheads.move_us
            job.overhead_us = self._overheads.suspend_us + again
        if before == machine:
            return
        job.machine = self.slots.shown.machine[job.slot] = machine
        self.moves += job.ran_on not in (-1, machine)
        job.ran_on = machine
        if before >= 0 and job.checkpointable:
            moved = self._mips[before] / self._mips[machine]
            job.left_us = max(1, round(job.left_us * moved))
            job.left_estimate_us = max(1, round(job.left_estimate_us * moved))
            return
        job.left_us = self._duration(job.run_us, job, machine)
        job.left_estimate_us = self._duration(job.estimate_us, job, machine)
        if before >= 0:
            self._lose_work(job)

    def complete(self, now: Time) -> list[int]:
        """End those that end by `now`; their slots are not given back yet."""
        gone = []
        while self._first_end() <= now:
            _, serial, slot = heappop(self._ends)
            job = self.slots.records[slot]
            self.running.remove((job.expected_end_us, serial))
            self._count_run(job, now)
            killed = job.fails or (not self.extend and job.left_us > job.left_estimate_us)
            if self._estimates.predicts:
                user = job.vo, job.user
                self._estimates.ended(user, job.run_us * job.reference_mips)
            self._release(job, now)
            self._end(job, FAILED if killed else COMPLETED, now)
            gone.append(slot)
        if self.extend:
            self._extend_estimates(now)
        return gone

    def _extend_estimates(self, now: Time) -> None:
        """A job that has passed its estimate is expected to take as long again as it has so far."""
        running = self.running
        while running.keys and self._first_expected() <= now:
            job = self.slots.records[running.slots[0]]
            running.remove(running.keys[0])
            expected = now + max(1, now - job.start_us)
            if (limit := job.killed_after_us) < NEVER:
                # Boots, preemptions and what was done before them are in its end.
                beyond = self._duration(limit, job, job.machine)
                beyond -= self._duration(job.run_us, job, job.machine)
                expected = min(expected, job.end_us + beyond)
            job.expected_end_us = self.slots.shown.expected_end_us[job.slot] = expected
            running.add((expected, job.serial), job.slot)

    def preempt(self, slot: int, now: Time) -> None:
        job, shown = self.slots.records[slot], self.slots.shown
        if job.state != RUNNING:
            raise self.error("preempts a job that does not run")
        expected = job.expected_end_us
        self.running.remove((expected, job.serial))
        worked = self._count_run(job, now)
        job.left_us -= worked
        if worked:
            job.left_estimate_us = expected - now
        left = job.left_estimate_us * self._mips[job.machine] / job.reference_mips
        shown.done_us[slot] = job.estimate_us - round(left)
        job.expected_end_us = shown.expected_end_us[slot] = job.end_us = NEVER
        job.state = WAITING
        job.preemptions += 1
        self._release(job, now)
        self.waiting += job.processors
        self.queue.add(job.serial, slot)

    def end_at(self, slot: int, now: Time) -> None:
        """The job of `slot`, which runs, ends at `now`, as whoever really runs it says."""
        job = self.slots.records[slot]
        job.end_us = now
        heappush(self._ends, (now, job.serial, slot))

    def kill(self, slot: int, now: Time) -> int:
        """The plan ends the job of `slot`, which runs; its slot, which is not given back yet."""
        job = self.slots.records[slot]
        if job.state != RUNNING:
            raise self.error("kills a job that does not run")
        self.running.remove((job.expected_end_us, job.serial))
        self._count_run(job, now)
        self._release(job, now)
        self._end(job, FAILED, now)
        return job.slot

    def machine_down(self, machine: int, now: Time) -> None:
        """What runs there is stopped, and what was done there is lost; see `GeneralCore`."""
        records = self.slots.records
        for slot in self.running.slots.tolist():
            if records[slot].machine == machine:
                self.preempt(slot, now)
        self._set_free(machine, 0)
        if self.switching is not None:
            self.switching.machine_down(machine, now)
        for slot in self.queue.slots.tolist():
            job = records[slot]
            if job.machine == machine and not job.checkpointable:
                self._lose_work(job)
                job.machine = self.slots.shown.machine[slot] = -1
                job.start_us = self.slots.shown.start_us[slot] = NEVER
                job.overhead_us = 0

    def machine_up(self, machine: int, now: Time) -> None:
        self._set_free(machine, int(self.machines.cpus[machine]))
        if self.switching is not None:
            self.switching.machine_up(machine, now)

    def reject(self, slot: int, now: Time) -> None:
        """The plan rejects the job of `slot`, which has left the queue."""
        job = self.slots.records[slot]
        self.waiting -= job.processors
        self._end(job, FAILED if job.first_start_us < NEVER else REJECTED, now)
        self.slots.give_back([job.slot])

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

    def _lose_work(self, job: JobRecord) -> None:
        """The job begins from the start when it runs again."""
        self.slots.shown.done_us[job.slot] = 0
        job.restarts += 1
        job.lost_us += job.kept_us
        job.kept_us = 0

    def _duration(self, time_us: Time, job: JobRecord, machine: int) -> Time:
        """How long what takes a CPU of the job's `reference_mips` that time takes the machine."""
        return max(1, round(time_us * job.reference_mips / self._mips[machine]))

    def _count_run(self, job: JobRecord, now: Time) -> int:
        """A run ends or is cut short: book its time; returns for how long the job got on."""
        ran = now - job.start_us
        overhead = min(ran, job.overhead_us)
        job.kept_us += ran - overhead
        job.lost_us += overhead
        processors = job.processors - self._padding
        self.busy_us[job.machine] += ran * processors
        if self.draw is not None:
            booted = min(ran, self._boot_us.get(job.slot, 0))
            busy, idle = self._watts[job.machine]
            job.watts_busy += (ran - booted) * busy
            job.watts_idle += (ran - booted) * idle
            extra = busy * float(self.slots.jobs.power[job.slot]) - idle
            self.draw.add(job.start_us + booted, now, processors * extra)
        self._boot_us.pop(job.slot, None)
        return ran - overhead

    def _release(self, job: JobRecord, now: Time) -> None:
        """Give back the CPUs, memory and licenses that the job holds."""
        machine, processors = job.machine, job.processors
        self._set_free(machine, self._free[machine] + processors)
        self.busy -= processors
        if self.memory:
            self.free_ram_mb[machine] += job.ram_mb
        if job.licenses:
            self.licenses.release(job.licenses, machine)
        if self.switching is not None and self._free[machine] == self.machines.cpus[machine]:
            self.switching.empty(machine, now)

    def _end(self, job: JobRecord, state: int, now: Time) -> None:
        job.state = GONE
        job.end_us = NEVER
        self.requested -= job.licenses.bit_count()
        began, held = job.first_start_us, job.kept_us + job.lost_us
        outcome = JobOutcome(
            job.ran_on,
            state,
            -1 if began == NEVER else began,
            now,
            job.preemptions,
            job.restarts,
            job.lost_us,
            held,
            job.watts_busy / max(held, 1),
            job.watts_idle / max(held, 1),
        )
        self._outcomes.add(job.row, outcome)

    def error(self, what: str) -> PlanError:
        return PlanError(f"{self._label} {what}")
