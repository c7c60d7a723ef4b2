"""Logs from and to files: what comes back, what stays whole when writing fails, what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grid.model.errors import InputError
from grid.workload.logs import (
    GWF,
    PROCESSOR_LIMIT,
    SWF,
    TEXT,
    TIME,
    Log,
    LogFormat,
    SwfField,
    read_log,
    write_log,
)

ENDINGS = (".swf", ".swf.gz", ".gwf", ".gwf.gz", ".parquet")

NAMES = ("a", "b1", "007", "12", "U,#;_-", "x/y:z")


def random_log(layout: LogFormat, seed: int) -> Log:
    """A log of a few jobs with values of all kinds, unknown ones included."""
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(1, 7))
    columns = np.full((jobs, len(layout.fields)), -1)
    names: dict[int, dict[int, str]] = {}
    for field, kind in enumerate(layout.kinds):
        if kind == TEXT:
            known = rng.permutation(NAMES)[: int(rng.integers(0, 5))].tolist()
            names[field] = dict(enumerate(known, start=1))
            columns[:, field] = rng.choice([-1, *names[field]], jobs)
        else:
            most = 10**15 if kind == TIME else PROCESSOR_LIMIT
            values = rng.integers(0, int(rng.choice([2, 1000, most])), jobs)
            columns[:, field] = np.where(rng.random(jobs) < 0.2, -1, values)
    header = {"MaxProcs": "8", "Note": "a: b\nc;", "Queue 1": "x"} if seed % 2 else {}
    lines = np.arange(1, jobs + 1)
    return Log(Path("drawn"), columns, lines, header, names=names, format=layout)


def texts(log: Log, field: int) -> list[str]:
    return [log.names[field].get(number, "-1") for number in log[field].tolist()]


def back(log: Log, folder: Path, ending: str) -> Log:
    path = folder / f"log{ending}"
    write_log(log, path)
    assert list(folder.iterdir()) == [path]
    return read_log(path)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("layout", "ending"),
    [(SWF, one) for one in (".swf", ".swf.gz", ".parquet")]
    + [(GWF, one) for one in (".gwf", ".gwf.gz", ".parquet")],
)
def test_a_log_comes_back(tmp_path: Path, layout: LogFormat, ending: str, seed: int) -> None:
    log = random_log(layout, seed)
    read = back(log, tmp_path, ending)
    assert (read.format, read.header) == (layout, log.header)
    for field, kind in enumerate(layout.kinds):
        if kind == TEXT:
            assert texts(read, field) == texts(log, field)
        else:
            assert read.columns[:, field].tolist() == log.columns[:, field].tolist()


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


def gwf_table(folder: Path) -> pa.Table:
    """A sound log of one job in Parquet, to be spoiled."""
    columns = np.full((1, len(GWF.fields)), -1)
    columns[0, SwfField.USER] = 1
    names: dict[int, dict[int, str]] = {
        field: {} for field, kind in enumerate(GWF.kinds) if kind == TEXT
    }
    names[SwfField.USER] = {1: "U1"}
    log = Log(Path("made"), columns, np.array([1]), names=names, format=GWF)
    write_log(log, folder / "sound.parquet")
    return pq.read_table(folder / "sound.parquet")


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


BAD_TABLES = {
    "no metadata": (lambda t: t.replace_schema_metadata(), "a Parquet file with other contents"),
    "header that is no mapping": (
        lambda t: t.replace_schema_metadata({"log": "gwf", "header": json.dumps([1])}),
        "a Parquet file with other contents",
    ),
    "a column less": (lambda t: t.drop_columns("run_time_us"), "no such column"),
    "a column twice": (lambda t: t.append_column("run_time_us", pa.array([1])), "two such columns"),
    "no rows": (lambda t: t.slice(0, 0), "no job"),
    "floats": (lambda t: with_column(t, "run_time_us", pa.array([1.5])), "values of type double"),
    "beyond 64 bits": (
        lambda t: with_column(t, "run_time_us", pa.array([2**63], pa.uint64())),
        "a number beyond 64 bits",
    ),
    "an absurd time": (lambda t: with_column(t, "run_time_us", pa.array([2**60])), str(2**60)),
    "numbers for names": (lambda t: with_column(t, "user", pa.array([1])), "values of type int64"),
    "a name with a blank": (lambda t: with_column(t, "user", pa.array(["a b"])), "'a b'"),
    "a name that is no text": (
        lambda t: with_column(t, "user", pa.array([b"\xff"]).cast(pa.string(), safe=False)),
        "an invalid Parquet file",
    ),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_named(tmp_path: Path, case: str) -> None:
    spoil, found = BAD_TABLES[case]
    pq.write_table(spoil(gwf_table(tmp_path)), tmp_path / "bad.parquet")
    with pytest.raises(InputError) as error:
        read_log(tmp_path / "bad.parquet")
    (wrong,) = error.value.errors
    assert wrong.found.startswith(found)
