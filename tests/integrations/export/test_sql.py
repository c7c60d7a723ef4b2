"""SQL queries to Perfetto's trace processor, against metrics.json and the table of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import grid
from grid.integrations.export.perfetto import BEGIN, SEQUENCE, write_perfetto
from tests.integrations.export.runs import metrics, run_folder
from tests.integrations.export.test_traces import exported, longest_queues
from tests.integrations.export.trace_processor import trace_processor
from tests.lab.report import chromium

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
"""A packet of the kernel's tracing without content."""
WITHOUT_END = "select count(*) as slices from slice where dur < 0"


GANGS: dict[str, Any] = {
    "vos": [
        {
            "name": "a",
            "clusters": [{"machines": [{"count": 4, "cpus": 1}], "policy": "afcfs"}],
            "workload": {
                "jobs": [{"submit_s": n, "run_s": 5 + n, "cpus": 1 + n % 4} for n in range(20)]
            },
        }
    ]
}


@pytest.mark.parametrize("name", [3, "gangs"])
def test_queries_agree_with_the_tables(
    browser: chromium.Browser, name: int | str, tmp_path: Path
) -> None:
    if isinstance(name, int):
        folder = run_folder(name)
    else:
        folder = tmp_path / "run"
        grid.run(GANGS, out=folder, events=True)
    vos = metrics(folder)["vos"]
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    with trace_processor(browser, exported(write_perfetto, folder)) as processor:
        query = processor.query
        assert query(COMPLAINTS) == []
        assert query(WITHOUT_END) == [(0,)]
        for sql, metric in ((JOBS_BY_VO, "jobs_submitted"), (FORWARDED_BY_VO, "jobs_forwarded")):
            assert pairs(query(sql)) == {vo: one[metric] for vo, one in vos.items() if one[metric]}
        moved = [
            (job["vo"], job["executed_vo"]) for job in jobs if job["hops"] and job["starting_time"]
        ]
        found = {(source, host): count for source, host, count in query(RAN_ELSEWHERE)}
        assert found == {pair: moved.count(pair) for pair in moved}
        means = pairs(query(MEAN_WAIT_S))
        waits = {
            vo: one["wait_mean"] for vo, one in vos.items() if one.get("wait_mean") is not None
        }
        assert waits == pytest.approx({vo: means[vo] for vo in waits}, abs=1e-6)
        first = min(job["submission_time"] for job in jobs)
        makespan = metrics(folder)["grid"]["makespan"]
        assert query(LAST_END_S)[0][0] - first == pytest.approx(makespan, abs=1e-6)
        longest = {
            (vo, name.removesuffix(": queued jobs")): jobs
            for vo, name, jobs in query(LONGEST_QUEUE)
        }
        assert longest_queues(folder).items() <= longest.items()


def pairs(rows: Any) -> dict[Any, Any]:
    return dict(rows)


def test_an_invalid_trace_is_detected(browser: chromium.Browser) -> None:
    """By the queries above: slices without an end, complaints, and a refusal."""
    whole = exported(write_perfetto, run_folder(3))
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    begin = pb.Trace()
    packet = begin.packet.add(timestamp=5, trusted_packet_sequence_id=SEQUENCE)
    packet.track_event.type, packet.track_event.track_uuid, packet.track_event.name = BEGIN, 1, "a"
    with trace_processor(browser, whole + begin.SerializeToString()) as processor:
        assert processor.query(WITHOUT_END) == [(1,)]
    with trace_processor(browser, whole + OF_A_KERNEL) as processor:
        assert processor.query(COMPLAINTS) != []
    with (
        pytest.raises(ValueError, match="corrupt"),
        trace_processor(browser, whole + b"\x0a\x03\x5a\x0b\xff"),
    ):
        pass
    with (
        trace_processor(browser, whole) as processor,
        pytest.raises(ValueError, match="no such column"),
    ):
        processor.query("select colour from slice")
