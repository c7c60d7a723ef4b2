"""Jobs that wait at their Resource Manager until their resource has room for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from grid.model.job import Job


class WaitingRoom:
    """A line for each resource, first come first served, of jobs that have not been sent down.

    A job that is sent down goes to its cluster, where it may have to wait as well. It counts as
    below until it has ended. `cpus` are those of each resource.
    """

    def __init__(self, cpus: Sequence[float]) -> None:
        self._cpus = list(cpus)
        self._below = [0] * len(self._cpus)
        self._lines: dict[int, deque[Job]] = {}

    def holds_back(self, job: Job, resource: int) -> bool:
        """Whether the job must wait: others are in line, or too few CPUs are left."""
        return resource in self._lines or not self._fits(job, resource)

    def wait(self, job: Job, resource: int) -> None:
        self._lines.setdefault(resource, deque()).append(job)

    def sent_down(self, resource: int, processors: int) -> None:
        """A job that holds so many CPUs of the resource, or waits there, has gone below."""
        self._below[resource] += processors

    def come_up(self, resource: int, processors: int) -> None:
        """A job that was below has ended, or belongs to another resource from now on."""
        self._below[resource] -= processors

    def next_ones(self, resource: int) -> Iterator[Job]:
        """Those at the head of the line that have room now, each to be sent down at once."""
        line = self._lines.get(resource)
        while line and self._fits(line[0], resource):
            yield line.popleft()
        if line is not None and not line:
            self._lines.pop(resource, None)

    def _fits(self, job: Job, resource: int) -> bool:
        return self._below[resource] + job.processors <= self._cpus[resource]
