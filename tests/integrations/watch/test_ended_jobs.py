"""Jobs that come in chunks are the same jobs as all at once, and few of them are sorted again."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from grid.integrations.watch import ended_jobs
from grid.integrations.watch.ended_jobs import EndedJobs, job_times
from grid.integrations.watch.happenings import last_happenings, rows_of_last
from grid.integrations.watch.job_times import JobTimes, flows
from grid.model.arrays import Ints
from grid.model.job import JobState
from grid.model.job_results import RESULT_COLUMNS, JobResults, in_order

VOS = 3


def some_results(seed: int, count: int) -> JobResults:
    """Jobs at random, in no order."""
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


def chunks_of(results: JobResults, seed: int) -> list[JobResults]:
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(results), 40)).tolist()
    edges = [0, *cuts, len(results)]
    return [results.take(slice(one, end)) for one, end in pairwise(edges)]


def last_rows(time_s: float, jobs: JobTimes) -> Ints:
    return rows_of_last(jobs, jobs.vo >= 0, time_s)


def told(jobs: JobTimes, time_s: float) -> list[tuple[float, str]]:
    names = [f"vo{number}" for number in range(VOS)]
    found = last_happenings(jobs, jobs.vo >= 0, time_s, names, names)
    return [(one.time_s, one.words) for one in found]


@pytest.mark.parametrize("seed", range(3))
def test_parts_answer_as_the_whole(seed: int) -> None:
    results = some_results(seed, 500)
    whole = job_times(in_order([results]), VOS)
    jobs = EndedJobs(VOS)
    for chunk in chunks_of(results, seed):
        jobs.take([chunk])
        jobs.parts()
    parts = jobs.parts()
    assert jobs.jobs == 500 == sum(len(part.number) for part in parts)
    edges = np.linspace(0, 1e-4, 5)
    for time_s in (0.0, 2e-5, 1.0):
        assert sum(part.states(time_s) for part in parts).tolist() == whole.states(time_s).tolist()
        expected = flows([whole], time_s, 1e-4).tolist()
        assert flows(parts, time_s, 1e-4).tolist() == expected
        few = jobs.some(partial(last_rows, time_s))
        assert told(job_times(few, VOS), time_s) == told(whole, time_s)
    sums = sum(part.sums_at_start(1, edges) for part in parts)
    assert np.allclose(sums, whole.sums_at_start(1, edges))


def test_what_was_not_kept_is_forgotten() -> None:
    one, other = some_results(1, 30), some_results(2, 20)
    jobs = EndedJobs(VOS)
    jobs.take([one])
    jobs.keep()
    for _ in range(2):
        jobs.take([other])
        assert jobs.jobs == 50 == sum(len(part.number) for part in jobs.parts())
        jobs.go_back()
        assert jobs.jobs == 30
        assert sum(len(part.number) for part in jobs.parts()) == 30


def test_a_job_is_sorted_again_only_as_often_as_their_number_doubles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sorted_jobs = []
    real = ended_jobs.in_order

    def counting(chunks: list[JobResults]) -> JobResults:
        sorted_jobs.append(sum(map(len, chunks)))
        return real(chunks)

    monkeypatch.setattr(ended_jobs, "in_order", counting)
    results, jobs = some_results(1, 2000), EndedJobs(VOS)
    for first in range(0, 2000, 4):
        jobs.take([results.take(slice(first, first + 4))])
        assert len(jobs.parts()) <= 10
    assert sum(sorted_jobs) <= 2000 * 12
