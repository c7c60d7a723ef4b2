"""A real cluster, as its batch system reports it."""

from __future__ import annotations

from grid.cluster.external import ExternalCluster
from grid.model.job import Job, JobKey, JobState
from grid.model.messages import BatchStatus
from grid.model.platform import Cluster, Slurm
from grid.model.time import Time

CANCELLED, COMPLETED, FAILED = JobState.CANCELLED, JobState.COMPLETED, JobState.FAILED


def cluster_with(*arrivals: Time) -> ExternalCluster:
    """A cluster of 8 CPUs with jobs 0, 1, … of 2 CPUs that arrive then."""
    platform = Cluster(cpus=8, watts_busy=5.0, backend="slurm", slurm=Slurm("/slurm.conf"))
    cluster = ExternalCluster(platform.expanded())
    for number, arrival in enumerate(arrivals):
        job = Job(number=number, vo="a", submit_us=0, processors=2, estimate_us=9, run_us=9)
        cluster.submit(job, -1, arrival)
    return cluster


def status(number: int, state: JobState, start_us: Time, end_us: Time = -1) -> BatchStatus:
    key: JobKey = ("a", number)
    return BatchStatus(key, int(state), start_us, end_us)


def test_jobs_hold_cpus_until_they_are_reported_as_ended_once() -> None:
    cluster = cluster_with(100, 100, 100)
    cluster.observe(status(0, JobState.RUNNING, 150), 200)
    assert cluster.occupancy() == (2, 1, 2)
    assert cluster.load() == 6 / 8
    for _ in range(2):
        cluster.observe(status(0, COMPLETED, 150, 190), 200)
    (ended,) = cluster.take_ended()
    assert ended.key == ("a", 0)
    assert ended.outcome[:4] == (0, COMPLETED, 150, 190)
    assert ended.outcome.held_us == 40
    assert ended.outcome.watts_busy == 5.0
    assert cluster.take_ended() == []
    assert cluster.routed_jobs() == [("a", 1), ("a", 2)]


def test_rounded_times_are_between_arrival_and_present() -> None:
    cluster = cluster_with(120, 120, 120)
    cluster.observe(status(0, COMPLETED, 100, 110), 200)
    cluster.observe(status(1, COMPLETED, 150, 250), 200)
    first, second = (one.outcome for one in cluster.take_ended())
    assert (first.start_us, first.end_us) == (120, 120)
    assert (second.start_us, second.end_us) == (150, 200)


def test_a_job_that_was_cancelled_while_it_ran_has_failed() -> None:
    cluster = cluster_with(0, 0, 0)
    cluster.observe(status(0, CANCELLED, -1, 50), 60)
    cluster.observe(status(1, CANCELLED, 10, 50), 60)
    cluster.observe(status(2, FAILED, -1, 50), 60)
    outcomes = [one.outcome for one in cluster.take_ended()]
    assert [one.state for one in outcomes] == [CANCELLED, FAILED, JobState.REJECTED]
    assert [one.start_us for one in outcomes] == [-1, 10, -1]


def test_a_superseded_copy_is_cancelled_while_it_runs() -> None:
    cluster = cluster_with(0)
    assert cluster.cancel_job(("a", 0), True, 30)
    assert not cluster.cancel_job(("a", 1), True, 30)
    assert cluster.jobs["a", 0].cancel_us == 30
    cluster.observe(status(0, CANCELLED, 10, 50), 60)
    (ended,) = cluster.take_ended()
    assert (ended.outcome.state, ended.outcome.start_us) == (CANCELLED, 10)
