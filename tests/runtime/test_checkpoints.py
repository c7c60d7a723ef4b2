"""When a windowed run saves its state."""

from __future__ import annotations

import pytest

from grid.runtime import windowed
from grid.runtime.windowed import SECONDS_A_DEATH, Checkpoints


def test_a_checkpoint_is_due_after_a_number_of_rounds() -> None:
    checkpoints = Checkpoints(50)
    assert not checkpoints.is_due(30)
    assert checkpoints.rounds_left() == 20
    assert checkpoints.is_due(21)
    checkpoints.save(lambda: None)
    assert checkpoints.rounds_left() == 50
    assert not checkpoints.is_due(0)


@pytest.mark.parametrize("seconds", [5.0, 20.0, 80.0])
def test_no_other_interval_costs_less(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving costs C an interval, and a death half an interval: C / t + t / 2T."""
    now, save_s = [100.0], 0.3
    monkeypatch.setattr(windowed.time, "perf_counter", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    checkpoints = Checkpoints(None)
    checkpoints.save(lambda: wait(save_s))
    began = now[0]
    while not checkpoints.is_due(1):
        wait(0.01)

    def cost(interval_s: float) -> float:
        return save_s / interval_s + interval_s / (2 * SECONDS_A_DEATH)

    assert cost(now[0] - began) < cost(seconds)
    checkpoints.restored()
    assert not checkpoints.is_due(1)
