"""Logs in Grid Workload Format: what is read, what is refused, and which jobs come of it."""

import gzip
from pathlib import Path

import pytest

from grid.model.errors import InputError
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import COMMON_FIELDS, GWF, TEXT, TIME, GwfField, Log, SwfField, read_gwf

ALL_FIELDS = (*tuple(SwfField)[:COMMON_FIELDS], *GwfField)
TEXT_FIELDS = [field for field in ALL_FIELDS if GWF.kinds[field] == TEXT]
FIELD = {field.name: field for field in ALL_FIELDS}


def record(**fields: object) -> str:
    """A line of a log: a job of one processor and ten seconds, with the given fields changed."""
    values = dict.fromkeys(ALL_FIELDS, "-1")
    values[SwfField.JOB_NUMBER] = "1"
    values[SwfField.SUBMIT_TIME] = "0"
    values[SwfField.RUN_TIME] = "10"
    values[SwfField.ALLOCATED_PROCESSORS] = "1"
    for name, value in fields.items():
        values[FIELD[name.upper()]] = str(value)
    return "\t".join(values.values())


def log_of(folder: Path, *lines: str) -> Log:
    path = folder / "log.gwf"
    path.write_text("\n".join(lines) + "\n")
    return read_gwf(path)


def texts(log: Log, field: int) -> list[str]:
    return [log.names[field].get(number, "-1") for number in log[field].tolist()]


@pytest.mark.parametrize("compressed", [False, True])
def test_reads_all_fields(tmp_path: Path, compressed: bool) -> None:
    """Each field has a value of its own: a name if it may have one, else its position."""
    names = {field: f"n{int(field)}.é" for field in TEXT_FIELDS}
    row = "\t".join(names.get(field, str(int(field))) for field in ALL_FIELDS)
    path, text = tmp_path / "log.gwf", f"# JobID SubmitTime\n{row}\n\n{record()}\n"
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    log = read_gwf(path)
    assert (len(log), log.blank_lines) == (2, 1)
    for field in ALL_FIELDS:
        if field in TEXT_FIELDS:
            assert texts(log, field) == [names[field], "-1"]
        else:
            scale = 1_000_000 if GWF.kinds[field] == TIME else 1
            assert log[field][0] == int(field) * scale


def test_integers_are_kept_and_names_are_numbered(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        record(user="17", group="G7", queue="3"),
        record(job_number=2, user="4", group="G2", queue="long"),
        record(job_number=3, user="-1", group="G7", queue="3"),
    )
    assert log[SwfField.USER].tolist() == [17, 4, -1]
    assert log[SwfField.GROUP].tolist() == [1, 2, 1]
    assert log[SwfField.QUEUE].tolist() == [1, 2, 1]
    assert log.names[SwfField.USER] == {17: "17", 4: "4"}
    assert log.names[SwfField.QUEUE] == {1: "3", 2: "long"}


A_NUMBER = "a decimal number like 12 or 12.5"
BAD_RECORDS = {
    "an SWF record": ("1 0 -1 10 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1", "", "18 fields", "29"),
    "a word for a time": (record(run_time="long"), "field 4 (run time)", "'long'", A_NUMBER),
    "half a processor": (
        record(requested_processors="0.5"),
        "field 8 (requested processors)",
        "'0.5'",
        "an integer",
    ),
    "control bytes": (record(user="\x02"), "", "binary data", "text"),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_a_bad_record_is_named(tmp_path: Path, case: str) -> None:
    line, field, found, expected = BAD_RECORDS[case]
    with pytest.raises(InputError) as error:
        log_of(tmp_path, "# comment", record(), line)
    (wrong,) = error.value.errors
    assert (wrong.line, wrong.field) == (3, field)
    assert (wrong.found, wrong.expected) == (found, expected)


@pytest.mark.parametrize(
    ("route", "site"),
    [("site", 1), ("vo", 1), ("user", 5), ("group", 6), ("queue", 7), ("partition", 8), (None, -1)],
)
def test_the_route_is_the_field_of_that_name(tmp_path: Path, route: str, site: int) -> None:
    log = log_of(
        tmp_path,
        record(
            user=5,
            group=6,
            queue=7,
            partition=8,
            original_site="G1/site1",
            virtual_organization="atlas",
        ),
    )
    jobs, skipped = jobs_from_log(log, route=route)  # type: ignore[arg-type]
    assert skipped == {}
    assert jobs.site.tolist() == [site]
    assert jobs.user.tolist() == [5]
