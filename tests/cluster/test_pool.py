"""Pools: their loop computes the schedules of slow policies on one machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import make_cluster
from grid.model.job import Job, JobState
from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import ClusterView, Plan
from grid.policies.queue import KernelPolicy, easy
from tests.cluster import slow_farm as slow
from tests.cluster.clusters import (
    compiled,
    general,
    general_cluster,
    job,
    nasa,
    outcomes,
    play,
    pool,
    table,
)
from tests.examples import examples

SLOW: dict[str, Any] = {
    "fcfs": slow.SlowFcfs,
    "sjf": slow.SlowSjf,
    "edf": slow.SlowEdf,
    "easy": slow.SlowEasy,
    "easy_sjbf": lambda: slow.SlowEasy(shortest=True),
    "flexible": slow.SlowFlexible,
    "flexible, kept": slow.SlowKept,
}
SETTINGS = {"flexible, kept": {"reservation": "kept"}}
CPUS = 8


def pool_of(name: str, cpus: int = CPUS, mips: float = 1000.0) -> Any:
    return compiled(pool(cpus, mips), name.partition(",")[0], **SETTINGS.get(name, {}))


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    """Few sizes and few times, so that jobs meet: ties are where schedulers differ."""
    jobs, now, unit = [], 0, draw(st.sampled_from((1, SECOND_US)))
    for number in range(draw(st.integers(1, 30))):
        now += unit * draw(st.sampled_from((0, 0, 1, 2, 5)))
        estimate = unit * draw(st.integers(1, 12))
        run = estimate if draw(st.booleans()) else unit * draw(st.integers(1, 14))
        deadline = draw(st.sampled_from((NEVER, now + 5 * unit, now + 20 * unit)))
        processors = draw(st.integers(1, CPUS + 1))
        jobs.append(job(number, now, processors, estimate, run, deadline_us=deadline))
    return jobs


@pytest.mark.parametrize("name", SLOW)
@given(jobs=job_lists())
@settings(max_examples=examples(150), deadline=None)
def test_schedules_are_those_of_the_slow_policy(name: str, jobs: list[Job]) -> None:
    fast, plain = pool_of(name), general_cluster(pool(CPUS), SLOW[name]())
    assert play(fast, jobs) == play(plain, jobs)
    assert fast.figures() == plain.figures()


@pytest.mark.parametrize("name", ("fcfs", "easy_sjbf", "flexible, kept"))
@given(jobs=job_lists(), data=st.data())
@settings(max_examples=20, deadline=None)
def test_windows_and_routes_do_not_matter(name: str, jobs: list[Job], data: st.DataObject) -> None:
    """Direct jobs in two tables, and routed ones between short windows: the same schedule."""
    expected = play(pool_of(name), jobs)
    routed = set(data.draw(st.lists(st.sampled_from(range(len(jobs))), unique=True)))
    # Direct jobs arrive before routed jobs of the same instant; so each instant is of one kind.
    times = {jobs[number].submit_us for number in routed}
    direct = [one for one in jobs if one.submit_us not in times]
    half = len(direct) // 2
    while 0 < half < len(direct) and direct[half - 1].submit_us == direct[half].submit_us:
        half += 1
    cluster = pool_of(name)
    cluster.submit_rows(table(direct[:half]))
    cluster.submit_rows(table(direct[half:]))
    ended = []
    for one in jobs:
        if one.submit_us in times:
            cluster.advance(one.submit_us)
            assert cluster.next_instant() >= one.submit_us
            cluster.submit(one, -1, one.submit_us)
            ended += cluster.take_ended()
    cluster.advance(NEVER)
    ended += cluster.take_ended()
    assert ended == sorted(ended, key=lambda one: one.outcome.end_us)
    found = {key[1]: outcome[:4] for key, outcome in ended}
    rows = zip(direct, outcomes(cluster, len(direct)), strict=True)
    found |= {one.number: outcome for one, outcome in rows}
    assert [found[number] for number in range(len(jobs))] == expected


@pytest.mark.parametrize("kind", (compiled, general))
def test_direct_jobs_arrive_before_routed_ones_of_their_instant(kind: Any) -> None:
    cluster = kind(pool(4), "fcfs")
    cluster.submit(job(1, 10, 4, 5, 5), -1, 10)
    cluster.submit_rows(table([job(2, 10, 4, 5, 5), job(3, 12, 4, 5, 5)]))
    cluster.advance(NEVER)
    assert outcomes(cluster, 2) == [(0, 3, 10, 15), (0, 3, 20, 25)]
    assert [one.outcome.start_us for one in cluster.take_ended()] == [15]


@pytest.mark.parametrize("kind", (compiled, general))
def test_equation_14_of_cs2_run_times_by_speed(kind: Any) -> None:
    """Durations shrink by reference over machine, to the nearest microsecond."""
    jobs = [
        job(1, 0, 1, 100, 90, reference_mips=500.0),
        job(2, 0, 1, 7, 7, reference_mips=1000.0),
        job(3, 0, 1, 1, 1, reference_mips=1.0),
    ]
    assert [end for *_, end in play(kind(pool(3, 1500.0), "easy"), jobs)] == [30, 5, 1]


def test_arrays_grow_with_what_is_present() -> None:
    """More jobs at once than there are slots at first, and more ends than fit in one answer."""
    jobs = [job(number, 0, 1, 5 + number % 3, 5) for number in range(3000)]
    for cpus in (1, 700, 5000):
        assert play(pool_of("easy", cpus), jobs) == play(general(pool(cpus), "easy"), jobs)


@pytest.mark.parametrize("name", [*SLOW, "conservative", "selective"])
def test_a_real_log_on_a_pool_and_on_a_machine(name: str) -> None:
    """NASA iPSC/860 with its time halved, on a faster machine than its own."""
    jobs = nasa()
    if jobs is None:
        pytest.skip("the log is not there")
    jobs = jobs.take(slice(0, 3000))
    jobs = replace(jobs, submit_us=jobs.submit_us // 2)
    settings = SETTINGS.get(name, {})
    found = []
    for kind in (compiled, general):
        cluster = kind(pool(128, 1100.0), name.partition(",")[0], **settings)
        cluster.submit_rows(jobs)
        cluster.advance(NEVER)
        found.append(outcomes(cluster, len(jobs)))
    assert found[0] == found[1]


class Lazy(KernelPolicy):
    """Starts nothing at odd times."""

    def plan(self, view: ClusterView, now: int) -> Plan:
        return super().plan(view, now) if now % 2 == 0 else Plan(wake_us=now + 1)


def test_a_policy_that_is_derived_from_a_compiled_one_makes_its_own_plans() -> None:
    cluster = make_cluster(pool(4), Lazy(easy().compiled_form))  # type: ignore[arg-type]
    assert play(cluster, [job(0, 3, 1, 5, 5)]) == [(0, JobState.COMPLETED, 4, 9)]


@pytest.mark.parametrize("kind", (compiled, general))
def test_loads_count_what_runs_and_what_waits(kind: Any) -> None:
    cluster = kind(pool(8), "fcfs")
    assert cluster.load() == 0
    for number in range(3):
        cluster.submit(job(number, 0, 4, 10, 10), -1, 0)
    for until, load in ((0, 12 / 8), (1, 12 / 8), (11, 4 / 8)):
        cluster.advance(until)
        assert cluster.load() == load
    assert cluster.next_instant() == 20
    cluster.advance(NEVER)
    assert cluster.load() == 0 and cluster.next_instant() == NEVER
