"""Maintenance that policies know ahead: no job is started that would run into it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.job import Job, JobState
from grid.model.platform import Cluster, Machine, Reservation
from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import ClusterView, Plan
from grid.policies.registry import make_policy
from tests.cluster.clusters import Asking, general_cluster

S = SECOND_US
POLICIES = (
    "fcfs", "sjf", "edf", "easy", "easy_sjbf", "conservative", "selective", "flexible",
    "multifactor", "python",
)  # fmt: skip
MACHINES = (Machine("a", 4, 2000.0), Machine("b", 2), Machine("c", 4, 500.0))


def first_fit(view: ClusterView) -> Plan:
    plan = Plan()
    for slot in view.queue.tolist():
        machine = view.fastest(slot)
        if machine >= 0:
            view.take(slot, machine)
            plan.start.append((slot, machine))
    return plan


def outcomes(platform: Cluster, policy: str, jobs: list[Job]) -> list[Any]:
    made = Asking(first_fit) if policy == "python" else make_policy(policy, {})
    cluster = general_cluster(platform, made)
    for one in jobs:
        cluster.advance(one.submit_us)
        assert list(cluster.broken_limits()) == []
        cluster.submit(one, -1, one.submit_us)
    cluster.advance(NEVER)
    return [one.outcome for one in sorted(cluster.take_ended())]


def job(number: int, cpus: int, estimate_s: int, submit_s: int = 0, run_s: int = 0) -> Job:
    return Job(
        number=number, vo="v", user=1, processors=cpus, submit_us=submit_s * S,
        estimate_us=estimate_s * S, run_us=(run_s or estimate_s) * S,
    )  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_no_job_runs_on_reserved_machines(policy: str, data: st.DataObject) -> None:
    """By its estimate, so that none is interrupted; and all run in the end."""
    begins = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=3, unique=True))
    windows = tuple(
        Reservation(begin, begin + data.draw(st.integers(1, 15)), names, cpus)
        for begin in begins
        for names in [tuple(data.draw(st.sampled_from((("a",), ("b", "c"), ()))))]
        for cpus in [data.draw(st.sampled_from((None, 1, 2)))]
    )
    platform = Cluster("c", MACHINES, reservations=windows)
    jobs, now = [], 0
    for number in range(data.draw(st.integers(1, 20))):
        now += data.draw(st.sampled_from((0, 0, 3)))
        estimate_s = data.draw(st.integers(1, 12))
        run_s = data.draw(st.integers(1, estimate_s))
        jobs.append(job(number, data.draw(st.integers(1, 4)), estimate_s, now, run_s))
    ran = outcomes(platform, policy, jobs)
    for outcome in ran:
        assert (outcome.state, outcome.preemptions) == (JobState.COMPLETED, 0)
    for window in platform.windows():
        for at in {window.start_us, *(one.start_us for one in ran)}:
            held = [
                job.processors
                for job, one in zip(jobs, ran, strict=True)
                if one.machine == window.machine and one.start_us <= at < one.end_us
            ]
            if window.start_us <= at < window.end_us:
                assert sum(held) + window.cpus <= MACHINES[window.machine].cpus


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        # 1 would run into the maintenance from 10 s to 20 s, and delays the others.
        ("fcfs", [0, 20, 26, 26]),
        # 2 fits before the maintenance, 3 does not.
        ("easy", [0, 20, 0, 26]),
        ("conservative", [0, 20, 0, 26]),
    ],
)
def test_the_gap_before_maintenance_is_backfilled(policy: str, starts: list[int]) -> None:
    platform = Cluster("c", (Machine("m", 4),), reservations=(Reservation(10, 20),))
    jobs = [job(0, 2, 8), job(1, 4, 6), job(2, 2, 10), job(3, 2, 12)]
    assert [one.start_us // S for one in outcomes(platform, policy, jobs)] == starts


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        # 1 needs the two CPUs that are reserved from 10 s to 20 s, and delays the others.
        ("fcfs", [0, 20, 26, 26]),
        # 3 runs next to the reserved CPUs once 0 has ended, but not beyond 20 s.
        ("easy", [0, 20, 0, 26]),
        ("conservative", [0, 20, 0, 26]),
    ],
)
def test_narrow_jobs_fit_next_to_reserved_cpus(policy: str, starts: list[int]) -> None:
    reserved = (Reservation(10, 20, cpus=2),)
    platform = Cluster("c", (Machine("m", 4),), reservations=reserved)
    jobs = [job(0, 2, 8), job(1, 4, 6), job(2, 2, 20), job(3, 2, 13)]
    assert [one.start_us // S for one in outcomes(platform, policy, jobs)] == starts


def test_a_job_that_outlives_its_estimate_is_interrupted_as_by_an_outage() -> None:
    platform = Cluster(
        "c", (Machine("m", 4),), reservations=(Reservation(10, 20),), overrun="extend"
    )
    (outcome,) = outcomes(platform, "easy", [job(0, 1, 9, run_s=15)])
    assert (outcome.end_us // S, outcome.preemptions, outcome.lost_us // S) == (35, 1, 10)
