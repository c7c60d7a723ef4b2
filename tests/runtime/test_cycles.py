"""Python looks for cycles rarely in a run, and as often as before when it is over."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from grid.runtime.cycles import rarely_looked_for


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.parametrize("before", [(700, 10, 10), (1_000_000, 5, 5), (0, 10, 10)])
def test_what_was_set_is_set_again_even_if_the_run_fails(before: tuple[int, int, int]) -> None:
    gc.set_threshold(*before)
    with pytest.raises(ZeroDivisionError), rarely_looked_for():
        meanwhile = gc.get_threshold()
        _ = 1 / 0
    assert gc.get_threshold() == before
    if before[0] == 0:
        assert meanwhile == before, "who has switched it off wants it off"
    else:
        assert all(now >= then for now, then in zip(meanwhile, before, strict=True))
        assert meanwhile > before


def test_old_objects_are_looked_at_less_often() -> None:
    def looks_at_old() -> int:
        before = gc.get_stats()[2]["collections"]
        kept = [[number] for number in range(200_000)]
        assert len(kept) == 200_000
        return gc.get_stats()[2]["collections"] - before

    # Python looks at old objects once there are a quarter more of them: here, than of none.
    gc.freeze()
    gc.collect()
    gc.set_threshold(100, 5, 5)
    usual = looks_at_old()
    with rarely_looked_for():
        assert looks_at_old() == 0 < usual
