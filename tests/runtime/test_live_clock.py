"""The clock of a live run: setting the machine's clock has no effect; pauses; lateness."""

from __future__ import annotations

import time

import pytest

from grid.model.time import SECOND_US
from grid.runtime.clock import Clock


def set_clocks(monkeypatch: pytest.MonkeyPatch, monotonic: float, wall: float = 0.0) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: monotonic)
    monkeypatch.setattr(time, "time", lambda: wall)


def test_actors_have_the_same_time_whenever_they_start(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clocks(monkeypatch, 1000.0, 50_000.0)
    first = Clock(50_001.0, speedup=2.0)
    assert first.now() == 0
    assert first.seconds_until(4 * SECOND_US) == 3.0
    # Another machine, or an actor that was restarted.
    set_clocks(monkeypatch, 7.0, 50_011.0)
    assert Clock(50_001.0, speedup=2.0).now() == 20 * SECOND_US
    set_clocks(monkeypatch, 1011.0, 99_999.0)
    assert first.now() == 20 * SECOND_US


def test_the_clock_does_not_advance_in_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clocks(monkeypatch, 1000.0)
    clock = Clock(0.0, speedup=2.0)
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
