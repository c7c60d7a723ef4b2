"""The board against messages to each reader, and against a scan of all rows by class."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grid.kernel.board import Board

POSTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), max_size=25)
READS = st.lists(st.integers(0, 60), max_size=10)


@given(posts=POSTS, reads=READS, latencies=st.lists(st.integers(1, 40), min_size=3, max_size=3))
def test_a_reader_sees_the_last_message_that_has_arrived(
    posts: list[tuple[int, int]], reads: list[int], latencies: list[int]
) -> None:
    board = Board([np.zeros((1, 2))] * 3, longest_latency_us=40)
    sent: list[tuple[int, int, float]] = []
    steps = sorted([(time, 0, who) for who, time in posts] + [(time, 1, -1) for time in reads])
    for number, (time, is_read, who) in enumerate(steps, start=1):
        if not is_read:
            board.post(who, time, np.full((1, 2), float(number)), present=time)
            sent.append((who, time, float(number)))
            continue
        rows = board.read(time, latencies)
        for publisher in range(3):
            arrived = [
                value
                for sender, at, value in sent
                if sender == publisher and at + latencies[publisher] <= time
            ]
            value = arrived[-1] if arrived else 0.0
            assert rows[publisher].tolist() == [value, value]


PUBLISHERS, EACH, LATENCY_US = 4, 3, 7
STEPS = st.lists(
    st.tuples(
        st.integers(0, 5),  # time since the step before
        st.integers(-1, PUBLISHERS - 1),  # publisher; -1: no post
        st.lists(st.integers(0, 3), min_size=EACH, max_size=EACH),
    ),
    max_size=40,
)


def best_of_all(board: Board, classes: list[int], now: int) -> list[tuple[int, list[float]]]:
    """The best row of each class, and the best of another publisher."""
    rows = board.read(now, [LATENCY_US] * PUBLISHERS)
    best: list[int] = []
    for number in sorted(set(classes)):
        places = [place for place, one in enumerate(classes) if one == number]
        places.sort(key=lambda place: (rows[place, 0], place))
        others = [place for place in places if place // EACH != places[0] // EACH]
        best += places[:1] + others[:1]
    return [(place, rows[place].tolist()) for place in sorted(best)]


@given(
    steps=STEPS,
    numbers=st.lists(st.integers(0, 3), min_size=PUBLISHERS * EACH, max_size=PUBLISHERS * EACH),
    first_look=st.integers(0, 20),
)
def test_least_row_of_each_class_equals_a_scan_of_all_rows(
    steps: list[tuple[int, int, list[int]]], numbers: list[int], first_look: int
) -> None:
    board = Board([np.zeros((EACH, 2))] * PUBLISHERS, longest_latency_us=LATENCY_US)
    classes = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    now = 0
    for step, (passed, who, values) in enumerate(steps):
        now += passed
        if who >= 0:
            rows = np.stack([np.array(values, np.float64), np.full(EACH, float(step))], axis=1)
            board.post(who, now, rows, present=now)
        if step >= first_look:
            places, found = board.least(now, LATENCY_US, classes).read(now)
            expected = best_of_all(board, classes.tolist(), now)
            assert list(zip(places.tolist(), found.tolist(), strict=True)) == expected


def test_readers_with_different_latencies_have_separate_views() -> None:
    board = Board([np.zeros((1, 2))] * 2, longest_latency_us=9)
    classes = np.zeros(2, np.int64)
    board.post(0, 10, np.ones((1, 2)), present=10)
    near, far = board.least(14, 4, classes), board.least(14, 9, classes)
    assert near is not far
    assert near.read(14)[1].max() == 1.0
    assert far.read(14)[1].max() == 0.0
