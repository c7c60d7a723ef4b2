"""What is predicted for other placements of a windowed run, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.results.ceiling import Timings, VoCosts, ceiling, together


def slowly(work: list[list[float]], overlaps: list[bool]) -> float:
    """The same, process by process and round by round."""
    reported = [0.0 for _ in work[0]]
    for seconds, overlaps_last in zip(work, overlaps, strict=True):
        begins = reported if overlaps_last else [max(reported) for _ in reported]
        reported = [max(begins[p] + own, *reported) for p, own in enumerate(seconds)]
    return max(reported)


@given(
    st.data(),
    st.integers(1, 4).flatmap(
        lambda processes: st.lists(
            st.lists(st.floats(0, 9), min_size=processes, max_size=processes),
            min_size=1,
            max_size=8,
        )
    ),
)
def test_processes_wait_for_each_other_or_for_those_a_round_behind(
    data: st.DataObject, work: list[list[float]]
) -> None:
    overlaps = data.draw(st.lists(st.booleans(), min_size=len(work), max_size=len(work)))
    found = together(np.array(work), np.array(overlaps))
    assert found == pytest.approx(slowly(work, overlaps))
    assert found >= max(np.sum(work, axis=0)) - 1e-9
    assert found <= sum(map(max, work)) + 1e-9


def costs(*rows: tuple[int, int, float]) -> VoCosts:
    window, vo, seconds = zip(*rows, strict=True)
    return VoCosts(np.array(window), np.array(vo), np.array(seconds))


def timings(busy: list[float], of: VoCosts, other: float = 0.01) -> Timings:
    columns = [np.full(len(busy), other) for _ in range(3)]
    return Timings(np.array(busy), *columns, np.ones(len(busy), np.bool_), of)


def test_the_prediction_for_the_measured_placement_equals_the_measurement() -> None:
    """Two processes, each of two VOs that have half a second in each of a hundred windows."""
    rows = [[(w, v, 0.5) for w in range(100) for v in vos] for vos in ((0, 1), (2, 3))]
    both = [timings([1.0] * 100, costs(*own)) for own in rows]
    placements = {1: np.zeros(4, np.int64), 2: np.array([0, 0, 1, 1]), 4: np.arange(4)}
    found = ceiling(both, placements, ["a", "b", "c", "d"])
    # Messages, posts and the least waiting take 10 ms each.
    assert found["predicted"] == {
        "1": 200.0,
        "2": pytest.approx(103.0),
        "4": pytest.approx(50 + 0.75 + 1.5 + 1.0),
    }
    assert found["critical_path"] == pytest.approx(102)
    assert found["actors"]["1"] == {"busy": 100.0, "overhead": 2.0, "waiting": 1.0}
    assert found["why"].startswith("speed-up of up to 3.8,")
