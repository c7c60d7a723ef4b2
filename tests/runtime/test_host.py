"""The host of a live run without Ray, under a clock that is never late: just as in virtual time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grid.config.build import Grid
from grid.config.faults import FaultsSection
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.config.wrapped import entities_of, virtual_rules
from grid.kernel.event import Outbox
from grid.kernel.process import LogicalProcess
from grid.kernel.reliable import Reliable
from grid.model.time import NEVER, Time
from grid.runtime import host as host_module
from grid.runtime.clock import Pauses
from grid.runtime.codec import encode
from grid.runtime.host import Host, JournalStorage, first_sequence
from grid.runtime.journal import Journal
from grid.runtime.placement import deal

SCENARIOS = Path(__file__).parent / "fault_scenarios"

FAULTS: dict[str, dict[str, Any]] = {
    "nothing": {"between_vos": {"lost": 1e-12}},
    "crashes": {
        "crashes": [{"entity": "north/scheduler", "at_s": 4.0, "for_s": 10.0}],
        "random_crashes": {"every_s": 20.0, "for_s": 2.0},
        "vo_outages": [{"vo": "south", "at_s": 6.0, "for_s": 9.0}],
    },
    "partitions": {
        "partitions": [{"one": ["north"], "other": ["south"], "at_s": 2.0, "for_s": 20.0}],
    },
    "bad links": {
        "between_vos": {"lost": 0.2, "doubled": 0.2, "delayed": 0.3, "delay_s": 3.0},
        "within_vos": {"lost": 0.1, "doubled": 0.1, "delayed": 0.2, "delay_s": 0.5},
    },
}

Handled = dict[str, list[tuple[Time, int, str, str]]]
"""What each entity handled: when, of which kind, from whom, and what, as text."""


def grid_of(name: str, faults: dict[str, Any]) -> Grid:
    path = SCENARIOS / f"{name}.yaml"
    section = FaultsSection.model_validate({"heal_s": 60.0, **faults})
    scenario = load_scenario(path).model_copy(update={"faults": section})
    return realize(scenario, str(path))[0]


class PunctualClock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.time: Time = 0
        self.pauses: Pauses = ()

    def now(self) -> Time:
        return self.time

    def seconds_until(self, due: Time) -> float:
        return 0.0 if due <= self.time else 1e6


async def live(grid: Grid, folder: Path, process_of: list[int]) -> Time:
    """Play the grid on hosts until all jobs have ended; returns when that was."""
    clock = PunctualClock()
    under_way: list[tuple[str, Outbox]] = []
    host_of = {name: str(process) for name, process in zip(grid.names, process_of, strict=True)}
    hosts = {
        here: Host(
            grid,
            [name for name in grid.names if host_of[name] == here],
            folder,
            1.0,
            host_of,
            lambda to, outbox: under_way.append((to, outbox)),
            lambda: None,
        )
        for here in sorted(set(host_of.values()))
    }
    for one in hosts.values():
        one.begin(clock)
    while sum(one.status.jobs for one in hosts.values()) < sum(grid.jobs_by_vo()):
        for one in hosts.values():
            while one.next_time() <= clock.time:
                one.work()
            assert one.status.error == ""
        for one in hosts.values():
            await one.save()
        while under_way:
            to, outbox = under_way.pop()
            hosts[to].receive(outbox)
        clock.time = min(one.next_time() for one in hosts.values())
        assert clock.time < NEVER, "nothing is left to do, and jobs have not ended"
    for one in hosts.values():
        await one.finish()
        assert one.status.timers.total_us == one.status.messages.total_us == 0
    return clock.time


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Handled:
    """Filled while entities handle their inputs."""
    inputs: Handled = {}
    take = Reliable._take

    def noted(self: Reliable, ctx: Any, kind: int, sender: str, content: Any) -> None:
        inputs.setdefault(ctx.name, []).append((ctx.now, kind, sender, encode(content)))
        take(self, ctx, kind, sender, content)

    monkeypatch.setattr(Reliable, "_take", noted)
    return inputs


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("placement", ["entity", "vo", "one"])
def test_entities_handle_live_just_what_they_handle_in_virtual_time(
    faults: str, placement: str, tmp_path: Path, handled: Handled, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = grid_of("two", FAULTS[faults])
    process = LogicalProcess(
        entities_of(grid, grid.names), grid.network, grid.seed, grid.first_rows()
    )
    process.start()
    process.advance(NEVER)
    expected = {name: list(inputs) for name, inputs in handled.items()}
    handled.clear()
    # Waits are times of the real clock: here as in one run.
    monkeypatch.setattr(host_module, "live_rules", lambda _: virtual_rules(grid))
    actors = 1 if placement == "one" else 2
    process_of = deal(grid, "vo" if placement == "one" else placement, actors)
    ended_us = asyncio.run(live(grid, tmp_path, process_of))
    for name in grid.names:
        before = [one for one in handled[name] if one[0] < ended_us]
        assert before == [one for one in expected[name] if one[0] < ended_us], name
    assert sum(map(len, handled.values())) > 50


def test_a_process_numbers_its_messages_above_those_of_all_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the clock of the machine has been set back: peers take no number twice."""
    numbers = []
    for hour in (3, 2, 1):
        monkeypatch.setattr(time, "time_ns", lambda hour=hour: hour * 3600 * 10**9)
        journals = [Journal(tmp_path / name) for name in ("a", "b")]
        numbers.append(first_sequence([JournalStorage(one, False) for one in journals]))
        if hour == 2:
            Journal(tmp_path / "a").close()
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    assert min(np.diff(numbers)) >= 2**40
