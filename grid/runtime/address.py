"""Whether a running Ray cluster is at an address, and lets us in. Ray itself tries for minutes."""

from __future__ import annotations

import os
import re
import socket
from typing import Any

import ray

from grid.model.errors import InputError, input_error
from grid.runtime.ray_watch import silenced

_raylet: Any = ray._raylet

WHICH_RAY_FINDS = "auto"
"""Not an address, but the cluster that Ray knows of on this machine."""
KNOCK_SECONDS = 5.0
HTTP2_SETTINGS = b"\x04"
HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + HTTP2_SETTINGS + bytes(5)
"""What a client of gRPC, which Ray speaks, says first, with an empty frame of settings."""


def knock(address: str, option: str = "--address") -> None:
    """Raises InputError, which names `option`, where no Ray cluster lets us in at HOST:PORT."""
    if address == WHICH_RAY_FINDS:
        return
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[^/\s:]+|\[[0-9A-Fa-f:]+\]", host) or not _is_port(port):
        expected = f"HOST:PORT of a running Ray cluster, or {WHICH_RAY_FINDS}"
        raise input_error(option, f"{address!r}", expected)
    found = ""
    try:
        with socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS) as connection:
            if "RAY_USE_TLS" not in os.environ and not _speaks_as_ray(connection):
                found = f"something that is no Ray cluster at {address}"
    except OSError:
        found = f"nothing that answers at {address}"
    if found:
        raise input_error(option, found, "a running Ray cluster")
    try:
        with silenced():
            _raylet.GcsClient(address=address)
    except (ray.exceptions.AuthenticationError, ray.exceptions.RpcError) as error:
        raise not_let_in(address, option, error) from None


def not_let_in(address: str, option: str, error: Exception) -> InputError:
    """What is wrong with an address where Ray said `error`."""
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")
    expected = "a running Ray cluster"
    if isinstance(error, ray.exceptions.AuthenticationError):
        expected = "one whose token is ours (RAY_AUTH_MODE, RAY_AUTH_TOKEN_PATH)"
    found = f"no Ray cluster that lets us in at {address} ({reason[:200]})"
    return input_error(option, found, expected)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text) < 1 << 16


def _speaks_as_ray(connection: socket.socket) -> bool:
    """Whether what is at the other end greets as a gRPC server does: with a frame of settings."""
    connection.sendall(HTTP2_GREETING)
    answer = b""
    try:
        while len(answer) < 4 and (more := connection.recv(9)):
            answer += more
    except TimeoutError:
        return False
    return answer[3:4] == HTTP2_SETTINGS
