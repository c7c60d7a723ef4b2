"""The board: published rows, of which only the last of each publisher counts.

Snapshots to all other VOs are V * V messages a period, most of which are superseded before they
are read. So a publisher posts its rows once, with the time of posting, and a reader at time t gets
from each publisher the newest rows posted at least the link's latency before t: what it would have
if each snapshot had been sent to it as a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from grid.kernel.event import Rows
from grid.model.arrays import Bools, Ints
from grid.model.compiled import kernel
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
        self._least: LeastOfClass | None = None

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
        if self._least is not None:
            self._least.post(publisher, time, rows)
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

    def least(self, now: Time, latency_us: Time, classes: Ints) -> LeastOfClass:
        """What readers with that latency from all others see at `now`, by class of row.

        There is one for all readers of a board; `classes` and the latency never change.
        """
        least = self._least
        if least is None or least.classes is not classes or least.latency_us != latency_us:
            rows = self.read(now, [latency_us] * len(self.slices))
            publishers = np.repeat(
                np.arange(len(self.slices)), [one.stop - one.start for one in self.slices]
            )
            in_transit = sorted(self._since(now - latency_us), key=lambda post: post[0])
            least = LeastOfClass(classes, publishers, rows, in_transit, latency_us)
            self._least = least
        return least

    def _since(self, time: Time) -> Iterator[tuple[Time, int, Rows]]:
        """Posts after `time`."""
        for publisher, posted_us in enumerate(self._posted_us):
            if posted_us > time:
                for before_us, rows in self._older[publisher]:
                    if before_us > time:
                        yield before_us, publisher, rows
                yield posted_us, publisher, self._newest[self.slices[publisher]].copy()


class LeastOfClass:
    """For each class of rows, the row with the least first value, as seen after `latency_us`.

    Rows of a class differ only in what is published, so a reader that needs the best of many rows
    needs one of each class: the earliest with the least first value. Since a reader may have newer
    values of its own rows, the best row of another publisher is added. Readers at equal distance
    from all publishers share this view, which is updated row by row.

    `classes` and `publishers` are those of the board's rows, `rows` are visible already, and
    `in_transit` are (time of posting, publisher, rows), in the order of posting.
    """

    def __init__(
        self,
        classes: Ints,
        publishers: Ints,
        rows: Rows,
        in_transit: list[tuple[Time, int, Rows]],
        latency_us: Time,
    ) -> None:
        self.classes = classes
        self.latency_us = latency_us
        self._publishers = publishers
        self._rows = rows.copy()
        self._starts: list[int] = np.searchsorted(publishers, np.arange(len(publishers))).tolist()
        self._members = np.argsort(classes, kind="stable")
        count = int(classes.max(initial=-1)) + 1
        self._first = np.searchsorted(classes[self._members], np.arange(count + 1))
        self._best = np.full((count, 2), -1)
        self._changed = np.ones(count, np.bool_)
        self._answer: tuple[Ints, Rows] | None = None
        self._coming: list[tuple[Time, int, int, Rows]] = []
        self._posts = 0
        for time, publisher, posted in in_transit:
            self.post(publisher, time, posted)

    def post(self, publisher: int, time: Time, rows: Rows) -> None:
        """Add rows posted at `time`. No reader has read at a time when they are visible."""
        self._posts += 1
        heappush(self._coming, (time, self._posts, publisher, rows))

    def read(self, now: Time) -> tuple[Ints, Rows]:
        """Places on the board, in ascending order, and their rows: one or two of each class.

        Times of reading never decrease. The arrays are shared: callers must not change them.
        """
        coming = self._coming
        while coming and coming[0][0] + self.latency_us <= now:
            _, _, publisher, rows = heappop(coming)
            here = slice(self._starts[publisher], self._starts[publisher] + len(rows))
            self._rows[here] = rows
            self._changed[self.classes[here]] = True
            self._answer = None
        if self._answer is None:
            find_least(
                self._rows, self._publishers, self._members, self._first, self._changed, self._best
            )
            places = np.sort(self._best[self._best >= 0])
            self._answer = places, self._rows[places]
        return self._answer


@kernel()
def find_least(
    rows: Rows, publishers: Ints, members: Ints, first: Ints, changed: Bools, best: Ints
) -> None:
    """The least row of each class that has `changed`, and the least of another publisher.

    Rows of class c are members[first[c]] to before first[c + 1]. `best` has the shape (classes, 2);
    -1: there is none.
    """
    for c in range(len(best)):
        if not changed[c]:
            continue
        changed[c] = False
        least = other = -1
        for row in members[first[c] : first[c + 1]]:
            if least < 0 or rows[row, 0] < rows[least, 0]:
                if least >= 0 and publishers[least] != publishers[row]:
                    other = least
                least = row
            elif publishers[row] != publishers[least] and (
                other < 0 or rows[row, 0] < rows[other, 0]
            ):
                other = row
        best[c, 0], best[c, 1] = least, other
