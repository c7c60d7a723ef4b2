"""Processes exchange reports and messages of any size; unauthenticated peers are refused."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.kernel.network import steps
from grid.model.job_results import in_order
from grid.results.checkers import digest
from grid.runtime import connections
from grid.runtime.connections import (
    BUFFERED_BYTES,
    THIS_MACHINE,
    Address,
    Link,
    Listener,
    Parcel,
    PeerLost,
    Ring,
    connect,
    plain_posts,
    posts_of,
)
from grid.runtime.safe_times import ProcessReport, RoundReports
from grid.runtime.sequential import run_sequential

T = TypeVar("T")
KEY = b"k" * 32
GARBAGE = b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x05hello", b"\xff" * 4 + b"\x7f" * 8


def links_of_two() -> tuple[Link, Link]:
    """Two links that send to each other."""
    (one, other), (back, forth) = Pipe(), Pipe()
    return Link(one, forth), Link(back, other)


def test_frames_of_all_sizes_arrive_in_both_directions_at_once() -> None:
    draw = random.Random(1)
    edges = [0, 1, BUFFERED_BYTES, BUFFERED_BYTES + 1, 3_000_000]
    sizes = [[draw.choice([*edges, draw.randrange(200)]) for _ in range(40)] for _ in range(2)]
    links = links_of_two()

    def play(number: int) -> bool:
        whole = True
        for own, others in zip(sizes[number], sizes[1 - number], strict=True):
            links[number].send(b"x" * own)
            whole &= links[number].receive() == b"x" * others
        return whole

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(play, range(2))) == [True, True]


def test_a_lost_peer_is_noticed_after_its_last_frame() -> None:
    first, second = links_of_two()
    second.send(b"last")
    second.close()
    assert first.receive() == b"last"
    with pytest.raises(PeerLost):
        first.receive()
    with pytest.raises(PeerLost):
        first.send(b"")


def rings(count: int) -> list[Ring]:
    """Rings connected in this process."""
    links: list[list[Link]] = [[] for _ in range(count)]
    for far in [far for step in steps(count) for far in step]:
        pairs = [Pipe() for _ in range(count)]
        for number in range(count):
            links[number].append(Link(pairs[number][0], pairs[number - far][1]))
    return [Ring(number, count, own) for number, own in enumerate(links)]


def report(number: int, rows: bytes = b"") -> ProcessReport:
    posts = ((number, 5, 1, rows),)
    return ProcessReport(
        number, number % 2 == 0, 2**61 - number, 0, 0, False, posts, ((number, 7),)
    )


def concurrently(ring_of: list[Ring], each: Callable[[Ring, int], T]) -> list[T]:
    try:
        with ThreadPoolExecutor(len(ring_of)) as pool:
            return list(pool.map(each, ring_of, range(len(ring_of))))
    finally:
        for ring in ring_of:
            ring.close()


@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 100_000), (3, 1), (5, 100_000), (17, 1)])
def test_all_receive_all_reports_and_messages_reach_their_receivers(count: int, size: int) -> None:
    posts = [bytes([number]) * size for number in range(count)]

    def each(ring: Ring, number: int) -> list[tuple[RoundReports, list[bytes]]]:
        received = []
        for turn in range(3):
            others = [to for to in range(count) if to != number and (to + number + turn) % 3]
            parcels: list[Parcel] = [(to, bytes([number, to, turn])) for to in others]
            ring.send(report(number, posts[number]), parcels)
            received.append(ring.receive())
        return received

    expected = [report(number, posts[number]) for number in range(count)]
    for number, received in enumerate(concurrently(rings(count), each)):
        for turn, (reports, batches) in enumerate(received):
            assert reports == expected
            senders = [n for n in range(count) if n != number and (number + n + turn) % 3]
            assert sorted(batches) == [bytes([n, number, turn]) for n in senders]


def test_all_others_notice_that_a_process_is_lost() -> None:
    first, second, third = rings(3)
    second.close()

    def each(ring: Ring, number: int) -> None:
        with pytest.raises(PeerLost):
            ring.send(report(number), [])
            ring.receive()
        ring.close()

    concurrently([first, third], each)


@pytest.fixture(params=sorted({"127.0.0.1", THIS_MACHINE}))
def listener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Listener:
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 0.2)
    return Listener(request.param, KEY)


def stray(address: Address, data: bytes = b"") -> socket.socket:
    """A peer without the key."""
    peer = socket.socket(socket.AF_UNIX if isinstance(address, bytes) else socket.AF_INET)
    peer.settimeout(60)
    peer.connect(address)
    peer.sendall(data)
    return peer


def accept_the_right_one(listener: Listener) -> None:
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(connect, listener.address, KEY)
        with listener.accept(60) as inside, coming.result() as outside:
            outside.send_bytes(b"order" * 10_000)
            assert inside.recv_bytes() == b"order" * 10_000


@pytest.mark.parametrize("data", [b"", *GARBAGE], ids=lambda data: repr(data[:8]))
def test_a_peer_without_the_key_is_refused(listener: Listener, data: bytes) -> None:
    with closing(stray(listener.address, data)):
        accept_the_right_one(listener)


def test_a_peer_with_another_key_is_refused(listener: Listener) -> None:
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(connect, listener.address, b"other")
        accept_the_right_one(listener)
        with pytest.raises(PeerLost):
            other.result()


def test_a_listener_and_a_peer_wait_for_a_limited_time(listener: Listener) -> None:
    with pytest.raises(PeerLost):
        listener.accept(0.1)
    with pytest.raises(PeerLost):
        connect(listener.address, KEY)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent, pytest.raises(PeerLost):
        connect(silent.getsockname()[:2], KEY, seconds=0.3)


@pytest.fixture
def strays(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Address]]:
    """The addresses of actors; peers without the key connect there first."""
    from grid.runtime.transport import answers

    there: list[Address] = []
    with ExitStack() as stack:

        def after_strays(actors: Sequence[Any], calls: list[Any]) -> list[Any]:
            found = answers(actors, calls)
            for address in [one for value in found if isinstance(value, list) for one in value]:
                stack.enter_context(closing(stray(address, b"GET / HTTP/1.1\r\n\r\n")))
                there.append(address)
            return found

        monkeypatch.setattr("grid.runtime.transport.answers", after_strays)
        yield there


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_run_listens_on_this_machine_alone_and_refuses_strays(strays: list[Address]) -> None:
    from grid.runtime.windowed import run_windowed

    path = Path(__file__).parents[2] / "scenarios" / "two-vos.yaml"
    grid = realize(load_scenario(path), str(path))[0]
    outcome = run_windowed(grid, actors=2)
    assert digest(in_order(outcome.chunks)) == digest(in_order(run_sequential(grid).chunks))
    is_local = [isinstance(one, bytes) or one[0] == "127.0.0.1" for one in strays]
    assert is_local == [True, True]


def test_received_posts_equal_those_sent() -> None:
    posts = [(3, 17, np.arange(6.0).reshape(2, 3)), (0, 18, np.array([[np.inf, np.nan]]))]
    received = list(posts_of(plain_posts(posts)))
    for sent, one in zip(posts, received, strict=True):
        assert one[:2] == sent[:2]
        np.testing.assert_array_equal(one[2], sent[2])
