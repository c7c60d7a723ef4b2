"""The jobs and reservations on the resources of a VO, and the CPU time that they still need."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grid.model.arrays import Floats
from grid.model.job import Amounts, Job, JobKey, rounded
from grid.model.messages import CallId
from grid.model.resources import NOT_INCLUDED, ResourceColumns
from grid.model.time import SECOND_US, Time

Holder = JobKey | CallId
"""A job, or a call under whose lease CPUs are reserved for one."""


@dataclass(slots=True)
class _Assignment:
    vo: str
    resource: int
    processors: int
    estimate_us: float
    """Run time on the resource by the job's estimate."""
    held: Amounts


class Assignments:
    """CPUs assigned on each of the `resources` of VO `name`, running jobs and queued ones alike.

    Also the amounts of the resources with these `names`; `shared` has the names of those that all
    machines share, by cluster.

    With `include_backlog` it estimates the CPU time that the jobs still need: all assigned CPUs
    work, at most those that there are. That is exact for one CPU, first come first served, and
    exact estimates. When a job ends, what it did not use is subtracted.
    """

    def __init__(
        self,
        name: str,
        resources: ResourceColumns,
        include_backlog: bool,
        names: Sequence[str] = (),
        shared: Sequence[Collection[str]] = (),
    ) -> None:
        self.assigned = np.zeros((1 + len(names), len(resources)))
        """CPUs and then amounts that are assigned, shape (1 + names, resources)."""
        self.total = 0
        self._names = {name: row for row, name in enumerate(names, 1)}
        self._shared = [frozenset(one) for one in shared]
        self._name = name
        self._of: dict[Holder, _Assignment] = {}
        self._guests: dict[str, tuple[int, int]] = {}
        """By other VO, the number of its jobs here, and of their CPUs."""
        self._others: dict[int, int] = {}
        """By resource, the CPUs that jobs of others hold."""
        self._resources = resources
        self._cpus: list[float] = resources.cpus.tolist()
        self._include_backlog = include_backlog
        self._left_us = np.zeros(len(resources))
        self._updated_us = np.zeros(len(resources), np.int64)

    def add(self, holder: Holder, job: Job, resource: int, now: Time) -> None:
        """Assign the resource to a job, or reserve it for one."""
        estimate_us = 0.0
        if self._include_backlog:
            estimate_us = job.estimate_us * job.reference_mips / self._resources.mips[resource]
        held = job.resources if self._names else ()
        one = self._of[holder] = _Assignment(job.vo, resource, job.processors, estimate_us, held)
        self._count(one, 1)
        self._put(one, now)

    def remove(self, holder: Holder, held_us: Time, now: Time) -> int:
        """A job that held its CPUs for `held_us` has ended. Returns its resource."""
        one = self._of.pop(holder)
        self._count(one, -1)
        self._take_off(one, max(0.0, one.estimate_us - held_us) * one.processors, now)
        return one.resource

    def claim(self, call: CallId, key: JobKey) -> None:
        """The job has arrived for which CPUs are reserved."""
        self._of[key] = self._of.pop(call)

    def move(self, key: JobKey, resource: int, now: Time) -> None:
        """The job is on another resource than its Local Scheduler selected."""
        one = self._of[key]
        self._take_off(one, one.estimate_us * one.processors, now)
        one.estimate_us *= self._resources.mips[one.resource] / self._resources.mips[resource]
        one.resource = resource
        self._put(one, now)

    def set_others(self, resource: int, cpus: int) -> None:
        """Jobs of others, which are not assigned here, hold CPUs of the resource."""
        before = self._others.get(resource, 0)
        self._others[resource] = cpus
        self.assigned[0, resource] += cpus - before
        self.total += cpus - before

    def find(self, key: JobKey) -> int:
        """The resource of a job; -1 if it has none."""
        one = self._of.get(key)
        return -1 if one is None else one.resource

    def sharing(self, resource: int) -> list[int]:
        """The resources of its cluster if these share amounts, else only itself."""
        cluster = self._resources.cluster[resource]
        if not self._shared or not self._shared[cluster]:
            return [resource]
        machines: list[int] = np.flatnonzero(self._resources.cluster == cluster).tolist()
        return machines

    def guests(self, vo: str) -> tuple[int, int]:
        """How many jobs of another VO are here, and on how many CPUs."""
        return self._guests.get(vo, (0, 0))

    def backlog_s(self, now: Time) -> Floats:
        """Seconds of CPU time that are left, shape (resources,); (0,) if not included."""
        if not self._include_backlog:
            return NOT_INCLUDED
        worked_us = np.minimum(self.assigned[0], self._resources.cpus) * (now - self._updated_us)
        left: Floats = np.maximum(self._left_us - worked_us, 0.0) / SECOND_US
        return left

    def lacks(self, job: Job, resource: int, beyond: Floats | None = None) -> bool:
        """Whether less is free there than the job requests; what is `beyond` counts as free."""
        spare = 0.0 if beyond is None else beyond.item(0, resource)
        free = self._cpus[resource] - self.assigned.item(0, resource) + spare
        if free < job.processors or not (self._names and job.resources):
            return free < job.processors
        for name, amount in job.resources:
            if row := self._names.get(name, 0):
                free = self._resources.total(name)[resource] - self.assigned[row, resource]
                if free + (0.0 if beyond is None else beyond[row, resource]) < rounded(amount):
                    return True
        return False

    def count(self, table: Floats, job: Job, resource: int, sign: int) -> None:
        """Add what a job requests to a table of the shape of `assigned`, or subtract it."""
        table[0, resource] += sign * job.processors
        self._hold(table, resource, job.resources if self._names else (), sign)

    def _hold(self, table: Floats, resource: int, held: Amounts, sign: int) -> None:
        for name, amount in held:
            if row := self._names.get(name, 0):
                cluster = self._resources.cluster[resource]
                shared = self._shared and name in self._shared[cluster]
                where: Any = self._resources.cluster == cluster if shared else resource
                table[row, where] += sign * rounded(amount)

    def _count(self, one: _Assignment, sign: int) -> None:
        self.total += sign * one.processors
        if one.vo != self._name:
            jobs, cpus = self._guests.get(one.vo, (0, 0))
            self._guests[one.vo] = (jobs + sign, cpus + sign * one.processors)

    def _put(self, one: _Assignment, now: Time) -> None:
        if self._include_backlog:
            self._update(one.resource, now)
            self._left_us[one.resource] += one.estimate_us * one.processors
        self.assigned[0, one.resource] += one.processors
        if one.held:
            self._hold(self.assigned, one.resource, one.held, 1)

    def _take_off(self, one: _Assignment, unused_us: float, now: Time) -> None:
        resource = one.resource
        if self._include_backlog:
            self._update(resource, now)
        self.assigned[0, resource] -= one.processors
        if one.held:
            self._hold(self.assigned, resource, one.held, -1)
        if self._include_backlog:
            left_us = max(0.0, self._left_us[resource] - unused_us)
            # Estimates that were too short leave work of no job.
            self._left_us[resource] = left_us if self.assigned[0, resource] else 0.0

    def _update(self, resource: int, now: Time) -> None:
        at_work = min(self.assigned[0, resource], self._resources.cpus[resource])
        worked_us = at_work * (now - self._updated_us[resource])
        self._left_us[resource] = max(0.0, self._left_us[resource] - worked_us)
        self._updated_us[resource] = now
