"""Plans on machines: the limits that they may not break, and preempted jobs."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import ClusterState, PlanError
from grid.cluster.arrivals import Ended
from grid.model.job import Job, JobOutcome, JobState
from grid.model.platform import Cluster, License, Machine
from grid.model.time import NEVER
from grid.policies.interface import ClusterView, Plan
from tests.cluster.clusters import Asking, Timed, general, general_cluster, job, play, pool


def submit_all(cluster: ClusterState, jobs: list[Job]) -> list[Ended]:
    for one in jobs:
        cluster.advance(one.submit_us)
        cluster.submit(one, -1, one.submit_us)
    cluster.advance(NEVER)
    return sorted(cluster.take_ended(), key=lambda one: one.key[1])


TWO = Cluster("two", (Machine("slow", 2, 1000.0), Machine("fast", 2, 2000.0)))


def test_what_a_policy_sees_of_a_preempted_job() -> None:
    seen: list[tuple[int, ...]] = []

    def script(view: ClusterView) -> Plan:
        now = view.now
        jobs, slot = view.jobs, 0
        done, expected = int(jobs.done_us[slot]), int(jobs.expected_end_us[slot])
        seen.append((now, len(view.queue), len(view.running), done, expected, view.free[1]))
        if now == 0:
            return Plan(start=[(slot, 1)], wake_us=20)
        if now == 20:
            return Plan(preempt=[slot], wake_us=60)
        return Plan(start=[(slot, 1)])

    cluster = general_cluster(TWO, Asking(script))
    cluster.submit(job(0, 0, 2, 100, 100), -1, 0)
    cluster.advance(61)
    # 20 us on the fast machine are 40 of the estimate; 30 us are left there.
    assert seen == [(0, 1, 0, 0, NEVER, 2), (20, 0, 1, 0, 50, 0), (60, 1, 0, 40, NEVER, 2)]
    assert cluster.next_instant() == 90


def test_preempted_job_keeps_its_place_in_the_queue() -> None:
    orders: list[list[int]] = []

    def script(view: ClusterView) -> Plan:
        now = view.now
        orders.append(view.jobs.serial[view.queue].tolist())
        if now == 5:
            return Plan(start=[(1, 0)], wake_us=7)
        if now == 7:
            return Plan(preempt=[1], wake_us=8)
        return Plan()

    cluster = general_cluster(pool(4), Asking(script))
    for number in range(4):
        cluster.submit(job(number, 5, 1, 10, 10), -1, 5)
    cluster.advance(9)
    assert orders == [[0, 1, 2, 3], [0, 2, 3], [0, 1, 2, 3]]


def test_overrunning_jobs_are_killed_or_expected_to_take_twice_as_long() -> None:
    """Estimate 10, run 35: killed at 10; or expected at 10, 20, 40."""
    [(_, state, start, end)] = play(general(pool(1), "fcfs"), [job(0, 0, 1, 10, 35)])
    assert (state, start, end) == (JobState.FAILED, 0, 10)
    expected: list[tuple[int, list[int]]] = []

    def script(view: ClusterView) -> Plan:
        now = view.now
        expected.append((now, view.jobs.expected_end_us[view.running].tolist()))
        return Plan(start=[(0, 0)] if now == 0 else [])

    extending = Cluster("c", (Machine("m", 1),), overrun="extend")
    [outcome] = play(general_cluster(extending, Asking(script)), [job(0, 0, 1, 10, 35)])
    assert outcome == (0, JobState.COMPLETED, 0, 35)
    assert expected == [(0, []), (10, [20]), (20, [40]), (35, [])]


LICENSED = Cluster(
    "licensed",
    (Machine("a", 4, licenses=("x", "y")), Machine("b", 4, licenses=("x", "y")), Machine("c", 4)),
    licenses=(License("x", 1), License("y", 0)),
)


def test_jobs_that_can_run_nowhere_are_rejected_when_they_come() -> None:
    jobs = [
        job(0, 0, 5, 10, 10),
        job(1, 0, 1, 10, 10, licenses=2),
        job(2, 0, 1, 10, 10, licenses=1),
    ]
    played = play(general(LICENSED, "fcfs"), jobs)
    assert [state for _, state, _, _ in played] == [
        JobState.REJECTED,
        JobState.REJECTED,
        JobState.COMPLETED,
    ]
    cluster = general(LICENSED, "fcfs")
    cluster.submit(job(0, 0, 1, 10, 10, licenses=1), 2, 0)
    cluster.advance(1)
    assert [one.outcome.state for one in cluster.take_ended()] == [JobState.REJECTED]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"start": [(0, 0), (1, 0)]}, "3 CPUs on machine 0, which has 1 free"),
        ({"start": [(0, 3)]}, "on machine 3"),
        ({"start": [(0, -1)]}, "on machine -1"),
        ({"start": [(0, 0), (0, 1)]}, "twice"),
        ({"reject": [0], "start": [(0, 0)]}, "twice"),
        ({"preempt": [0]}, "preempts a job that is not running"),
        ({"start": [(2, 2)]}, "without its licenses"),
        ({"start": [(2, 0), (3, 1)]}, "without its licenses"),
    ],
)
def test_plans_that_break_a_limit_are_errors(plan: dict[str, Any], said: str) -> None:
    cluster = general_cluster(LICENSED, Timed({0: Plan(**plan)}))
    for number in range(2):
        cluster.submit(job(number, 0, 3, 10, 10), -1, 0)
    for number in range(2, 4):
        cluster.submit(job(number, 0, 1, 10, 10, licenses=1), -1, 0)
    with pytest.raises(PlanError, match=f"policy Timed .*{said}"):
        cluster.advance(1)


def test_other_plans_that_break_a_limit() -> None:
    cluster = general_cluster(TWO, Timed({0: Plan(start=[(0, 1)])}))
    cluster.submit(job(0, 0, 1, 10, 10), 0, 0)
    with pytest.raises(PlanError, match="machine 0 on machine 1"):
        cluster.advance(1)
    cluster = general_cluster(TWO, Timed({0: Plan(start=[(0, 1)]), 3: Plan(start=[(0, 0)])}))
    cluster.submit(job(0, 0, 1, 10, 10), -1, 0)
    with pytest.raises(PlanError, match="is not waiting"):
        cluster.advance(4)
    cluster = general_cluster(TWO, Asking(lambda view: Plan(wake_us=view.now)))
    cluster.submit(job(0, 0, 1, 10, 10), -1, 0)
    with pytest.raises(PlanError, match="requests a wake-up at 0"):
        cluster.advance(1)


def test_rejected_by_the_plan() -> None:
    """A job that has run before has failed; one that has not is rejected."""
    plans = {0: Plan(start=[(0, 0)]), 4: Plan(preempt=[0], reject=[0, 1])}
    cluster = general_cluster(TWO, Timed(plans))
    ended = submit_all(cluster, [job(0, 0, 1, 10, 10), job(1, 0, 1, 10, 10)])
    assert ended == [
        Ended(("vo", 0), JobOutcome(0, JobState.FAILED, 0, 4, 1, 0, 0, 4)),
        Ended(("vo", 1), JobOutcome(-1, JobState.REJECTED, -1, 4, 0, 0, 0, 0)),
    ]
    assert cluster.load() == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(1, 20)), max_size=20))
@settings(max_examples=30, deadline=None)
def test_a_copy_of_a_cluster_goes_on_as_it_does(rows: list[tuple[int, int, int]]) -> None:
    jobs = [
        job(number, submit, processors, run, run)
        for number, (submit, processors, run) in enumerate(sorted(rows))
    ]
    cluster = general(Cluster("two", TWO.machines), "easy")
    for one in jobs:
        cluster.submit(one, -1, one.submit_us)
    cluster.advance(12)
    copies = deepcopy(cluster), pickle.loads(pickle.dumps(cluster))
    cluster.advance(NEVER)
    ended = cluster.take_ended()
    for copy in copies:
        copy.advance(NEVER)
        assert copy.take_ended() == ended
