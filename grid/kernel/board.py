"""The board: published rows, of which only the last of each publisher counts.

Snapshots to all other VOs are V * V messages a period, most of which are superseded before they
are read. So a publisher posts its rows once, with the time of posting, and a reader at time t gets
from each publisher the newest rows posted at least the link's latency before t: what it would have
if each snapshot had been sent to it as a message.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.kernel.event import Rows
from grid.model.time import Time

BEFORE_ALL: Time = -(2**61)


class Board:
    """The last rows of each publisher, as each reader sees them.

    `first_rows` are each publisher's rows before its first post, of shape (its rows, columns);
    their number does not change.
    """

    def __init__(self, first_rows: Sequence[Rows], longest_latency_us: Time) -> None:
        counts = [len(rows) for rows in first_rows]
        ends = np.cumsum(counts, dtype=np.int64)
        self.slices = [slice(int(end) - n, int(end)) for end, n in zip(ends, counts, strict=True)]
        self._newest: Rows = (
            np.concatenate(list(first_rows)) if first_rows else np.empty((0, 0), np.float64)
        )
        self._posted_us: list[Time] = [BEFORE_ALL] * len(first_rows)
        self._older: list[list[tuple[Time, Rows]]] = [[] for _ in first_rows]
        self._recent: dict[int, Time] = {}
        """Time of the last post of publishers whose rows some readers may not see yet."""
        self._longest_latency_us = longest_latency_us

    def keep_for(self, longest_latency_us: Time) -> None:
        """Set the longest latency of any reader from now on."""
        self._longest_latency_us = longest_latency_us

    def post(self, publisher: int, time: Time, rows: Rows, present: Time) -> None:
        """Post `rows` at `time`, unless the publisher's last ones are later.

        No reader will read at a time before `present`.
        """
        part = self.slices[publisher]
        older = self._older[publisher]
        posted_us = self._posted_us[publisher]
        if time < posted_us:
            return
        older.append((posted_us, self._newest[part].copy()))
        self._newest[part] = rows
        self._posted_us[publisher] = self._recent[publisher] = time
        # Keep the newest superseded rows that every reader can see: a reader for which later ones
        # are in transit needs them.
        reach = present - self._longest_latency_us
        keep = len(older) - 1
        while keep > 0 and older[keep][0] > reach:
            keep -= 1
        del older[:keep]

    def read(self, now: Time, latency_us: Sequence[Time]) -> Rows:
        """The rows that a reader sees at `now`, with the latency from each publisher.

        A copy of all rows, publisher after publisher. Times of reading never decrease.
        """
        rows = self._newest.copy()
        for publisher, posted_us in list(self._recent.items()):
            if posted_us + self._longest_latency_us <= now:
                del self._recent[publisher]
            elif (visible := now - latency_us[publisher]) < posted_us:
                for time, older in reversed(self._older[publisher]):
                    if time <= visible:
                        rows[self.slices[publisher]] = older
                        break
        return rows
