"""A stray connection to an actor's listener neither ends a run nor keeps it waiting."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import pytest

from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.job_results import in_order
from grid.results.checkers import digest
from grid.runtime import door as doors
from grid.runtime.door import THIS_MACHINE, Address, Door, NobodyCame, connect
from grid.runtime.sequential import run_sequential

KEY = b"k" * 32
GARBAGE = (
    b"", b"GET / HTTP/1.1\r\n\r\n", bytes(1000), b"\xff" * 1000, b"\x00\x00\x00\x05hello",
    b"\x00\x00\x01\x00" + b"x" * 256, b"\xff\xff\xff\xff" + b"\x7f" * 8,
    random.Random(1).randbytes(5000),
)  # fmt: skip


@pytest.fixture(params=sorted({"127.0.0.1", THIS_MACHINE}))
def door(request: pytest.FixtureRequest) -> Door:
    return Door(request.param, KEY)


def stranger(address: Address, says: bytes = b"") -> socket.socket:
    if isinstance(address, bytes):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(60)
        peer.connect(address)
    else:
        peer = socket.create_connection(address, timeout=60)
    peer.sendall(says)
    return peer


def is_local(address: Address) -> bool:
    return address[0] == "127.0.0.1" or isinstance(address, bytes)


def coming(address: Address) -> tuple[threading.Thread, list[Connection]]:
    """The right one, who comes by and by."""
    came: list[Connection] = []
    thread = threading.Thread(target=lambda: came.append(connect(address, KEY)), daemon=True)
    thread.start()
    return thread, came


def talk(door: Door) -> None:
    """The right one comes, and is heard and answered."""
    thread, came = coming(door.address)
    with door.wait(60) as inside:
        thread.join(60)
        with came[0] as outside:
            outside.send_bytes(b"order" * 10_000)
            assert inside.recv_bytes() == b"order" * 10_000
            inside.send_bytes(b"answer")
            assert outside.recv_bytes() == b"answer"


@pytest.mark.parametrize("says", GARBAGE, ids=lambda says: repr(says[:8]))
def test_who_says_something_else_is_sent_away(door: Door, says: bytes) -> None:
    with closing(stranger(door.address, says)):
        talk(door)


def test_who_has_another_key_is_sent_away(door: Door) -> None:
    refused: list[BaseException] = []

    def come() -> None:
        try:
            Client(door.address, authkey=b"other")
        except (AuthenticationError, OSError, EOFError) as error:
            refused.append(error)

    other = threading.Thread(target=come, daemon=True)
    other.start()
    talk(door)
    other.join(60)
    assert refused


def test_silent_ones_keep_nobody_waiting(door: Door) -> None:
    with ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(closing(stranger(door.address)))
        talk(door)


def test_when_all_places_are_taken_their_time_ends_first(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that of those who say a little now and then."""
    monkeypatch.setattr(doors, "HANDSHAKE_SECONDS", 0.3)
    monkeypatch.setattr(doors, "MOST_STRANGERS", 2)
    with closing(stranger(door.address)) as first, closing(stranger(door.address)) as second:
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.05):
                try:
                    second.sendall(b"\0")
                except OSError:
                    return

        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        talk(door)
        stop.set()
        dripping.join(60)
        assert first.recv(1000)  # the challenge
        assert first.recv(1000) == b""


def test_nobody_comes(door: Door) -> None:
    with pytest.raises(NobodyCame, match="nobody who knows"):
        door.wait(0.1)
    with pytest.raises(ConnectionRefusedError):
        connect(door.address, KEY)


def test_a_door_that_nobody_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "HANDSHAKE_SECONDS", 0.05)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent, pytest.raises(ConnectionError):
        connect(silent.getsockname()[:2], KEY, seconds=0.2)


@pytest.fixture
def strays(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Address]]:
    """Before actors come to each other, a silent one and one with garbage do."""
    there: list[Address] = []
    with ExitStack() as stack:

        def after_strays(actors: Sequence[Any], calls: list[Any]) -> list[Any]:
            found = answers(actors, calls)
            for address in [one for told in found if isinstance(told, list) for one in told]:
                for says in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 4):
                    stack.enter_context(closing(stranger(address, says)))
                there.append(address)
            return found

        from grid.runtime.transport import answers

        monkeypatch.setattr("grid.runtime.transport.answers", after_strays)
        yield there


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_run_does_not_mind_strays(strays: list[Address]) -> None:
    from grid.runtime.windowed import run_windowed

    path = Path(__file__).parents[2] / "scenarios" / "two-vos.yaml"
    grid = realize(load_scenario(path), str(path))[0]
    began = time.monotonic()
    outcome = run_windowed(grid, actors=2)
    assert digest(in_order(outcome.chunks)) == digest(in_order(run_sequential(grid).chunks))
    # One door each, for this machine alone.
    assert [is_local(address) for address in strays] == [True, True]
    assert time.monotonic() - began < 120
