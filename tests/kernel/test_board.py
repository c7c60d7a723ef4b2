"""The board against messages to each reader."""

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
