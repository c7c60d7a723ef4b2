"""Questions in SQL to Perfetto's trace processor, against metrics.json and the table of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from grid.config.load import load_scenario
from grid.integrations.export.packets import BEGIN, encoded, packets
from grid.integrations.export.perfetto import write_perfetto
from grid.runtime.run import execute, save
from tests.integrations.export.runs import metrics, run_folder
from tests.integrations.export.test_traces import exported, longest_queues
from tests.integrations.export.trace_processor import TraceProcessor, trace_processor

SCENARIOS = Path(__file__).parents[3] / "scenarios"

JOBS_BY_VO = """
select category, count(*) as jobs from slice join track on track.id = track_id
where track.name != 'forwarded' group by category
"""
FORWARDED_BY_VO = """
select process.name, count(*) as jobs from slice join process_track on process_track.id = track_id
join process using (upid) where process_track.name = 'forwarded' group by upid
"""
RAN_ELSEWHERE = """
select source.category, process.name, count(*) as jobs
from flow join slice source on source.id = slice_out join slice target on target.id = slice_in
join process_track on process_track.id = target.track_id join process using (upid) group by 1, 2
"""
MEAN_WAIT_S = """
select category, avg(int_value) / 1e6 as wait from slice join args using (arg_set_id)
where key = 'debug.wait_us' group by category
"""
LONGEST_QUEUE = """
select process.name as vo, process_counter_track.name, max(value) as longest from counter
join process_counter_track on process_counter_track.id = track_id join process using (upid)
where process_counter_track.name like '%: queued jobs' group by 1, 2
"""
LAST_END_S = "select max(ts + dur) / 1e9 as last from slice where dur > 0"
COMPLAINTS = """
select name, sum(value) as times from stats
where severity in ('error', 'data_loss') and value > 0 group by name
"""
OF_A_KERNEL = b"\x0a\x0f\x08" + 9 * b"\xff" + b"\x01\x58\x01\x5a\x00"
"""A packet that says to come from the tracing of a kernel, and has nothing of it."""
WITHOUT_END = "select count(*) as slices from slice where dur < 0"


@pytest.fixture(scope="module", params=[3, 5, "partial-utility", "gang-migration"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if isinstance(request.param, int):
        return run_folder(request.param)
    file = SCENARIOS / f"{request.param}.yaml"
    run = tmp_path_factory.mktemp("run") / "run"
    save(execute(load_scenario(file), str(file), in_process=True, events=True), run)
    return run


@pytest.fixture(scope="module")
def asked(folder: Path) -> Iterator[TraceProcessor]:
    with trace_processor(exported(write_perfetto, folder)) as processor:
        yield processor


def pairs(asked: TraceProcessor, question: str) -> dict[Any, Any]:
    return dict(asked.query(question))


def test_the_trace_is_taken_without_complaint(asked: TraceProcessor) -> None:
    assert asked.query(COMPLAINTS) == []
    assert asked.query(WITHOUT_END) == [(0,)]


def test_jobs_by_vo(folder: Path, asked: TraceProcessor) -> None:
    found, told = pairs(asked, JOBS_BY_VO), metrics(folder)["vos"]
    assert found == {vo: one["jobs_submitted"] for vo, one in told.items() if one["jobs_submitted"]}


def test_flows(folder: Path, asked: TraceProcessor) -> None:
    told = metrics(folder)["vos"]
    expected = {vo: one["jobs_forwarded"] for vo, one in told.items() if one["jobs_forwarded"]}
    assert pairs(asked, FORWARDED_BY_VO) == expected
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    ran = [(job["vo"], job["executed_vo"]) for job in jobs if job["hops"] and job["starting_time"]]
    found = {(source, host): count for source, host, count in asked.query(RAN_ELSEWHERE)}
    assert found == {pair: ran.count(pair) for pair in ran}


def test_waits_and_the_makespan(folder: Path, asked: TraceProcessor) -> None:
    means, told = pairs(asked, MEAN_WAIT_S), metrics(folder)["vos"]
    expected = {
        vo: one["wait_mean"] for vo, one in told.items() if one.get("wait_mean") is not None
    }
    assert expected == pytest.approx({vo: means[vo] for vo in expected}, abs=1e-6)
    ((last,),) = asked.query(LAST_END_S)
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    first = min(job["submission_time"] for job in jobs)
    assert last - first == pytest.approx(metrics(folder)["grid"]["makespan"], abs=1e-6)


def test_the_longest_queue(folder: Path, asked: TraceProcessor) -> None:
    found = {
        (vo, name.removesuffix(": queued jobs")): longest
        for vo, name, longest in asked.query(LONGEST_QUEUE)
    }
    expected = longest_queues(folder)
    assert {place: found[place] for place in expected} == expected


def test_a_trace_that_contradicts_itself_is_noticed() -> None:
    """By what the tests above look at: slices without an end, complaints, and a refusal."""
    whole = exported(write_perfetto, run_folder(3))
    begins = encoded(packets(BEGIN, np.array([5]), np.array([1]), job=[1]))
    with trace_processor(whole + bytes(begins)) as processor:
        assert processor.query(WITHOUT_END) == [(1,)]
    with trace_processor(whole + OF_A_KERNEL) as processor:
        assert processor.query(COMPLAINTS) != []
    with (
        pytest.raises(ValueError, match="corrupt"),
        trace_processor(whole + b"\x0a\x03\x5a\x0b\xff"),
    ):
        pass
    with trace_processor(whole) as processor, pytest.raises(ValueError, match="no such column"):
        processor.query("select colour from slice")
