"""The jobs and reservations on the resources of a VO, and the CPU time that they still need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grid.model.arrays import Floats
from grid.model.job import Job, JobKey
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


class Assignments:
    """CPUs assigned on each of the `resources` of VO `name`, running jobs and queued ones alike.

    With `include_backlog` it estimates the CPU time that the jobs still need: all assigned CPUs
    work, at most those that there are. That is exact for one CPU, first come first served, and
    exact estimates. When a job ends, what it did not use is subtracted.
    """

    def __init__(self, name: str, resources: ResourceColumns, include_backlog: bool) -> None:
        self.cpus = np.zeros(len(resources))
        """CPUs that are assigned, shape (resources,)."""
        self.total = 0
        self._name = name
        self._of: dict[Holder, _Assignment] = {}
        self._guests: dict[str, tuple[int, int]] = {}
        """By other VO, the number of its jobs here, and of their CPUs."""
        self._others: dict[int, int] = {}
        """By resource, the CPUs that jobs of others hold."""
        self._resources = resources
        self._include_backlog = include_backlog
        self._left_us = np.zeros(len(resources))
        self._updated_us = np.zeros(len(resources), np.int64)

    def add(self, holder: Holder, job: Job, resource: int, now: Time) -> None:
        """Assign the resource to a job, or reserve it for one."""
        estimate_us = 0.0
        if self._include_backlog:
            estimate_us = job.estimate_us * job.reference_mips / self._resources.mips[resource]
        one = self._of[holder] = _Assignment(job.vo, resource, job.processors, estimate_us)
        self._count(one, 1)
        self._put(one, now)

    def remove(self, holder: Holder, held_us: Time, now: Time) -> tuple[int, int]:
        """A job that held its CPUs for `held_us` has ended. Returns its resource and CPUs."""
        one = self._of.pop(holder)
        self._count(one, -1)
        self._take_off(one, max(0.0, one.estimate_us - held_us) * one.processors, now)
        return one.resource, one.processors

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
        self.cpus[resource] += cpus - before
        self.total += cpus - before

    def find(self, key: JobKey) -> tuple[int, int]:
        """The resource of a job, and its CPUs; (-1, 0) if it has none."""
        one = self._of.get(key)
        return (-1, 0) if one is None else (one.resource, one.processors)

    def guests(self, vo: str) -> tuple[int, int]:
        """How many jobs of another VO are here, and on how many CPUs."""
        return self._guests.get(vo, (0, 0))

    def backlog_s(self, now: Time) -> Floats:
        """Seconds of CPU time that are left, shape (resources,); (0,) if not included."""
        if not self._include_backlog:
            return NOT_INCLUDED
        worked_us = np.minimum(self.cpus, self._resources.cpus) * (now - self._updated_us)
        left: Floats = np.maximum(self._left_us - worked_us, 0.0) / SECOND_US
        return left

    def _count(self, one: _Assignment, sign: int) -> None:
        self.total += sign * one.processors
        if one.vo != self._name:
            jobs, cpus = self._guests.get(one.vo, (0, 0))
            self._guests[one.vo] = (jobs + sign, cpus + sign * one.processors)

    def _put(self, one: _Assignment, now: Time) -> None:
        if self._include_backlog:
            self._update(one.resource, now)
            self._left_us[one.resource] += one.estimate_us * one.processors
        self.cpus[one.resource] += one.processors

    def _take_off(self, one: _Assignment, unused_us: float, now: Time) -> None:
        resource = one.resource
        if self._include_backlog:
            self._update(resource, now)
        self.cpus[resource] -= one.processors
        if self._include_backlog:
            left_us = max(0.0, self._left_us[resource] - unused_us)
            # Estimates that were too short leave work of no job.
            self._left_us[resource] = left_us if self.cpus[resource] else 0.0

    def _update(self, resource: int, now: Time) -> None:
        at_work = min(self.cpus[resource], self._resources.cpus[resource])
        worked_us = at_work * (now - self._updated_us[resource])
        self._left_us[resource] = max(0.0, self._left_us[resource] - worked_us)
        self._updated_us[resource] = now
