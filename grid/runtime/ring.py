"""How processes of a windowed run tell each other their news: over sockets, with nobody between.

With K processes it takes the logarithm of K steps. In step s each sends to the one 2**s further on
all that it knows by then, so that after the last step everybody knows everything (Bruck and others,
"Efficient Algorithms for All-to-All Communications", 1997). Two processes just swap their news.
"""

from __future__ import annotations

import marshal
import select
import socket
from collections.abc import Sequence

from grid.runtime.grants import News

Parcel = tuple[int, bytes]
"""(receiving process, pickled messages)."""

HEADER_BYTES = 8
READ_BYTES = 1 << 18


class PeerLost(Exception):
    """The process at the other end of a connection is gone."""


def steps(count: int) -> list[int]:
    """How much further on, in each step, the one is whom a process tells what it knows."""
    return [1 << step for step in range((count - 1).bit_length())]


class Link:
    """Sends frames one way, to one process, and receives them from another."""

    def __init__(self, to: socket.socket, source: socket.socket) -> None:
        self._to, self._source = to, source
        self._came = bytearray()
        self._poll = select.poll()
        self._poll.register(to, select.POLLOUT)
        self._poll.register(source, select.POLLIN)

    def swap(self, frame: bytes) -> bytes:
        """Send `frame` and receive the next one, both at once: the others may send as much."""
        try:
            return self._swap(frame)
        except OSError as error:
            raise PeerLost from error

    def _swap(self, frame: bytes) -> bytes:
        data = len(frame).to_bytes(HEADER_BYTES, "little") + frame
        sent = self._send(data)
        if sent < len(data):
            left = memoryview(data)[sent:]
            while left:
                ready = dict(self._poll.poll())
                if self._source.fileno() in ready:
                    self._read()
                if self._to.fileno() in ready:
                    left = left[self._send(left) :]
        while len(self._came) < HEADER_BYTES:
            self._read()
        end = HEADER_BYTES + int.from_bytes(self._came[:HEADER_BYTES], "little")
        while len(self._came) < end:
            self._read()
        received = bytes(memoryview(self._came)[HEADER_BYTES:end])
        del self._came[:end]
        return received

    def _send(self, data: bytes | memoryview) -> int:
        try:
            return self._to.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def _read(self) -> None:
        came = self._source.recv(READ_BYTES)
        if not came:
            raise PeerLost
        self._came += came

    def close(self) -> None:
        self._to.close()
        self._source.close()


class Ring:
    """The part that process `number` of `count` has in all exchanges, with a link for each step."""

    def __init__(self, number: int, count: int, links: Sequence[Link]) -> None:
        self._number, self._count = number, count
        self._links = list(zip(steps(count), links, strict=True))

    def exchange(self, news: News, parcels: list[Parcel]) -> tuple[list[News], list[bytes]]:
        """Tell the others; returns the news of all processes, and what they sent to this one.

        Raises PeerLost.
        """
        number, count = self._number, self._count
        told = [tuple(news)]  # of this process, of the one before it, of the one before that
        mine: list[bytes] = []
        for step, link in self._links:
            if parcels:
                leave = [parcel for parcel in parcels if (parcel[0] - number) % count & step]
                parcels = [parcel for parcel in parcels if not (parcel[0] - number) % count & step]
            else:
                leave = parcels
            more, came = marshal.loads(link.swap(marshal.dumps((told[: count - step], leave))))
            told += more
            for parcel in came:
                if parcel[0] == number:
                    mine.append(parcel[1])
                else:
                    parcels.append(parcel)
        return [News._make(told[number - process]) for process in range(count)], mine

    def close(self) -> None:
        for _, link in self._links:
            link.close()
