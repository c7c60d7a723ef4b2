"""How processes of a windowed run tell each other their news: over sockets, with nobody between.

What they say goes by the steps of `grid.kernel.network`. Two processes just swap their news.
A frame begins with how many bytes its text has, and with the numbers of each process that it tells
of; most frames have no text.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Sequence
from typing import Any

from grid.kernel.network import RADIX, steps
from grid.runtime.links import LENGTH_BYTES, Link
from grid.runtime.safe_times import ProcessReport, RoundReports, numbers_of

Parcel = tuple[int, bytes]
"""(receiving process, pickled messages)."""

COLUMNS = 9
NUMBERS = struct.Struct(f"<{COLUMNS}q")
"""Of one process: see `numbers_of`."""
NO_TEXT = bytes(LENGTH_BYTES)


class Ring:
    """The part that process `number` of `count` has in it, with a link for each that it tells.

    It raises PeerLost.
    """

    def __init__(self, number: int, count: int, links: Sequence[Link]) -> None:
        self._number, self._count = number, count
        left = iter(links)
        self._steps = [[(far, next(left)) for far in step] for step in steps(count)]
        self._layout = struct.Struct(f"<{COLUMNS * count}q")
        self._numbers = b""
        """Those of this process, of the one before it, of the one before that, ..."""
        self._texts: list[tuple[int, Any, Any]] = []
        """(how far it is to the process, its posts, its arrivals), where there are any."""
        self._parcels: list[Parcel] = []

    def tell(self, news: ProcessReport, parcels: list[Parcel]) -> None:
        """Take the first step, as far as it goes without waiting."""
        posts, arrivals = news.posts, news.arrivals
        self._numbers = NUMBERS.pack(*numbers_of(news))
        self._texts = [(0, posts, arrivals)] if posts or arrivals else []
        self._parcels = parcels
        if self._steps:
            self._send(self._steps[0])

    def hear(self) -> tuple[RoundReports, list[bytes]]:
        """Take the others; returns the news of all processes, and what they sent to this one."""
        number = self._number
        mine: list[bytes] = []
        for place, step in enumerate(self._steps):
            if place > 0:
                self._send(step)
            for far, link in step:
                told = min(step[0][0], self._count - far)
                numbers, text = link.receive(NUMBERS.size * told)
                self._numbers += numbers
                if not text:
                    continue
                texts, came = marshal.loads(text)
                self._texts += [(far + near, *more) for near, *more in texts]
                for parcel in came:
                    if parcel[0] == number:
                        mine.append(parcel[1])
                    else:
                        self._parcels.append(parcel)
        return self._all(), mine

    def _all(self) -> RoundReports:
        """What all told, by process."""
        number, count = self._number, self._count
        by_distance = self._layout.unpack(self._numbers)
        columns = []
        for column in range(COLUMNS):
            found = by_distance[column::COLUMNS]
            columns.append(found[number::-1] + found[:number:-1])
        texts = sorted(((number - far) % count, *text) for far, *text in self._texts)
        posts = [(process, posts) for process, posts, _ in texts if posts]
        arrivals = [arrival for _, _, arrivals in texts for arrival in arrivals]
        return RoundReports._make((*columns, posts, arrivals))

    def _send(self, step: list[tuple[int, Link]]) -> None:
        """Send to each in it what it does not know yet, and what goes by way of it."""
        span = step[0][0]
        if not self._parcels and not self._texts:
            for far, link in step:
                told = min(span, self._count - far)
                link.send(NO_TEXT + self._numbers[: NUMBERS.size * told])
            return
        leave: dict[int, list[Parcel]] = {far: [] for far, _ in step}
        stay: list[Parcel] = []
        for parcel in self._parcels:
            left = (parcel[0] - self._number) % self._count // span % RADIX
            leave.get(left * span, stay).append(parcel)
        self._parcels = stay
        for far, link in step:
            told = min(span, self._count - far)
            texts = [text for text in self._texts if text[0] < told]
            text = marshal.dumps((texts, leave[far])) if texts or leave[far] else b""
            length = len(text).to_bytes(LENGTH_BYTES, "little")
            link.send(length + self._numbers[: NUMBERS.size * told] + text)

    def close(self) -> None:
        for step in self._steps:
            for _, link in step:
                link.close()
