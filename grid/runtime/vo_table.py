"""How the VOs of a run stand, for a small table on the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.interventions import Asked
from grid.results.look import Beginning, Look
from grid.runtime.looking import Watcher

ROWS = 8
"""Of more VOs, those are shown whose queues are longest."""
LOOK_SECONDS = 1.0
HEADERS = ("VO", "jobs ended", "of", "load", "queue", "forwarded")


class VoTable:
    """Watches a run; `rows` has what to show, empty before there is anything."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, ...]] = []
        self._next = 0.0

    def begin(self, beginning: Beginning) -> None:
        self._beginning = beginning
        self._vos = vos = beginning.directory.vos
        self._vo_of = np.array([one.vo for one in beginning.directory.clusters], np.int64)
        cpus = [sum(one.cpus) for one in beginning.directory.clusters]
        self._cpus = np.bincount(self._vo_of, cpus, len(vos))
        self._levels = np.zeros((2, len(self._vo_of)))
        self._told = self._safe = np.zeros((2, len(vos)), np.int64)

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def look(self, look: Look) -> None:
        self._next = time.monotonic() + LOOK_SECONDS
        told = self._safe if look.began_again else self._told
        for process in look.processes:
            for chunk in process.ended:
                forwarded = chunk.vo[chunk.placement.hops > 0]
                told = told + np.stack([self._count(chunk.vo), self._count(forwarded)])
            # A cluster that is down is not told of: it is as it was.
            self._levels[:, process.clusters[:, 0]] = process.clusters[:, [1, 3]].T
        self._told = told
        if look.is_saved:
            self._safe = told
        busy, queued = (self._by_vo(levels) for levels in self._levels)
        load = busy / np.maximum(1, self._cpus)
        most = np.argsort(-queued, kind="stable")[:ROWS]
        self.rows = [self._row(vo, told, load, queued) for vo in np.sort(most).tolist()]
        if len(self._vos) > ROWS:
            self.rows.append((f"and {len(self._vos) - ROWS:,} more", *[""] * 5))

    def wishes(self) -> Sequence[Asked]:
        return ()

    def _row(self, vo: int, told: Ints, load: Floats, queued: Floats) -> tuple[str, ...]:
        ended, forwarded = told[:, vo].tolist()
        submitted = len(self._beginning.submit_us[vo])
        figures = f"{ended:,}", f"{submitted:,}", f"{load[vo]:.0%}", f"{queued[vo]:,.0f}"
        return (self._vos[vo], *figures, f"{forwarded:,}")

    def _by_vo(self, of_clusters: Floats) -> Floats:
        return np.bincount(self._vo_of, of_clusters, len(self._vos)).astype(np.float64)

    def _count(self, vos: Ints) -> Ints:
        return np.bincount(vos, minlength=len(self._vos))


class Watchers:
    """Several that watch one run: each is shown what is looked at."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = watchers

    def begin(self, beginning: Beginning) -> None:
        for one in self._watchers:
            one.begin(beginning)

    def is_due(self) -> bool:
        return any(one.is_due() for one in self._watchers)

    def look(self, look: Look) -> None:
        for one in self._watchers:
            one.look(look)

    def wishes(self) -> Sequence[Asked]:
        return [asked for one in self._watchers for asked in one.wishes()]
