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
from grid.results.spool import ResultSpool
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


def test_the_files_of_a_spooled_run_are_those_of_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_of(tmp_path, 30)
    monkeypatch.setattr(RecordStore, "JOBS_IN_MEMORY", 100)
    spooled = run_of(tmp_path, 30)
    assert whole.results.number.flags.writeable
    assert not spooled.results.number.flags.writeable
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
