"""From the events of several processes to one file, of which only parts are ever in memory.

Each process has its events in the order (time, entity), and each entity is in one process. So the
parts are merged by these two, and what comes out does not depend on who ran what.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from grid.model.job_results import JobResults
from grid.model.job_table import JobTable
from grid.results.event_table import EVENT_SCHEMA, cluster_entities, job_events
from grid.results.machines import Directory

ROWS_A_GROUP = 131_072
PLATFORM = b"platform"
"""The key of the file's metadata under which it has the clusters, as JSON; see `EventSpool`."""

_NAMES = ("entity", "kind", "event", "peer", "vo", "to_vo", "cluster", "state")
_DELTAS = ("time_us", "job")


class EventSpool:
    """Takes in events while a run goes on, on disk, and writes the file when it is over.

    `names` are all entities in order, `direct` the jobs that enter clusters directly, by VO.
    `platform` tells readers of the file what clusters there are (`grid.model.cluster_facts`).
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
        """Events of that process, as `packed_events` gives them, after those that came before."""
        self._processes.add(process)
        with self._path(process).open("ab") as file:
            file.writelines(packed)

    def write(self, path: Path, results: JobResults, directory: Directory) -> None:
        """Write all events of the run with these results. To be called once."""
        sources = [self._read(process) for process in sorted(self._processes)]
        sources.append(job_events(results, directory, self._direct))
        names = sorted({*self._names, *cluster_entities(directory)})
        schema = _file_schema().with_metadata({PLATFORM: json.dumps(self._platform).encode()})
        with pyarrow.parquet.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=list(_NAMES),
            column_encoding=dict.fromkeys(_DELTAS, "DELTA_BINARY_PACKED"),
        ) as writer:
            for group in _in_groups(_merged(sources, names)):
                writer.write_table(group.cast(schema), row_group_size=ROWS_A_GROUP)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, process: int) -> Path:
        return self._folder / f"{process}.arrow"

    def _read(self, process: int) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(self._path(process))) as file:
            while file.tell() < file.size():
                with pa.ipc.open_stream(file) as reader:
                    yield from reader


def _file_schema() -> pa.Schema:
    name = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([(one.name, name if one.name in _NAMES else one.type) for one in EVENT_SCHEMA])


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of one length, but for the last."""
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += len(table)
        while rows >= ROWS_A_GROUP:
            whole = pa.concat_tables(held)
            yield whole.slice(0, ROWS_A_GROUP).combine_chunks()
            held = [whole.slice(ROWS_A_GROUP)]
            rows -= ROWS_A_GROUP
    if rows:
        yield pa.concat_tables(held).combine_chunks()


class _Source:
    """The events of one process: those that were read and not yet given, and the rest."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._held = pa.table(EVENT_SCHEMA.empty_table())
        self.more = True
        self.read()

    @property
    def last_us(self) -> int:
        """The time of the last event that was read."""
        return self._held["time_us"][-1].as_py() if len(self._held) else -1

    def read(self) -> None:
        """Read some more."""
        batch = next(self._batches, None)
        if batch is None:
            self.more = False
        else:
            self._held = pa.concat_tables([self._held, pa.Table.from_batches([batch])])

    def before(self, time_us: int | None) -> pa.Table:
        """Give what is before that time, or all."""
        times = self._held["time_us"].to_numpy()
        end = len(times) if time_us is None else int(np.searchsorted(times, time_us))
        given, self._held = self._held.slice(0, end), self._held.slice(end)
        return given


def _merged(
    batches: Sequence[Iterator[pa.RecordBatch]], names: Sequence[str]
) -> Iterator[pa.Table]:
    """All events in the order (time, entity), those of one entity and instant as they came."""
    sources = [_Source(one) for one in batches]
    places = pa.array(names, pa.string())
    while True:
        unread = [source for source in sources if source.more]
        safe = min((source.last_us for source in unread), default=None)
        table = pa.concat_tables([source.before(safe) for source in sources])
        if len(table):
            rank = pyarrow.compute.index_in(table["entity"], places).to_numpy()
            yield table.take(pa.array(np.lexsort((rank, table["time_us"].to_numpy()))))
        if safe is None:
            return
        for source in unread:
            if source.last_us <= safe:
                source.read()
