"""One cluster between two messages, and the outages of its machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from grid.cluster.arrivals import Arrivals, Ended, EndedRows, Estimates, Outcomes
from grid.model.arrays import Ints
from grid.model.errors import PluginFailed
from grid.model.job import Job, JobKey
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, MachineOutage
from grid.model.records import Levels
from grid.model.time import NEVER, Time


class MachineChange(NamedTuple):
    """A machine goes down, or comes up again."""

    time: Time
    machine: int
    down: bool


class Outages:
    """The changes of outages, in order of time; at one instant in order of machine.

    The given outages are disjoint for each machine. In a live run, users add others.
    """

    def __init__(self, outages: Sequence[MachineOutage]) -> None:
        self._given = self._all = tuple(outages)
        self._wanted: list[MachineOutage] = []
        """Those that users added; they are merged with the given ones."""
        self._taken_us: Time = -1
        self._lay_out()

    def take_down(self, machine: int, now: Time) -> None:
        """The machine is down from `now`, for which no change has been taken, until `repair`."""
        self._wanted.append(MachineOutage(machine, now, NEVER))
        self._lay_out()

    def repair(self, now: Time) -> None:
        """From `now` on, machines are down only in the given outages."""
        ended = [replace(one, end_us=min(one.end_us, now)) for one in self._wanted]
        self._wanted = [one for one in ended if one.start_us < one.end_us]
        self._lay_out()

    def _lay_out(self) -> None:
        if self._wanted:
            self._all = disjoint_outages([*self._given, *self._wanted])
        starts = [MachineChange(one.start_us, one.machine, True) for one in self._all]
        ends = [MachineChange(one.end_us, one.machine, False) for one in self._all]
        self._changes = sorted(one for one in starts + ends if one.time < NEVER)
        self._next = bisect_right(self._changes, self._taken_us, key=lambda one: one.time)
        self.next_us = self._next_us()
        """When the next change comes; NEVER if none does."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def _next_us(self) -> Time:
        return self._changes[self._next].time if self._next < len(self._changes) else NEVER

    def take(self, now: Time) -> list[MachineChange]:
        """The changes until `now` that have not been taken yet."""
        first = self._next
        self._taken_us = now
        while self.next_us <= now:
            self._next += 1
            self.next_us = self._next_us()
        return self._changes[first : self._next]

    def down(self, at_us: Time) -> list[int]:
        """The machines that are down then, also if its changes were taken."""
        return [one.machine for one in self._all if one.start_us <= at_us < one.end_us]

    def levels(self, cpus: Sequence[int]) -> tuple[Ints, Ints]:
        """The times of all changes, and how many CPUs are down from then on.

        `cpus` are those of each machine. Shapes (changes,).
        """
        times = np.array([change.time for change in self._changes], np.int64)
        steps = [cpus[machine] * (1 if down else -1) for _, machine, down in self._changes]
        return times, np.cumsum(np.array(steps, np.int64))


def disjoint_outages(outages: Iterable[MachineOutage]) -> tuple[MachineOutage, ...]:
    """The same, without overlaps on any machine."""
    merged: list[MachineOutage] = []
    for one in sorted(outages, key=lambda one: (one.machine, one.start_us)):
        last = merged[-1] if merged else None
        if last is not None and last.machine == one.machine and one.start_us <= last.end_us:
            merged[-1] = replace(last, end_us=max(last.end_us, one.end_us))
        else:
            merged.append(one)
    return tuple(merged)


class PlanError(PluginFailed):
    """A policy's plan violates a limit of its cluster: a bug in the policy."""


class TimedPlans(NamedTuple):
    """Plans that were made while fewer than `below` jobs waited, and at least half as many.

    `below` is a power of two; 1 is for plans without a waiting job. Times in seconds.
    """

    below: int
    plans: int
    total_s: float
    longest_s: float


NOT_MEASURED = TimedPlans(-1, 0, 0.0, 0.0)
"""For plans in compiled code: one call simulates many instants with their arrivals and completions,
and reading a clock at each plan would take longer than a job of a pool."""


class ClusterState(ABC):
    """A cluster between two messages.

    Jobs arrive one by one (routed) or as a whole table that is due later (direct). `advance`
    simulates every instant before a given time: first the completions of the instant, then
    cancellations of waiting jobs, machines that go down or come up, then its arrivals, then one
    plan of the policy.

    `outages` are disjoint for each machine. No policy reads future ones. `resources` are the names
    of those that jobs may hold, and moldable jobs have up to `sizes` sizes. `vo` is the VO of
    direct jobs. The jobs of a subclass arrive from `_arrivals`, and it adds those that end to
    `_outcomes`.
    """

    def __init__(
        self,
        platform: Cluster,
        outages: Sequence[MachineOutage] = (),
        *,
        predictions: bool = False,
        resources: Sequence[str] = (),
        sizes: int = 0,
        vo: str = "",
    ) -> None:
        self.processors = platform.processors
        self._estimates = Estimates(platform, predictions)
        self._arrivals = Arrivals(
            self._estimates, resources, platform.reserved(), vo, sizes, platform.padding
        )
        self._outcomes = Outcomes(self._arrivals.routed)
        self._outages = Outages(outages)
        self._cancellations: list[tuple[Time, int, bool]] = []
        """A heap of times, rows of jobs, and whether they leave if they have started."""
        self._simulated_us: Time = 0
        self._cpus = [machine.cpus for machine in platform.machines]

    def submit(self, job: Job, machine: int, now: Time) -> int:
        """The routed `job` arrives at `now`, bound to that machine (-1: any). Returns its row."""
        row = self._arrivals.submit(job, machine, now)
        if job.cancel_us < NEVER:
            # A gang that comes from another cluster may be late.
            heappush(self._cancellations, (max(job.cancel_us, now + 1), row, False))
        return row

    def submit_rows(self, jobs: JobTable) -> None:
        """Direct `jobs`, in order of submission, arrive then, none of them in the past."""
        first = self._arrivals.submit_rows(jobs)
        for place in np.flatnonzero(jobs.cancel_us < NEVER).tolist():
            heappush(self._cancellations, (int(jobs.cancel_us[place]), first + place, False))

    def advance(self, until: Time) -> None:
        """Simulate every instant strictly before `until`."""
        while (now := self._next_change()) < until:
            self._simulate(now)
            while self._cancellations and self._cancellations[0][0] == now:
                _, row, running = heappop(self._cancellations)
                self._cancel(row, running, now)
            for _, machine, down in self._outages.take(now):
                self._change_machine(machine, down, now)
        self._simulate(until)
        self._simulated_us = max(self._simulated_us, until)

    def cancel_job(self, key: JobKey, running: bool, now: Time) -> bool:
        """The routed job is to leave at `now`, if it has not started or with `running`.

        Returns whether it is here.
        """
        row = next((row for row, job in self._arrivals.routed.items() if job.key == key), None)
        if row is not None:
            heappush(self._cancellations, (max(now, self._simulated_us), row, running))
        return row is not None

    def take_down(self, machine: int, now: Time) -> None:
        """The machine is down from `now` on, as in an outage that was given."""
        self._outages.take_down(machine, max(now, self._simulated_us))

    def repair(self, now: Time) -> None:
        """Machines that were taken down come up again."""
        self._outages.repair(max(now, self._simulated_us))

    def next_instant(self) -> Time:
        """The time of the next event; NEVER for none."""
        next_us, arrival_us = self._next_event_us(), self._arrivals.next_us
        next_us = min(next_us, arrival_us)
        change_us = self._next_change()
        return change_us if change_us < next_us and self._has_jobs() else next_us

    def horizon(self) -> Time:
        """The latest instant known to come: of direct arrivals, of running jobs' ends; or NEVER."""
        known = (self._last_event_us(), self._next_change_us(), self._arrivals.last_direct_us())
        return max((time for time in known if 0 <= time < NEVER), default=NEVER)

    def take_ended(self) -> list[Ended]:
        """The routed jobs that ended since the last call, in order of (end, arrival)."""
        return self._outcomes.take()

    def take_ended_rows(self) -> EndedRows:
        """The direct jobs that ended since the last call, in order of (end, arrival)."""
        return self._outcomes.take_rows()

    def routed_jobs(self) -> list[JobKey]:
        """The routed jobs that are here, or still to arrive."""
        return [job.key for job in self._arrivals.routed.values()]

    def load(self) -> float:
        """CPUs that jobs hold or wait for, over all CPUs (GM Eq. 2)."""
        wanted = self._processors_wanted() + self._arrivals.routed_processors()
        return wanted / self.processors

    def take_history(self) -> Levels | None:
        """The levels over time since the last call; None if they are not kept."""
        levels = self._take_levels()
        if levels is None or not self._outages:
            return levels
        times, down = self._outages.levels(self._cpus)
        return levels._replace(down_us=times, down=down)

    def broken_limits(self) -> Iterator[str]:
        """A line for each limit that is broken between two messages.

        No machine has more CPUs or resources in use than it has, and no license more copies. A
        gang runs with all of its tasks that have not ended, or with none, and no more processors
        are kept for it than it has tasks. Nothing runs on a machine that is down.
        """
        yield from self.on_machines_down()
        yield from self._broken_limits()

    def on_machines_down(self) -> Sequence[str]:
        """A line for each machine that runs a job although it is down by its scenario."""
        down = self._outages.down(self._simulated_us - 1) if self._outages else ()
        if not down:
            return ()
        busy = sorted(set(down).intersection(self._busy_machines()))
        return [f"machine {machine} is down, but a job runs there" for machine in busy]

    def _next_change(self) -> Time:
        """When a machine next goes down or comes up, or a job may be cancelled; NEVER for none."""
        change_us = self._outages.next_us
        return min(change_us, self._cancellations[0][0]) if self._cancellations else change_us

    def _next_change_us(self) -> Time:
        """The same; NEVER if the cluster has no jobs."""
        change_us = self._next_change()
        return change_us if change_us < NEVER and self._has_jobs() else NEVER

    def figures(self) -> dict[str, float]:
        """Metrics that outcomes do not have, such as integrals over time; see `ClusterFigure`."""
        return {}

    def plan_times(self) -> list[TimedPlans]:
        """The times of plans by the number of waiting jobs."""
        return [NOT_MEASURED]

    @abstractmethod
    def occupancy(self) -> tuple[int, int, int]:
        """CPUs that jobs hold, running jobs, waiting jobs."""

    @abstractmethod
    def _simulate(self, until: Time) -> None:
        """Simulate every instant strictly before `until`, in which no machine changes."""

    @abstractmethod
    def _change_machine(self, machine: int, down: bool, now: Time) -> None:
        """A machine goes down or comes up. Every instant before `now` was simulated.

        Jobs that end at `now` end before. If the cluster has jobs, there is a plan at `now`.
        """

    @abstractmethod
    def _cancel(self, row: int, running: bool, now: Time) -> None:
        """The job of that row is cancelled if it waits and has never started, or with `running`.

        Otherwise as `_change_machine`.
        """

    def _next_event_us(self) -> Time:
        """The time of the next event, arrivals apart; NEVER for none."""
        return NEVER

    def _last_event_us(self) -> Time:
        """The latest instant known to come, arrivals apart; NEVER for none."""
        return NEVER

    @abstractmethod
    def _has_jobs(self) -> bool:
        """Whether any job has arrived and not ended."""

    @abstractmethod
    def _processors_wanted(self) -> int:
        """CPUs that those jobs hold or wait for."""

    def _busy_machines(self) -> Collection[int]:
        return ()

    def _broken_limits(self) -> Iterable[str]:
        return ()

    def _take_levels(self) -> Levels | None:
        return None
