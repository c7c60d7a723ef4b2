"""The best row of each class, against a look at all rows of the board."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grid.kernel.board import Board

PUBLISHERS, EACH, LATENCY_US = 4, 3, 7
STEPS = st.lists(
    st.tuples(
        st.integers(0, 5),  # time since the step before
        st.integers(-1, PUBLISHERS - 1),  # who posts; -1: somebody reads
        st.lists(st.integers(0, 3), min_size=EACH, max_size=EACH),
    ),
    max_size=40,
)


def best_of_all(
    board: Board, classes: list[int], now: int, reader: int
) -> list[tuple[int, list[float]]]:
    rows = board.read(now, [LATENCY_US] * PUBLISHERS)
    best: dict[int, int] = {}
    for place, number in enumerate(classes):
        if place // EACH != reader:
            before = best.get(number)
            if before is None or rows[place, 0] < rows[before, 0]:
                best[number] = place
    return [(place, rows[place].tolist()) for place in sorted(best.values())]


@given(
    steps=STEPS,
    numbers=st.lists(st.integers(0, 3), min_size=PUBLISHERS * EACH, max_size=PUBLISHERS * EACH),
    first_look=st.integers(0, 20),
)
def test_of_each_class_the_least_row_of_others_is_seen(
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
            for reader in range(-1, PUBLISHERS):
                least = board.least(now, LATENCY_US, classes)
                places, found = least.read(now, reader)
                expected = best_of_all(board, classes.tolist(), now, reader)
                assert list(zip(places.tolist(), found.tolist(), strict=True)) == expected


def test_readers_far_and_near_do_not_share_a_view() -> None:
    board = Board([np.zeros((1, 2))] * 2, longest_latency_us=9)
    classes = np.zeros(2, np.int64)
    board.post(0, 10, np.ones((1, 2)), present=10)
    near, far = board.least(14, 4, classes), board.least(14, 9, classes)
    assert near is not far
    assert near.read(14, 1)[1].tolist() == [[1.0, 1.0]]
    assert far.read(14, 1)[1].tolist() == [[0.0, 0.0]]
