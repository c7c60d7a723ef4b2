"""The table of jobs as others read it: Batsim's columns first, then ours.

Batsim documents its `_jobs.csv` so: times in seconds with six decimals, `success` 1 or 0, resources
as an interval set ("0-3 5"), and nothing where a job did not run. Its `final_state` is REJECTED for
a job that never ran, whether it was rejected or failed to find a place. What counts against
`requested_time` is `run_time`, as for whoever kills: no boots, no suspensions. A machine that is
faster than the reference kills earlier: such a job is called COMPLETED_FAILED, for want of its
speed here. What each column holds is in `grid.results.definitions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from grid.model.arrays import Bools, Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.model.time import NEVER, SECOND_US
from grid.results.energy import job_energy
from grid.results.machines import CpuIntervals, Directory, on_no_one_machine, ran

BATSIM_STATES = (
    "COMPLETED_SUCCESSFULLY",
    "COMPLETED_FAILED",
    "COMPLETED_WALLTIME_REACHED",
    "REJECTED",
)
STATES = tuple(state.name.lower() for state in JobState)
_TIME = pa.decimal128(20, 6)


class Times(NamedTuple):
    """A column of times in microseconds, null where they are not `known`. Shapes (jobs,)."""

    times_us: Ints
    known: Bools


Column: TypeAlias = pa.Array | Times
"""Integers, floats, texts, names (a dictionary), or times."""


def job_columns(
    jobs: JobResults,
    directory: Directory,
    workload_name: str,
    cpus: pa.Array,
) -> dict[str, Column]:
    """The columns of `jobs.csv` and `jobs.parquet`; `cpus` are the jobs' `cpu_numbers`."""
    outcome, placement = jobs.outcome, jobs.placement
    every = np.ones(len(jobs), np.bool_)
    once = ran(jobs)
    joules = job_energy(jobs, directory)
    on_no_one = on_no_one_machine(outcome.machine, placement.cluster, directory)
    execution_us = outcome.end_us - outcome.start_us
    run_us = outcome.held_us - outcome.lost_us
    turnaround_us = outcome.end_us - jobs.submit_us
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = turnaround_us / execution_us
    workloads = [f"{workload_name}.{vo}" for vo in directory.vos]
    empty = pa.repeat("", len(jobs))
    return {
        "job_id": pa.array(jobs.number),
        "workload_name": _names(jobs.vo, workloads if len(workloads) > 1 else [workload_name]),
        "profile": empty,
        "submission_time": Times(jobs.submit_us, every),
        "requested_number_of_resources": pa.array(jobs.processors),
        "requested_time": Times(jobs.estimate_us, every),
        "success": pa.array((outcome.state == JobState.COMPLETED).astype(np.int8)),
        "final_state": _names(_batsim_state(jobs, once, run_us), BATSIM_STATES),
        "starting_time": Times(outcome.start_us, once),
        "execution_time": Times(execution_us, once),
        "finish_time": Times(outcome.end_us, once),
        "waiting_time": Times(outcome.start_us - jobs.submit_us, once),
        "turnaround_time": Times(turnaround_us, once),
        "stretch": pa.array(stretch, mask=~(once & (execution_us > 0))),
        "allocated_resources": cpus,
        "consumed_energy": pa.array(joules, mask=np.isnan(joules)),
        "metadata": empty,
        "vo": _names(jobs.vo, directory.vos),
        "user": pa.array(jobs.user),
        "executed_vo": _names(placement.executed_vo, directory.vos),
        "cluster": _names(placement.cluster, [cluster.name for cluster in directory.clusters]),
        "machine": pa.array(outcome.machine, mask=on_no_one),
        "hops": pa.array(placement.hops),
        "utility": pa.array(placement.utility),
        "deadline": Times(jobs.deadline_us, jobs.deadline_us < NEVER),
        "assigned_time": Times(placement.assigned_us, placement.assigned_us >= 0),
        "state": _names(outcome.state, STATES),
        "preemptions": pa.array(outcome.preemptions),
        "restarts": pa.array(outcome.restarts),
        "power": pa.array(jobs.power),
        "run_time": Times(run_us, once),
    }


def batch_of(columns: Mapping[str, Column]) -> pa.RecordBatch:
    """The columns of `jobs.parquet`: times as floats, in seconds.

    Floats represent every microsecond of the first 272 years.
    """
    arrays = {
        name: pa.array(column.times_us / SECOND_US, mask=~column.known)
        if isinstance(column, Times)
        else column
        for name, column in columns.items()
    }
    return pa.RecordBatch.from_pydict(arrays)


def text_batch_of(columns: Mapping[str, Column]) -> pa.RecordBatch:
    """The columns of `jobs.csv`: times as decimal numbers of seconds, with six decimal places."""
    arrays = {
        name: _decimals(column) if isinstance(column, Times) else column
        for name, column in columns.items()
    }
    return pa.RecordBatch.from_pydict(arrays)


def _decimals(column: Times) -> pa.Array:
    """Exact seconds. A decimal is an integer of 128 bits: the microseconds, with their sign."""
    halves = np.empty((len(column.times_us), 2), "<i8")
    halves[:, 0] = column.times_us
    halves[:, 1] = column.times_us >> 63
    known = None if column.known.all() else pa.array(column.known).buffers()[1]
    return pa.Array.from_buffers(_TIME, len(halves), [known, pa.py_buffer(halves)])


def _names(positions: Ints, names: Sequence[str]) -> pa.Array:
    """The names at the positions, null at negative ones."""
    # Clusters of two VOs may have one name, and a category of pandas has one place.
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    place_of = np.array([places[name] for name in names], np.int32)
    indexes = pa.array(place_of[positions], mask=positions < 0)
    return pa.DictionaryArray.from_arrays(indexes, pa.array(list(places), pa.string()))


def _batsim_state(jobs: JobResults, once: Bools, run_us: Ints) -> Ints:
    """Positions in BATSIM_STATES."""
    outcome = jobs.outcome
    failed = np.where(run_us >= jobs.estimate_us, 2, 1)
    return np.where(outcome.state == JobState.COMPLETED, 0, np.where(once, failed, 3))


def cpu_numbers(cpus: CpuIntervals, rows: slice) -> pa.Array:
    """Texts like "0-3 5"; empty for the empty set."""
    begin, count = cpus.begin[rows], cpus.count[rows]
    ends = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
    places = np.repeat(begin - ends[:-1], count) + np.arange(ends[-1])
    first, last = (pa.array(column[places]) for column in (cpus.first, cpus.last))
    numbers = first.cast(pa.string())
    ranges = pyarrow.compute.binary_join_element_wise(numbers, last.cast(pa.string()), "-")
    texts = pyarrow.compute.if_else(pyarrow.compute.equal(first, last), numbers, ranges)
    return pyarrow.compute.binary_join(pa.ListArray.from_arrays(ends, texts), " ")
