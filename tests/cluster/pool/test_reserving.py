"""Reservations on a pool: what the compiled code looks up, by the standard library."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster.pool.reserving import step_among_many
from tests.examples import examples


@given(
    times=st.lists(st.integers(0, 500), min_size=1, max_size=300, unique=True),
    at_us=st.integers(-1, 501),
    data=st.data(),
)
@settings(max_examples=examples(300), deadline=None)
def test_a_step_among_many(times: list[int], at_us: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(times) - 1))
    stop = data.draw(st.integers(first + 1, len(times)))
    time = np.array(sorted(times))
    assert step_among_many(time, first, stop, at_us) == _step(time, first, stop, at_us)


@pytest.mark.parametrize("steps", [*range(1, 70), 511, 512, 513, 4095, 4096, 4097])
def test_every_step_of_a_profile_is_found(steps: int) -> None:
    time = np.arange(3, 2 * steps + 3, 2)
    for at_us in range(2, 2 * steps + 4):
        assert step_among_many(time, 0, steps, at_us) == _step(time, 0, steps, at_us)


def _step(time: np.ndarray, first: int, stop: int, at_us: int) -> int:
    return max(first, bisect_right(time.tolist(), at_us, first, stop) - 1)
