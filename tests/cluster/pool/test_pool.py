"""One pool of processors: its loop, that of machines and the slow one agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import make_cluster
from grid.model.job import Job, JobState
from grid.model.time import NEVER
from grid.policies.interface import ClusterView, Plan
from grid.policies.queue import KernelPolicy, easy
from grid.policies.registry import make_policy
from tests.cluster.clusters import compiled, general, job, nasa, outcomes, play, pool, table
from tests.cluster.pool.slow_pool import SlowJob, simulate
from tests.examples import examples

POLICIES = ("fcfs", "sjf", "edf", "easy", "easy_sjbf")
CPUS = 8


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    """Few sizes and few times, so that jobs meet: ties are where schedulers differ."""
    jobs = []
    now = 0
    for number in range(draw(st.integers(1, 30))):
        now += draw(st.sampled_from((0, 0, 1, 2, 5)))
        estimate = draw(st.integers(1, 12))
        run = estimate if draw(st.booleans()) else draw(st.integers(1, 14))
        deadline = draw(st.sampled_from((NEVER, now + 5, now + 20)))
        processors = draw(st.integers(1, CPUS + 1))
        jobs.append(job(number, now, processors, estimate, run, deadline_us=deadline))
    return jobs


def slow(jobs: list[Job], cpus: int, policy: str) -> list[tuple[int, int, int, int]]:
    slow_jobs = [
        SlowJob(one.submit_us, one.processors, one.estimate_us, one.run_us, one.deadline_us)
        for one in jobs
    ]
    simulate(slow_jobs, cpus, policy)
    return [
        (-1, JobState.REJECTED, -1, slow.submit)
        if slow.start < 0
        else (0, JobState.FAILED if slow.killed else JobState.COMPLETED, slow.start, slow.end)
        for slow in slow_jobs
    ]


@pytest.mark.parametrize("policy", POLICIES)
@given(jobs=job_lists())
@settings(max_examples=examples(150), deadline=None)
def test_three_clusters_one_schedule(policy: str, jobs: list[Job]) -> None:
    expected = slow(jobs, CPUS, policy)
    fast, plain = compiled(pool(CPUS), policy), general(pool(CPUS), policy)
    assert play(fast, jobs) == expected
    assert play(plain, jobs) == expected
    assert fast.figures() == plain.figures()


@pytest.mark.parametrize("policy", POLICIES)
@given(jobs=job_lists(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_pieces_and_routes_do_not_matter(policy: str, jobs: list[Job], data: st.DataObject) -> None:
    """Jobs that are fed in parts, or submitted one by one between short windows: same schedule."""
    expected = play(compiled(pool(CPUS), policy), jobs)
    submitted = set(data.draw(st.lists(st.sampled_from(range(len(jobs))), unique=True)))
    for cluster in (compiled(pool(CPUS), policy), general(pool(CPUS), policy)):
        # Fed rows arrive before submitted jobs of the same instant; so each instant is of one kind.
        times = {jobs[number].submit_us for number in submitted}
        fed = [one for one in jobs if one.submit_us not in times]
        sent = [one for one in jobs if one.submit_us in times]
        half = next((i for i, one in enumerate(fed) if i >= len(fed) // 2), 0)
        while half and half < len(fed) and fed[half - 1].submit_us == fed[half].submit_us:
            half += 1
        cluster.submit_rows(table(fed[:half]))
        cluster.submit_rows(table(fed[half:]))
        ended = []
        for one in sent:
            cluster.advance(one.submit_us)
            assert cluster.next_instant() >= one.submit_us
            cluster.submit(one, -1, one.submit_us)
            ended += cluster.take_ended()
        cluster.advance(NEVER)
        ended += cluster.take_ended()
        assert ended == sorted(ended, key=lambda one: one.outcome.end_us)
        by_number = {key[1]: outcome[:4] for key, outcome in ended}
        fed_outcomes = outcomes(cluster, len(fed))
        by_number |= {one.number: outcome for one, outcome in zip(fed, fed_outcomes, strict=True)}
        assert [by_number[number] for number in range(len(jobs))] == expected


@pytest.mark.parametrize("kind", (compiled, general))
def test_fed_rows_come_before_submitted_jobs_of_their_instant(kind: type) -> None:
    cluster = kind(pool(4), "fcfs")
    cluster.submit(job(1, 10, 4, 5, 5), -1, 10)
    cluster.submit_rows(table([job(2, 10, 4, 5, 5), job(3, 12, 4, 5, 5)]))
    cluster.advance(NEVER)
    assert outcomes(cluster, 2) == [(0, 3, 10, 15), (0, 3, 20, 25)]
    assert [one.outcome.start_us for one in cluster.take_ended()] == [15]


@pytest.mark.parametrize("policy", POLICIES)
def test_faster_pool(policy: str) -> None:
    """CS2 Eq. 14: durations shrink by reference over machine, to the nearest microsecond."""
    jobs = [
        job(1, 0, 1, 100, 90, reference_mips=500.0),
        job(2, 0, 1, 7, 7, reference_mips=1000.0),
        job(3, 0, 1, 1, 1, reference_mips=1.0),
    ]
    for kind in (compiled, general):
        played = play(kind(pool(3, 1500.0), policy), jobs)
        assert [end for _, _, _, end in played] == [30, 5, 1]


def test_too_wide_jobs_are_rejected_when_they_arrive() -> None:
    for kind in (compiled, general):
        jobs = [job(1, 0, 4, 10, 10), job(2, 3, 5, 10, 10), job(3, 4, 4, 10, 10)]
        played = play(kind(pool(4), "fcfs"), jobs)
        assert played[1] == (-1, JobState.REJECTED, -1, 3)
        assert played[2] == (0, JobState.COMPLETED, 10, 20)


def test_arrays_grow_with_what_is_present() -> None:
    """More jobs at once than there are slots at first, and more ends than fit in one answer."""
    jobs = [job(number, 0, 1, 5 + number % 3, 5) for number in range(3000)]
    for cpus in (1, 700, 5000):
        expected = play(general(pool(cpus), "easy"), jobs)
        assert play(compiled(pool(cpus), "easy"), jobs) == expected


@pytest.mark.parametrize("policy", POLICIES)
def test_a_real_log(policy: str) -> None:
    """NASA iPSC/860 at its own load and with its time halved; estimates are the run times."""
    jobs = nasa()
    if jobs is None:
        pytest.skip("the log is not there")
    jobs = jobs.take(slice(0, 4000))
    jobs = replace(jobs, submit_us=jobs.submit_us // 2)
    expected = None
    for kind in (compiled, general):
        cluster = kind(pool(128), policy)
        cluster.submit_rows(jobs)
        cluster.advance(NEVER)
        played = outcomes(cluster, len(jobs))
        assert expected is None or played == expected
        expected = played
    slow_jobs = [SlowJob(*row) for row in zip(*_columns(jobs), strict=True)]
    simulate(slow_jobs, 128, policy)
    assert expected == [(0, JobState.COMPLETED, one.start, one.end) for one in slow_jobs]


def _columns(jobs: object) -> list[list[int]]:
    names = ("submit_us", "processors", "estimate_us", "run_us", "deadline_us")
    return [getattr(jobs, name).tolist() for name in names]


class Lazy(KernelPolicy):
    """Starts nothing at odd times."""

    def plan(self, view: ClusterView, now: int) -> Plan:
        return super().plan(view, now) if now % 2 == 0 else Plan(wake_us=now + 1)


def test_a_policy_that_is_derived_from_a_compiled_one_makes_its_own_plans() -> None:
    cluster = make_cluster(pool(4), Lazy(easy().compiled_form))
    assert play(cluster, [job(0, 3, 1, 5, 5)]) == [(0, JobState.COMPLETED, 4, 9)]


@given(jobs=job_lists())
@settings(max_examples=60, deadline=None)
def test_easy_never_delays_its_head(jobs: list[Job]) -> None:
    """With right estimates the first blocked job starts no later than promised when it blocked."""
    right = [job(o.number, o.submit_us, o.processors, o.estimate_us, o.estimate_us) for o in jobs]
    promised: dict[int, int] = {}
    policy = make_policy("easy", {})

    class Watched:
        def plan(self, view, now):  # type: ignore[no-untyped-def]
            plan = policy.plan(view, now)
            for slot, _, start in plan.reserve:
                promised.setdefault(int(view.jobs.serial[slot]), start)
            return plan

    from tests.cluster.clusters import general_cluster

    played = play(general_cluster(pool(CPUS), Watched()), right)
    for serial, start in promised.items():
        assert played[serial][2] <= start


def test_loads_count_what_runs_and_what_waits() -> None:
    for kind in (compiled, general):
        cluster = kind(pool(8), "fcfs")
        assert cluster.load() == 0
        for number in range(3):
            cluster.submit(job(number, 0, 4, 10, 10), -1, 0)
        assert cluster.load() == 12 / 8
        cluster.advance(1)
        assert cluster.load() == 12 / 8
        cluster.advance(11)
        assert cluster.load() == 4 / 8
        assert cluster.next_instant() == 20
        cluster.advance(NEVER)
        assert cluster.load() == 0 and cluster.next_instant() == NEVER
        assert np.isclose(cluster.load(), 0)
