"""A cluster whose machines go down and come back, written plainly.

The jobs that run on a machine that goes down return to the queue and begin again elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from grid.model.job import Job
from grid.model.platform import Machine
from grid.model.time import NEVER
from grid.policies.interface import ClusterView, JobColumns, MachineColumns, Policy


@dataclass
class Outage:
    """The machine is down from `begin` on, up again at `end`."""

    machine: int
    begin: int
    end: int


class FailingCluster:
    """Plays jobs, each bound to a machine or to none (-1), under a policy.

    `longer` lets jobs pass their estimates: they are then expected to take as long again.
    """

    def __init__(
        self,
        machines: tuple[Machine, ...],
        jobs: list[tuple[Job, int]],
        outages: list[Outage],
        longer: bool,
    ) -> None:
        zeros = np.zeros(len(machines), np.int64)
        cpus = np.array([machine.cpus for machine in machines])
        mips = np.array([machine.mips for machine in machines], np.float64)
        order = np.argsort(-mips, kind="stable")
        self.machines = MachineColumns(cpus, mips, zeros, zeros, order)
        self.outages, self.longer = outages, longer
        self.given = jobs
        columns = {column.name: np.zeros(len(jobs), np.int64) for column in fields(JobColumns)}
        self.jobs = JobColumns(**columns)
        self.jobs.serial = np.arange(len(jobs))
        self.jobs.processors = np.array([job.processors for job, _ in jobs])
        self.jobs.estimate_us = np.array([job.estimate_us for job, _ in jobs])
        self.jobs.reference_mips = np.array([job.reference_mips for job, _ in jobs])
        self.jobs.deadline_us = np.array([job.deadline_us for job, _ in jobs])
        self.jobs.bound_machine = np.array([machine for _, machine in jobs])
        self.jobs.expected_end_us = np.full(len(jobs), NEVER)
        self.queue: list[int] = []
        self.running: dict[int, tuple[int, int]] = {}
        """Machine and true end, by slot."""
        self.done: list[int] = []

    def play(self, policy: Policy) -> None:
        """From the first instant to the last, until every job has ended or was rejected."""
        instants = {job.submit_us for job, _ in self.given}
        instants |= {time for outage in self.outages for time in (outage.begin, outage.end)}
        while instants:
            now = min(instants)
            self._instant(policy, now)
            instants = {time for time in instants if time > now}
            instants |= {end for _, end in self.running.values()}
            if self.longer:
                instants |= {int(self.jobs.expected_end_us[slot]) for slot in self.running}
        assert sorted(self.done) == list(range(len(self.given)))

    def _instant(self, policy: Policy, now: int) -> None:
        ended = [slot for slot, (_, end) in self.running.items() if end <= now]
        down = {outage.machine for outage in self.outages if outage.begin <= now < outage.end}
        lost = [s for s, (machine, _) in self.running.items() if machine in down and s not in ended]
        for slot in [*ended, *lost]:
            del self.running[slot]
        self.jobs.expected_end_us[lost] = NEVER
        for slot in self.running:
            if self.jobs.expected_end_us[slot] <= now:
                self.jobs.expected_end_us[slot] = 2 * now - self.jobs.start_us[slot]
        arrived = [slot for slot, (job, _) in enumerate(self.given) if job.submit_us == now]
        self.queue = sorted([*self.queue, *lost, *arrived])
        plan = policy.plan(self._view(now, down, arrived, ended), now)
        self.done += [*ended, *plan.reject]
        self.queue = [slot for slot in self.queue if slot not in plan.reject]
        for slot, machine in plan.start:
            self._start(slot, machine, now, down)

    def _view(self, now: int, down: set[int], arrived: list[int], ended: list[int]) -> ClusterView:
        free = self.machines.cpus.copy()
        for slot, (machine, _) in self.running.items():
            free[machine] -= self.jobs.processors[slot]
        free[list(down)] = 0
        lists = (self.queue, list(self.running), arrived, ended)
        columns = (np.array(slots, np.int64) for slots in lists)
        return ClusterView(now, self.machines, free, self.jobs, *columns, np.empty(0, np.int64))

    def _start(self, slot: int, machine: int, now: int, down: set[int]) -> None:
        """The job runs from `now` on. Raises AssertionError if it cannot."""
        assert machine not in down
        self.queue.remove(slot)
        job, _ = self.given[slot]
        shares = job.reference_mips / float(self.machines.mips[machine])
        expected = now + max(1, round(job.estimate_us * shares))
        end = now + max(1, round(job.run_us * shares))
        self.jobs.start_us[slot] = now
        self.jobs.expected_end_us[slot] = expected
        self.running[slot] = (machine, end if self.longer else min(end, expected))
        held = [s for s, (m, _) in self.running.items() if m == machine]
        assert sum(int(self.jobs.processors[s]) for s in held) <= self.machines.cpus[machine]
