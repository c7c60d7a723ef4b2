"""Questions in SQL to exported traces of Perfetto, against metrics.json and the table of jobs."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from grid.export.packets import BEGIN, END, encoded, packets
from grid.export.perfetto import write_perfetto
from grid.runtime.run import execute, save
from grid.scenario.load import load_scenario
from tests.export.runs import metrics, run_folder
from tests.export.sql import tables_of
from tests.export.test_traces import exported, longest_queues

SCENARIOS = Path(__file__).parents[2] / "scenarios"

JOBS_BY_VO = """
select category, count(*) from slice
where track_id not in (select id from track where name = 'forwarded') group by category
"""
FORWARDED_BY_VO = """
select process.name, count(*) from slice join process_track on process_track.id = track_id
join process using (upid) where process_track.name = 'forwarded' group by upid
"""
RAN_ELSEWHERE = """
select source.category, process.name, count(*)
from flow join slice source on source.id = slice_out join slice target on target.id = slice_in
join process_track on process_track.id = target.track_id join process using (upid) group by 1, 2
"""
MEAN_WAIT_S = """
select avg(int_value) / 1e6 from slice join args using (arg_set_id)
where key = 'debug.wait_us' and category = ?
"""
LONGEST_QUEUE = """
select process.name, counter_track.name, max(value) from counter
join counter_track on counter_track.id = track_id
join process on process.name = (select name from process where upid = (
  select upid from process_track where process_track.parent_id = counter_track.parent_id limit 1))
where counter_track.name like '%: queued jobs' group by 1, 2
"""
LAST_END_S = "select max(ts + dur) / 1e9, min(ts) / 1e9 from slice where dur > 0"


@pytest.fixture(scope="module", params=[3, 5, "partial-utility", "gang-migration"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if isinstance(request.param, int):
        return run_folder(request.param)
    file = SCENARIOS / f"{request.param}.yaml"
    run = tmp_path_factory.mktemp("run") / "run"
    save(execute(load_scenario(file), str(file), in_process=True, events=True), run)
    return run


@pytest.fixture(scope="module")
def asked(folder: Path) -> sqlite3.Connection:
    return tables_of(exported(write_perfetto, folder))


def pairs(asked: sqlite3.Connection, question: str) -> dict[Any, Any]:
    return dict(asked.execute(question).fetchall())


def test_jobs_by_vo(folder: Path, asked: sqlite3.Connection) -> None:
    found, told = pairs(asked, JOBS_BY_VO), metrics(folder)["vos"]
    assert found == {vo: one["jobs_submitted"] for vo, one in told.items() if one["jobs_submitted"]}


def test_flows(folder: Path, asked: sqlite3.Connection) -> None:
    told = metrics(folder)["vos"]
    expected = {vo: one["jobs_forwarded"] for vo, one in told.items() if one["jobs_forwarded"]}
    assert pairs(asked, FORWARDED_BY_VO) == expected
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    ran = [(job["vo"], job["executed_vo"]) for job in jobs if job["hops"] and job["starting_time"]]
    found = {(source, host): count for source, host, count in asked.execute(RAN_ELSEWHERE)}
    assert found == {pair: ran.count(pair) for pair in ran}


def test_waits_and_the_makespan(folder: Path, asked: sqlite3.Connection) -> None:
    for vo, told in metrics(folder)["vos"].items():
        (mean,) = asked.execute(MEAN_WAIT_S, (vo,)).fetchone()
        if told.get("wait_mean") is not None:
            assert mean == pytest.approx(told["wait_mean"], abs=1e-6)
    last, _ = asked.execute(LAST_END_S).fetchone()
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    first = min(job["submission_time"] for job in jobs)
    assert last - first == pytest.approx(metrics(folder)["grid"]["makespan"], abs=1e-6)


def test_the_longest_queue(folder: Path, asked: sqlite3.Connection) -> None:
    found = {
        (vo, name.removesuffix(": queued jobs")): longest
        for vo, name, longest in asked.execute(LONGEST_QUEUE)
    }
    expected = longest_queues(folder)
    assert {place: found[place] for place in expected} == expected


def test_a_trace_that_contradicts_itself_is_refused() -> None:
    whole = exported(write_perfetto, run_folder(3))
    times, track = np.array([5]), np.array([1])
    for part in (
        encoded(packets(END, times, track)),
        encoded(packets(BEGIN, times, track, job=[1])),
        encoded(packets(BEGIN, times, track + 10**6, job=[1])),
        encoded(packets(BEGIN, times, track, job=[1], flow=[10**9])),
    ):
        with pytest.raises(ValueError, match=r"track|flow"):
            tables_of(whole + bytes(part))
