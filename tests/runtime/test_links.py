"""Links carry every frame in order, whatever its size, and tell when the other side is gone."""

from __future__ import annotations

import gc
import os
import random
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grid.runtime import links
from grid.runtime.links import (
    FRAME_BYTES,
    LENGTH_BYTES,
    Link,
    MemoryLink,
    PeerLost,
    SocketLink,
    can_share_memory,
)

NUMBERS = 16
HEAD = LENGTH_BYTES + NUMBERS
DESCRIPTORS = Path("/proc/self/fd")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory is Linux's")


def pair(kind: Callable[[socket.socket, socket.socket], Link]) -> tuple[Link, Link]:
    """Two links that send to each other."""
    (one, other), (back, forth) = socket.socketpair(), socket.socketpair()
    return kind(one, forth), kind(back, other)


@pytest.fixture(params=[SocketLink, MemoryLink])
def linked(request: pytest.FixtureRequest) -> Iterator[tuple[Link, Link]]:
    both = pair(request.param)
    yield both
    for link in both:
        link.close()


def frame(turn: int, size: int) -> bytes:
    """One of so many bytes of text."""
    numbers = turn.to_bytes(NUMBERS, "little")
    return size.to_bytes(LENGTH_BYTES, "little") + numbers + bytes([turn % 251]) * size


def exchanged(both: tuple[Link, Link], sizes: list[list[int]]) -> list[bool]:
    """Each sends its frames and receives the other's, in turn; whether all came as they were."""

    def play(number: int) -> bool:
        link = both[number]
        whole = True
        for turn, (own, others) in enumerate(zip(sizes[number], sizes[1 - number], strict=True)):
            link.send(frame(turn, own))
            numbers, text = link.receive(NUMBERS)
            whole &= frame(turn, others)[LENGTH_BYTES:] == numbers + text
        return whole

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(play, range(2)))


def test_frames_of_all_sizes_both_ways_at_once(linked: tuple[Link, Link]) -> None:
    """Among them the last that finds room in the memory, and the first that does not."""
    draw = random.Random(1)
    edges = [0, 1, FRAME_BYTES - HEAD, FRAME_BYTES - HEAD + 1, 3 * FRAME_BYTES]
    sizes = [[draw.choice([*edges, draw.randrange(200)]) for _ in range(60)] for _ in range(2)]
    assert exchanged(linked, sizes) == [True, True]


def test_one_that_sleeps_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the bell, which it would wait for for ever."""
    monkeypatch.setattr(links, "AWAKE_SECONDS", 0.0)
    monkeypatch.setattr(links, "MISSED_BELL_MS", None)
    both = pair(MemoryLink)
    first, second = both
    woken = threading.Thread(target=second.receive, args=(NUMBERS,), daemon=True)
    woken.start()
    words = first._out_words  # type: ignore[attr-defined]
    while not words[links.SLEEPS]:
        pass
    first.send(frame(0, 5))
    woken.join(60)
    assert not woken.is_alive()
    for link in both:
        link.close()


def test_a_bell_that_is_missed_is_no_frame_that_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "AWAKE_SECONDS", 0.0)
    monkeypatch.setattr(os, "eventfd_write", lambda *_: None)
    both = pair(MemoryLink)
    assert exchanged(both, [[3] * 20, [4] * 20]) == [True, True]
    for link in both:
        link.close()


def test_one_that_is_gone_before_it_said_anything(linked: tuple[Link, Link]) -> None:
    first, second = linked
    second.close()
    with pytest.raises(PeerLost):
        first.receive(NUMBERS)


def test_what_one_said_before_it_went_is_heard(linked: tuple[Link, Link]) -> None:
    first, second = linked
    second.send(frame(7, 9))
    second.close()
    assert first.receive(NUMBERS) == (frame(7, 9)[LENGTH_BYTES:HEAD], frame(7, 9)[HEAD:])
    with pytest.raises(PeerLost):
        first.receive(NUMBERS)


@pytest.mark.parametrize("kind", [SocketLink, MemoryLink])
def test_links_that_are_closed_keep_nothing_open(kind: type[Link]) -> None:
    # What other tests have left open is closed when it is collected.
    gc.collect()
    before = len(list(DESCRIPTORS.iterdir()))
    both = pair(kind)
    exchanged(both, [[1], [2]])
    for link in both:
        link.close()
        link.close()
    assert len(list(DESCRIPTORS.iterdir())) == before


def test_memory_is_shared_where_each_process_has_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "usable_cpus", lambda: 4)
    monkeypatch.setattr(links.platform, "machine", lambda: "x86_64")
    assert can_share_memory(4)
    assert not can_share_memory(5)
    # Others see there what a processor writes in another order.
    monkeypatch.setattr(links.platform, "machine", lambda: "aarch64")
    assert not can_share_memory(2)
