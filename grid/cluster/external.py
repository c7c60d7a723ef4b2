"""A real cluster, as its batch system reports it."""

from __future__ import annotations

from typing import NamedTuple

from grid.cluster.arrivals import Ended
from grid.cluster.state import ClusterState, TimedPlans
from grid.model.job import FINAL_STATES, Job, JobKey, JobOutcome, JobState, cancelled, rejected
from grid.model.job_table import JobTable
from grid.model.messages import BatchStatus
from grid.model.platform import Cluster
from grid.model.time import NEVER, Time


class OpenJob(NamedTuple):
    """A job that has not ended: when it arrived, and when it started (-1: not yet).

    At `cancel_us` it is to leave if it waits or, with `running`, in any case.
    """

    job: Job
    arrived_us: Time
    start_us: Time = -1
    cancel_us: Time = NEVER
    running: bool = False


class ExternalCluster(ClusterState):
    """The jobs of one machine whose batch system decides when they start.

    The runtime submits those of `jobs`, and `observe` is passed their states. Times of the
    batch system may be rounded: they are at least the job's arrival, and at most the present.
    """

    def __init__(self, platform: Cluster) -> None:
        super().__init__(platform)
        (self._machine,) = platform.machines
        self.jobs: dict[JobKey, OpenJob] = {}
        self._ended: list[Ended] = []

    def submit(self, job: Job, machine: int, now: Time) -> int:
        self.jobs[job.key] = OpenJob(job, now, cancel_us=job.cancel_us)
        return 0

    def submit_rows(self, jobs: JobTable) -> None:
        """Raises ValueError: jobs come through a Resource Manager."""
        raise ValueError("direct jobs in a real cluster")

    def cancel_job(self, key: JobKey, running: bool, now: Time) -> bool:
        one = self.jobs.get(key)
        if one is not None:
            cancel_us = min(now, one.cancel_us)
            self.jobs[key] = one._replace(cancel_us=cancel_us, running=running or one.running)
        return one is not None

    def observe(self, status: BatchStatus, now: Time) -> None:
        """A job runs or has ended; of one that has ended before, nothing."""
        one = self.jobs.get(status.key)
        if one is None:
            return
        start_us = -1
        if status.start_us >= 0:
            start_us = min(max(status.start_us, one.arrived_us), now)
        if status.state in FINAL_STATES:
            del self.jobs[status.key]
            end_us = min(max(status.end_us, start_us, one.arrived_us), now)
            state = status.state
            if state == JobState.CANCELLED and start_us >= 0 and not one.running:
                # By its user or an administrator, in Slurm.
                state = JobState.FAILED
            self._ended.append(Ended(status.key, self._outcome(int(state), start_us, end_us)))
        else:
            self.jobs[status.key] = one._replace(start_us=start_us)

    def _outcome(self, state: int, start_us: Time, end_us: Time) -> JobOutcome[int, float]:
        if start_us < 0:
            return cancelled(end_us) if state == JobState.CANCELLED else rejected(end_us)
        held_us, machine = end_us - start_us, self._machine
        watts = machine.watts_busy, machine.watts_idle
        return JobOutcome(0, state, start_us, end_us, 0, 0, 0, held_us, 0, *watts)

    def take_ended(self) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def routed_jobs(self) -> list[JobKey]:
        return list(self.jobs)

    def occupancy(self) -> tuple[int, int, int]:
        running = [one.job.processors for one in self.jobs.values() if one.start_us >= 0]
        return sum(running), len(running), len(self.jobs) - len(running)

    def plan_times(self) -> list[TimedPlans]:
        return []

    def _processors_wanted(self) -> int:
        return sum(one.job.processors for one in self.jobs.values())

    def _has_jobs(self) -> bool:
        return bool(self.jobs)

    def _simulate(self, until: Time) -> None: ...

    def _change_machine(self, machine: int, down: bool, now: Time) -> None: ...

    def _cancel(self, row: int, running: bool, now: Time) -> None: ...
