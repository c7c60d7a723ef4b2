"""Logs in Standard Workload Format: what is read, what is refused, and which jobs come of it."""

import gzip
import os
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.errors import InputError
from grid.workload import lines as lines_module
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import SIZE, SWF, TIME, TIME_LIMIT_S, Log, SwfField, read_swf

TRACES = Path(os.environ.get("GRID_TRACES", Path(__file__).parents[3] / "shared" / "traces"))


def record(**fields: object) -> str:
    """A line of a log: a job of one processor and ten seconds, with the given fields changed."""
    values = dict.fromkeys(SwfField, "-1")
    values[SwfField.JOB_NUMBER] = "1"
    values[SwfField.SUBMIT_TIME] = "0"
    values[SwfField.RUN_TIME] = "10"
    values[SwfField.ALLOCATED_PROCESSORS] = "1"
    for name, value in fields.items():
        values[SwfField[name.upper()]] = str(value)
    return " ".join(values.values())


def written(folder: Path, *lines: str) -> Path:
    path = folder / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def plain_value(field: SwfField, text: str) -> int:
    """The oracle: what a field's text means, by Python's exact decimals."""
    value = Decimal(text)
    if value == -1:
        return -1
    if SWF.kinds[field] == TIME:
        value *= 1_000_000
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


def plain_rows(text: str) -> list[list[int]]:
    return [
        [plain_value(field, token) for field, token in zip(SwfField, line.split(), strict=True)]
        for line in text.splitlines()
        if line.strip() and not line.startswith(";")
    ]


whole = st.one_of(st.just("-1"), st.integers(-1000, 10**8 - 1).map(str))
decimal = st.one_of(
    st.integers(0, TIME_LIMIT_S - 1).map(str),
    st.decimals(0, 10**9, places=6).map(lambda value: f"{value:f}"),
)
size = st.one_of(whole, st.decimals(0, 10**9, places=2).map(lambda value: f"{value:f}"))
blanks = st.text(" \t", min_size=1, max_size=3)


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        fields = [
            draw(st.one_of(whole, decimal) if kind == TIME else size if kind == SIZE else whole)
            for kind in SWF.kinds
        ]
        line = fields[0] + "".join(draw(blanks) + field for field in fields[1:])
        lines += [draw(st.sampled_from(["", " ", "; a comment", ";"])), draw(blanks) + line]
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)


@settings(deadline=None)
@given(texts(), st.booleans(), st.integers(1, 300))
def test_reads_what_a_plain_parser_reads(
    tmp_path_factory: pytest.TempPathFactory, text: str, compressed: bool, block_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("swf") / "log"
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    longest = max(map(len, text.splitlines())) + 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "BLOCK_BYTES", block_bytes + longest)
        log = read_swf(path)
    assert log.columns.tolist() == plain_rows(text)
    lines = text.splitlines()
    assert [lines[number - 1].split() != [] for number in log.lines] == [True] * len(log)
    assert log.blank_lines == sum(not line.strip() for line in lines)


A_NUMBER = "a decimal number like 12 or 12.5"
BAD_RECORDS = {
    "too few fields": ("1 2 3", "", "3 fields", "18"),
    "a word": (record(run_time="soon"), "field 4 (run time)", "'soon'", A_NUMBER),
    "not a number": (record(user="nan"), "field 12 (user)", "'nan'", A_NUMBER),
    "two points": (record(run_time="1.2.3"), "field 4 (run time)", "'1.2.3'", A_NUMBER),
    "half a user": (record(user="1.5"), "field 12 (user)", "'1.5'", "an integer"),
    "a Unix time in milliseconds": (
        record(submit_time=1132444805000),
        "field 2 (submit time)",
        "'1132444805000'",
        "a number below 100000000000",
    ),
    "beyond 64 bits": (
        record(job_number=2**64),
        "field 1 (job number)",
        "'18446744073709551616'",
        f"a number below {2**53}",
    ),
    "absurd processors": (
        record(allocated_processors=10**12),
        "field 5 (allocated processors)",
        "'1000000000000'",
        "a number below 100000000",
    ),
    "control bytes": ("1 2 \x01\x02", "", "binary data", "text"),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_a_bad_record_is_named(tmp_path: Path, case: str) -> None:
    line, field, found, expected = BAD_RECORDS[case]
    path = written(tmp_path, "; Version: 2.2", "", record(), line, record(job_number=2))
    with pytest.raises(InputError) as error:
        read_swf(path)
    (wrong,) = error.value.errors
    assert wrong.file == str(path)
    assert (wrong.line, wrong.field) == (4, field)
    assert (wrong.found, wrong.expected) == (found, expected)
    assert len(str(wrong).splitlines()) == 1


def bad_file(case: str, path: Path) -> Path:
    sound = gzip.compress("\n".join([record()] * 5000).encode())
    if case == "directory":
        path.mkdir()
    elif case == "pipe":
        os.mkfifo(path)
    elif case != "missing":
        path.write_bytes(
            {
                "empty": b"",
                "only comments": b"; MaxProcs: 128\n;\n",
                "truncated gzip": sound[:-20],
                "corrupt gzip": sound[:60] + b"\xff" * 10 + sound[70:],
                "wrong checksum": sound[:-8] + b"\0" * 8,
                "binary": bytes(range(256)) * 100,
                "UTF-16": record().encode("utf-16"),
            }[case]
        )
    return path


BAD_FILES = {
    "missing": "no such file",
    "directory": "a directory",
    "pipe": "a device or pipe",
    "empty": "no job",
    "only comments": "no job",
    "truncated gzip": "truncated compressed data",
    "corrupt gzip": "corrupt compressed data",
    "wrong checksum": "corrupt compressed data",
    "binary": "binary data",
    "UTF-16": "binary data",
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_named(tmp_path: Path, case: str) -> None:
    path = bad_file(case, tmp_path / "log.swf.gz")
    with pytest.raises(InputError) as error:
        read_swf(path)
    (wrong,) = error.value.errors
    assert wrong.file == str(path)
    assert wrong.found.startswith(BAD_FILES[case])


@settings(deadline=None)
@given(
    st.one_of(st.binary(max_size=300), st.text("01-. ;\t\r\n\x00é", max_size=300)), st.booleans()
)
def test_any_file_is_a_log_or_an_error_of_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str, compressed: bool
) -> None:
    path = tmp_path_factory.mktemp("swf") / "log"
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(b"\x1f\x8b" + b"\x08" + data if compressed else data)
    try:
        assert len(read_swf(path)) > 0
    except InputError as error:
        assert 1 <= len(error.errors) <= 5
        assert len(str(error).splitlines()) == len(error.errors)
        assert all(line.isprintable() for line in str(error).splitlines())


def test_header_keeps_repeated_keys_and_indented_lines(tmp_path: Path) -> None:
    log = read_swf(
        written(
            tmp_path,
            "; MaxProcs: 128",
            "; Information: http://one/",
            ";              http://two/",
            ";",
            ";              below nothing",
            "; Queue: 0 interactive",
            "; Queue: 1 batch",
            record(),
        )
    )
    assert log.header == {
        "MaxProcs": "128",
        "Information": "http://one/\nhttp://two/",
        "Queue": "0 interactive\n1 batch",
    }


def log_of(folder: Path, *lines: str) -> Log:
    return read_swf(written(folder, *lines))


def test_jobs_take_the_request_and_else_what_was_used(tmp_path: Path) -> None:
    jobs, skipped = jobs_from_log(
        log_of(
            tmp_path,
            record(job_number=7, requested_processors=4, requested_time=30, user=3, partition=9),
            record(job_number=8, submit_time=2.5, allocated_processors=2),
            record(job_number=9, submit_time=3, run_time=50, requested_time=20, user=-7),
        ),
        route="partition",
    )
    assert skipped == {"longer_than_requested": 1, "allocated_not_requested": 1}
    assert jobs.number.tolist() == [7, 8, 9]
    assert jobs.processors.tolist() == [4, 2, 1]
    assert jobs.submit_us.tolist() == [0, 2_500_000, 3_000_000]
    assert jobs.estimate_us.tolist() == [30_000_000, 10_000_000, 20_000_000]
    assert jobs.run_us.tolist() == [10_000_000, 10_000_000, 20_000_000]
    assert jobs.user.tolist() == [3, -1, -1]
    assert jobs.site.tolist() == [9, -1, -1]


@pytest.mark.parametrize("first", ["; Version: 2.2", record()])
def test_a_byte_order_mark_is_no_part_of_a_log(tmp_path: Path, first: str) -> None:
    """Some editors begin a text with one."""
    log = read_swf(written(tmp_path, f"\ufeff{first}", record(job_number=2)))
    assert log[SwfField.JOB_NUMBER].tolist()[-1] == 2
    assert log.header == ({"Version": "2.2"} if first.startswith(";") else {})
    packed = tmp_path / "log.swf.gz"
    packed.write_bytes(gzip.compress((tmp_path / "log.swf").read_bytes()))
    assert (read_swf(packed).columns == log.columns).all()


SKIPPED = {
    "no_run_time": {"run_time": 0},
    "no_processors": {"allocated_processors": 0},
    "negative_submit_time": {"submit_time": -5},
    "too_large": {"requested_processors": 9},
    "partial_execution": {"status": 2},
}


@pytest.mark.parametrize("reason", SKIPPED)
def test_records_that_cannot_run_are_left_out_and_counted(tmp_path: Path, reason: str) -> None:
    log = log_of(tmp_path, record(), record(job_number=2, **SKIPPED[reason]))
    jobs, skipped = jobs_from_log(log, max_processors=8)
    assert jobs.number.tolist() == [1]
    assert skipped == {reason: 1}


def test_jobs_out_of_order_are_sorted_in_and_counted(tmp_path: Path) -> None:
    times = [(1, 10), (2, 5), (3, 10), (4, 7), (5, 11)]
    log = log_of(tmp_path, *[record(job_number=n, submit_time=t) for n, t in times])
    jobs, skipped = jobs_from_log(log)
    assert jobs.number.tolist() == [2, 4, 1, 3, 5]
    assert skipped == {"out_of_order": 2}


def test_a_number_must_be_a_jobs_own(tmp_path: Path) -> None:
    log = log_of(tmp_path, record(), record(job_number=1, submit_time=3), "", record(job_number=-1))
    with pytest.raises(InputError) as error:
        jobs_from_log(log)
    assert [(m.line, m.found) for m in error.value.errors] == [(2, "1 twice"), (4, "-1")]


@pytest.mark.parametrize(
    ("name", "records", "without_run_time", "processors"),
    [
        pytest.param("LCG-2005.swf.gz", 188_041, 521, "24515", marks=pytest.mark.thorough),
        ("NASA-iPSC-1993-3.1-cln.swf.gz", 18_239, 173, "128"),
    ],
)
def test_real_logs(name: str, records: int, without_run_time: int, processors: str) -> None:
    path = TRACES / name
    if not path.exists():
        pytest.skip("the archive's logs are not here")
    log = read_swf(path)
    with gzip.open(path, "rt") as file:
        assert log.columns.tolist() == plain_rows(file.read())
    assert len(log) == records
    assert log.header["MaxProcs"] == processors
    jobs, skipped = jobs_from_log(log)
    assert skipped == {"no_run_time": without_run_time}
    assert len(jobs) == records - without_run_time
    assert (np.diff(jobs.submit_us) >= 0).all()
    assert (jobs.run_us <= jobs.estimate_us).all()
