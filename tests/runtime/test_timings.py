"""How long events of each VO take is measured for the VO that has them."""

from __future__ import annotations

import time
from typing import Any

from grid.kernel.entity import Context
from grid.kernel.event import MIN_EVENT_KEY
from grid.kernel.network import Network
from grid.kernel.process import LogicalProcess
from grid.model.time import NEVER
from grid.runtime.timings import advance_timed


class Works:
    """Takes so much processor time for each of its timers."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def start(self, ctx: Context) -> None:
        for number in range(5):
            ctx.set_timer(10 * number, str(number))

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        raise AssertionError

    def timeout(self, ctx: Context, timer: str) -> None:
        until = time.thread_time() + self.seconds
        while time.thread_time() < until:
            pass


def test_each_vo_costs_what_its_events_take() -> None:
    entities = {"a": Works(0.0), "b": Works(0.002), "c": Works(0.03)}
    process = LogicalProcess(entities, Network(["a", "b", "c"], [0, 1, 2], 50, 7), seed=1)
    process.start()
    began = time.thread_time()
    first = advance_timed(process, 1, 2, MIN_EVENT_KEY)
    costs = advance_timed(process, NEVER, 100, MIN_EVENT_KEY)
    took = time.thread_time() - began
    assert [*first] == [0, 1] and {*costs} == {0, 1, 2}
    total = {vo: first.get(vo, 0.0) + costs[vo] for vo in costs}
    assert 0 < sum(total.values()) <= took
    assert total[0] < total[2] and total[1] < total[2]
