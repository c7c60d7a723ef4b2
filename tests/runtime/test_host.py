"""Hosts of a live run without Ray, with a clock that is never late: as in virtual time."""

from __future__ import annotations

import asyncio
import shutil
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
from grid.model.job_results import JobResults, in_order
from grid.model.time import NEVER, SECOND_US, Time
from grid.results.checkers import check
from grid.results.events import EventSpool
from grid.runtime import host as host_module
from grid.runtime.clock import Clock
from grid.runtime.host import Host, HostSettings, JournalStorage, first_sequence
from grid.runtime.interventions import Done
from grid.runtime.journal import Journal
from grid.runtime.live import read_journals
from grid.runtime.placement import processes_of
from tests.config import grids

SCENARIOS = Path(__file__).parent / "fault_scenarios"

FAULTS: dict[str, dict[str, Any]] = {
    "nothing": {"between_vos": {"lost": 1e-12}},
    "crashes": {
        "crashes": [{"entity": "north/scheduler", "at_s": 4.0, "for_s": 10.0}],
        "random_crashes": {"every_s": 20.0, "for_s": 2.0},
        "vo_outages": [{"vo": "south", "at_s": 6.0, "for_s": 9.0}],
    },
    "partitions": {
        "partitions": [{"one": ["north"], "other": ["south"], "at_s": 2.0, "for_s": 20.0}]
    },
    "bad links": {
        "between_vos": {"lost": 0.2, "doubled": 0.2, "delayed": 0.3, "delay_s": 3.0},
        "within_vos": {"lost": 0.1, "doubled": 0.1, "delayed": 0.2, "delay_s": 0.5},
    },
}

Handled = dict[str, list[tuple[Time, int, str, str]]]
"""The inputs of each entity: time, kind, sender, content as text."""


def grid_of(name: str, faults: dict[str, Any]) -> Grid:
    path = SCENARIOS / f"{name}.yaml"
    section = FaultsSection.model_validate({"heal_s": 60.0, **faults})
    scenario = load_scenario(path).model_copy(update={"faults": section})
    return realize(scenario, str(path))[0]


class PunctualClock(Clock):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time: Time = 0
        self.pauses = ()

    def now(self) -> Time:
        return self.time

    def seconds_until(self, due: Time) -> float:
        return 0.0 if due <= self.time else 1e6


class HostedRun:
    """A run of `grid` on hosts, with a clock that is never late, until all jobs have ended.

    `host_of` names the host of each entity; default: a host for each VO. At `dies_s` all hosts are
    killed and started again from their journals in `folder`; with `kept`, in the middle of a write
    of which this share is on disk.
    """

    def __init__(
        self,
        grid: Grid,
        folder: Path,
        done: Done = (),
        dies_s: float | None = None,
        *,
        host_of: dict[str, str] | None = None,
        watched: bool = True,
        events: bool = False,
        kept: float | None = None,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.grid, self.folder, self.done = grid, folder, done
        self.host_of = host_of or {name: name.partition("/")[0] for name in grid.names}
        self._settings = HostSettings(folder, 1.0, watched, events)
        self._clock = PunctualClock()
        self._dies_us = NEVER if dies_s is None else round(dies_s * SECOND_US)
        self._kept = kept
        self._in_transit: list[tuple[str, Outbox]] = []
        self.ended: list[tuple[Time, int]] = []
        """How many jobs have ended at each instant."""
        asyncio.run(self._run())
        self.ended_us = self._clock.time

    def _host(self, here: str) -> Host:
        members = [name for name, host in self.host_of.items() if host == here]
        host = Host(
            self.grid, members, self._settings, self.host_of,
            lambda to, outbox: self._in_transit.append((to, outbox)), lambda: None,
        )  # fmt: skip
        host.intervene(self.done)
        host.begin(self._clock)
        return host

    async def _run(self) -> None:
        hosts = {here: self._host(here) for here in sorted(set(self.host_of.values()))}
        jobs, total = 0, sum(self.grid.jobs_by_vo())
        while jobs < total:
            if self._clock.time >= self._dies_us:
                self._dies_us = NEVER
                if self._kept is not None:
                    self._cut_journals(hosts, self._kept)
                hosts = {here: self._host(here) for here in hosts}
            for one in hosts.values():
                while one.next_time() <= self._clock.time:
                    one.work()
                assert one.status.error == ""
            for one in hosts.values():
                await one.save()
            while self._in_transit:
                to, outbox = self._in_transit.pop()
                hosts[to].receive(outbox)
            jobs = sum(one.status.jobs for one in hosts.values())
            self.ended.append((self._clock.time, jobs))
            self._clock.time = min(one.next_time() for one in hosts.values())
            assert self._clock.time < NEVER or jobs == total, (
                "nothing is left to do, and jobs have not ended"
            )
        for one in hosts.values():
            await one.finish()
        self.hosts = list(hosts.values())
        self.looks = [one.look() for one in self.hosts]

    def _cut_journals(self, hosts: dict[str, Host], kept: float) -> None:
        """Handle and write what is due, but send nothing; the last write is cut."""
        before, self.folder = self.folder, self.folder / "cut"
        self._settings = self._settings._replace(folder=self.folder)
        self.folder.mkdir()
        written = 0
        for one in hosts.values():
            one.work()
            for storage in one._storages.values():
                path = before / storage.journal.path.name
                log = Path(f"{path}-wal")
                size = log.stat().st_size
                storage.journal.add(*storage.take_unwritten())
                grown = log.read_bytes()
                written += len(grown) - size
                shutil.copy(path, self.folder)
                cut = grown[: size + int(kept * (len(grown) - size))]
                (self.folder / log.name).write_bytes(cut)
        assert written

    def results(self, spool: EventSpool | None = None) -> JobResults:
        """The jobs in the journals; each ended once, and no rule was broken."""
        store, chunks = read_journals(self.folder, spool)
        assert store.records["violations"] == []
        results = in_order(chunks)
        assert check(results, self.grid.directory, sum(self.grid.jobs_by_vo())) == []
        return results


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_run_resumes_from_journals_that_were_cut_in_a_write(kept: float, tmp_path: Path) -> None:
    HostedRun(grid_of("two", {}), tmp_path, dies_s=9.0, kept=kept).results()


@pytest.mark.parametrize("dies_s", [None, 45.0])
def test_the_end_of_a_direct_job_is_known_when_it_occurs(
    dies_s: float | None, tmp_path: Path
) -> None:
    jobs = [{"run_s": 7 + n % 5, "submit_s": 3 * n} for n in range(30)]
    site = {
        "name": "site",
        "clusters": [{"name": "pool", "cpus": 2, "policy": "easy"}],
        "workload": {"entry_point": "cluster", "jobs": jobs},
    }
    grid = grids.grid_of(vos=[site])
    run = HostedRun(grid, tmp_path, dies_s=dies_s)
    ends = np.sort(run.results().outcome.end_us)
    assert [jobs for _, jobs in run.ended] == [
        np.searchsorted(ends, now, side="right") for now, _ in run.ended
    ]
    assert {now for now, _ in run.ended} >= set(ends.tolist())


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Handled:
    """Filled while entities handle their inputs."""
    inputs: Handled = {}
    take = Reliable._take

    def noted(self: Reliable, ctx: Any, kind: int, sender: str, content: Any) -> None:
        inputs.setdefault(ctx.name, []).append((ctx.now, kind, sender, repr(content)))
        take(self, ctx, kind, sender, content)

    monkeypatch.setattr(Reliable, "_take", noted)
    return inputs


@pytest.mark.parametrize(
    ("faults", "placement"),
    [("nothing", "vo"), ("crashes", "entity"), ("partitions", "one"), ("bad links", "vo")],
)
def test_entities_handle_the_same_live_and_in_virtual_time(
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
    process_of = processes_of(grid, "vo" if placement == "one" else placement, actors)
    host_of = {name: str(process) for name, process in zip(grid.names, process_of, strict=True)}
    run = HostedRun(grid, tmp_path, host_of=host_of, watched=False)
    for host in run.hosts:
        assert host.status.timers.total_us == host.status.messages.total_us == 0
    for name in grid.names:
        before = [one for one in handled[name] if one[0] < run.ended_us]
        assert before == [one for one in expected[name] if one[0] < run.ended_us], name
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
