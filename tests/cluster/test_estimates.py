"""The estimates that policies see, and jobs that exceed them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import make_cluster
from grid.model.job import Job, JobState
from grid.model.platform import Cluster, Machine, MachineOutage
from grid.model.time import NEVER, Time
from grid.policies.features import JobFeatures
from grid.policies.interface import ClusterView, Plan
from grid.policies.registry import make_policy
from tests.cluster.clusters import general_cluster, job, play
from tests.examples import examples


class Told:
    """FCFS that records the estimate of each job, by serial number."""

    def __init__(self) -> None:
        self.policy: Any = make_policy("fcfs", {})
        self.estimates: dict[int, Time] = {}
        self.expected: dict[int, set[Time]] = {}

    def plan(self, view: ClusterView, now: Time) -> Plan:
        for slot in view.queue.tolist():
            self.estimates[int(view.jobs.serial[slot])] = int(view.jobs.estimate_us[slot])
        for slot in view.running.tolist():
            ends = self.expected.setdefault(int(view.jobs.serial[slot]), set())
            ends.add(int(view.jobs.expected_end_us[slot]))
        return self.policy.plan(view, now)  # type: ignore[no-any-return]


def cluster_with(cpus: int = 8, **more: object) -> Cluster:
    return Cluster("cluster", (Machine("pool", cpus),), **more)  # type: ignore[arg-type]


def estimates_of(jobs: list[Job], **more: object) -> list[Time]:
    policy = Told()
    play(general_cluster(cluster_with(**more), policy), jobs)
    return [policy.estimates[number] for number in range(len(jobs))]


def of_user(user: int, number: int, submit: int, estimate: int, run: int) -> Job:
    return Job(
        number=number,
        vo="vo",
        user=user,
        submit_us=submit,
        processors=1,
        estimate_us=estimate,
        run_us=run,
    )


def test_average_by_hand() -> None:
    """User 1's jobs take 10, 20 and 60, each until the next comes but the third, which still runs
    when the fourth does; user 2 has had one job; nobody knows who -1 is."""
    jobs = [
        of_user(1, 0, 0, 100, 10),
        of_user(1, 1, 10, 100, 20),
        of_user(2, 2, 20, 100, 5),
        of_user(1, 3, 30, 100, 60),
        of_user(1, 4, 40, 100, 7),
        of_user(1, 5, 41, 12, 7),
        of_user(2, 6, 50, 100, 5),
        of_user(-1, 7, 60, 50, 5),
        of_user(-1, 8, 70, 50, 5),
        of_user(-1, 9, 80, 50, 5),
        of_user(1, 10, 200, 100, 5),
    ]
    # The last two of user 1 that had ended by 200 ended at 48 and at 90: 7 and 60.
    assert estimates_of(jobs, estimates="average") == [
        100, 100, 100, 15, 15, 12, 100, 50, 50, 50, 34,
    ]  # fmt: skip


def test_jobs_are_killed_by_the_estimate_of_the_user_not_by_the_prediction() -> None:
    """Predicted 10. The third job takes 35: expected at 110, 120, 140. It could be killed at 130:
    so that is what is expected in the end. The fourth passes what its user said."""
    first = [of_user(1, 0, 0, 100, 10), of_user(1, 1, 0, 100, 10)]
    policy = Told()
    cluster = general_cluster(cluster_with(estimates="average"), policy)
    jobs = [*first, of_user(1, 2, 100, 38, 35), of_user(1, 3, 200, 30, 35)]
    states = [(state, end) for _, state, _, end in play(cluster, jobs)]
    completed, failed = int(JobState.COMPLETED), int(JobState.FAILED)
    assert states == [(completed, 10), (completed, 10), (completed, 135), (failed, 230)]
    # The view of an instant has the running jobs as they are after its estimates were extended.
    assert policy.expected[2] == {120, 138}


def history_and(third: Job) -> list[Job]:
    """User 1's jobs take 10, so that the third, which comes at 100, is predicted to."""
    return [of_user(1, 0, 0, 100, 10), of_user(1, 1, 0, 100, 10), third]


def test_what_a_stopped_job_has_done_counts_towards_its_limit() -> None:
    """It runs from 100 to 115 and, after an outage, from 120 on: it could be killed at 145. It is
    expected at 110, 120; then at 125, 130, 140, 145."""
    policy = Told()
    outages = [MachineOutage(0, 115, 120)]
    cluster = make_cluster(cluster_with(estimates="average"), policy, outages=outages)
    jobs = history_and(replace(of_user(1, 2, 100, 40, 38), checkpointable=True))
    assert play(cluster, jobs)[2][2:] == (100, 143)
    assert policy.expected[2] == {120, 130, 140, 145}


@given(
    st.lists(
        st.tuples(st.integers(-1, 2), st.integers(0, 9), st.integers(1, 20), st.integers(1, 25)),
        max_size=25,
    )
)
@settings(max_examples=examples(60), deadline=None)
def test_average_as_a_slow_version(rows: list[tuple[int, int, int, int]]) -> None:
    """Estimates follow from the earlier ends, and no job runs beyond its user's limit."""
    jobs, now = [], 0
    for number, (user, gap, estimate, run) in enumerate(rows):
        now += gap
        jobs.append(of_user(user, number, now, estimate, run))
    policy = Told()
    played = play(general_cluster(cluster_with(2, estimates="average"), policy), jobs)
    for one, (_, _, start, end) in zip(jobs, played, strict=True):
        assert end - start == min(one.run_us, one.estimate_us)
        before = [
            (played[other.number][3], other.number)
            for other in jobs
            if other.user == one.user >= 0
            and played[other.number][3] <= one.submit_us
            and other.number != one.number
        ]
        last = [played[number][3] - played[number][2] for _, number in sorted(before)[-2:]]
        expected = one.estimate_us
        if len(last) == 2:
            expected = min(expected, max(1, round(sum(last) / 2)))
        assert policy.estimates[one.number] == expected


@pytest.mark.parametrize("kind", (general_cluster, make_cluster))
@pytest.mark.parametrize(
    "more", ({"estimates": "exact"}, {"estimate_factor": 3.0}, {"estimate_factor": 0.5})
)
def test_exact_and_factor_are_as_if_users_had_said_so(kind: Any, more: dict[str, Any]) -> None:
    jobs = [
        job(n, 3 * n, 1 + n * 5 % 7, 10 + n * 7 % 30, 1 + n * 11 % (10 + n * 7 % 30))
        for n in range(40)
    ]
    factor = more.get("estimate_factor", 0)
    said = [replace(o, estimate_us=round(o.estimate_us * factor) or o.run_us) for o in jobs]
    expected = play(kind(cluster_with(), make_policy("easy", {})), said)
    assert play(kind(cluster_with(), make_policy("easy", {})), jobs) != expected
    assert play(kind(cluster_with(**more), make_policy("easy", {})), jobs) == expected


def test_users_of_two_vos_with_one_number_are_two() -> None:
    """Both users 1 come to one cluster: of each is known how long its own jobs ran."""
    policy = Told()
    cluster = general_cluster(cluster_with(cpus=1, estimates="average"), policy)
    runs = {"a": 10, "b": 40}
    for number, (vo, submit) in enumerate([("a", 0), ("b", 50), ("a", 100), ("b", 150)] * 2):
        late = submit + 200 * (number // 4)
        one = replace(of_user(1, number, late, 90, runs[vo]), vo=vo)
        cluster.advance(late)
        cluster.submit(one, -1, late)
    cluster.advance(NEVER)
    assert [policy.estimates[number] for number in range(8)] == [90] * 4 + [10, 40] * 2


def test_a_prediction_is_planned_with_and_the_estimate_is_the_limit() -> None:
    """Predicted 5 of 20: one that runs 8 goes on, one that runs 50 is killed at 20."""
    policy = Told()
    features = JobFeatures(predictions=True)
    cluster = make_cluster(cluster_with(2), policy, jobs=features)
    jobs = [job(0, 0, 1, 20, 8, predicted_us=5), job(1, 0, 1, 20, 50, predicted_us=5)]
    played = play(cluster, [*jobs, job(2, 30, 1, 20, 8)])
    assert played == [
        (0, JobState.COMPLETED, 0, 8), (0, JobState.FAILED, 0, 20), (0, JobState.COMPLETED, 30, 38),
    ]  # fmt: skip
    assert policy.estimates == {0: 5, 1: 5, 2: 20}
    assert policy.expected[0] == {10}
