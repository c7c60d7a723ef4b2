"""A server that speaks HTTP/2, as Ray does, and answers each request that nothing is there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HEADERS, SETTINGS, PING = 1, 4, 6
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NOT_FOUND = b"\x8d"
"""The header `:status: 404`, as HPACK (RFC 7541) writes it."""


@contextmanager
def web_server() -> Iterator[str]:
    """Its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=[server], daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def _serve(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_answer, args=[connection], daemon=True).start()


def _frame(kind: int, flags: int, stream: bytes, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3) + bytes([kind, flags]) + stream + content


def _answer(connection: socket.socket) -> None:
    with suppress(OSError), connection, connection.makefile("rb") as said:
        connection.sendall(_frame(SETTINGS, 0, bytes(4)))
        assert said.read(len(GREETING)) == GREETING
        while head := said.read(9):
            content = said.read(int.from_bytes(head[:3]))
            kind, is_answer, stream = head[3], head[4] & 1, head[5:]
            if kind in (SETTINGS, PING) and not is_answer:
                connection.sendall(_frame(kind, 1, stream, content if kind == PING else b""))
            if kind == HEADERS:
                connection.sendall(_frame(HEADERS, 5, stream, NOT_FOUND))
