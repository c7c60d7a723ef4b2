"""Processes that tell each other their news: all hear all, whatever their number and its size."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from grid.kernel.network import steps
from grid.runtime.links import Link, MemoryLink, PeerLost, SocketLink
from grid.runtime.ring import Parcel, Ring
from grid.runtime.safe_times import ProcessReport, RoundReports
from grid.runtime.safe_times import together as all_told

T = TypeVar("T")
KINDS = [SocketLink, MemoryLink]


def rings(count: int, kind: type[Link]) -> list[Ring]:
    """So many, connected in this process."""
    links: list[list[Link]] = [[] for _ in range(count)]
    for far in [far for step in steps(count) for far in step]:
        pairs = [socket.socketpair() for _ in range(count)]
        for number in range(count):
            links[number].append(kind(pairs[number][0], pairs[number - far][1]))
    return [Ring(number, count, own) for number, own in enumerate(links)]


def news(number: int, rows: bytes = b"") -> ProcessReport:
    posts = ((number, 5, 1, rows),)
    return ProcessReport(
        number, number % 2 == 0, 2**61 - number, 0, 0, False, posts, ((number, 7),)
    )


def together(ring_of: list[Ring], each: Callable[[Ring, int], T]) -> list[T]:
    try:
        with ThreadPoolExecutor(len(ring_of)) as pool:
            return list(pool.map(each, ring_of, range(len(ring_of))))
    finally:
        for ring in ring_of:
            ring.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 20])
@pytest.mark.parametrize("size", [1, 100_000])
def test_all_hear_all_and_what_is_sent_comes_to_its_receiver_alone(
    count: int, size: int, kind: type[Link]
) -> None:
    """100 kB are more than a socket holds, and all send at once."""
    posts = [bytes([number]) * size for number in range(count)]

    def each(ring: Ring, number: int) -> list[tuple[RoundReports, list[bytes]]]:
        heard = []
        for turn in range(3):
            others = [to for to in range(count) if to != number and (to + number + turn) % 3]
            parcels: list[Parcel] = [(to, bytes([number, to, turn])) for to in others]
            ring.tell(news(number, posts[number]), parcels)
            heard.append(ring.hear())
        return heard

    everybody = all_told([news(number, posts[number]) for number in range(count)])
    for number, heard in enumerate(together(rings(count, kind), each)):
        for turn, (told, batches) in enumerate(heard):
            assert [list(column) for column in told] == [list(column) for column in everybody]
            senders = [n for n in range(count) if n != number and (number + n + turn) % 3]
            assert sorted(batches) == [bytes([n, number, turn]) for n in senders]


@pytest.mark.parametrize("kind", KINDS)
def test_who_waits_for_one_that_is_gone_is_told(kind: type[Link]) -> None:
    first, second, third = rings(3, kind)
    second.close()

    def each(ring: Ring, number: int) -> None:
        with pytest.raises(PeerLost):
            ring.tell(news(number), [])
            ring.hear()
        ring.close()

    together([first, third], each)
