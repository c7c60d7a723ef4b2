"""SWF as other simulators and sites write it: extra columns, heads, compression, memory, CPUs."""

from __future__ import annotations

import bz2
import lzma
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from grid.model.errors import InputError
from grid.model.workload import TraceFilterSection
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import SwfField, read_log, read_swf, write_log
from grid.workload.trace import (
    describe,
    filter_log,
    header_processors,
    scale_interarrival,
    shift_submissions,
)

HEAD = """; MaxJobs: 3
; MaxRecords: 3
; UnixStartTime: 1500000000
; EndTime: Fri Jul 14 04:00:00 2017
; MaxProcs: 16
"""
ROWS = """1 0 -1 60 2 -1 -1 2 90 -1 1 1 1 1 1 1 -1 -1
2 200 -1 30 4 -1 -1 4 60 -1 1 2 1 1 1 1 -1 -1
3 260 -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1
"""


def log_in(folder: Path, text: str, name: str = "log.swf") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_extra_columns_and_a_head_row_are_ignored(tmp_path: Path) -> None:
    rows = [f"{row} W{n} {n}" for n, row in enumerate(ROWS.splitlines())]
    text = " ".join(["id", "submit", *"abcdefghijklmnop", "dag", "task"]) + "\n" + "\n".join(rows)
    log = read_swf(log_in(tmp_path, text))
    plain = read_swf(log_in(tmp_path, ROWS, "plain.swf"))
    assert log.columns.tolist() == plain.columns.tolist()
    assert log.lines.tolist() == [2, 3, 4]
    assert log.remarks == {"head_rows": 1, "extra_columns": 3}
    assert describe(log)["left_out"] == log.remarks


@pytest.mark.parametrize("several", ["1&2", "1,2", "1;2"])
def test_a_record_may_have_several_preceding_jobs(tmp_path: Path, several: str) -> None:
    text = ROWS + f"4 300 -1 5 1 -1 -1 1 5 -1 1 1 1 1 1 1 {several} 0\n"
    log = read_swf(log_in(tmp_path, text))
    assert log[SwfField.PRECEDING_JOB].tolist() == [-1, -1, -1, 2]
    assert log.remarks == {"several_predecessors": 1}
    write_log(log, tmp_path / "written.swf")
    written = read_swf(tmp_path / "written.swf")
    for one in (log, written):
        assert list(one.several.values()) == [(1, 2)]
        before = jobs_from_log(one, predecessors=True)[0].predecessors
        assert before is not None
        assert [(row, after.number) for row, after in before.rows()] == [(3, 1), (3, 2)]


@pytest.mark.parametrize(
    ("header", "processors"),
    [
        ({"MaxProcs": "2,048"}, 2048),
        ({"MaxProcs": "1,234,567 cores"}, 1_234_567),
        ({"MaxProcs": "12"}, 12),
        ({"MaxNodes": "96"}, 96),
        ({"MaxNodes": "96", "MaxProcs": "384"}, 384),
        ({"MaxProcs": "many"}, None),
    ],
)
def test_processors_of_a_header(header: dict[str, str], processors: int | None) -> None:
    assert header_processors(header) == processors


def test_header_of_a_part_of_a_log(tmp_path: Path) -> None:
    log = read_swf(log_in(tmp_path, HEAD + ROWS))
    part = shift_submissions(filter_log(log, TraceFilterSection(from_s=200.0)), -200_000_000)
    assert part.header == {
        "MaxJobs": "2", "MaxRecords": "2", "MaxProcs": "16", "UnixStartTime": "1500000200",
    }  # fmt: skip
    assert filter_log(log, TraceFilterSection(from_s=0.0)).header == log.header
    assert "UnixStartTime" not in scale_interarrival(log, 2).header
    assert "UnixStartTime" not in shift_submissions(log, 500_000).header


def test_bytes_of_headers_that_are_not_utf_8_survive(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(b"; Installation: Universit\xe4t\n" + ROWS.encode())
    write_log(read_swf(path), tmp_path / "copy.swf")
    assert (tmp_path / "copy.swf").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", ["bz2", "xz", "zst", "zip"])
def test_compressed_logs_are_read_under_any_name(tmp_path: Path, kind: str) -> None:
    path, data = tmp_path / f"log.swf.{kind}", (HEAD + ROWS).encode()
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("log.swf", data)
    else:
        packed = {"bz2": bz2.compress(data), "xz": lzma.compress(data)}
        path.write_bytes(packed.get(kind) or pa.compress(data, "zstd", asbytes=True))
    assert len(read_log(path)) == 3
    if kind != "zip":
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(InputError) as caught:
            read_log(path)
        assert len(str(caught.value).splitlines()) == 1


def test_requested_and_allocated_processors(tmp_path: Path) -> None:
    text = (
        "1 0 0 10 16 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n2 1 0 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n"
    )
    log = read_swf(log_in(tmp_path, text))
    found = describe(log)["other_cpus_allocated"]
    assert found == {"jobs": 1, "cpu_seconds": {"requested": 50.0, "allocated": 200.0}}
    requested, skipped = jobs_from_log(log)
    assert requested.processors.tolist() == [1, 4]
    assert skipped == {"allocated_not_requested": 1}
    assert jobs_from_log(log, cpus="allocated")[0].processors.tolist() == [16, 4]


def test_memory_of_a_log_is_read_on_request(tmp_path: Path) -> None:
    rest = "1 1 1 1 1 1 -1 -1"
    text = f"1 0 0 10 4 -1 1024 4 20 2048 {rest}\n2 1 0 10 1 -1 -1 1 20 -1 {rest}\n"
    log = read_swf(log_in(tmp_path, text))
    without, skipped = jobs_from_log(log)
    assert not without.resources
    assert skipped == {"memory_not_read": 1}
    jobs, skipped = jobs_from_log(log, memory="requested")
    assert jobs.resources["ram_mb"].tolist() == [8.0, 0.0]
    assert not skipped
    assert jobs_from_log(log, memory="used")[0].resources["ram_mb"].tolist() == [4.0, 0.0]


def test_an_extra_field_has_predictions(tmp_path: Path) -> None:
    rows = [f"{row} x {n}.5" for n, row in enumerate(ROWS.splitlines())]
    path = log_in(tmp_path, "\n".join(rows))
    jobs, _ = jobs_from_log(read_log(path, 20))
    assert jobs.predicted_us.tolist() == [500_000, 1_500_000, 2_500_000]
    for field, found in ((19, "could not convert"), (21, "records without this field")):
        with pytest.raises(InputError, match=found):
            read_log(path, field)
