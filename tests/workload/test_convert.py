"""Logs from and to files: what comes back, what stays whole when writing fails, what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.errors import InputError
from grid.workload.lines import PROCESSOR_LIMIT, TIME_LIMIT_S
from grid.workload.logs import (
    COMMON_FIELDS,
    GWF,
    TEXT_FIELDS,
    TIME_FIELDS,
    Log,
    SwfField,
    read_log,
    write_log,
)

ENDINGS = (".swf", ".swf.gz", ".gwf", ".gwf.gz", ".parquet")

time_us = st.one_of(st.just(-1), st.integers(-(10**9), TIME_LIMIT_S * 10**6 - 1)).filter(
    # One second less than nothing is written as what is not known.
    lambda value: value != -1_000_000
)
count = st.integers(-1, PROCESSOR_LIMIT - 1)
name = st.text("abcU0123456789/.:,#;_-", min_size=1, max_size=6).filter(lambda text: text != "-1")
header = st.dictionaries(
    st.sampled_from(["MaxProcs", "Note", "Queue 1"]),
    st.lists(st.text("abc:; 1", min_size=1).map(str.strip).filter(bool), min_size=1).map("\n".join),
)


@st.composite
def swf_logs(draw: st.DrawFn) -> Log:
    jobs = draw(st.integers(1, 6))
    columns = [
        draw(st.lists(time_us if f in TIME_FIELDS else count, min_size=jobs, max_size=jobs))
        for f in SwfField
    ]
    lines = np.arange(1, jobs + 1)
    return Log(Path("drawn"), np.array(columns, np.int64).T.copy(), lines, draw(header))


@st.composite
def gwf_logs(draw: st.DrawFn) -> Log:
    jobs = draw(st.integers(1, 6))
    columns = np.empty((jobs, len(GWF.fields)), np.int64)
    names: dict[int, dict[int, str]] = {}
    for field in range(len(GWF.fields)):
        if field in TEXT_FIELDS:
            known = draw(st.lists(name, max_size=4, unique=True))
            names[field] = dict(enumerate(known, start=1))
            values = st.sampled_from([-1, *names[field]])
        else:
            is_time = field < COMMON_FIELDS and SwfField(field) in TIME_FIELDS
            values = time_us if is_time else count
        columns[:, field] = draw(st.lists(values, min_size=jobs, max_size=jobs))
    lines = np.arange(1, jobs + 1)
    return Log(Path("drawn"), columns, lines, draw(header), names=names, format=GWF)


def texts(log: Log, field: int) -> list[str]:
    return [log.names[field].get(number, "-1") for number in log[field].tolist()]


def back(log: Log, folder: Path, ending: str) -> Log:
    path = folder / f"log{ending}"
    write_log(log, path)
    assert list(folder.iterdir()) == [path]
    return read_log(path)


@settings(deadline=None)
@given(swf_logs(), st.sampled_from([".swf", ".swf.gz", ".parquet"]))
def test_an_swf_log_comes_back(
    tmp_path_factory: pytest.TempPathFactory, log: Log, ending: str
) -> None:
    read = back(log, tmp_path_factory.mktemp("log"), ending)
    assert read.columns.tolist() == log.columns.tolist()
    assert read.header == log.header


@settings(deadline=None)
@given(gwf_logs(), st.sampled_from([".gwf", ".gwf.gz", ".parquet"]))
def test_a_gwf_log_comes_back(
    tmp_path_factory: pytest.TempPathFactory, log: Log, ending: str
) -> None:
    read = back(log, tmp_path_factory.mktemp("log"), ending)
    assert read.is_gwf
    assert read.header == log.header
    for field in range(len(GWF.fields)):
        if field in TEXT_FIELDS:
            assert texts(read, field) == texts(log, field)
        else:
            assert read[field].tolist() == log[field].tolist()


def one_job(**fields: int) -> Log:
    columns = np.full((1, len(SwfField)), -1)
    for field, value in fields.items():
        columns[0, SwfField[field.upper()]] = value
    return Log(Path("made"), columns, np.array([1]), {"MaxProcs": "8"})


def test_times_are_written_with_as_many_decimals_as_they_need(tmp_path: Path) -> None:
    log = one_job(job_number=7, submit_time=0, wait_time=-500_000, run_time=12_500_000)
    write_log(log, tmp_path / "log.swf")
    assert (tmp_path / "log.swf").read_text() == (
        "; MaxProcs: 8\n7 0 -0.5 12.5 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n"
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"log{ending}"
    path.write_text("as it was")
    log = replace(one_job(), header={"Note": "\ud800"})  # No text file can hold that.
    if ending == ".parquet":
        log = replace(log, columns=np.full((1, len(SwfField)), 2**70, object))
    with pytest.raises((OverflowError, UnicodeEncodeError)):
        write_log(log, path)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_cannot_be_written_is_named(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InputError, match="found a file that cannot be written"):
        write_log(one_job(), tmp_path / "no folder" / f"log{ending}")
    (tmp_path / f"log{ending}").mkdir()
    with pytest.raises(InputError, match="found a file that cannot be written"):
        write_log(one_job(), tmp_path / f"log{ending}")
    assert list(tmp_path.iterdir()) == [tmp_path / f"log{ending}"]
    empty = replace(one_job(), columns=np.empty((0, len(SwfField)), np.int64))
    with pytest.raises(InputError, match="found no job to write"):
        write_log(empty, tmp_path / f"empty{ending}")


@pytest.mark.parametrize("ending", ["", ".csv", ".parquet.gz"])
def test_another_ending_is_named(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InputError, match="found the ending"):
        write_log(one_job(), tmp_path / f"log{ending}")


def gwf_table(folder: Path) -> pa.Table:
    """A sound log of one job in Parquet, to be spoiled."""
    columns = np.full((1, len(GWF.fields)), -1)
    columns[0, SwfField.USER] = 1
    names: dict[int, dict[int, str]] = {field: {} for field in TEXT_FIELDS}
    names[SwfField.USER] = {1: "U1"}
    log = Log(Path("made"), columns, np.array([1]), names=names, format=GWF)
    write_log(log, folder / "sound.parquet")
    return pq.read_table(folder / "sound.parquet")


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


BAD_TABLES = {
    "no metadata": (lambda t: t.replace_schema_metadata(), "a Parquet file with other contents"),
    "header that is no JSON": (
        lambda t: t.replace_schema_metadata({"log": "gwf", "header": "{"}),
        "a Parquet file with other contents",
    ),
    "header that is no mapping": (
        lambda t: t.replace_schema_metadata({"log": "gwf", "header": json.dumps([1])}),
        "a Parquet file with other contents",
    ),
    "a header nested deep": (
        lambda t: t.replace_schema_metadata({"log": "gwf", "header": "[" * 100_000}),
        "a Parquet file with other contents",
    ),
    "a column less": (lambda t: t.drop_columns("run_time_us"), "no such column"),
    "a column twice": (
        lambda t: t.append_column("run_time_us", pa.array([1])),
        "two such columns",
    ),
    "no rows": (lambda t: t.slice(0, 0), "no job"),
    "floats": (
        lambda t: with_column(t, "run_time_us", pa.array([1.5])),
        "values of type double",
    ),
    "beyond 64 bits": (
        lambda t: with_column(t, "run_time_us", pa.array([2**63], pa.uint64())),
        "a number beyond 64 bits",
    ),
    "an absurd time": (
        lambda t: with_column(t, "run_time_us", pa.array([2**60])),
        str(2**60),
    ),
    "numbers for names": (lambda t: with_column(t, "user", pa.array([1])), "values of type int64"),
    "a name with a blank": (lambda t: with_column(t, "user", pa.array(["a b"])), "'a b'"),
    "a long name": (lambda t: with_column(t, "user", pa.array(["a" * 5000])), "'aaaa"),
    "a name that is no text": (
        lambda t: with_column(t, "user", pa.array([b"\xff"]).cast(pa.string(), safe=False)),
        "bytes that are not text",
    ),
    "an empty name": (lambda t: with_column(t, "user", pa.array([""])), "''"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_named(tmp_path: Path, case: str) -> None:
    spoil, found = BAD_TABLES[case]
    pq.write_table(spoil(gwf_table(tmp_path)), tmp_path / "bad.parquet")
    with pytest.raises(InputError) as error:
        read_log(tmp_path / "bad.parquet")
    (mistake,) = error.value.errors
    assert mistake.found.startswith(found)


@pytest.mark.parametrize("number", [-3, 1, 7])
def test_a_name_that_a_damaged_dictionary_does_not_have_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The library reads such numbers from the bytes of a file, and does not look at them."""
    table = gwf_table(tmp_path)
    numbers = pa.array([number], pa.int32())
    damaged = pa.DictionaryArray.from_arrays(numbers, pa.array(["U1"]), safe=False)
    monkeypatch.setattr(pq, "read_table", lambda *_, **__: with_column(table, "user", damaged))
    with pytest.raises(InputError) as error:
        read_log(tmp_path / "sound.parquet")
    (mistake,) = error.value.errors
    assert (mistake.field, mistake.found) == ("user", "a name that its dictionary does not have")


@pytest.mark.parametrize("spoilt", [b"", b"PAR1", b"PAR1 and no more PAR1", bytes(1000)])
def test_a_file_that_is_no_parquet_is_named(tmp_path: Path, spoilt: bytes) -> None:
    (tmp_path / "log.parquet").write_bytes(spoilt)
    with pytest.raises(InputError) as error:
        read_log(tmp_path / "log.parquet")
    (line,) = str(error.value).splitlines()
    assert "found an invalid Parquet file" in line


def test_a_small_parquet_file_of_very_many_equal_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"job_number": pa.repeat(1, 30_000_000)}), path, compression="zstd")
    with pytest.raises(InputError, match="found 30000000 rows, expected at most"):
        read_log(path)


def test_names_are_read_once_however_many_rows_have_them(tmp_path: Path) -> None:
    """A name of 100 kB in each of 100,000 rows is 10 GB if it is written out."""
    table, rows = gwf_table(tmp_path), 100_000
    columns = {name: pa.repeat(table[name][0], rows) for name in table.schema.names}
    columns["user"] = pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array(["a" * 100_000])
    )
    noise = np.random.default_rng(1).integers(0, 1000, rows)
    columns["job_number"] = pa.array(noise)
    bomb = pa.table(columns).replace_schema_metadata(table.schema.metadata)
    path = tmp_path / "bomb.parquet"
    pq.write_table(bomb, path, compression="zstd")
    tracker = pa.default_memory_pool()
    before = tracker.bytes_allocated()
    with pytest.raises(InputError):
        read_log(path)
    assert tracker.max_memory() - before < 2**28
