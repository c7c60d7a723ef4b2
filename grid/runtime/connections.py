"""Connections between the processes of a windowed run, and what they send over them.

Each process sends its report and its messages by the `steps` of `grid.kernel.network`.
Frames are those of `multiprocessing.connection`: each side proves by HMAC that it has the key,
which is never sent. What follows the handshake is neither encrypted nor signed.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from threading import Thread, Timer
from typing import Any

import numpy as np

from grid.kernel.event import Post
from grid.kernel.network import RADIX, steps
from grid.runtime.safe_times import PlainPost, ProcessReport, RoundReports

Parcel = tuple[int, bytes]
"""(receiving process, pickled messages)."""
Address = tuple[str, int] | bytes
"""Host and port, or the name of an abstract Unix socket."""

HANDSHAKE_SECONDS = 5.0
"""Time limit of a listener for the handshake of one peer."""
ACCEPT_SECONDS = 60.0
BUFFERED_BYTES = 1 << 14
"""A frame of this size fits into the buffers of a socket next to the one before it."""
THIS_MACHINE = "" if sys.platform == "linux" else "127.0.0.1"
"""The host of a listener for processes of this machine: on Linux, an abstract Unix socket."""
_REFUSED = (OSError, EOFError, AuthenticationError, AssertionError)
"""What a handshake raises if the peer hangs up, is silent, or has no key."""


class PeerLost(Exception):
    """The process at the other end of a connection has ended."""


class Listener:
    """Listens at `address`, on `host` or `THIS_MACHINE`, for the one peer with the key."""

    def __init__(self, host: str, key: bytes) -> None:
        self._key = key
        if host:
            self._socket = socket.create_server((host, 0))
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind("")
            self._socket.listen()
        name = self._socket.getsockname()
        self.address: Address = name if isinstance(name, bytes) else name[:2]

    def accept(self, seconds: float = ACCEPT_SECONDS) -> Connection:
        """The connection to the peer. Others are closed. Raises PeerLost."""
        end = time.monotonic() + seconds
        with self._socket:
            while (left := end - time.monotonic()) > 0:
                self._socket.settimeout(left)
                with suppress(*_REFUSED):
                    peer, _ = self._socket.accept()
                    challenges = deliver_challenge, answer_challenge
                    with peer:
                        return _authenticated(peer, self._key, challenges, HANDSHAKE_SECONDS)
        raise PeerLost(f"no peer with the key connected to {self.address!r} in {seconds:g} s")


def connect(address: Address, key: bytes, seconds: float = ACCEPT_SECONDS) -> Connection:
    """A connection to the listener at `address`, which may be busy. Raises PeerLost."""
    family = socket.AF_UNIX
    if not isinstance(address, bytes):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        with socket.socket(family) as peer:
            peer.settimeout(seconds)
            peer.connect(address)
            return _authenticated(peer, key, (answer_challenge, deliver_challenge), seconds)
    except _REFUSED as error:
        raise PeerLost(f"no listener with the key at {address!r}") from error


def _authenticated(
    peer: socket.socket, key: bytes, challenges: tuple[Any, Any], seconds: float
) -> Connection:
    """A connection over the socket, once both sides have proved that they have the key."""
    peer.settimeout(None)
    connection = Connection(os.dup(peer.fileno()))
    timer = Timer(seconds, _hang_up, [peer])
    timer.start()
    try:
        for challenge in challenges:
            challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    finally:
        timer.cancel()
    if peer.family != socket.AF_UNIX:
        # Nagle's algorithm would delay the second write of a large message by 40 ms.
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _hang_up(peer: socket.socket) -> None:
    with suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)


class Link:
    """Sends frames to one process and receives them from another. Raises PeerLost.

    A process sends at most one frame more than it has received. So a frame that the buffers do not
    hold is sent by a thread: its receiver may be sending one of that size, too.
    """

    def __init__(self, to: Connection, source: Connection) -> None:
        self._to, self._source = to, source
        self._sending: Thread | None = None
        self._is_lost = False

    def send(self, frame: bytes) -> None:
        if self._sending is not None:
            self._sending.join()
            self._sending = None
        if len(frame) <= BUFFERED_BYTES:
            self._send(frame)
        else:
            self._sending = Thread(target=self._send, args=(frame,), daemon=True)
            self._sending.start()
        if self._is_lost:
            raise PeerLost

    def _send(self, frame: bytes) -> None:
        try:
            self._to.send_bytes(frame)
        except OSError:
            self._is_lost = True

    def receive(self) -> bytes:
        try:
            return self._source.recv_bytes()
        except (EOFError, OSError) as error:
            raise PeerLost from error

    def close(self) -> None:
        self._to.close()
        self._source.close()


class Ring:
    """Process `number` of `count` in an all-to-all exchange, over a link for each of its receivers.

    Raises PeerLost.
    """

    def __init__(self, number: int, count: int, links: Sequence[Link]) -> None:
        self._number, self._count = number, count
        left = iter(links)
        self._steps = [[(far, next(left)) for far in step] for step in steps(count)]
        self._reports: list[tuple[Any, ...]] = []
        """That of this process, of the one before it, of the one before that, ..."""
        self._parcels: list[Parcel] = []

    def send(self, report: ProcessReport, parcels: list[Parcel]) -> None:
        """Take the first step."""
        self._reports, self._parcels = [tuple(report)], parcels
        if self._steps:
            self._send(self._steps[0])

    def receive(self) -> tuple[RoundReports, list[bytes]]:
        """Take the others; returns the reports of all processes, and messages to this one."""
        mine: list[bytes] = []
        for place, step in enumerate(self._steps):
            if place > 0:
                self._send(step)
            for _, link in step:
                reports, parcels = pickle.loads(link.receive())
                self._reports += reports
                mine += [batch for target, batch in parcels if target == self._number]
                self._parcels += [parcel for parcel in parcels if parcel[0] != self._number]
        by_distance, number, count = self._reports, self._number, self._count
        by_process = [by_distance[(number - process) % count] for process in range(count)]
        return [ProcessReport._make(report) for report in by_process], mine

    def _send(self, step: list[tuple[int, Link]]) -> None:
        """Send to each the reports that it does not have, and the messages on their way."""
        span = step[0][0]
        leave: dict[int, list[Parcel]] = {far: [] for far, _ in step}
        stay: list[Parcel] = []
        for parcel in self._parcels:
            left = (parcel[0] - self._number) % self._count // span % RADIX
            leave.get(left * span, stay).append(parcel)
        self._parcels = stay
        for far, link in step:
            reports = self._reports[: min(span, self._count - far)]
            link.send(pickle.dumps((reports, leave[far]), pickle.HIGHEST_PROTOCOL))

    def close(self) -> None:
        for step in self._steps:
            for _, link in step:
                link.close()


def plain_posts(posts: Sequence[Post]) -> tuple[PlainPost, ...]:
    """Posts as plain values."""
    return tuple(
        [(publisher, at_us, rows.shape[1], rows.tobytes()) for publisher, at_us, rows in posts]
    )


def posts_of(plain: Sequence[PlainPost]) -> Iterator[Post]:
    for publisher, posted_us, columns, values in plain:
        yield publisher, posted_us, np.frombuffer(values).reshape(-1, columns)
