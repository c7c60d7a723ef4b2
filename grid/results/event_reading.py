"""Reads events.parquet, only as much of it as is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet

from grid.model.cluster_facts import ClusterFacts
from grid.model.errors import ErrorLine, InputError
from grid.model.event import Event
from grid.model.job import JobKey
from grid.results.event_file import PLATFORM
from grid.results.event_table import EVENT_SCHEMA
from grid.results.history import NOT_KEPT, ClusterLog, whereabouts, why_waiting
from grid.results.run_folder import EVENTS_FILE, earlier_run

EXPECTED = "the events of a run (grid run --events)"
_OF_CLUSTERS = ("submit", "run_job", "move_gang", "start", "end", "take_down", "repair")


class EventFile:
    """The events of the run in `folder`. Raises InputError where they are missing or broken."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVENTS_FILE
        self._logs: dict[str, ClusterLog] = {}
        live = (earlier_run(folder) or {}).get("live")
        self.cut_short = isinstance(live, dict) and bool(live.get("unfinished"))
        """Whether jobs had not ended when the run did: no event tells of those that had started."""
        if not self._path.is_file():
            raise self._wrong("no such file")
        try:
            schema = pyarrow.parquet.read_schema(self._path)
            if [one.name for one in schema] != EVENT_SCHEMA.names:
                raise ValueError("other columns")
            told = json.loads((schema.metadata or {})[PLATFORM])
            self.clusters = [ClusterFacts.of_dict(one) for one in told]
        except pa.ArrowException:
            raise self._wrong("a broken file") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._wrong(str(error).splitlines()[0] if str(error) else "no run") from None

    def all(self) -> list[Event]:
        """All events, for runs that are known to be small."""
        return self._read(pyarrow.dataset.scalar(True))

    def of_job(self, key: JobKey) -> list[Event]:
        """The events about the job and about calls for bids on its behalf, in their order."""
        field = pyarrow.dataset.field
        mine = (field("vo") == key[0]) & (field("job") == key[1])
        own = self._read(mine)
        calls = pa.array(sorted({one.call for one in own if one.call is not None}), pa.string())
        return self._read(mine | field("call").isin(calls)) if len(calls) else own

    def of_cluster(self, facts: ClusterFacts) -> list[Event]:
        """Those with which jobs come to that cluster, start and end there or move away, and
        machines go down.
        """
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
        where = whereabouts(key, mine, time_us) or "It is not submitted yet."
        if self.cut_short:
            return [where, NOT_KEPT]
        seen = [one.entity for one in mine if "/cluster/" in one.entity and one.time_us <= time_us]
        log = self.cluster_log(seen[-1]) if seen else None
        why = why_waiting(key, log.at(time_us)) if log is not None else None
        return [where, *(why.sentences() if why is not None else [])]

    def _read(self, wanted: pyarrow.dataset.Expression) -> list[Event]:
        table = self._table(wanted, EVENT_SCHEMA.names)
        columns = [table[name].to_pylist() for name in EVENT_SCHEMA.names]
        return list(map(Event._make, zip(*columns, strict=True)))

    def _table(self, wanted: pyarrow.dataset.Expression, names: list[str]) -> pa.Table:
        try:
            events = pyarrow.dataset.dataset(self._path, schema=EVENT_SCHEMA)
            return events.to_table(names, filter=wanted)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._wrong(str(error).splitlines()[0]) from None

    def columns(self, names: list[str], wanted: pyarrow.dataset.Expression) -> pa.Table:
        """Some columns of the events that are `wanted`."""
        return self._table(wanted, names)

    def _wrong(self, found: str) -> InputError:
        return InputError([ErrorLine(str(self._path), None, "", found, EXPECTED)])
