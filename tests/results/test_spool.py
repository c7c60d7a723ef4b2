"""A table of jobs on disk is the table in memory, in every figure and file; and stays small."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.config.load import load_scenario
from grid.model.job_results import JobResults
from grid.results.checkers import check, digest
from grid.results.metrics import metrics
from grid.results.run_folder import write_run
from grid.results.series import series
from grid.results.spool import ResultSpool, StoredResults
from grid.runtime.outcome import RecordStore
from grid.runtime.run import Run, execute
from tests.results.results_tables import TWO_VOS, tables

LOG = "\n".join(
    f"{number} {number * 60} -1 {1 + number * 37 % 90} {1 + number % 3} -1 -1 {1 + number % 3} 100 "
    f"-1 1 {number % 5} 1 -1 1 1 -1 -1"
    for number in range(1, 41)
)
SCENARIO = """\
vos:
  - name: site
    clusters: [{name: pool, cpus: 4, policy: easy}]
    workload: {trace: log.swf, entry_point: cluster, repeat: %d}
"""


def stored(results: JobResults, pieces: int) -> JobResults:
    """The same table, spooled in so many pieces, last rows first."""
    spool = ResultSpool()
    for rows in reversed(np.array_split(np.arange(len(results)), pieces)):
        spool.add([results.take(rows)])
    return spool.in_order()


def run_of(folder: Path, times: int) -> Run:
    """Of the log so many times on one pool."""
    (folder / "log.swf").write_text(LOG)
    (folder / "long.yaml").write_text(SCENARIO % times)
    return execute(load_scenario(folder / "long.yaml"), "long.yaml", in_process=True)


@given(tables(), st.integers(1, 5))
def test_a_table_on_disk_is_the_one_in_memory(results: JobResults, pieces: int) -> None:
    again = stored(results, pieces)
    assert len(again) == len(results)
    assert digest(again) == digest(results)
    assert metrics(again, TWO_VOS) == metrics(results, TWO_VOS)
    assert check(again, TWO_VOS) == check(results, TWO_VOS)
    found, expected = series(again, TWO_VOS), series(results, TWO_VOS)
    for name in found.__slots__:
        assert np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True)


@given(tables(), st.data())
def test_rows_are_taken_of_it_as_of_one_in_memory(results: JobResults, data: st.DataObject) -> None:
    again = stored(results, 2)
    rows = data.draw(st.slices(len(results)).filter(lambda one: one.step in (None, 1)))
    chosen = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(results), max_size=len(results))), np.bool_
    )
    order = np.array(data.draw(st.permutations(range(len(results)))), np.int64)
    for picked in (rows, chosen, order):
        part, expected = again.take(picked), results.take(picked)
        assert digest(part) == digest(expected)
        assert digest(part.take(slice(1, 3))) == digest(expected.take(slice(1, 3)))
    assert digest(again.take(order)) == digest(results.take(order))


def test_the_files_of_a_spooled_run_are_those_of_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_of(tmp_path, 30)
    monkeypatch.setattr(RecordStore, "JOBS_IN_MEMORY", 100)
    spooled = run_of(tmp_path, 30)
    assert not isinstance(whole.results, StoredResults)
    assert isinstance(spooled.results, StoredResults)
    assert whole.metrics == spooled.metrics
    assert whole.manifest["digest"] == spooled.manifest["digest"]
    for name, run in (("whole", whole), ("spooled", spooled)):
        write_run(tmp_path / name, run.results, run.directory, run.metrics, "", {}, run.name)
    for file in ("jobs.csv", "jobs.parquet", "series.parquet", "metrics.json"):
        assert (tmp_path / "whole" / file).read_bytes() == (
            tmp_path / "spooled" / file
        ).read_bytes()


@pytest.mark.thorough
def test_memory_per_job_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its results no column stays: at the peak, there is room for a few of them."""
    monkeypatch.setattr(RecordStore, "JOBS_IN_MEMORY", 10_000)
    peaks = []
    for times in (10_000, 20_000):
        tracemalloc.start()
        run = run_of(tmp_path, times)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(run.results) == 40 * times
    a_job = (peaks[1] - peaks[0]) / (40 * 10_000)
    assert a_job < 130, f"{a_job:.0f} bytes a job"
