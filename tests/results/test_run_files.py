"""The folder of a run, read back as its users would read it."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given

from grid.model.errors import InputError
from grid.model.job import JobState
from grid.model.job_results import JobResults, JobRow
from grid.results import tables as written
from grid.results.checkers import digest
from grid.results.cpu_numbers import assign_cpus
from grid.results.definitions import FILES
from grid.results.machines import ClusterEntry, Directory
from grid.results.metrics import metrics
from grid.results.run_folder import RUN_FILES, check_folder, write_run
from grid.results.tables import cpu_numbers, job_table, read_jobs
from tests.results.results_tables import TWO_VOS, job, table, tables

BATSIM_COLUMNS = [
    *("job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources"),
    *("requested_time", "success", "final_state", "starting_time", "execution_time"),
    *("finish_time", "waiting_time", "turnaround_time", "stretch", "allocated_resources"),
    *("consumed_energy", "metadata"),
]
COLUMNS = list(FILES["jobs"].columns)
ROWS = [
    job(7, 0.000001, 0.5, 2.75, processors=3, user=12, utility=0.75, deadline=4),
    job(8, 1, 2, 10, at=(1, 1, 1), hops=1, assigned=1.5),
    job(1, 2, 3, 3603, vo=1, state=JobState.FAILED),
    job(2, 2, 3, 13, vo=1, state=JobState.FAILED, restarts=1),
    job(3, 3, vo=1, state=JobState.REJECTED, hops=3),
    job(4, 3, vo=1, state=JobState.FAILED, assigned=3),
    job(5, 1_000_000_000, 1_000_000_000.000001, 1_000_000_000.000001, vo=1),
]


MANIFEST = {
    "scenario": "demo",
    "seed": 7,
    "runtime": "sequential",
    "digest": "0" * 64,
    "jobs": {"completed": 1},
}


def write(folder: Path, rows: list[JobRow], directory: Directory = TWO_VOS) -> Path:
    results = table(rows)
    figures = metrics(results, directory)
    write_run(folder, results, directory, figures, "name: é\n", MANIFEST, "demo")
    return folder


def read(folder: Path) -> dict[str, dict[str, str]]:
    """The rows of jobs.csv by "workload!job"."""
    with (folder / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS and COLUMNS[: len(BATSIM_COLUMNS)] == BATSIM_COLUMNS
    return {f"{row['workload_name']}!{row['job_id']}": row for row in rows}


def processor_set(text: str) -> set[int]:
    """An interval set as Batsim writes and Evalys reads it."""
    found: set[int] = set()
    for interval in text.split():
        low, _, high = interval.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found


def test_a_job_that_ran_as_a_row_of_batsim(tmp_path: Path) -> None:
    row = read(write(tmp_path / "run", ROWS))["demo.north!7"]
    expected = {
        "submission_time": "0.000001",
        "requested_number_of_resources": "3",
        "requested_time": "3600.000000",
        "success": "1",
        "final_state": "COMPLETED_SUCCESSFULLY",
        "starting_time": "0.500000",
        "execution_time": "2.250000",
        "finish_time": "2.750000",
        "waiting_time": "0.499999",
        "turnaround_time": "2.749999",
        "allocated_resources": "0-2",
        "vo": "north",
        "user": "12",
        "executed_vo": "north",
        "cluster": "pool",
        "machine": "0",
        "hops": "0",
        "utility": "0.75",
        "deadline": "4.000000",
        "assigned_time": "0.000001",
        "state": "completed",
        "run_time": "2.250000",
    }
    assert {name: row[name] for name in expected} == expected
    assert float(row["stretch"]) == pytest.approx(2.749999 / 2.25, rel=1e-15)
    assert row["profile"] == row["metadata"] == row["consumed_energy"] == ""


def test_a_job_that_was_forwarded_names_where_it_ran(tmp_path: Path) -> None:
    row = read(write(tmp_path / "run", ROWS))["demo.north!8"]
    assert (row["executed_vo"], row["cluster"], row["machine"], row["hops"]) == (
        "south", "farm", "1", "1",
    )  # fmt: skip
    assert row["allocated_resources"] == "6"  # the seventh CPU of the grid: 4 + 2, then this one
    assert row["deadline"] == ""


def test_final_states_of_jobs_that_did_not_complete(tmp_path: Path) -> None:
    rows = read(write(tmp_path / "run", ROWS))
    states = {key[-1]: (rows[key]["final_state"], rows[key]["state"]) for key in rows}
    assert {number: states[number] for number in "1234"} == {
        "1": ("COMPLETED_WALLTIME_REACHED", "failed"),
        "2": ("COMPLETED_FAILED", "failed"),
        "3": ("REJECTED", "rejected"),
        "4": ("REJECTED", "failed"),
    }


def test_microseconds_are_exact_after_thirty_years(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", ROWS)
    row = read(folder)["demo.south!5"]
    assert Decimal(row["finish_time"]) == Decimal("1000000000.000001")
    assert row["stretch"] == ""  # it ran for no time
    typed = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    assert round(typed[-1]["finish_time"] * 1_000_000) == 1_000_000_000_000_001


def test_parquet_and_csv_are_equal(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", ROWS)
    typed = pyarrow.parquet.read_table(folder / "jobs.parquet")
    text = pyarrow.csv.read_csv(folder / "jobs.csv")
    assert typed.column_names == text.column_names == COLUMNS
    assert text.schema.field("starting_time").type == pa.float64()
    assert text.schema.field("job_id").type == typed.schema.field("job_id").type == pa.int64()
    for name in typed.column_names:
        left, right = typed[name].to_pylist(), text[name].to_pylist()
        assert [value or None for value in left] == [value or None for value in right], name


@given(tables())
def test_the_table_is_read_back(results: JobResults) -> None:
    columns = job_table(results, TWO_VOS, "demo", {})
    clusters = [(TWO_VOS.vos[one.vo], one.name) for one in TWO_VOS.clusters]
    again = read_jobs(columns.__getitem__, TWO_VOS.vos, clusters)
    assert digest(again) == digest(results)


def test_batches_make_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (write(tmp_path / "whole", ROWS) / "jobs.csv").read_bytes()
    monkeypatch.setattr(written, "ROWS_A_BATCH", 2)
    assert (write(tmp_path / "batches", ROWS) / "jobs.csv").read_bytes() == whole
    assert pyarrow.parquet.read_table(tmp_path / "batches" / "jobs.parquet").num_rows == len(ROWS)


def test_a_run_without_jobs_has_all_columns(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [])
    assert (folder / "jobs.csv").read_text().strip().split(",") == COLUMNS
    assert pyarrow.parquet.read_table(folder / "jobs.parquet").num_rows == 0
    assert pyarrow.parquet.read_table(folder / "series.parquet").num_rows == 0


def test_the_other_files_of_a_run(tmp_path: Path) -> None:
    folder = write(tmp_path / "deep" / "run", ROWS)
    assert json.loads((folder / "metrics.json").read_text()) == metrics(table(ROWS), TWO_VOS)
    assert json.loads((folder / "manifest.json").read_text()) == MANIFEST
    assert (folder / "scenario.yaml").read_text(encoding="utf-8") == "name: é\n"
    series = pyarrow.parquet.read_table(folder / "series.parquet")
    means = ["busy_cpus", "utilization", "queued", "lost_cpus", "license_use", "power_w"]
    assert series.column_names == ["time_s", "vo", "cluster", *means]
    assert set(zip(series["vo"].to_pylist(), series["cluster"].to_pylist(), strict=True)) == {
        ("north", "pool"),
        ("south", "farm"),
    }
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_an_earlier_run_is_replaced_and_what_else_is_there_stays(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", ROWS)
    (folder / "notes").mkdir()
    (folder / "notes" / "idea.txt").write_text("keep")
    write(folder, ROWS[:1])
    assert len(read(folder)) == 1
    assert (folder / "notes" / "idea.txt").read_text() == "keep"
    assert sorted(path.name for path in folder.iterdir()) == sorted([*RUN_FILES, "notes"])
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_another_scenario_or_kind_of_run_is_replaced_only_by_force(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", ROWS)
    check_folder(folder, scenario="demo")
    with pytest.raises(InputError, match=r"run in virtual time of demo, expected .* of other"):
        check_folder(folder, scenario="other")
    with pytest.raises(InputError, match=r"expected a live run of demo, another folder, or --for"):
        check_folder(folder, scenario="demo", live=True)
    check_folder(folder, scenario="other", live=True, force=True)


def test_the_folder_of_a_killed_run_is_accepted(tmp_path: Path) -> None:
    (tmp_path / ".journals").mkdir()
    (tmp_path / ".run.x.partial").mkdir()
    (tmp_path / "jobs.csv").touch()
    check_folder(tmp_path)
    (tmp_path / ".journals").rmdir()
    (tmp_path / ".journals").symlink_to(tmp_path)
    with pytest.raises(InputError, match="found a folder that is not a run"):
        check_folder(tmp_path)


def test_a_failure_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", ROWS)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    wrong: Any = {"grid": {"wait_mean": float("nan")}, "vos": {}}
    with pytest.raises(ValueError, match="JSON compliant"):
        write_run(folder, table(ROWS[:1]), TWO_VOS, wrong, "", {}, "demo")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@given(tables())
def test_no_cpu_is_given_to_two_jobs_at_once(results: JobResults) -> None:
    cpus = assign_cpus(results, TWO_VOS)
    sets = [processor_set(text) for text in cpu_numbers(cpus, slice(None)).to_pylist()]
    machine_of_cpu = [(0, 0)] * 4 + [(1, 0)] * 2 + [(1, 1)]
    for row, mine in enumerate(sets):
        here = (results.placement.cluster[row], results.outcome.machine[row])
        assert all(machine_of_cpu[cpu] == here for cpu in mine)
        assert len(mine) in (0, results.processors[row])
        for other in range(row):
            together = min(results.outcome.end_us[row], results.outcome.end_us[other]) > max(
                results.outcome.start_us[row], results.outcome.start_us[other]
            )
            assert not (together and mine & sets[other])


def test_every_job_gets_the_lowest_free_cpus_of_its_machine(tmp_path: Path) -> None:
    pool = Directory(("north",), (ClusterEntry(0, "small", (3,)), ClusterEntry(0, "big", (200,))))
    rows = [
        job(1, 0, 0, 10, at=(0, 1, 0), processors=100),
        job(2, 0, 0, 5, at=(0, 1, 0), processors=1),
        job(3, 0, 0, 20, at=(0, 1, 0), processors=90),
        job(4, 0, 5, 10, at=(0, 1, 0), processors=2),  # at the end of job 2, and around job 3
        job(5, 0, 10, 30, at=(0, 1, 0), processors=101),
        job(6, 0, 6, 9, at=(0, 1, 0), processors=9),  # one more than are free: the table is wrong
        job(7, 0, 1, 9, at=(0, 0, 0), preemptions=1),  # who knows when
        job(8, 0, 1, 9, at=(0, 0, 0), processors=2),
    ]
    found = {
        row["job_id"]: row["allocated_resources"]
        for row in read(write(tmp_path / "run", rows, pool)).values()
    }
    assert found == {
        "1": "3-102",
        "2": "103",
        "3": "104-193",
        "4": "103 194",
        "5": "3-103",
        "6": "",
        "7": "",
        "8": "0-1",
    }
