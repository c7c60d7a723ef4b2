"""How the grid was at any time, against counting job by job."""

from __future__ import annotations

import numpy as np
import pytest

from grid.integrations.watch.job_times import COMPLETED, FAILED, REJECTED, STATES, JobTimes, flows

VOS = 3


def some_jobs(seed: int, count: int) -> JobTimes:
    """Jobs at random, a fifth of which never started."""
    rng = np.random.default_rng(seed)
    submitted = rng.integers(0, 50, count).astype(float)
    ran = rng.random(count) < 0.8
    started = np.where(ran, submitted + rng.integers(0, 5, count), np.nan)
    final = np.where(ran, rng.choice([COMPLETED, FAILED], count), REJECTED)
    host = np.where(ran, rng.integers(0, VOS, count), -1)
    return JobTimes(
        vos=VOS,
        number=np.arange(count),
        vo=rng.integers(0, VOS, count),
        host=host,
        cluster=host,
        processors=np.ones(count, np.int64),
        hops=np.zeros(count, np.int64),
        submitted=submitted,
        assigned=np.where(ran, submitted, np.nan),
        started=started,
        ended=started + rng.integers(1, 20, count),
        estimate=np.ones(count),
        utility=rng.random(count),
        final=final,
    )


def state_of(jobs: JobTimes, row: int, time: float) -> str | None:
    if time < jobs.submitted[row]:
        return None
    if np.isnan(jobs.started[row]):
        return STATES[jobs.final[row]]
    if time < jobs.started[row]:
        return "waiting"
    return "running" if time < jobs.ended[row] else STATES[jobs.final[row]]


@pytest.mark.parametrize("seed", range(5))
def test_states_and_flows_are_those_counted_one_by_one(seed: int) -> None:
    jobs = some_jobs(seed, 60)
    for time in (-1.0, 0.0, 7.0, 7.5, 30.0, 100.0):
        expected = np.zeros((len(STATES), VOS), int)
        moved: dict[tuple[int, int], int] = {}
        for row in range(60):
            state = state_of(jobs, row, time)
            if state is not None:
                expected[STATES.index(state), jobs.vo[row]] += 1
            pair = int(jobs.vo[row]), int(jobs.host[row])
            if pair[1] >= 0 and pair[0] != pair[1] and jobs.assigned[row] <= time:
                moved[pair] = moved.get(pair, 0) + 1
        assert jobs.states(time).tolist() == expected.tolist()
        found = flows([jobs], time, 300.0)
        assert {(one, other): count for one, other, count, _ in found.tolist()} == moved
        at = jobs.assigned[(jobs.host >= 0) & (jobs.host != jobs.vo)]
        assert found[:, 3].sum() == ((at > time - 6.0) & (at <= time)).sum()


def test_sums_are_over_the_jobs_that_start_in_an_interval() -> None:
    jobs = some_jobs(1, 60)
    edges = np.linspace(0, 60, 7)
    count, wait, utility = jobs.sums_at_start(1, edges)
    for place in range(6):
        rows = (jobs.vo == 1) & (jobs.started >= edges[place]) & (jobs.started < edges[place + 1])
        assert count[place] == rows.sum()
        assert np.isclose(wait[place], (jobs.started - jobs.submitted)[rows].sum())
        assert np.isclose(utility[place], jobs.utility[rows].sum())


def test_no_jobs_are_no_trouble() -> None:
    none = some_jobs(1, 0)
    assert none.span == (0.0, 0.0)
    assert none.states(1.0).sum() == 0 and len(flows([none], 1.0, 1.0)) == 0
