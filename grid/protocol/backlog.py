"""How much work jobs still need on the resources of a VO, as far as estimates tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grid.model.arrays import Floats
from grid.model.job import Job, JobKey
from grid.model.messages import CallId
from grid.model.resources import NOT_TOLD, ResourceColumns
from grid.model.time import SECOND_US, Time

Holder = JobKey | CallId
"""A job, or a call under whose lease a place is held for one."""


@dataclass(slots=True)
class _Promise:
    """A job on its resource, and the CPU time that it needs there by its estimate."""

    resource: int
    processors: int
    estimate_us: float


class Backlog:
    """CPU time that the jobs on each resource need, worked off by all CPUs that they hold.

    Which of them run is not looked at: as many CPUs as are assigned are at work, at most all that
    there are. So it is exact for one CPU, first come first served, and estimates that are true.
    Where a job ends, what it did not use is taken off.
    """

    def __init__(self, resources: ResourceColumns) -> None:
        self._cpus = resources.cpus
        self._mips = resources.mips
        self._promises: dict[Holder, _Promise] = {}
        self._assigned = np.zeros(len(resources))
        self._left_us = np.zeros(len(resources))
        self._since = np.zeros(len(resources), np.int64)

    def comes(self, holder: Holder, job: Job, resource: int, now: Time) -> None:
        """The resource was assigned to `job`."""
        estimate_us = job.estimate_us * job.reference_mips / self._mips[resource]
        self._promises[holder] = promise = _Promise(resource, job.processors, estimate_us)
        self._add(promise, now)

    def ends(self, holder: Holder, held_us: Time, now: Time) -> None:
        """The job has ended, and held its CPUs for so long."""
        promise = self._promises.pop(holder)
        unused_us = max(0.0, promise.estimate_us - held_us) * promise.processors
        self._take_off(promise, unused_us, now)

    def renames(self, call: CallId, key: JobKey) -> None:
        """The job has come for which a place was held."""
        self._promises[key] = self._promises.pop(call)

    def moves(self, key: JobKey, resource: int, now: Time) -> None:
        """The job went to another resource than was thought."""
        promise = self._promises[key]
        self._take_off(promise, promise.estimate_us * promise.processors, now)
        promise.estimate_us *= self._mips[promise.resource] / self._mips[resource]
        promise.resource = resource
        self._add(promise, now)

    def left_s(self, now: Time) -> Floats:
        """Seconds of CPU time that are left, shape (resources,)."""
        worked_us = np.minimum(self._assigned, self._cpus) * (now - self._since)
        left: Floats = np.maximum(self._left_us - worked_us, 0.0) / SECOND_US
        return left

    def _add(self, promise: _Promise, now: Time) -> None:
        self._bring_up(promise.resource, now)
        self._assigned[promise.resource] += promise.processors
        self._left_us[promise.resource] += promise.estimate_us * promise.processors

    def _take_off(self, promise: _Promise, unused_us: float, now: Time) -> None:
        resource = promise.resource
        self._bring_up(resource, now)
        self._assigned[resource] -= promise.processors
        left_us = max(0.0, self._left_us[resource] - unused_us)
        # Where estimates were too short, work is left of nobody.
        self._left_us[resource] = left_us if self._assigned[resource] else 0.0

    def _bring_up(self, resource: int, now: Time) -> None:
        worked_us = min(self._assigned[resource], self._cpus[resource]) * (
            now - self._since[resource]
        )
        self._left_us[resource] = max(0.0, self._left_us[resource] - worked_us)
        self._since[resource] = now


class NoBacklog(Backlog):
    """Where nobody asks how much work is left, nothing is reckoned."""

    def __init__(self) -> None:
        """Nothing to keep."""

    def comes(self, holder: Holder, job: Job, resource: int, now: Time) -> None:
        """Not reckoned."""

    def ends(self, holder: Holder, held_us: Time, now: Time) -> None:
        """Not reckoned."""

    def renames(self, call: CallId, key: JobKey) -> None:
        """Not reckoned."""

    def moves(self, key: JobKey, resource: int, now: Time) -> None:
        """Not reckoned."""

    def left_s(self, now: Time) -> Floats:
        """Not told."""
        return NOT_TOLD
