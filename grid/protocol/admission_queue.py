"""Those who wait at a Resource Manager until a resource has room for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats
from grid.model.job import Job, JobKey
from grid.model.messages import CallId, RequestReservation


class Waiting(NamedTuple):
    """A job to be sent down or, if `asked` is given, one for which a place shall be held."""

    job: Job
    asked: RequestReservation | None
    rank: int
    late: bool = False
    """It can be withdrawn."""


class AdmissionQueue:
    """A line for each resource of those who have not been sent down.

    Those of the lower rank go first, and of one rank those who came first.

    A job that is sent down goes to its cluster, where it may have to wait as well. It counts as
    below until it has ended, and so does a place that is held. `cpus` are those of each resource.
    """

    def __init__(self, cpus: Sequence[float]) -> None:
        self._cpus = list(cpus)
        self._below = [0] * len(self._cpus)
        self._lines: dict[int, deque[Waiting]] = {}
        self._places = np.zeros((2, len(self._cpus)))
        """The CPUs for which places stand in line, by rank and resource."""

    def has_line(self, resource: int, rank: int) -> bool:
        """Whether those are in line who go before a newcomer of that rank."""
        return resource in self._lines and self._lines[resource][0].rank <= rank

    def has_room(self, job: Job, resource: int) -> bool:
        """Whether enough CPUs are left."""
        return self._below[resource] + job.processors <= self._cpus[resource]

    def wait(self, waiting: Waiting, resource: int) -> None:
        line = self._lines.setdefault(resource, deque())
        place = len(line)
        while place and line[place - 1].rank > waiting.rank:
            place -= 1
        line.insert(place, waiting)
        self._count(waiting, resource, 1)

    def withdraw(self, key: JobKey, resource: int) -> bool:
        """Take a job out of the line, if it is there."""
        for waiting in self._lines.get(resource, ()):
            if waiting.late and waiting.job.key == key:
                self._take_out(waiting, resource)
                return True
        return False

    def leave(self, call: CallId) -> int:
        """The place for that call is not wanted any more. Returns its resource, -1: it had none."""
        for resource, line in self._lines.items():
            for waiting in line:
                if waiting.asked is not None and waiting.asked.call == call:
                    self._take_out(waiting, resource)
                    return resource
        return -1

    def _take_out(self, waiting: Waiting, resource: int) -> None:
        self._lines[resource].remove(waiting)
        self._count(waiting, resource, -1)
        if not self._lines[resource]:
            del self._lines[resource]

    def _count(self, waiting: Waiting, resource: int, sign: int) -> None:
        if waiting.asked is not None:
            self._places[waiting.rank, resource] += sign * waiting.job.processors

    def places_before(self, rank: int) -> Floats:
        """CPUs for which places stand in line before a newcomer of that rank: (resources,)."""
        before: Floats = self._places[: rank + 1].sum(axis=0)
        return before

    def sent_down(self, resource: int, processors: int) -> None:
        """A job that holds so many CPUs of the resource, or waits there, has gone below."""
        self._below[resource] += processors

    def come_up(self, resource: int, processors: int) -> None:
        """A job that was below has ended, or belongs to another resource from now on."""
        self._below[resource] -= processors

    def next_ones(self, resource: int) -> Iterator[Waiting]:
        """Those at the head of the line that have room now, each to be sent down at once."""
        line = self._lines.get(resource)
        while line and self.has_room(line[0].job, resource):
            waiting = line.popleft()
            self._count(waiting, resource, -1)
            if not line:
                del self._lines[resource]
            yield waiting
