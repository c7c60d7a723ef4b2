"""The clock of a live run: setting the machine's clock has no effect; pauses; lateness."""

from __future__ import annotations

import time

import pytest

from grid.model.time import SECOND_US
from grid.runtime import clock as live_clock
from grid.runtime.clock import Clock, epoch_in


def set_clocks(monkeypatch: pytest.MonkeyPatch, monotonic: float, wall: float = 0.0) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: monotonic)
    monkeypatch.setattr(time, "time", lambda: wall)


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_restarted_actor_has_the_time_of_the_others(
    jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the clock of the machine was set."""
    set_clocks(monkeypatch, 1000.0, 50_000.0)
    epoch = epoch_in(1.0)
    first = Clock(epoch, speedup=2.0)
    assert first.now() == 0
    assert first.seconds_until(4 * SECOND_US) == 3.0
    set_clocks(monkeypatch, 1011.0, 50_011.0 + jump)
    again = Clock(epoch, speedup=2.0)
    assert first.now() == again.now() == 20 * SECOND_US
    assert again.seconds_until(21 * SECOND_US) == first.seconds_until(21 * SECOND_US) == 0.5


def test_another_machine_uses_the_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clocks(monkeypatch, 1000.0, 50_000.0)
    epoch = epoch_in(1.0)
    for boot in ("another", ""):
        monkeypatch.setattr(live_clock, "_boot", lambda boot=boot: boot)
        set_clocks(monkeypatch, 7.0, 50_011.0)
        clock = Clock(epoch, speedup=1.0)
        assert clock.now() == 10 * SECOND_US
        set_clocks(monkeypatch, 9.0)
        assert clock.now() == 12 * SECOND_US


def test_the_clock_does_not_advance_in_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clocks(monkeypatch, 1000.0)
    clock = Clock(epoch_in(0.0), speedup=2.0)
    clock.pauses = ((2, 5), (9, float("inf")))
    expected = {0.0: 0, 2.0: 4, 4.0: 4, 5.0: 4, 6.0: 6, 9.0: 12, 50.0: 12}
    for real_s, virtual_s in expected.items():
        set_clocks(monkeypatch, 1000.0 + real_s)
        assert clock.now() == virtual_s * SECOND_US, real_s
    set_clocks(monkeypatch, 1001.0)
    assert clock.seconds_until(6 * SECOND_US) == pytest.approx(5.0)
    assert clock.seconds_until(4 * SECOND_US) == pytest.approx(1.0)
    set_clocks(monkeypatch, 1009.5)
    assert clock.seconds_until(13 * SECOND_US) == 3600
    assert clock.seconds_until(11 * SECOND_US) == 0
