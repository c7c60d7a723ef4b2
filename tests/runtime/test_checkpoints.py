"""Checkpoints are as frequent as they should be, by what they cost."""

from __future__ import annotations

import pytest

from grid.runtime.windowed import SECONDS_A_DEATH, Checkpoints


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds


def test_after_so_many_rounds() -> None:
    checkpoints = Checkpoints(50, Clock())
    checkpoints.played(30)
    assert not checkpoints.is_due()
    assert checkpoints.rounds_left() == 20
    checkpoints.played(21)
    assert checkpoints.is_due()
    checkpoints.save(lambda: None)
    assert not checkpoints.is_due()
    assert checkpoints.rounds_left() == 50


@pytest.mark.parametrize("seconds", [5.0, 20.0, 80.0])
def test_no_other_interval_costs_less(seconds: float) -> None:
    """Saving costs C an interval, and a death half an interval: C / t + t / 2T."""
    save_s = 0.3
    clock = Clock()
    checkpoints = Checkpoints(None, clock)
    checkpoints.save(lambda: clock.pass_by(save_s))
    began = clock.seconds
    while not checkpoints.is_due():
        clock.pass_by(0.01)

    def cost(interval_s: float) -> float:
        return save_s / interval_s + interval_s / (2 * SECONDS_A_DEATH)

    assert cost(clock.seconds - began) < cost(seconds)


def test_who_went_back_has_just_saved() -> None:
    clock = Clock()
    checkpoints = Checkpoints(None, clock)
    clock.pass_by(1e6)
    checkpoints.go_back(lambda: clock.pass_by(1e6))
    assert not checkpoints.is_due()
