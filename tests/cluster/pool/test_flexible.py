"""Flexible backfilling on a pool: its loop, that of machines and the slow one agree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.job import Job, JobState
from grid.model.time import NEVER
from tests.cluster.clusters import compiled, general, job, nasa, outcomes, play, pool
from tests.cluster.pool.slow_pool import Flexible, SlowJob, simulate
from tests.examples import examples

CPUS = 8
SECOND = 1_000_000


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    """Some press for their deadlines, some age, some are short; a few are too wide."""
    jobs, now = [], 0
    for number in range(draw(st.integers(1, 30))):
        now += draw(st.sampled_from((0, 0, SECOND, 3 * SECOND, 20 * SECOND)))
        estimate = draw(st.integers(1, 40)) * SECOND
        run = draw(st.sampled_from((estimate, estimate // 2, estimate + SECOND)))
        late = draw(st.sampled_from((1, 2, 4)))
        deadline = draw(st.sampled_from((NEVER, now + late * estimate)))
        processors = draw(st.integers(1, CPUS + 1))
        jobs.append(job(number, now, processors, estimate, run, deadline_us=deadline))
    return jobs


FACTORS = st.fixed_dictionaries(
    {
        "age_factor": st.sampled_from((0.0, 0.01, 0.5)),
        "k": st.sampled_from((0.5, 2.0)),
        "maximum": st.sampled_from((1.0, 20.0)),
        "minimum": st.just(0.1),
        "boost_value": st.sampled_from((0.0, 2.0, 30.0)),
    }
)


@pytest.mark.parametrize("reservation", ("remade", "kept"))
@given(jobs=job_lists(), factors=FACTORS)
@settings(max_examples=examples(200), deadline=None)
def test_three_clusters_one_schedule(
    reservation: str, jobs: list[Job], factors: dict[str, float]
) -> None:
    slow = [
        SlowJob(one.submit_us, one.processors, one.estimate_us, one.run_us, one.deadline_us)
        for one in jobs
    ]
    kept: list[SlowJob] | None = [] if reservation == "kept" else None
    simulate(slow, CPUS, Flexible(**factors, kept=kept))
    expected = [
        (-1, JobState.REJECTED, -1, one.submit)
        if one.start < 0
        else (0, JobState.FAILED if one.killed else JobState.COMPLETED, one.start, one.end)
        for one in slow
    ]
    said = {"reservation": reservation, **factors}
    fast, plain = compiled(pool(CPUS), "flexible", **said), general(pool(CPUS), "flexible", **said)
    assert play(plain, jobs) == expected
    assert play(fast, jobs) == expected
    assert fast.figures() == plain.figures()


@pytest.mark.parametrize("reservation", ("remade", "kept"))
def test_a_real_log(reservation: str) -> None:
    """NASA iPSC/860 with its time halved, on a faster machine than its own."""
    jobs = nasa()
    if jobs is None:
        pytest.skip("the log is not there")
    jobs = jobs.take(slice(0, 3000))
    jobs = replace(jobs, submit_us=jobs.submit_us // 2)
    played = []
    for kind in (compiled, general):
        cluster = kind(pool(128, 1100.0), "flexible", reservation=reservation)
        cluster.submit_rows(jobs)
        cluster.advance(NEVER)
        played.append(outcomes(cluster, len(jobs)))
    assert played[0] == played[1]
