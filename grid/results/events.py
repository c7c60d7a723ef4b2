"""events.parquet: the events of a run, in one order that no placement changes.

Each process has its events in the order (time, entity), and each entity is in one process.
Therefore a merge by these two does not depend on the placement. Only parts of the events are in
memory at any time.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet

from grid.model.arrays import Ints
from grid.model.errors import ErrorLine, InputError
from grid.model.job import JobKey, JobRequest, JobState, dtypes
from grid.model.job_results import RESULT_COLUMNS, JobResults
from grid.model.job_table import JobTable
from grid.model.records import DECISION, ClusterFacts, Event, resources_text
from grid.model.time import NEVER
from grid.results.history import NOT_KEPT, ClusterLog, whereabouts, why_waiting
from grid.results.machines import Directory, on_no_one_machine, ran
from grid.results.run_folder import EVENTS_FILE, earlier_run
from grid.results.tables import names_at

ROWS_A_GROUP = 131_072
_ROWS_A_BATCH = 65_536
_PLATFORM = b"platform"
"""Key in the metadata of the file: the clusters, as JSON."""
_NAMES = ("entity", "kind", "event", "peer", "vo", "to_vo", "cluster", "resources", "state")
"""Columns with few distinct texts."""
_RISING = ("time_us", "job")
_OF_CLUSTERS = ("submit", "run_job", "move_gang", "start", "end", "take_down", "repair")

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
EVENT_SCHEMA = pa.schema(
    [(name, _TYPES[(get_args(one) or (one,))[0]]) for name, one in get_type_hints(Event).items()]
)
_FILE_SCHEMA = pa.schema(
    [
        (one.name, pa.dictionary(pa.int32(), pa.string()) if one.name in _NAMES else one.type)
        for one in EVENT_SCHEMA
    ]
)


# Writing


def packed_events(events: Sequence[Event]) -> bytes:
    """The events as a compressed stream of Arrow."""
    columns: Any = zip(*events, strict=True) if events else [()] * len(EVENT_SCHEMA)
    arrays = [pa.array(values, one.type) for values, one in zip(columns, EVENT_SCHEMA, strict=True)]
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, EVENT_SCHEMA, options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=EVENT_SCHEMA))
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


class EventSpool:
    """Stores events on disk during a run, and writes the file when it has ended.

    `names` are all entities in order, `direct` the jobs that enter clusters directly, by VO.
    `platform` describes the clusters to readers of the file (`grid.model.records`).
    """

    def __init__(
        self,
        names: Sequence[str],
        direct: Sequence[JobTable | None],
        platform: Sequence[Mapping[str, Any]],
    ) -> None:
        self._names = tuple(names)
        self._direct = tuple(direct)
        self._platform = list(platform)
        self._folder = Path(tempfile.mkdtemp(prefix="grid-events-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._processes: set[int] = set()

    def add(self, process: int, packed: Iterable[bytes]) -> None:
        """Append events of that process, from `packed_events`."""
        self._processes.add(process)
        with self._path(process).open("ab") as file:
            file.writelines(packed)

    def write(self, path: Path, results: JobResults, directory: Directory) -> None:
        """Write all events of the run with these results. To be called once."""
        sources = [self._read(process) for process in sorted(self._processes)]
        sources.append(job_events(results, directory, self._direct))
        names = sorted({*self._names, *_cluster_entities(directory)})
        schema = _FILE_SCHEMA.with_metadata({_PLATFORM: json.dumps(self._platform).encode()})
        with pyarrow.parquet.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=list(_NAMES),
            column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
        ) as writer:
            for group in _groups(_merged(sources, names)):
                writer.write_table(group.cast(schema), row_group_size=ROWS_A_GROUP)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, process: int) -> Path:
        return self._folder / f"{process}.arrow"

    def _read(self, process: int) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(self._path(process))) as file:
            while file.tell() < file.size():
                with pa.ipc.open_stream(file) as reader:
                    yield from reader


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of `ROWS_A_GROUP`, except for the last."""
    rest = EVENT_SCHEMA.empty_table()
    for table in tables:
        rest = pa.concat_tables([rest, table])
        while len(rest) >= ROWS_A_GROUP:
            yield rest.slice(0, ROWS_A_GROUP).combine_chunks()
            rest = rest.slice(ROWS_A_GROUP)
    if len(rest):
        yield rest.combine_chunks()


def _merged(
    batches: Sequence[Iterator[pa.RecordBatch]], names: Sequence[str]
) -> Iterator[pa.Table]:
    """All events in the order (time, entity), those of one entity and time in their own."""
    ranks = pa.array(names, pa.string())
    waiting = [EVENT_SCHEMA.empty_table() for _ in batches]
    # By source that is not exhausted: the time of the last event that was read.
    last = dict.fromkeys(range(len(batches)), -1)
    while last:
        source = min(last, key=last.__getitem__)
        batch = next(batches[source], None)
        if batch is None:
            del last[source]
        elif batch.num_rows:
            waiting[source] = pa.concat_tables([waiting[source], pa.Table.from_batches([batch])])
            last[source] = batch["time_us"][-1].as_py()
        safe = min(last.values(), default=NEVER)
        ends = [int(np.searchsorted(one["time_us"].to_numpy(), safe)) for one in waiting]
        pairs = list(zip(waiting, ends, strict=True))
        table = pa.concat_tables([one.slice(0, end) for one, end in pairs])
        waiting = [one.slice(end) for one, end in pairs]
        if len(table):
            rank = pyarrow.compute.index_in(table["entity"], ranks).to_numpy()
            yield table.take(pa.array(np.lexsort((rank, table["time_us"].to_numpy()))))


# Events of clusters, from the table of jobs


_SUBMIT, _END, _START = 0, 1, 2
"""In this order at one time: an end frees CPUs for a start."""


def job_events(
    results: JobResults, directory: Directory, direct: Sequence[JobTable | None]
) -> Iterator[pa.RecordBatch]:
    """The start and end of each job that ran, and submissions to clusters, in order of time.

    Jobs in `direct`, by VO, are submitted to the only cluster of their VO.
    """
    names = _cluster_entities(directory)
    rows = np.flatnonzero(ran(results))
    submitted = [_rows_of(results, vo, jobs) for vo, jobs in enumerate(direct) if jobs is not None]
    direct_rows = np.concatenate([np.empty(0, np.int64), *submitted])
    row = np.concatenate([direct_rows, rows, rows])
    what = np.repeat([_SUBMIT, _END, _START], [len(direct_rows), len(rows), len(rows)])
    outcome = results.outcome
    times = (results.submit_us[direct_rows], outcome.end_us[rows], outcome.start_us[rows])
    time, cluster = np.concatenate(times), _clusters(results, directory)
    rank = np.argsort(np.argsort(np.array(names)))[cluster[row]] if len(names) else cluster[row]
    order = np.lexsort((row, what, rank, time))
    requests = _requests(results, direct)
    for first in range(0, len(order), _ROWS_A_BATCH):
        part = order[first : first + _ROWS_A_BATCH]
        yield _batch(results, directory, cluster, requests, time[part], what[part], row[part])


def _cluster_entities(directory: Directory) -> list[str]:
    """The names of the Local Dispatchers, by position of their clusters."""
    return [f"{directory.vos[one.vo]}/cluster/{one.name}" for one in directory.clusters]


def _rows_of(results: JobResults, vo: int, jobs: JobTable) -> Ints:
    """The rows of these jobs of the VO, which may have others as well."""
    own = (results.vo == vo) & np.isin(results.number, jobs.number)
    return np.flatnonzero(own).astype(np.int64)


def _clusters(results: JobResults, directory: Directory) -> Ints:
    """The cluster of each job; the first one of its VO if it never ran."""
    first: Ints = np.zeros(len(directory.vos), np.int64)
    for position in reversed(range(len(directory.clusters))):
        first[directory.clusters[position].vo] = position
    cluster = results.placement.cluster
    return np.where(cluster < 0, first[results.vo], cluster)


def _requests(results: JobResults, direct: Sequence[JobTable | None]) -> dict[str, Any]:
    """Requests of direct jobs in columns that the results do not keep. Shapes (jobs,)."""
    columns: dict[str, Any] = {
        name: np.zeros(len(results), kind)
        for name, kind in dtypes(JobRequest).items()
        if name in Event._fields and name not in RESULT_COLUMNS
    }
    text = columns["resources"] = np.full(len(results), "", object)
    for vo, jobs in enumerate(direct):
        if jobs is None:
            continue
        own = {name: getattr(jobs, name) for name in columns if name != "resources"}
        if not any(one.any() for one in (*own.values(), *jobs.resources.values())):
            continue
        rows = _rows_of(results, vo, jobs)
        order = np.argsort(jobs.number)
        place = order[np.searchsorted(jobs.number, results.number[rows], sorter=order)]
        for name, column in own.items():
            columns[name][rows] = column[place]
        if jobs.resources:
            text[rows] = [resources_text(one.resources) for one in jobs.jobs(0, len(jobs), "")]
            text[rows] = text[rows][place]
    return columns


def _batch(
    results: JobResults,
    directory: Directory,
    clusters: Ints,
    requests: dict[str, Any],
    time: Ints,
    what: Ints,
    row: Ints,
) -> pa.RecordBatch:
    cluster = clusters[row]
    is_end, is_submit = what == _END, what == _SUBMIT
    outcome, placement = results.outcome, results.placement
    no_machine = on_no_one_machine(outcome.machine[row], cluster, directory) | is_submit
    states = [state.name.lower() for state in JobState]
    known: dict[str, pa.Array] = {
        "time_us": pa.array(time),
        "entity": names_at(cluster, _cluster_entities(directory)),
        "kind": pa.repeat(DECISION, len(row)),
        "event": names_at(what, ("submit", "end", "start")),
        "vo": names_at(results.vo[row], directory.vos),
        "job": pa.array(results.number[row]),
        "cluster": names_at(cluster, [one.name for one in directory.clusters]),
        "machine": pa.array(outcome.machine[row], mask=no_machine),
        "processors": pa.array(results.processors[row]),
        "estimate_us": pa.array(results.estimate_us[row], mask=~is_submit),
        "hops": pa.array(placement.hops[row], mask=is_submit),
        "utility": pa.array(placement.utility[row], mask=is_submit),
        "state": names_at(np.where(is_end, outcome.state[row], -1), states),
        "preemptions": pa.array(outcome.preemptions[row], mask=~is_end),
        "restarts": pa.array(outcome.restarts[row], mask=~is_end),
    }
    for name, values in requests.items():
        given = values[row].astype(np.bool_)
        known[name] = pa.array(values[row], mask=~(given & is_submit))
    arrays = [
        known.get(one.name, pa.nulls(len(row), one.type)).cast(one.type) for one in EVENT_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENT_SCHEMA)


# Reading


class StateAges(NamedTuple):
    """Decisions on other VOs, by time: when, the deciding VO, and the age of its known state.

    Shapes (decisions,).
    """

    time_us: Ints
    vo: Ints
    age_us: Ints


class EventFile:
    """The events of the run in `folder`. Raises InputError if they are missing or broken."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENTS_FILE
        self._logs: dict[str, ClusterLog] = {}
        live = (earlier_run(folder) or {}).get("live")
        self.cut_short = isinstance(live, dict) and bool(live.get("unfinished"))
        """Whether the run ended before its jobs did, so that no event shows which had started."""
        if not self._path.is_file():
            raise self._error("no such file")
        try:
            schema = pyarrow.parquet.read_schema(self._path)
            if [one.name for one in schema] != EVENT_SCHEMA.names:
                raise ValueError("other columns")
            platform = json.loads((schema.metadata or {})[_PLATFORM])
            self.clusters = [ClusterFacts(**one) for one in platform]
        except pa.ArrowException:
            raise self._error("a corrupt file") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._error(str(error).splitlines()[0] if str(error) else "no run") from None

    def all(self) -> list[Event]:
        """All events, for small runs."""
        return self._read(pyarrow.dataset.scalar(True))

    def of_job(self, key: JobKey) -> list[Event]:
        """The events about the job and about calls for bids on its behalf, in their order."""
        field = pyarrow.dataset.field
        mine = (field("vo") == key[0]) & (field("job") == key[1])
        own = self._read(mine)
        calls = pa.array(sorted({one.call for one in own if one.call is not None}), pa.string())
        return self._read(mine | field("call").isin(calls)) if len(calls) else own

    def of_cluster(self, facts: ClusterFacts) -> list[Event]:
        """The arrivals, starts, ends and departures of jobs, and outages, in that cluster."""
        field = pyarrow.dataset.field
        kinds = pa.array(_OF_CLUSTERS, pa.string())
        own = (field("entity") == facts.entity) & field("event").isin(kinds)
        return self._read(own | (field("event") == "move_gang") & (field("peer") == facts.entity))

    def cluster_log(self, entity: str) -> ClusterLog | None:
        """The log of the cluster with that entity; None if there is no such cluster."""
        for facts in self.clusters:
            if facts.entity == entity:
                if entity not in self._logs:
                    self._logs[entity] = ClusterLog(facts, self.of_cluster(facts))
                return self._logs[entity]
        return None

    def explain(self, key: JobKey, mine: list[Event], time_us: int) -> list[str]:
        """What a job does at that time and why it waits; `mine` are its events."""
        where = whereabouts(key, mine, time_us) or "It has not been submitted yet."
        if self.cut_short:
            return [where, NOT_KEPT]
        seen = [one.entity for one in mine if "/cluster/" in one.entity and one.time_us <= time_us]
        log = self.cluster_log(seen[-1]) if seen else None
        why = why_waiting(key, log.at(time_us)) if log is not None else None
        return [where, *(why.sentences() if why is not None else [])]

    def state_ages(self, vos: Sequence[str]) -> StateAges:
        """How old known states were in decisions on other VOs; `vos` are all names in order."""
        field = pyarrow.dataset.field
        wanted = (field("kind") == DECISION) & (field("age_us") > 0)
        table = self._table(wanted, ["time_us", "entity", "age_us"])
        entities = pa.array([f"{vo}/scheduler" for vo in vos], pa.string())
        vo = pyarrow.compute.index_in(table["entity"], entities).fill_null(-1).to_numpy()
        return StateAges(table["time_us"].to_numpy(), vo, table["age_us"].to_numpy())

    def _read(self, wanted: pyarrow.dataset.Expression) -> list[Event]:
        table = self._table(wanted, EVENT_SCHEMA.names)
        columns = [table[name].to_pylist() for name in EVENT_SCHEMA.names]
        return list(map(Event._make, zip(*columns, strict=True)))

    def _table(self, wanted: pyarrow.dataset.Expression, names: list[str]) -> pa.Table:
        try:
            events = pyarrow.dataset.dataset(self._path, schema=EVENT_SCHEMA)
            return events.to_table(names, filter=wanted)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._error(str(error).splitlines()[0]) from None

    def _error(self, found: str) -> InputError:
        expected = "the events of a run (grid run --events)"
        return InputError([ErrorLine(str(self._path), None, "", found, expected)])
