"""The series of a run against the area under the jobs themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grid
from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.results.machines import ran
from grid.results.series import series
from tests.results.results_tables import TWO_VOS, job, table, tables


def test_a_step_within_an_interval_is_weighted_by_its_time() -> None:
    rows = [
        job(1, 0, 2, 9, processors=3, assigned=1),
        job(2, 0, 4, 10, assigned=0),
        job(3, 5, state=JobState.REJECTED),
    ]
    found = series(table(rows), TWO_VOS, points=2)
    assert found.time_s.tolist() == [0, 5, 0, 5]
    assert found.cluster.tolist() == [0, 0, 1, 1]
    assert found.busy_cpus.tolist() == [(3 * 3 + 1) / 5, (4 * 3 + 5) / 5, 0, 0]
    assert found.utilization.tolist() == [2 / 4, 3.4 / 4, 0, 0]
    assert found.queued.tolist() == [(1 + 4) / 5, 0, 0, 0]


def test_a_run_without_jobs_has_no_rows() -> None:
    assert len(series(table([]), TWO_VOS).time_s) == 0
    assert len(series(table([job(1, 0, state=JobState.REJECTED)]), TWO_VOS).time_s) == 0
    assert len(series(table([job(1, 5, 5, 5)]), TWO_VOS).time_s) == 0


@given(tables(), st.integers(1, 50))
def test_the_means_hold_the_same_area_as_the_jobs(results: JobResults, points: int) -> None:
    found = series(results, TWO_VOS, points)
    rows = ran(results)
    if not rows.any() or results.outcome.end_us[rows].max() == results.submit_us.min():
        return
    bins = len(found.time_s) // 2
    assert bins <= points
    edges = np.append(found.time_s[:bins] * 1e6, results.outcome.end_us[rows].max())
    for cluster in (0, 1):
        mine = np.flatnonzero(rows & (results.placement.cluster == cluster))
        for index in range(bins):
            low, high = edges[index], edges[index + 1]
            spans = [
                (results.outcome.start_us, results.outcome.end_us),
                (results.placement.assigned_us, results.outcome.start_us),
            ]
            held, waited = (
                [max(0, min(end[row], high) - max(begin[row], low)) for row in mine]
                for begin, end in spans
            )
            busy = sum(results.processors[row] * t for row, t in zip(mine, held, strict=True))
            at = cluster * bins + index
            assert found.busy_cpus[at] * (high - low) == pytest.approx(busy, rel=1e-9, abs=1)
            assert found.queued[at] * (high - low) == pytest.approx(sum(waited), rel=1e-9, abs=1)


FARM = """
vos:
  - name: a
    clusters:
      - policy: {name: edf, settings: {preemptive: PREEMPTIVE}}
        machines: {generator: convergent, count: 6, settings: {licenses: 3}}
    workload:
      generator: convergent
      entry_point: cluster
      settings: {jobs: 80, mean_interarrival_s: 20}
"""


@pytest.mark.parametrize("preemptive", [False, True])
def test_histories_differ_from_the_table_only_for_preempted_jobs(
    tmp_path: Path, preemptive: bool
) -> None:
    """The history of a cluster against the table of its jobs, which errs for preempted ones."""
    (tmp_path / "farm.yaml").write_text(FARM.replace("PREEMPTIVE", str(preemptive).lower()))
    run = grid.run(tmp_path / "farm.yaml")
    recorded = series(run.results, run.directory, 50, run.histories)
    inferred = series(run.results, run.directory, 50)
    are_equal = recorded.busy_cpus == pytest.approx(inferred.busy_cpus, abs=1e-6)
    assert are_equal is (run.metrics["grid"]["preemptions"] == 0)
    assert are_equal is not preemptive
    assert recorded.utilization.max() <= 1
    assert 0 < recorded.license_use.max() <= 1
    # The area under the course is the time that jobs held CPUs.
    widths = np.diff(np.append(recorded.time_s, run.results.outcome.end_us.max() / 1e6))
    held = float((run.results.outcome.held_us * run.results.processors).sum()) / 1e6
    assert (recorded.busy_cpus * widths).sum() == pytest.approx(held, rel=1e-9)
