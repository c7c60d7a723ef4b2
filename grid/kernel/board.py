"""Published rows: messages of which only the last one counts, delivered without an event.

A status snapshot that goes to every other virtual organization every so often is V * V messages a
period, and each of them matters only if somebody reads it before the next one comes. So a
publisher posts its rows once, with the time of posting, and a reader that looks at time t gets, of
each publisher, the newest rows posted at least the link's latency before t: just what it would
hold if each snapshot had been sent to it as a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from grid.kernel.entity import Rows
from grid.kernel.least import Least
from grid.model.arrays import Ints
from grid.model.time import Time

Post = tuple[int, Time, Rows]
"""(publisher's position on the board, time of posting, its rows)."""

BEFORE_ALL: Time = -(2**61)


class Board:
    """The last rows of each publisher, as of any reader's present.

    `first_rows` are each publisher's rows before its first post, of shape (its rows, columns);
    a publisher always posts as many.
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
        """When those last posted whose rows some readers may not see yet."""
        self._longest_latency_us = longest_latency_us
        self._least: Least | None = None

    def keep_for(self, longest_latency_us: Time) -> None:
        """From now on that is the longest latency of any reader."""
        self._longest_latency_us = longest_latency_us

    def post(self, publisher: int, time: Time, rows: Rows, present: Time) -> None:
        """Post `rows` at `time`, unless later ones of the same publisher are there already.

        No reader will look at a time before `present` any more.
        """
        part = self.slices[publisher]
        older = self._older[publisher]
        posted_us = self._posted_us[publisher]
        if time < posted_us:
            return
        older.append((posted_us, self._newest[part].copy()))
        self._newest[part] = rows
        self._posted_us[publisher] = self._recent[publisher] = time
        if self._least is not None:
            self._least.post(publisher, time, rows)
        # Of the superseded rows, the newest that every reader can already see stays: a reader
        # for whom a later one is still under way falls back on it. All before it are dead.
        reach = present - self._longest_latency_us
        keep = len(older) - 1
        while keep > 0 and older[keep][0] > reach:
            keep -= 1
        del older[:keep]

    def read(self, now: Time, latency_us: Sequence[Time]) -> Rows:
        """What a reader knows at `now`, so far away from each publisher.

        All rows, of all publishers one after the other, as a copy. No reader looks back in time.
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

    def least(self, now: Time, latency_us: Time, classes: Ints) -> Least:
        """What readers that are so far away from others see at `now`, by class of row.

        There is one for all readers of a board; `classes` and the latency are always the same.
        """
        least = self._least
        if least is None or least.classes is not classes or least.latency_us != latency_us:
            rows = self.read(now, [latency_us] * len(self.slices))
            publishers = np.repeat(
                np.arange(len(self.slices)), [one.stop - one.start for one in self.slices]
            )
            under_way = sorted(self._since(now - latency_us), key=lambda post: post[0])
            least = self._least = Least(classes, publishers, rows, under_way, latency_us)
        return least

    def _since(self, time: Time) -> Iterator[tuple[Time, int, Rows]]:
        """What was posted after `time`."""
        for publisher, posted_us in enumerate(self._posted_us):
            if posted_us > time:
                for before_us, rows in self._older[publisher]:
                    if before_us > time:
                        yield before_us, publisher, rows
                yield posted_us, publisher, self._newest[self.slices[publisher]].copy()
