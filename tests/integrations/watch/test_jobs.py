"""Columns of jobs against counting job by job."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.integrations.watch.jobs import STATES, JobTable, flows
from grid.model.job import JobState
from grid.model.job_results import RESULT_COLUMNS, JobResults
from grid.model.time import SECOND_US

VOS = 3
NAMES = [f"vo{number}" for number in range(VOS)]


def some_jobs(seed: int, count: int) -> JobTable:
    """Random jobs, a fifth of which never started. Times are whole seconds."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {name: np.zeros(count, kind) for name, kind in RESULT_COLUMNS.items()}
    ran = rng.random(count) < 0.8
    host = np.where(ran, rng.integers(0, VOS, count), -1)
    submit = rng.integers(0, 50, count) * SECOND_US
    start = submit + rng.integers(0, 5, count) * SECOND_US
    end = start + rng.integers(1, 20, count) * SECOND_US
    final = np.where(ran, rng.choice([JobState.COMPLETED, JobState.FAILED], count), 0)
    columns |= {
        "number": np.arange(count), "vo": rng.integers(0, VOS, count), "submit_us": submit,
        "assigned_us": np.where(ran, submit, -1), "start_us": np.where(ran, start, -1),
        "end_us": np.where(ran, end, -1), "executed_vo": host, "cluster": host,
        "utility": rng.random(count), "state": np.where(ran, final, JobState.REJECTED),
    }  # fmt: skip
    return JobTable(JobResults.of(columns), VOS)


def state_of(table: JobTable, row: int, time_us: float) -> str | None:
    jobs = table.jobs
    final = JobState(jobs.outcome.state[row]).name.lower()
    if time_us < jobs.submit_us[row]:
        return None
    if jobs.outcome.start_us[row] < 0:
        return final
    if time_us < jobs.outcome.start_us[row]:
        return "waiting"
    return "running" if time_us < jobs.outcome.end_us[row] else final


@pytest.mark.parametrize("seed", range(3))
def test_states_and_flows_equal_a_count_job_by_job(seed: int) -> None:
    table = some_jobs(seed, 60)
    jobs, host = table.jobs, table.jobs.placement.executed_vo
    for time_s in (-1.0, 0.0, 7.0, 7.5, 30.0, 100.0):
        time = round(time_s * SECOND_US)
        expected = np.zeros((len(STATES), VOS), int)
        moved: dict[tuple[int, int], int] = {}
        for row in range(60):
            state = state_of(table, row, time)
            if state is not None:
                expected[STATES.index(state), jobs.vo[row]] += 1
            pair = int(jobs.vo[row]), int(host[row])
            if pair[1] >= 0 and pair[0] != pair[1] and jobs.placement.assigned_us[row] <= time:
                moved[pair] = moved.get(pair, 0) + 1
        assert table.states(time).tolist() == expected.tolist()
        found = flows(table, time, 300 * SECOND_US)
        assert {(one, other): count for one, other, count, _ in found.tolist()} == moved
        at = jobs.placement.assigned_us[(host >= 0) & (host != jobs.vo)]
        assert found[:, 3].sum() == ((at > time - 15 * SECOND_US) & (at <= time)).sum()


def test_sums_are_over_the_jobs_that_start_in_an_interval() -> None:
    table, edges = some_jobs(1, 60), np.linspace(0, 60, 7) * SECOND_US
    jobs, start = table.jobs, table.jobs.outcome.start_us
    count, wait, utility = table.sums_at_start(1, edges)
    for place in range(6):
        rows = table.ran & (jobs.vo == 1) & (start >= edges[place]) & (start < edges[place + 1])
        assert count[place] == rows.sum()
        assert np.isclose(wait[place], (start - jobs.submit_us)[rows].sum() / SECOND_US)
        assert np.isclose(utility[place], jobs.placement.utility[rows].sum())
