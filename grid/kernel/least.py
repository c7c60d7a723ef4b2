"""Of the published rows of each class, the one with the least first value.

A reader that only wants the best of many rows need not see all of them. Rows of one class are alike
but for what they publish; of each class a reader is given the row with the least first value, the
earliest of these, among the rows of other publishers than its own. Whoever is as far away from all
publishers sees the same, so there is one view of the board for all, brought up to date row by row.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import Time

Rows = Floats


class Least:
    """What is seen of a board after `latency_us`, by class of row.

    `classes` are those of the board's rows, numbered from 0, and `publishers` who has each row.
    `rows` are those that are seen already; `under_way` are (time of posting, publisher, rows), in
    the order of posting.
    """

    def __init__(
        self,
        classes: Ints,
        publishers: Ints,
        rows: Rows,
        under_way: list[tuple[Time, int, Rows]],
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
        self._best = np.full(count, -1)
        self._second = np.full(count, -1)
        self._changed = np.ones(count, np.bool_)
        # One more than there are publishers: a reader may be none of them, -1.
        self._holds = np.zeros(int(publishers.max(initial=-1)) + 2, np.bool_)
        self._answers: dict[int, tuple[Ints, Rows]] = {}
        """What readers see who have any of the best, and -1: what all others see."""
        self._coming = [
            (time, number, publisher, posted)
            for number, (time, publisher, posted) in enumerate(under_way)
        ]
        heapify(self._coming)
        self._posts = len(self._coming)

    def post(self, publisher: int, time: Time, rows: Rows) -> None:
        """Rows that were posted at `time`; nobody has looked at a time when they could be seen."""
        self._posts += 1
        heappush(self._coming, (time, self._posts, publisher, rows))

    def read(self, now: Time, reader: int) -> tuple[Ints, Rows]:
        """The places on the board, in ascending order, and the rows themselves.

        `reader` is the publisher whose own rows are left out. Nobody looks back in time, or writes
        in what it is given: others are given it, too.
        """
        coming = self._coming
        while coming and coming[0][0] + self.latency_us <= now:
            _, _, publisher, rows = heappop(coming)
            here = slice(self._starts[publisher], self._starts[publisher] + len(rows))
            self._rows[here] = rows
            self._changed[self.classes[here]] = True
            self._answers.clear()
        if self._answers:
            answer = self._answers.get(reader if self._holds[reader] else -1)
            if answer is not None:
                return answer
        places = least_rows(
            self._rows, self._publishers, self._members, self._first, self._changed, self._best,
            self._second, self._holds, reader,
        )  # fmt: skip
        # Here, for numba takes a second to compile a sort.
        places.sort()
        answer = places, self._rows[places]
        self._answers[reader if self._holds[reader] else -1] = answer
        return answer


@kernel()
def least_rows(
    rows: Rows,
    publishers: Ints,
    members: Ints,
    first: Ints,
    changed: Bools,
    best: Ints,
    second: Ints,
    holds: Bools,
    reader: int,
) -> Ints:
    """See `Least.read`. The rows of class c are members[first[c]] to before first[c + 1].

    For each class that has not `changed`, `best` is its least row and `second` the least of another
    publisher than that one's; -1: there is none. Then the publisher of a best row `holds` it.
    The places are in the order of classes.
    """
    places = np.empty(len(best), np.int64)
    count = 0
    holds[:] = False
    for c in range(len(best)):
        if changed[c]:
            _find_least(rows, publishers, members[first[c] : first[c + 1]], best, second, c)
            changed[c] = False
        row = best[c]
        if row >= 0:
            holds[publishers[row]] = True
            if publishers[row] == reader:
                row = second[c]
        if row >= 0:
            places[count] = row
            count += 1
    return places[:count]


@inner(allocates=False)
def _find_least(
    rows: Rows, publishers: Ints, members: Ints, best: Ints, second: Ints, c: int
) -> None:
    least = other = -1
    for row in members:
        if least < 0 or rows[row, 0] < rows[least, 0]:
            if least >= 0 and publishers[least] != publishers[row]:
                other = least
            least = row
        elif publishers[row] != publishers[least] and (other < 0 or rows[row, 0] < rows[other, 0]):
            other = row
    best[c] = least
    second[c] = other
