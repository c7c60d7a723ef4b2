"""Columns of jobs against counting job by job; tables that grow against one table."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from grid.integrations.watch.jobs import (
    COMPLETED,
    FAILED,
    REJECTED,
    STATES,
    EndedJobs,
    JobTable,
    flows,
    last_events,
)
from grid.model.job import JobState
from grid.model.job_results import RESULT_COLUMNS, JobResults, in_order

VOS = 3
NAMES = [f"vo{number}" for number in range(VOS)]


def some_jobs(seed: int, count: int) -> JobTable:
    """Random jobs, a fifth of which never started."""
    rng = np.random.default_rng(seed)
    submitted = rng.integers(0, 50, count).astype(float)
    ran = rng.random(count) < 0.8
    started = np.where(ran, submitted + rng.integers(0, 5, count), np.nan)
    host = np.where(ran, rng.integers(0, VOS, count), -1)
    return JobTable(
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
        final=np.where(ran, rng.choice([COMPLETED, FAILED], count), REJECTED),
    )


def state_of(jobs: JobTable, row: int, time: float) -> str | None:
    if time < jobs.submitted[row]:
        return None
    if np.isnan(jobs.started[row]):
        return STATES[jobs.final[row]]
    if time < jobs.started[row]:
        return "waiting"
    return "running" if time < jobs.ended[row] else STATES[jobs.final[row]]


@pytest.mark.parametrize("seed", range(3))
def test_states_and_flows_equal_a_count_job_by_job(seed: int) -> None:
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
    jobs, edges = some_jobs(1, 60), np.linspace(0, 60, 7)
    count, wait, utility = jobs.sums_at_start(1, edges)
    for place in range(6):
        rows = (jobs.vo == 1) & (jobs.started >= edges[place]) & (jobs.started < edges[place + 1])
        assert count[place] == rows.sum()
        assert np.isclose(wait[place], (jobs.started - jobs.submitted)[rows].sum())
        assert np.isclose(utility[place], jobs.utility[rows].sum())


def test_an_empty_table_has_no_states_and_no_flows() -> None:
    none = some_jobs(1, 0)
    assert none.span == (0.0, 0.0)
    assert none.states(1.0).sum() == 0 and len(flows([none], 1.0, 1.0)) == 0


def some_results(seed: int, count: int) -> JobResults:
    """Random jobs in no order."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        name: rng.integers(0, 50, count).astype(kind) for name, kind in RESULT_COLUMNS.items()
    }
    columns["number"] = rng.permutation(count)
    columns["vo"] = rng.integers(0, VOS, count)
    columns["executed_vo"] = columns["cluster"] = rng.integers(-1, VOS, count)
    columns["state"] = rng.choice([JobState.COMPLETED, JobState.FAILED], count)
    columns["start_us"] = columns["submit_us"] + columns["start_us"]
    columns["end_us"] = columns["start_us"] + 1
    return JobResults.of(columns)


def test_growing_tables_answer_like_one_table() -> None:
    results = some_results(2, 500)
    whole, jobs = JobTable.of_results(in_order([results]), VOS), EndedJobs(VOS)
    cuts = np.sort(np.random.default_rng(1).integers(0, 500, 40)).tolist()
    for first, last in pairwise([0, *cuts, 500]):
        jobs.take([results.take(slice(first, last))])
        sizes = [len(table.number) for table in jobs.tables()]
        assert all(one >= 2 * other for one, other in pairwise(sizes))
    tables = jobs.tables()
    assert jobs.jobs == 500 == sum(len(table.number) for table in tables)
    edges = np.linspace(0, 1e-4, 5)
    for time_s in (0.0, 2e-5, 1.0):
        states = sum(table.states(time_s) for table in tables)
        assert states.tolist() == whole.states(time_s).tolist()
        assert np.array_equal(flows(tables, time_s, 1e-4), flows([whole], time_s, 1e-4))
        found, expected = (
            last_events(some, lambda table: table.vo >= 0, time_s, NAMES, NAMES)
            for some in (tables, [whole])
        )
        assert found == expected
    sums = sum(table.sums_at_start(1, edges) for table in tables)
    assert np.allclose(sums, whole.sums_at_start(1, edges))


def test_jobs_since_the_last_checkpoint_are_removed() -> None:
    one, other = some_results(1, 30), some_results(2, 20)
    jobs = EndedJobs(VOS)
    jobs.take([one])
    jobs.keep()
    for _ in range(2):
        jobs.take([other])
        assert jobs.jobs == 50 == sum(len(table.number) for table in jobs.tables())
        jobs.go_back()
        assert jobs.jobs == 30 == sum(len(table.number) for table in jobs.tables())
