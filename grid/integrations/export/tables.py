"""A run as tables: phases of jobs in Parquet, a log in SWF, and Batsim's two files."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from grid import __version__
from grid.integrations.export.schedule import Schedule, in_parts, not_read
from grid.lab.report.run_data import read_metrics
from grid.model.arrays import Ints
from grid.model.errors import input_error
from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US
from grid.results.definitions import FILES
from grid.results.run_folder import RUN_FILES, check_place, earlier_run, replacing
from grid.results.tables import names_at
from grid.workload.logs import Log, SwfField, write_log

BATSIM_COLUMNS = tuple(FILES["jobs"].columns)[: list(FILES["jobs"].columns).index("metadata") + 1]
BATSIM_FILES = ("jobs.csv", "schedule.csv")
PHASES = ("unassigned", "queued", "running")


def write_phases(schedule: Schedule, file: IO[bytes]) -> None:
    """Write a row for each phase of each job that ran; columns as in `grid.results.definitions`."""
    writer = None
    for rows in in_parts(np.flatnonzero(schedule.ran)):
        table = _phases(schedule, rows)
        writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema, compression="zstd")
        writer.write_table(table)
    if writer is None:
        pyarrow.parquet.write_table(_phases(schedule, np.zeros(0, np.int64)), file)
    else:
        writer.close()


def _phases(schedule: Schedule, rows: Ints) -> pa.Table:
    jobs = schedule.jobs
    placement, outcome = jobs.placement, jobs.outcome
    start, submit = outcome.start_us[rows], jobs.submit_us[rows]
    assigned = placement.assigned_us[rows]
    assigned = np.where(assigned < 0, start, assigned)
    begin = np.stack([submit, assigned, start], axis=1).ravel()
    end = np.stack([assigned, start, outcome.end_us[rows]], axis=1).ravel()
    row, phase = np.repeat(rows, len(PHASES)), np.tile(np.arange(len(PHASES)), len(rows))
    kept = end > begin
    row, phase, begin, end = row[kept], phase[kept], begin[kept], end[kept]
    clusters = [name for _, name in schedule.clusters]
    columns = {
        "vo": names_at(jobs.vo[row], schedule.vos),
        "job": pa.array(jobs.number[row]),
        "phase": names_at(phase, PHASES),
        "begin_s": pa.array(begin / SECOND_US),
        "end_s": pa.array(end / SECOND_US),
        "processors": pa.array(jobs.processors[row]),
        "executed_vo": names_at(placement.executed_vo[row], schedule.vos),
        "cluster": names_at(placement.cluster[row], clusters),
        "machine": pa.array(outcome.machine[row], mask=outcome.machine[row] < 0),
        "hops": pa.array(placement.hops[row]),
    }
    return pa.table({name: columns[name] for name in FILES["phases"].columns})


def write_swf(schedule: Schedule, path: Path, run: Path) -> int:
    """Write the jobs in SWF, in seconds; estimates are rounded up.

    Jobs are renumbered from 1 in the order of submission. Status: 1 completed, 0 failed, 5 did not
    run. Group and queue: VO of the user, and VO where it ran. Partition: the cluster. Returns how
    many jobs ran longer than they requested: they were preempted or ran on machines of less than
    1,000 MIPS, for which estimates are given.
    """
    order = np.lexsort((schedule.jobs.number, schedule.jobs.vo, schedule.jobs.submit_us))
    jobs, ran = schedule.jobs.take(order), schedule.ran[order]
    outcome, placement = jobs.outcome, jobs.placement
    columns: Ints = np.full((len(order), len(SwfField)), -1, np.int64)
    submit, start, end = (
        _whole_seconds(times) for times in (jobs.submit_us, outcome.start_us, outcome.end_us)
    )
    estimate = -(-jobs.estimate_us // SECOND_US) * SECOND_US
    given = {
        SwfField.JOB_NUMBER: np.arange(1, len(order) + 1),
        SwfField.SUBMIT_TIME: submit,
        SwfField.WAIT_TIME: np.where(ran, start - submit, -1),
        SwfField.RUN_TIME: np.where(ran, end - start, -1),
        SwfField.ALLOCATED_PROCESSORS: np.where(ran, jobs.processors, -1),
        SwfField.REQUESTED_PROCESSORS: jobs.requested,
        SwfField.REQUESTED_TIME: estimate,
        SwfField.STATUS: np.select([~ran, outcome.state == JobState.COMPLETED], [5, 1], 0),
        SwfField.USER: _users(jobs),
        SwfField.GROUP: jobs.vo + 1,
        SwfField.QUEUE: np.where(ran, placement.executed_vo + 1, -1),
        SwfField.PARTITION: np.where(ran, placement.cluster + 1, -1),
    }
    for field, column in given.items():
        columns[:, field] = column
    log = Log(path, columns, np.arange(len(order)), _header(schedule, run))
    write_log(log, path)
    return int((columns[:, SwfField.RUN_TIME] > estimate).sum())


def _whole_seconds(times_us: Ints) -> Ints:
    """Microseconds of the nearest second; -1 for no time."""
    seconds = (times_us + SECOND_US // 2) // SECOND_US * SECOND_US
    return np.where(times_us < 0, -1, seconds)


def _users(jobs: JobResults) -> Ints:
    """Users of all VOs, numbered through the grid from 1; -1 for none."""
    pairs = np.stack([jobs.vo, jobs.user], axis=1)
    _, number = np.unique(pairs, axis=0, return_inverse=True)
    return np.where(jobs.user < 0, -1, number.ravel() + 1)


def _header(schedule: Schedule, run: Path) -> dict[str, str]:
    cpus = (earlier_run(run) or {}).get("cpus")
    partitions = [
        f"{place + 1} {schedule.vos[vo]}/{cluster}"
        for place, (vo, cluster) in enumerate(schedule.clusters)
    ]
    groups = [f"{place + 1} {vo}" for place, vo in enumerate(schedule.vos)]
    return {
        "Version": "2.2",
        "Computer": f"Grid emulator {__version__}, {run.resolve().name}",
        "Acknowledge": "made by an emulator, not by users",
        "MaxJobs": f"{len(schedule)}",
        "MaxRecords": f"{len(schedule)}",
        **({"MaxProcs": f"{cpus}"} if isinstance(cpus, int) else {}),
        "Note": "Groups are VOs of users, queues are VOs where jobs ran.",
        "Group": "\n".join(groups),
        "Partition": "\n".join(partitions),
    }


def check_batsim(folder: Path) -> None:
    """Raises InputError if Batsim's files cannot be written to `folder`, or would replace others.

    An earlier export has left both of them, and no run.
    """
    check_place(folder)
    there = [name for name in BATSIM_FILES if (folder / name).exists()]
    if (there and len(there) < len(BATSIM_FILES)) or (folder / RUN_FILES[-1]).exists():
        found = f"a folder with another {there[0]}" if there else "the folder of a run"
        raise input_error("--out", found, "a new folder, or one without such files", str(folder))


def write_batsim(folder: Path, run: Path) -> None:
    """Write Batsim's `jobs.csv` and `schedule.csv` of the run in `run` to `folder`."""
    check_batsim(folder)
    metrics, manifest = read_metrics(run / "metrics.json"), earlier_run(run) or {}
    path = run / "jobs.parquet"
    try:
        table = pyarrow.parquet.read_table(path, columns=list(BATSIM_COLUMNS))
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise not_read(path, error) from None
    rows = _one_of(metrics, manifest, table)
    is_text = pa.types.is_dictionary
    types = {one.name: pa.string() if is_text(one.type) else one.type for one in table.schema}
    quoted = pyarrow.csv.WriteOptions(quoting_style="needed")
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "jobs.csv") as path:
        pyarrow.csv.write_csv(table.cast(pa.schema(types)), path, quoted)
    with (
        replacing(folder / "schedule.csv") as path,
        path.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FILES["schedule"].columns)
        writer.writerow(rows[name] for name in FILES["schedule"].columns)


def _one_of(metrics: Mapping[str, Any], manifest: Any, table: pa.Table) -> dict[str, Any]:
    """The row of schedule.csv, over all jobs: metrics of a run may exclude its warm-up."""
    counts = table["final_state"].cast(pa.string()).value_counts().to_pylist()
    ended = {one["values"]: one["counts"] for one in counts}
    killed = sum(count for state, count in ended.items() if state.startswith("COMPLETED_WALL"))
    rejected = ended.get("REJECTED", 0)
    submitted, done = len(table), int(table["success"].to_numpy().sum())
    began, last = (
        pyarrow.compute.min_max(table[name]).as_py() for name in ("submission_time", "finish_time")
    )

    def of(name: str) -> tuple[Any, Any]:
        column = table[name].drop_null().to_numpy()
        return (float(column.mean()), float(column.max())) if len(column) else ("", "")

    waits, turnarounds, stretches = map(of, ("waiting_time", "turnaround_time", "stretch"))
    return {
        "batsim_version": f"grid-emulator-{__version__}",
        "nb_jobs": submitted,
        "nb_jobs_finished": submitted - rejected,
        "nb_jobs_success": done,
        "nb_jobs_killed": killed,
        "nb_jobs_rejected": rejected,
        "success_rate": done / submitted if submitted else "",
        "makespan": "" if last["max"] is None else round(last["max"] - began["min"], 6),
        "mean_waiting_time": waits[0],
        "max_waiting_time": waits[1],
        "mean_turnaround_time": turnarounds[0],
        "max_turnaround_time": turnarounds[1],
        "mean_slowdown": stretches[0],
        "max_slowdown": stretches[1],
        "simulation_time": manifest.get("wall_seconds", ""),
        "consumed_joules": metrics["grid"].get("energy_j", ""),
    }
