"""A listener for the one peer that knows a key. Others may come first; they are sent away.

The handshake is that of `multiprocessing.connection`: each side proves by HMAC that it knows the
key, which is never sent. What is sent afterwards is neither encrypted nor signed.
"""

from __future__ import annotations

import os
import queue
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

from grid.model.errors import RunFailed

HANDSHAKE_SECONDS = 5.0
"""So long may a peer take to prove that it knows the key."""
COMING_SECONDS = 60.0
"""So long may the right one take to come."""
TICK_SECONDS = 0.02
MOST_STRANGERS = 64

Address = tuple[str, int] | bytes
"""Host and port; or, for this machine alone, a name of Linux's that stands in no folder."""
THIS_MACHINE = "" if sys.platform == "linux" else "127.0.0.1"
"""The host of a door for processes of this machine."""

_NO_HANDSHAKE = (OSError, EOFError, AuthenticationError, AssertionError)
"""What the library raises where a peer hangs up, is silent, or says something else."""


class NobodyCame(RunFailed):
    """The peer did not come in time."""


class Door:
    """Listens at `address`, on `host` or `THIS_MACHINE`, until the peer with the key has come."""

    def __init__(self, host: str, key: bytes) -> None:
        self._key = key
        self._socket = socket.create_server((host, 0)) if host else _local_server()
        self._socket.settimeout(TICK_SECONDS)
        name = self._socket.getsockname()
        self.address: Address = name if isinstance(name, bytes) else name[:2]
        self._known: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._strangers: dict[socket.socket, float] = {}
        self._lock = threading.Lock()

    def wait(self, seconds: float = COMING_SECONDS) -> Connection:
        """The connection to the peer that knows the key. Raises NobodyCame."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                self._let_in()
                with suppress(queue.Empty):
                    return self._known.get_nowait()
                self._send_away(time.monotonic())
        finally:
            self._socket.close()
            self._send_away(float("inf"))
        raise NobodyCame(f"nobody who knows the key came to {self.address!r} in {seconds:g} s")

    def _let_in(self) -> None:
        """Greet who comes next, if anybody does, without waiting for what they have to say."""
        try:
            peer, _ = self._socket.accept()
        except OSError:
            return
        if len(self._strangers) >= MOST_STRANGERS:
            peer.close()
            return
        with self._lock:
            self._strangers[peer] = time.monotonic() + HANDSHAKE_SECONDS
        threading.Thread(target=self._greet, args=(peer,), daemon=True).start()

    def _greet(self, peer: socket.socket) -> None:
        with suppress(*_NO_HANDSHAKE):
            connection = _greeted(peer, self._key, first=True)
            with self._lock:
                if self._strangers.pop(peer, None) is None:
                    return
            peer.close()
            self._known.put(connection)

    def _send_away(self, now: float) -> None:
        """Close on those whose time is over; one who is known by then has been taken out."""
        with self._lock:
            for peer in [peer for peer, due in self._strangers.items() if due <= now]:
                del self._strangers[peer]
                with suppress(OSError):
                    # The thread that listens to it wakes up.
                    peer.shutdown(socket.SHUT_RDWR)
                peer.close()


def connect(address: Address, key: bytes, seconds: float = COMING_SECONDS) -> Connection:
    """A connection to the door at `address`. Raises ConnectionError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with _reached(address) as peer:
                return _greeted(peer, key, first=False)
        except ConnectionRefusedError:
            raise
        except _NO_HANDSHAKE:
            # Strangers may have taken all places; their time will be over.
            time.sleep(TICK_SECONDS)
    raise ConnectionError(f"nobody at {address!r} knew the key within {seconds:g} s")


def _local_server() -> socket.socket:
    """A Unix socket of a name that the system chooses."""
    server = socket.socket(socket.AF_UNIX)
    server.bind("")
    server.listen()
    return server


def _reached(address: Address) -> socket.socket:
    if not isinstance(address, bytes):
        return socket.create_connection(address, timeout=HANDSHAKE_SECONDS)
    peer = socket.socket(socket.AF_UNIX)
    try:
        peer.settimeout(HANDSHAKE_SECONDS)
        peer.connect(address)
    except BaseException:
        peer.close()
        raise
    return peer


def _greeted(peer: socket.socket, key: bytes, *, first: bool) -> Connection:
    """A connection of its own over the socket, when both sides have proved that they know the key.

    Raises one of `_NO_HANDSHAKE`.
    """
    peer.settimeout(None)
    _limit(peer, HANDSHAKE_SECONDS)
    connection = Connection(os.dup(peer.fileno()))
    try:
        steps = (
            (deliver_challenge, answer_challenge)
            if first
            else (answer_challenge, deliver_challenge)
        )
        for step in steps:
            step(connection, key)
    except BaseException:
        connection.close()
        raise
    _limit(peer, 0.0)
    if peer.family != socket.AF_UNIX:
        # A large message is two writes, of which the second would wait 40 ms for the answer to the
        # first (RFC 896).
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _limit(peer: socket.socket, seconds: float) -> None:
    """Let no single read or write of the system take longer; 0: as long as it takes."""
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        peer.setsockopt(socket.SOL_SOCKET, option, limit)
