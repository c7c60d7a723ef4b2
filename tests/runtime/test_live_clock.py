"""The clock of a live run, whatever is done to the clock of the machine meanwhile."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest

from grid.model.time import SECOND_US
from grid.runtime import clock as live_clock
from grid.runtime.clock import Clock, epoch_in


class Clocks(NamedTuple):
    """What the machine's two clocks show."""

    monotonic: float
    wall: float

    def show(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(time, "monotonic", lambda: self.monotonic)
        monkeypatch.setattr(time, "time", lambda: self.wall)


@pytest.mark.parametrize("jump", [-3600.0, 0.0, 3600.0])
def test_an_actor_that_starts_again_after_the_clock_was_set_has_the_time_of_the_others(
    jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clocks(1000.0, 50_000.0).show(monkeypatch)
    epoch = epoch_in(1.0)
    first = Clock(epoch, speedup=2.0)
    assert first.now() == 0
    assert first.seconds_until(4 * SECOND_US) == 3.0
    Clocks(1011.0, 50_011.0 + jump).show(monkeypatch)
    again = Clock(epoch, speedup=2.0)
    assert first.now() == again.now() == 20 * SECOND_US
    assert again.seconds_until(21 * SECOND_US) == first.seconds_until(21 * SECOND_US) == 0.5


def test_another_machine_goes_by_the_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    Clocks(1000.0, 50_000.0).show(monkeypatch)
    epoch = epoch_in(1.0)
    for boot in ("another", ""):
        monkeypatch.setattr(live_clock, "_boot", lambda boot=boot: boot)
        Clocks(7.0, 50_011.0).show(monkeypatch)
        clock = Clock(epoch, speedup=1.0)
        assert clock.now() == 10 * SECOND_US
        Clocks(9.0, 0.0).show(monkeypatch)
        assert clock.now() == 12 * SECOND_US
