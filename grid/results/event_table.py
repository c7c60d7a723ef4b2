"""The events of a run as columns, in one order that no placement changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from grid.model.arrays import Ints
from grid.model.event import DECISION, Event
from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.model.job_table import JobTable
from grid.results.machines import Directory, on_no_one_machine, ran

_NAME, _WHOLE, _NUMBER = pa.string(), pa.int64(), pa.float64()
_TYPES = {
    "time_us": _WHOLE, "job": _WHOLE, "resource": _WHOLE, "machine": _WHOLE, "processors": _WHOLE,
    "licenses": _WHOLE, "estimate_us": _WHOLE, "ttl": _WHOLE, "hops": _WHOLE, "age_us": _WHOLE,
    "ram_mb": _NUMBER, "utility": _NUMBER, "free_cpus": _NUMBER, "load": _NUMBER,
    "waits": pa.bool_(), "preemptions": _WHOLE, "restarts": _WHOLE,
}  # fmt: skip
EVENT_SCHEMA = pa.schema([(name, _TYPES.get(name, _NAME)) for name in Event._fields])

ROWS_AT_A_TIME = 65_536
SUBMIT, END, START = 0, 1, 2
"""In this order at one instant: what ends makes room for what starts."""


def event_batch(events: Sequence[Event]) -> pa.RecordBatch:
    """The events as columns, in their own order."""
    columns: Any = zip(*events, strict=True) if events else [()] * len(EVENT_SCHEMA)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, EVENT_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENT_SCHEMA)


def packed_events(events: Sequence[Event]) -> bytes:
    """The same, as a stream of Arrow's, compressed."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, EVENT_SCHEMA, options=options) as writer:
        writer.write_batch(event_batch(events))
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def job_events(
    results: JobResults, directory: Directory, direct: Sequence[JobTable | None]
) -> Iterator[pa.RecordBatch]:
    """The events of clusters: the start and end of each job that ran, in order of time.

    Jobs in `direct`, by VO, entered the only cluster of their VO; of them the submission, too.
    """
    names = cluster_entities(directory)
    rows = np.flatnonzero(ran(results))
    submitted = [_rows_of(results, vo, jobs) for vo, jobs in enumerate(direct) if jobs is not None]
    came = np.concatenate([np.empty(0, np.int64), *submitted])
    cluster = _clusters(results, directory)
    row = np.concatenate([came, rows, rows])
    what = np.repeat([SUBMIT, END, START], [len(came), len(rows), len(rows)])
    outcome = results.outcome
    time = np.concatenate([results.submit_us[came], outcome.end_us[rows], outcome.start_us[rows]])
    rank = np.argsort(np.argsort(np.array(names)))[cluster[row]] if len(names) else cluster[row]
    order = np.lexsort((row, what, rank, time))
    asked = _more_asked(results, direct)
    for first in range(0, len(order), ROWS_AT_A_TIME):
        part = order[first : first + ROWS_AT_A_TIME]
        yield _batch(results, directory, names, asked, time[part], what[part], row[part])


def cluster_entities(directory: Directory) -> list[str]:
    """The names of the Local Dispatchers, by position of their clusters."""
    return [f"{directory.vos[one.vo]}/cluster/{one.name}" for one in directory.clusters]


def _rows_of(results: JobResults, vo: int, jobs: JobTable) -> Ints:
    """The rows of these jobs of the VO, which may have others as well."""
    mine = (results.vo == vo) & np.isin(results.number, jobs.number)
    return np.flatnonzero(mine).astype(np.int64)


def _clusters(results: JobResults, directory: Directory) -> Ints:
    """The cluster of each job; of one that never ran, the first of its own VO."""
    first: Ints = np.zeros(len(directory.vos), np.int64)
    for position in reversed(range(len(directory.clusters))):
        first[directory.clusters[position].vo] = position
    cluster = results.placement.cluster
    return np.where(cluster < 0, first[results.vo], cluster)


def _more_asked(results: JobResults, direct: Sequence[JobTable | None]) -> dict[str, Any]:
    """What the results do not keep of direct jobs: memory and licenses. Shapes (jobs,)."""
    ram_mb, licenses = np.zeros(len(results)), np.zeros(len(results), np.int64)
    for vo, jobs in enumerate(direct):
        if jobs is None or not (jobs.ram_mb.any() or jobs.licenses.any()):
            continue
        rows = _rows_of(results, vo, jobs)
        order = np.argsort(jobs.number)
        place = order[np.searchsorted(jobs.number, results.number[rows], sorter=order)]
        ram_mb[rows], licenses[rows] = jobs.ram_mb[place], jobs.licenses[place]
    return {"ram_mb": ram_mb, "licenses": licenses}


def _batch(
    results: JobResults,
    directory: Directory,
    names: Sequence[str],
    asked: dict[str, Any],
    time: Ints,
    what: Ints,
    row: Ints,
) -> pa.RecordBatch:
    cluster = _clusters(results, directory)[row]
    is_end, is_submit = what == END, what == SUBMIT
    outcome, placement = results.outcome, results.placement
    on_no_one = on_no_one_machine(outcome.machine[row], cluster, directory) | is_submit
    states = [state.name.lower() for state in JobState]
    given: dict[str, pa.Array] = {
        "time_us": pa.array(time),
        "entity": _take(names, cluster),
        "kind": pa.array([DECISION]).take(pa.array(np.zeros(len(row), np.int64))),
        "event": _take(("submit", "end", "start"), what),
        "vo": _take(directory.vos, results.vo[row]),
        "job": pa.array(results.number[row]),
        "cluster": _take([one.name for one in directory.clusters], cluster),
        "machine": pa.array(outcome.machine[row], mask=on_no_one),
        "processors": pa.array(results.processors[row]),
        "ram_mb": pa.array(asked["ram_mb"][row], mask=(asked["ram_mb"][row] == 0) | ~is_submit),
        "licenses": pa.array(
            asked["licenses"][row], mask=(asked["licenses"][row] == 0) | ~is_submit
        ),
        "estimate_us": pa.array(results.estimate_us[row], mask=~is_submit),
        "hops": pa.array(placement.hops[row], mask=is_submit),
        "utility": pa.array(placement.utility[row], mask=is_submit),
        "state": _take(states, np.where(is_end, outcome.state[row], -1)),
        "preemptions": pa.array(outcome.preemptions[row], mask=~is_end),
        "restarts": pa.array(outcome.restarts[row], mask=~is_end),
    }
    arrays = [
        given.get(field.name, pa.nulls(len(row), field.type)).cast(field.type)
        for field in EVENT_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENT_SCHEMA)


def _take(names: Sequence[str], positions: Ints) -> pa.Array:
    """The names at the positions; null at negative ones."""
    places = pa.array(positions, mask=positions < 0)
    return pa.array(list(names), pa.string()).take(places)
