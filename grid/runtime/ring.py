"""How processes of a windowed run tell each other their news: over sockets, with nobody between.

What they say goes by the steps of `grid.kernel.dissemination`. Two processes just swap their news.
"""

from __future__ import annotations

import marshal
import select
import socket
from collections.abc import Sequence
from typing import Any

from grid.kernel.dissemination import RADIX, steps
from grid.runtime.grants import News

Parcel = tuple[int, bytes]
"""(receiving process, pickled messages)."""

HEADER_BYTES = 8
READ_BYTES = 1 << 18


class PeerLost(Exception):
    """The process at the other end of a connection is gone."""


class Link:
    """Sends frames one way, to one process, and receives them from another."""

    def __init__(self, to: socket.socket, source: socket.socket) -> None:
        self._to, self._source = to, source
        self._left = memoryview(b"")
        self._came = bytearray()
        self._poll = select.poll()
        self._poll.register(to, select.POLLOUT)
        self._poll.register(source, select.POLLIN)

    def send(self, frame: bytes) -> None:
        """Send `frame`, or what of it finds room; the rest goes while one receives."""
        self._left = memoryview(len(frame).to_bytes(HEADER_BYTES, "little") + frame)
        self._send()

    def receive(self) -> bytes:
        """The next frame, when the last one is sent: the others may send as much at once."""
        while self._left:
            ready = dict(self._poll.poll())
            if self._source.fileno() in ready:
                self._read()
            if self._to.fileno() in ready:
                self._send()
        while len(self._came) < HEADER_BYTES:
            self._read()
        end = HEADER_BYTES + int.from_bytes(self._came[:HEADER_BYTES], "little")
        while len(self._came) < end:
            self._read()
        received = bytes(memoryview(self._came)[HEADER_BYTES:end])
        del self._came[:end]
        return received

    def _send(self) -> None:
        try:
            self._left = self._left[self._to.send(self._left, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            pass
        except OSError as error:
            raise PeerLost from error

    def _read(self) -> None:
        try:
            came = self._source.recv(READ_BYTES)
        except OSError as error:
            raise PeerLost from error
        if not came:
            raise PeerLost
        self._came += came

    def close(self) -> None:
        self._to.close()
        self._source.close()


class Ring:
    """The part that process `number` of `count` has in it, with a link for each that it tells.

    It raises PeerLost.
    """

    def __init__(self, number: int, count: int, links: Sequence[Link]) -> None:
        self._number, self._count = number, count
        left = iter(links)
        self._steps = [[(far, next(left)) for far in step] for step in steps(count)]
        self._told: list[tuple[Any, ...]] = []
        """The news of this process, of the one before it, of the one before that, ..."""
        self._parcels: list[Parcel] = []

    def tell(self, news: News, parcels: list[Parcel]) -> None:
        """Take the first step, as far as it goes without waiting."""
        self._told, self._parcels = [tuple(news)], parcels
        if self._steps:
            self._send(self._steps[0])

    def hear(self) -> tuple[list[News], list[bytes]]:
        """Take the others; returns the news of all processes, and what they sent to this one."""
        number, count = self._number, self._count
        mine: list[bytes] = []
        for place, step in enumerate(self._steps):
            if place > 0:
                self._send(step)
            for _, link in step:
                more, came = marshal.loads(link.receive())
                self._told += more
                for parcel in came:
                    if parcel[0] == number:
                        mine.append(parcel[1])
                    else:
                        self._parcels.append(parcel)
        return [News._make(self._told[number - process]) for process in range(count)], mine

    def _send(self, step: list[tuple[int, Link]]) -> None:
        """Send to each in it what it does not know yet, and what goes by way of it."""
        span = step[0][0]
        leave: dict[int, list[Parcel]] = {far: [] for far, _ in step}
        if self._parcels:
            stay: list[Parcel] = []
            for parcel in self._parcels:
                left = (parcel[0] - self._number) % self._count // span % RADIX
                leave.get(left * span, stay).append(parcel)
            self._parcels = stay
        for far, link in step:
            link.send(marshal.dumps((self._told[: min(span, self._count - far)], leave[far])))

    def close(self) -> None:
        for step in self._steps:
            for _, link in step:
                link.close()
