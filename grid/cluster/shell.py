"""One cluster between two messages, whatever its machines and its policy are.

A cluster is a piece of virtual time of its own. Jobs come to it one by one (routed) or as a whole
table that is due later (direct); `advance` plays every instant before a given time: first the
completions of the instant, then machines that go down or come up, then its arrivals, then one plan
of the policy, which is carried out. The shell has what all clusters share; a core plays the jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

from grid.cluster.arrivals import Arrivals
from grid.cluster.estimates import Estimates
from grid.cluster.outages import Outages
from grid.cluster.outcomes import Ended, EndedRows, Outcomes
from grid.model.errors import PluginFailed
from grid.model.job import Job, JobKey
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, MachineOutage
from grid.model.records import Levels
from grid.model.time import NEVER, Time


class PlanError(PluginFailed):
    """A policy's plan breaks a limit of its cluster: a bug in the policy, named with it."""


class TimedPlans(NamedTuple):
    """Plans that were made while fewer than `below` jobs waited, and at least half as many.

    `below` is a power of two; 1 is for plans without a waiting job. Times in seconds.
    """

    below: int
    plans: int
    total_s: float
    longest_s: float


NOT_MEASURED = TimedPlans(-1, 0, 0.0, 0.0)
"""Plans are made in compiled code. One call of it plays many instants, with their arrivals and
ends of jobs, so that its time would not be that of plans; and a clock that is read for each plan
would cost a pool, where a job takes half a microsecond, more than the plan does."""


class Core(Protocol):
    """Plays the jobs of one cluster. It takes them from `Arrivals` and adds to `Outcomes`."""

    processors: int
    """CPUs of all machines."""
    binds: bool
    """Whether a job may be bound to a machine."""

    def play(self, until: Time) -> None:
        """Play every instant strictly before `until`, and admit what arrives by then."""
        ...

    def machine_down(self, machine: int, now: Time) -> None:
        """Everything before `now` has been played. What ends at `now` has ended.

        If a job is there that could notice, there will be a plan at `now`.
        """
        ...

    def machine_up(self, machine: int, now: Time) -> None:
        """The same of a machine that comes up again."""
        ...

    def next_instant(self) -> Time:
        """When something next happens, arrivals apart; NEVER if nothing will."""
        ...

    def last_instant(self) -> Time:
        """The latest instant known to come, arrivals apart; NEVER if there is none."""
        ...

    def has_jobs(self) -> bool:
        """Whether there are jobs that have arrived and not ended."""
        ...

    def processors_wanted(self) -> int:
        """CPUs that those jobs hold or wait for."""
        ...

    def busy_machines(self) -> Collection[int]:
        """The machines on which something runs."""
        ...

    def occupancy(self) -> tuple[int, int, int]:
        """CPUs that jobs hold, jobs that run, jobs that have arrived and wait."""
        ...

    def broken_limits(self) -> Iterator[str]:
        """A line for each limit of its own that the core's state breaks."""
        ...

    def figures(self) -> dict[str, float]: ...

    def take_levels(self) -> Levels | None: ...

    def plan_times(self) -> list[TimedPlans]: ...


class ClusterShell:
    """The cluster that `platform` describes, played by the core that `make_core` makes.

    `outages` of its machines are disjoint for each. No core and no policy can look ahead into them.
    """

    def __init__(
        self,
        platform: Cluster,
        make_core: Callable[[Arrivals, Estimates, Outcomes], Core],
        outages: Sequence[MachineOutage] = (),
    ) -> None:
        estimates = Estimates(platform)
        self._arrivals = Arrivals(estimates)
        self._outcomes = Outcomes(self._arrivals.routed)
        self._outages = Outages(outages)
        self._played_us: Time = 0
        self._cpus = [machine.cpus for machine in platform.machines]
        self.core = make_core(self._arrivals, estimates, self._outcomes)

    def submit(self, job: Job, machine: int, now: Time) -> int:
        """The routed `job` arrives at `now`, bound to that machine (-1: any). Returns its row.

        Raises ValueError where jobs are bound to no machine.
        """
        if machine >= 0 and not self.core.binds:
            raise ValueError(f"job {job.key} is bound to machine {machine}; gangs are not")
        return self._arrivals.submit(job, machine, now)

    def submit_rows(self, jobs: JobTable) -> None:
        """Direct `jobs`, in order of submission, arrive then, none of them in the past."""
        self._arrivals.submit_rows(jobs)

    def advance(self, until: Time) -> None:
        """Play every instant strictly before `until`."""
        while (now := self._outages.next_us) < until:
            self.core.play(now)
            for _, machine, down in self._outages.take(now):
                change = self.core.machine_down if down else self.core.machine_up
                change(machine, now)
        self.core.play(until)
        self._played_us = max(self._played_us, until)

    def take_down(self, machine: int, now: Time) -> None:
        """Somebody takes the machine down; it is as if an outage had been settled for `now`."""
        self._outages.take_down(machine, max(now, self._played_us))

    def repair(self, now: Time) -> None:
        """Machines that were taken down are let up again."""
        self._outages.repair(max(now, self._played_us))

    def next_instant(self) -> Time:
        """When something next happens here; NEVER if nothing will."""
        next_us = min(self.core.next_instant(), self._arrivals.next_us)
        return min(next_us, self._next_change_us()) if self._outages.next_us < next_us else next_us

    def horizon(self) -> Time:
        """The latest instant known to come: of direct arrivals, of running jobs' ends; or NEVER."""
        known = (self.core.last_instant(), self._next_change_us(), self._arrivals.last_direct_us())
        return max((time for time in known if 0 <= time < NEVER), default=NEVER)

    def take_ended(self) -> list[Ended]:
        """The routed jobs that ended since the last call, in order of (end, arrival)."""
        return self._outcomes.take()

    def take_ended_rows(self) -> EndedRows:
        """The direct jobs that ended since the last call, in order of (end, arrival)."""
        return self._outcomes.take_rows()

    def withdrawn(self, row: int) -> Job:
        """The routed job of that row has left the cluster, for another one."""
        return self._arrivals.routed.pop(row)

    def routed_jobs(self) -> list[JobKey]:
        """The routed jobs that are here, or still to arrive."""
        return [job.key for job in self._arrivals.routed.values()]

    def load(self) -> float:
        """CPUs that jobs hold or wait for, for each CPU there is (GM Eq. 2)."""
        wanted = self.core.processors_wanted() + self._arrivals.routed_processors()
        return wanted / self.core.processors

    def figures(self) -> dict[str, float]:
        """What the ends of jobs do not tell, such as integrals over time; see `ClusterFigure`."""
        return self.core.figures()

    def take_history(self) -> Levels | None:
        """What the cluster was like over time since the last call; None if that is not kept."""
        levels = self.core.take_levels()
        if levels is None or not self._outages:
            return levels
        times, down = self._outages.levels(self._cpus)
        return levels._replace(down_us=times, down=down)

    def plan_times(self) -> list[TimedPlans]:
        """How long plans took, by how many jobs waited."""
        return self.core.plan_times()

    def broken_limits(self) -> Iterator[str]:
        """A line for each limit that is broken between two messages.

        No machine has more CPUs busy than it has, no license more copies in use than there are. A
        gang runs with all of its tasks that have not ended, or with none, and no more processors
        are kept for it than it has tasks. Nothing runs on a machine that is down.
        """
        yield from self.on_machines_down()
        yield from self.core.broken_limits()

    def on_machines_down(self) -> Sequence[str]:
        """A line for each machine that runs something and is down, as its scenario has it."""
        down = self._outages.down(self._played_us - 1) if self._outages else ()
        if not down:
            return ()
        busy = sorted(set(down).intersection(self.core.busy_machines()))
        return [f"machine {machine} is down, and something runs there" for machine in busy]

    def _next_change_us(self) -> Time:
        """When a machine next goes down or comes up; NEVER where no job is that could notice."""
        change_us = self._outages.next_us
        return change_us if change_us < NEVER and self.core.has_jobs() else NEVER
