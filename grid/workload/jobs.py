"""Jobs from the records of a log: which can run, their CPUs, estimates and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Ints
from grid.model.errors import ErrorLine, InputError
from grid.model.job import MEMORY
from grid.model.job_table import COLUMNS, LIMITS, After, JobTable, Predecessors, compact
from grid.model.time import NEVER
from grid.workload.logs import MOST_ERRORS, UNKNOWN, GwfField, Log, SwfField

Route = Literal["site", "vo", "partition", "group", "user", "queue"]
CpusOf = Literal["requested", "allocated"]
CPUS_OF: tuple[CpusOf, ...] = ("requested", "allocated")
MemoryOf = Literal["requested", "used"]

ROUTES: dict[str, SwfField] = {
    "partition": SwfField.PARTITION,
    "group": SwfField.GROUP,
    "user": SwfField.USER,
    "queue": SwfField.QUEUE,
}
"""Fields that can route a job to its VO, in every format."""
GWF_ROUTES: dict[str, SwfField | GwfField] = {
    **ROUTES,
    "site": GwfField.ORIGINAL_SITE,
    "vo": GwfField.VIRTUAL_ORGANIZATION,
}

PARTIAL_EXECUTIONS = (2, 3, 4)
"""Statuses of lines for a part of a job that was swapped out or checkpointed; the job has its own
line as well."""
CANCELLED = 5
"""Status of a job that its user cancelled."""
REMARKS = (
    "out_of_order", "negative_requested_time", "longer_than_requested", "job_steps",
    "extra_columns", "several_predecessors", "head_rows", "memory_not_read",
    "allocated_not_requested",
)  # fmt: skip
"""Remarks of `runnable_rows` and readers on jobs that are not left out."""


def jobs_from_log(
    log: Log,
    *,
    route: Route | None = None,
    max_processors: int | None = None,
    predecessors: bool = False,
    cut_at_estimate: bool = True,
    cpus: CpusOf = "requested",
    memory: MemoryOf | None = None,
    gres: Sequence[str] = (),
    keep_cancelled: bool = False,
) -> tuple[JobTable, dict[str, int]]:
    """The jobs of `log` that can run, by submission, and how many records were left out and why.

    Numbers and times are the log's own. CPUs are the requested ones, else the allocated ones, or
    vice versa, by `cpus`. `memory` names the field, if any, that is read as memory: kilobytes a
    processor, times processors; `gres` are the names of resources that jobs hold. The estimate is
    the requested time, else the run time. With `cut_at_estimate` a job runs at most its
    estimate, as enforced by the log's batch system. `site` is the field that `route` names.
    `runnable_rows` defines what is left out. With `predecessors`
    (SWF only), jobs wait for their preceding jobs, and for the think time after these; tasks of
    workflows always wait. With
    `keep_cancelled`, jobs that were cancelled while they waited (see `cancelled_in_queue`) are
    cancelled after the same time, or run for their requested time if they start earlier. A time of
    an extra field of the log is the job's prediction. Raises InputError if two of the jobs have the
    same number, or a negative one.
    """
    columns, waits = log.columns, np.zeros(len(log), np.bool_)
    if keep_cancelled:
        columns, waits = columns.copy(), cancelled_in_queue(columns)
        columns[waits, SwfField.RUN_TIME] = columns[waits, SwfField.REQUESTED_TIME]
    rows, skipped = runnable_rows(columns, max_processors, cpus)
    skipped |= log.remarks
    _check_numbers(log, rows)
    run_us, submit_us = columns[rows, SwfField.RUN_TIME], log[SwfField.SUBMIT_TIME][rows]
    cancel_us = np.where(waits[rows], submit_us + log[SwfField.WAIT_TIME][rows], NEVER)
    requested_us = log[SwfField.REQUESTED_TIME][rows]
    estimate_us = np.where(requested_us > 0, requested_us, run_us)
    site = None if route is None else (GWF_ROUTES if log.is_gwf else ROUTES)[route]
    jobs = JobTable.of(
        number=log[SwfField.JOB_NUMBER][rows],
        # An unknown user is -1; other negative numbers are no users either.
        user=np.maximum(log[SwfField.USER][rows], UNKNOWN),
        site=np.full(len(rows), UNKNOWN) if site is None else log[site][rows],
        submit_us=submit_us,
        processors=processors_of(log.columns, cpus)[rows],
        estimate_us=estimate_us,
        run_us=np.minimum(run_us, estimate_us) if cut_at_estimate else run_us,
        cancel_us=cancel_us,
        predicted_us=0 * run_us if log.extra_us is None else np.maximum(log.extra_us[rows], 0),
    )
    if memory is not None:
        skipped.pop("memory_not_read", None)
        field = SwfField.REQUESTED_MEMORY if memory == "requested" else SwfField.USED_MEMORY
        kilobytes = np.maximum(log[field][rows], 0) * jobs.processors.astype(np.float64)
        jobs = replace(jobs, resources={MEMORY: kilobytes / 1024})
    lines = log.lines[rows].tolist()
    for name in gres:
        amounts = [log.gres.get(name, {}).get(line, 0) for line in lines]
        jobs = replace(jobs, resources={**jobs.resources, name: np.array(amounts, np.float64)})
    if log.tasks is not None:
        tasks = [log.tasks[line] for line in lines]
        jobs = replace(
            jobs,
            input_mb=np.array([task.input_mb for task in tasks], np.float64),
            predecessors=Predecessors.of([task.after for task in tasks], workflow=0),
        )
    elif predecessors:
        skipped.pop("several_predecessors", None)
        think_us = np.maximum(log[SwfField.THINK_TIME][rows], 0)
        jobs = replace(jobs, predecessors=Predecessors.of(_preceding(log, rows), think_us))
    return jobs, skipped


def _preceding(log: Log, rows: npt.NDArray[np.intp]) -> list[list[After]]:
    """The preceding jobs of SWF records, which may have ended in any state."""
    last, lines = log[SwfField.PRECEDING_JOB][rows].tolist(), log.lines[rows].tolist()
    numbers = [log.several.get(line, (one,)) for line, one in zip(lines, last, strict=True)]
    return [
        [After(number, must_complete=False, if_known=True) for number in each if number >= 0]
        for each in numbers
    ]


def cancelled_in_queue(columns: Ints) -> Bools:
    """Which records (n, 16 or more) were cancelled after a known wait, and never ran."""
    is_cancelled = (columns[:, SwfField.STATUS] == CANCELLED) & (columns[:, SwfField.RUN_TIME] <= 0)
    known = (columns[:, SwfField.WAIT_TIME] > 0) & (columns[:, SwfField.REQUESTED_TIME] > 0)
    found: Bools = is_cancelled & known
    return found


def runnable_rows(
    columns: Ints, max_processors: int | None = None, cpus: CpusOf = "requested"
) -> tuple[npt.NDArray[np.intp], dict[str, int]]:
    """The rows of records (n, 16 or more) that can run, by submission, and a count by reason.

    A record is left out for the first reason that applies: `partial_execution` (a part of a job
    that has a line of its own), `no_run_time`, `no_processors`, `negative_submit_time`, `too_large`
    (more than `max_processors`). Remarks on the others: `out_of_order` (submitted before an earlier
    line; sorted), `negative_requested_time` (treated as unknown), `longer_than_requested`,
    `allocated_not_requested` (allocated other CPUs than requested), `memory_not_read`.
    """
    submit_us = columns[:, SwfField.SUBMIT_TIME]
    processors = processors_of(columns, cpus)
    reasons = {
        "partial_execution": np.isin(columns[:, SwfField.STATUS], PARTIAL_EXECUTIONS),
        "no_run_time": columns[:, SwfField.RUN_TIME] <= 0,
        "no_processors": processors <= 0,
        "negative_submit_time": submit_us < 0,
    }
    if max_processors is not None:
        reasons["too_large"] = processors > max_processors
    kept = np.ones(len(columns), np.bool_)
    counts: dict[str, int] = {}
    for reason, applies in reasons.items():
        counts[reason] = int((kept & applies).sum())
        kept &= ~applies
    rows = np.flatnonzero(kept)
    requested_us, run_us = columns[rows, SwfField.REQUESTED_TIME], columns[rows, SwfField.RUN_TIME]
    remarks = {
        "out_of_order": submit_us[rows] < np.maximum.accumulate(submit_us[rows]),
        "negative_requested_time": requested_us < UNKNOWN,
        "longer_than_requested": (requested_us > 0) & (run_us > requested_us),
        "allocated_not_requested": other_allocated(columns[rows]),
        "memory_not_read": columns[rows, SwfField.REQUESTED_MEMORY] > 0,
    }
    counts |= {remark: int(applies.sum()) for remark, applies in remarks.items()}
    rows = rows[np.argsort(submit_us[rows], kind="stable")]
    return rows, {reason: count for reason, count in counts.items() if count}


def other_allocated(columns: Ints) -> Bools:
    """Which records (n, 16 or more) were allocated other CPUs than they requested."""
    requested = columns[:, SwfField.REQUESTED_PROCESSORS]
    allocated = columns[:, SwfField.ALLOCATED_PROCESSORS]
    differs: Bools = (requested > 0) & (allocated > 0) & (requested != allocated)
    return differs


def processors_of(columns: Ints, cpus: CpusOf = "requested") -> Ints:
    """CPUs of each record (n, 16 or more): those requested, else allocated, or vice versa."""
    requested = columns[:, SwfField.REQUESTED_PROCESSORS]
    allocated = columns[:, SwfField.ALLOCATED_PROCESSORS]
    if cpus == "allocated":
        return np.where(allocated > 0, allocated, requested)
    return np.where(requested > 0, requested, allocated)


def _check_numbers(log: Log, rows: npt.NDArray[np.intp]) -> None:
    numbers, lines = log[SwfField.JOB_NUMBER][rows], log.lines[rows]
    order = np.lexsort((lines, numbers))
    repeats = np.zeros(len(rows), np.bool_)
    repeats[order[1:]] = numbers[order[1:]] == numbers[order[:-1]]
    wrong = np.flatnonzero(repeats | (numbers < 0))
    wrong = wrong[np.argsort(lines[wrong], kind="stable")][:MOST_ERRORS]
    if len(wrong):
        name = log.format.name(SwfField.JOB_NUMBER)
        raise InputError(
            [
                ErrorLine(
                    str(log.path),
                    int(lines[row]),
                    name,
                    f"{numbers[row]} twice" if numbers[row] >= 0 else f"{numbers[row]}",
                    "a unique number, 0 or more",
                )
                for row in wrong
            ]
        )


def repeated(jobs: JobTable, times: int) -> JobTable:
    """All `jobs`, `times` times, each copy one mean interarrival time after the previous.

    The jobs of a copy have numbers above those of the previous one, and wait for jobs of their own
    copy. Raises ValueError if numbers or times would exceed their limits.
    """
    if times == 1 or not len(jobs):
        return jobs
    first, last = int(jobs.submit_us.min()), int(jobs.submit_us.max())
    period_us = last - first + max(1, round((last - first) / max(1, len(jobs) - 1)))
    numbers = int(jobs.number.max()) + 1
    after = np.stack([jobs.deadline_us, jobs.cancel_us])
    latest_us = max(last, int(after[after < NEVER].max(initial=0))) + period_us * (times - 1)
    if latest_us >= NEVER:
        raise ValueError("fewer repetitions, since virtual time ends before all jobs are submitted")
    if numbers * times - 1 > LIMITS["number"][1]:
        raise ValueError("fewer repetitions, since job numbers are limited to 2^53")
    steps = {"submit_us": period_us, "number": numbers}
    columns: dict[str, Any] = {
        name: _tiled(getattr(jobs, name), times, steps.get(name, 0)) for name in COLUMNS
    }
    for name in ("deadline_us", "cancel_us"):
        if (columns[name] < NEVER).any():
            moved = _tiled(getattr(jobs, name), times, period_us)
            columns[name] = np.where(columns[name] < NEVER, moved, NEVER)
    made = replace(
        jobs,
        **columns,
        requirements=jobs.requirements * times,
        sizes=jobs.sizes * times,
        resources={name: np.tile(held, times) for name, held in jobs.resources.items()},
    )
    before = jobs.predecessors
    if before is None:
        return made
    return replace(made, predecessors=before.repeated(times, numbers, period_us))


def _tiled(column: Ints, times: int, step: int = 0) -> Ints:
    """The column `times` times, each copy larger by `step` than the previous."""
    once = compact(column)
    if not step and once.strides == (0,):
        return np.broadcast_to(once[:1], (len(once) * times,))
    made = np.tile(column, times)
    if step:
        made.reshape(times, -1)[:] += np.arange(0, step * times, step)[:, None]
    return made
