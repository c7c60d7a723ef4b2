"""Ways by which processes of a windowed run send each other frames.

A frame begins with how many bytes its text has, and with numbers, of which both sides know how many
there are.
"""

from __future__ import annotations

import mmap
import os
import platform
import select
import socket
import time
from contextlib import ExitStack
from typing import Protocol

from grid.runtime.cpus import usable_cpus

LENGTH_BYTES = 8
READ_BYTES = 1 << 16


class PeerLost(Exception):
    """The process at the other end of a connection is gone."""


class Link(Protocol):
    """Sends frames one way, to one process, and receives them from another.

    A process may send one frame more than it has received of that process, and no others.
    """

    def send(self, frame: bytes) -> None:
        """Send `frame`, or what of it finds room; the rest goes while one receives."""
        ...

    def receive(self, numbers: int) -> tuple[bytes, bytes]:
        """The numbers and the text of the next frame, which has so many bytes of numbers.

        Raises PeerLost.
        """
        ...

    def close(self) -> None: ...


class SocketLink:
    """Over sockets: between processes anywhere."""

    def __init__(self, to: socket.socket, source: socket.socket) -> None:
        self._to, self._source = to, source
        self._left = memoryview(b"")
        self._came = b""
        self._poll = select.poll()
        self._poll.register(to, select.POLLOUT)
        self._poll.register(source, select.POLLIN)

    def send(self, frame: bytes) -> None:
        sent = self._send(frame)
        if sent < len(frame):
            self._left = memoryview(frame)[sent:]

    def receive(self, numbers: int) -> tuple[bytes, bytes]:
        if self._left:
            self.send_what_is_left()
        start = LENGTH_BYTES + numbers
        came = self._came or self._read()
        while len(came) < start:
            came += self._read()
        end = start + int.from_bytes(came[:LENGTH_BYTES], "little")
        if len(came) < end:
            parts, size = [came], len(came)
            while size < end:
                parts.append(self._read())
                size += len(parts[-1])
            came = b"".join(parts)
        self._came = came[end:]
        return came[LENGTH_BYTES:start], came[start:end]

    def send_what_is_left(self) -> None:
        """Before one waits for a frame: the others may send as much at once."""
        while self._left:
            ready = dict(self._poll.poll())
            if self._source.fileno() in ready:
                self._came += self._read()
            if self._to.fileno() in ready:
                self._left = self._left[self._send(self._left) :]

    def _send(self, data: bytes | memoryview) -> int:
        try:
            return self._to.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise PeerLost from error

    def _read(self) -> bytes:
        try:
            came = self._source.recv(READ_BYTES)
        except OSError as error:
            raise PeerLost from error
        if not came:
            raise PeerLost
        return came

    def close(self) -> None:
        self._to.close()
        self._source.close()


FRAME_BYTES = 1 << 20
"""A longer frame goes over the socket. What is never written takes no memory."""
COUNT, SLEEPS, SIZES = 0, 1, 2
"""Words of eight bytes at the beginning of the memory: how many frames were sent, whether who
receives sleeps, and the sizes of the last two frames."""
HEAD_BYTES = 64
AWAKE_SECONDS = 200e-6
"""So long who receives looks again and again before it sleeps; to wake it takes about a quarter."""
MISSED_BELL_MS = 5


def can_share_memory(count: int) -> bool:
    """Whether so many processes, all of this machine, can, and gain by it.

    Each needs a CPU to itself, since it does not sleep while it waits; what these processors write,
    others see in the order of writing; and the rest is Linux's.
    """
    return (
        count <= usable_cpus()
        and all(hasattr(os, call) for call in ("memfd_create", "eventfd"))
        and platform.machine() in ("x86_64", "AMD64")
    )


class MemoryLink:
    """By memory that two processes of one machine have in common.

    Who sends makes the memory, and a bell that wakes who receives, and passes them on over `to`, a
    Unix socket. There is room for two frames: no more are under way. Long ones go over the socket,
    by whose end one finds out that a process is gone, too.
    """

    def __init__(self, to: socket.socket, source: socket.socket) -> None:
        self._sockets = SocketLink(to, source)
        self._source = source
        self._open = ExitStack()
        self._open.callback(self._sockets.close)
        memory, bell = os.memfd_create("frames"), os.eventfd(0, os.EFD_NONBLOCK)
        os.ftruncate(memory, HEAD_BYTES + 2 * FRAME_BYTES)
        self._out, self._out_words = self._mapped(memory)
        self._bell = self._kept(bell)
        socket.send_fds(to, [b"\0"], [memory, bell])
        os.close(memory)
        self._sent = self._received = 0
        self._usual_seconds = 0.0
        """About how long one waits for a frame."""
        self._in: mmap.mmap | None = None

    def send(self, frame: bytes) -> None:
        self._sent = number = self._sent + 1
        size, place = len(frame), number & 1
        if size <= FRAME_BYTES:
            start = HEAD_BYTES + place * FRAME_BYTES
            self._out[start : start + size] = frame
        words = self._out_words
        words[SIZES + place] = size
        words[COUNT] = number
        if words[SLEEPS]:
            os.eventfd_write(self._bell, 1)
        if size > FRAME_BYTES:
            self._sockets.send(frame)

    def receive(self, numbers: int) -> tuple[bytes, bytes]:
        memory = self._in or self._meet()
        self._sockets.send_what_is_left()
        self._received = number = self._received + 1
        words, place = self._in_words, number & 1
        if words[COUNT] < number:
            self._wait_for(number)
        size = words[SIZES + place]
        if size > FRAME_BYTES:
            return self._sockets.receive(numbers)
        start = HEAD_BYTES + place * FRAME_BYTES
        text = start + LENGTH_BYTES + numbers
        return memory[start + LENGTH_BYTES : text], memory[text : start + size]

    def _meet(self) -> mmap.mmap:
        """Take the memory and the bell of who sends."""
        try:
            _, (memory, bell), _, _ = socket.recv_fds(self._source, 1, 2)
        except (OSError, ValueError) as error:
            raise PeerLost from error
        self._in, self._in_words = self._mapped(memory)
        os.close(memory)
        self._heard = self._kept(bell)
        self._poll = select.poll()
        self._poll.register(bell, select.POLLIN)
        self._poll.register(self._source, select.POLLIN)
        return self._in

    def _wait_for(self, number: int) -> None:
        """Look again and again, and sleep only where it takes long, or usually does."""
        began = time.perf_counter()
        words = self._in_words
        if self._usual_seconds < AWAKE_SECONDS:
            while words[COUNT] < number and time.perf_counter() - began < AWAKE_SECONDS:
                pass
        if words[COUNT] < number:
            self._sleep_until(number)
        self._usual_seconds += (time.perf_counter() - began - self._usual_seconds) / 8

    def _sleep_until(self, number: int) -> None:
        words = self._in_words
        words[SLEEPS] = 1
        while words[COUNT] < number:
            # Who sends may not have seen yet that this one sleeps, so it does not for long.
            ready = dict(self._poll.poll(MISSED_BELL_MS))
            if self._heard in ready:
                os.eventfd_read(self._heard)
            elif ready and words[COUNT] < number:
                raise PeerLost
        words[SLEEPS] = 0

    def _mapped(self, memory: int) -> tuple[mmap.mmap, memoryview]:
        """The memory, and its words."""
        mapped = self._open.enter_context(mmap.mmap(memory, HEAD_BYTES + 2 * FRAME_BYTES))
        return mapped, self._open.enter_context(memoryview(mapped).cast("q"))

    def _kept(self, descriptor: int) -> int:
        self._open.callback(os.close, descriptor)
        return descriptor

    def close(self) -> None:
        self._open.close()
