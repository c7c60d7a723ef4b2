"""The loop over instants that asks a policy for a plan at each and hands it to the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from grid.cluster.arrivals import NAMES, Arrivals
from grid.cluster.estimates import Estimates
from grid.cluster.general.machine_columns import in_kilobytes
from grid.cluster.general.plan_clock import PlanClock
from grid.cluster.general.runs import Runs
from grid.cluster.general.slots import WAITING, JobRecord, record_of
from grid.cluster.general.usage import LevelNotes, Usage
from grid.cluster.outcomes import Outcomes
from grid.cluster.shell import TimedPlans
from grid.model.job import rejected
from grid.model.platform import Cluster
from grid.model.plugins.origin import label_of
from grid.model.records import Levels
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, Plan, Policy

PROCESSORS, RAM_MB = NAMES.index("processors"), NAMES.index("ram_mb")
PADDING = 2**20
"""More CPUs than the jobs that are in a cluster at a time can ask for together."""
_NONE = np.empty(0, np.int64)


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

    Policies do not know which machines are switched off: nothing is promised for the start of a
    job, and they plan as if every machine that is up were on. A job that waits for its machine to
    boot is one that runs, and is expected to end that much later; its estimate counts from there.
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
        self._clock = PlanClock(clock)
        copies = [license.copies for license in platform.licenses]
        self._padding = PADDING if platform.one_job_a_machine else 0
        self._cpus_a_unit = max(1, self._padding)
        self._runs = Runs(platform, self._padding, estimates, outcomes, label_of(policy))
        self.machines = self._runs.machines
        self._widest = int(self.machines.cpus.max())
        self.processors = platform.processors
        self._never_free = sum(1 << number for number, count in enumerate(copies) if count == 0)
        self._wake_us = NEVER
        self._serial = 0
        self._arrived = 0
        self._gone: list[int] = []
        self._machine_usage = Usage(int(self.machines.cpus.sum()) // self._cpus_a_unit)
        self._license_usage = Usage(sum(copies)) if copies else None
        self._levels = LevelNotes(sum(copies) if copies else None)

    def play(self, until: Time) -> None:
        arrivals = self._arrivals
        while (now := min(self.next_instant(), arrivals.next_us)) < until:
            self._gone += self._runs.complete(now)
            if arrivals.next_us <= now:
                self._admit(now)
            arrived = self._arrived > 0
            self._apply(self._ask(now), now)
            self._note_use(now, arrived)

    def _note_use(self, now: Time, arrived: bool) -> None:
        runs, unit = self._runs, self._cpus_a_unit
        busy, held = runs.busy, runs.licenses.held
        active = busy // unit
        self._machine_usage.change(now, active, (busy + runs.waiting) // unit, arrived)
        self._levels.note(now, busy - active * self._padding, held)
        if self._license_usage is not None:
            self._license_usage.change(now, held, runs.requested, arrived)

    def next_instant(self) -> Time:
        return min(self._wake_us, self._runs.next_end())

    def last_instant(self) -> Time:
        end, wake = self._runs.last_end(), self._wake_us
        return wake if end < 0 else end if wake == NEVER else max(wake, end)

    def has_jobs(self) -> bool:
        return len(self._runs.queue) > 0 or len(self._runs.running) > 0

    def processors_wanted(self) -> int:
        runs, padded = self._runs, len(self._runs.running) + len(self._runs.queue)
        return runs.busy + runs.waiting - padded * self._padding

    def occupancy(self) -> tuple[int, int, int]:
        runs, running = self._runs, len(self._runs.running)
        return runs.busy - running * self._padding, running, len(runs.queue)

    def figures(self) -> dict[str, float]:
        """`machine_usage`, the same while jobs still arrive, and both of licenses (see `Usage`).

        `migrations_local` counts how often a job went on, or began again, on another machine;
        `boots`, how often a machine that was off was switched on for a job.
        """
        figures: dict[str, float] = {"migrations_local": self._runs.moves}
        if self._runs.switching is not None:
            figures["boots"] = self._runs.switching.boots
        figures |= self._machine_usage.figures("machine_usage")
        if self._license_usage is not None:
            figures |= self._license_usage.figures("license_usage")
        return figures

    def take_levels(self) -> Levels:
        """The CPU time of machines is told where a job has changed its machine."""
        runs, levels = self._runs, self._levels.take()
        if runs.switching is not None:
            levels = levels._replace(held=runs.switching.held_times())
        if runs.moves:
            levels = levels._replace(busy_us=np.array(runs.busy_us, np.float64))
        return levels if runs.draw is None else levels._replace(draw=runs.draw.steps())

    def plan_times(self) -> list[TimedPlans]:
        return self._clock.times()

    def busy_machines(self) -> list[int]:
        machines: list[int] = self._runs.slots.jobs.machine[self._runs.running.slots].tolist()
        return machines

    def broken_limits(self) -> Iterator[str]:
        return self._runs.broken_limits()

    # Completions, machines that go down and come up, arrivals

    def machine_down(self, machine: int, now: Time) -> None:
        self._notice_change(now)
        self._runs.machine_down(machine, now)

    def machine_up(self, machine: int, now: Time) -> None:
        self._notice_change(now)
        self._runs.machine_up(machine, now)

    def _notice_change(self, now: Time) -> None:
        """There will be a plan now if there is a job that could notice."""
        if self.has_jobs():
            self._wake_us = min(self._wake_us, now)
        self._gone += self._runs.complete(now)

    def _admit(self, now: Time) -> None:
        arrivals, runs = self._arrivals, self._runs
        due = arrivals.due(now)
        for place in due:
            values = arrivals.values(place)
            values[PROCESSORS] += self._padding
            if runs.memory:
                values[RAM_MB] = in_kilobytes(values[RAM_MB])
            job = record_of(values, self._serial)
            if not self._may_ever_run(job):
                self._outcomes.add(job.row, rejected(now))
                continue
            slot = runs.slots.take(job, values)
            if self._estimates.predicts:
                self._predict(job)
            self._serial += 1
            runs.queue.add(job.serial, slot)
            self._arrived += 1
            runs.waiting += job.processors
            runs.requested += job.licenses.bit_count()
        arrivals.taken(due.stop)

    def _predict(self, job: JobRecord) -> None:
        """The policy sees a prediction; what the user says is when the job is killed, if it is."""
        limit_us = job.estimate_us
        if job.row < 0:
            job.vo = self._arrivals.routed[job.row].vo
        user = job.vo, job.user
        job.estimate_us = self._estimates.predicted(user, limit_us, job.reference_mips)
        self._runs.slots.shown.estimate_us[job.slot] = job.estimate_us
        if self._kills:
            job.killed_after_us = limit_us
            job.fails = job.run_us > limit_us
            job.run_us = min(job.run_us, limit_us)

    def _may_ever_run(self, job: JobRecord) -> bool:
        """Whether there is a machine for such a job when nothing else runs."""
        bound, licenses = job.bound_machine, job.licenses
        ram_mb = job.ram_mb if self._runs.memory else 0.0
        if bound < 0 and licenses == 0 and ram_mb == 0:
            return job.processors <= self._widest
        machines = self.machines
        able = (machines.cpus >= job.processors) & (machines.ram_mb >= ram_mb)
        able &= licenses & ~machines.licenses == 0
        return bool(able.any() if bound < 0 else able[bound]) and not licenses & self._never_free

    # Plans

    def _ask(self, now: Time) -> Plan:
        self._wake_us = NEVER
        runs = self._runs
        queue = runs.queue.slots
        view = ClusterView(
            now,
            self.machines,
            runs.free,
            runs.slots.jobs,
            queue,
            runs.running.slots,
            queue[len(queue) - self._arrived :],
            np.array(self._gone, np.int64) if self._gone else _NONE,
            runs.licenses.free,
            runs.licenses.users,
            runs.free_ram_mb,
        )
        if self._gone:
            runs.slots.give_back(self._gone)
            self._gone = []
        self._arrived = 0
        return self._clock.plan(self._policy, view, now)

    def _apply(self, plan: Plan, now: Time) -> None:
        runs = self._runs
        for slot in plan.kill:
            self._gone.append(runs.kill(slot, now))
        for slot in plan.preempt:
            runs.preempt(slot, now)
        if plan.reject or plan.start:
            runs.queue.remove_all(self._leaving(plan))
            for slot in plan.reject:
                runs.reject(slot, now)
            for slot, machine in plan.start:
                runs.start(slot, machine, now)
        if plan.wake_us <= now:
            raise runs.error(f"wants to wake at {plan.wake_us}, and it is {now}")
        self._wake_us = int(plan.wake_us)

    def _leaving(self, plan: Plan) -> list[int]:
        """Of what the plan rejects and starts, the serial numbers: different jobs, that wait."""
        records = self._runs.slots.records
        leaving = [records[slot] for slot in plan.reject]
        leaving += [records[slot] for slot, _ in plan.start]
        serials = [job.serial for job in leaving if job.state == WAITING]
        if len(set(serials)) < len(leaving):
            raise self._runs.error("starts or rejects a job that does not wait, or does it twice")
        return serials
