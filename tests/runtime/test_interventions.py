"""What somebody does to a live run, as its actors take it: without Ray, by a clock that is set."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from grid.config.build import Grid
from grid.config.wrapped import virtual_rules
from grid.kernel.event import Outbox
from grid.kernel.faults import Faults
from grid.model.interventions import (
    CUT_OFF,
    FIELDS,
    GO_ON,
    HEAL,
    KILL,
    PAUSE,
    TAKE_MACHINE_DOWN,
    TAKE_VO_DOWN,
    Action,
    Intervention,
    InterventionLog,
    Refusal,
)
from grid.model.job_results import JobResults, in_order
from grid.model.platform import MachineOutage
from grid.model.time import NEVER, SECOND_US
from grid.results.checkers import check
from grid.results.definitions import FILES
from grid.results.events import EventFile, EventSpool
from grid.results.history import ClusterLog, job_history
from grid.results.run_folder import (
    EVENTS_FILE,
    INTERVENTIONS_FILE,
    read_interventions,
    write_interventions,
)
from grid.runtime import host as host_module
from grid.runtime.clock import Clock, epoch_in
from grid.runtime.host import Host
from grid.runtime.interventions import (
    Done,
    is_stopped,
    pauses,
    with_cuts,
    with_outages,
)
from grid.runtime.journal import SUFFIX, Journal
from grid.runtime.outcome import RecordStore
from grid.runtime.run import spool_of
from grid.runtime.sequential import run_sequential
from tests.runtime.test_host import PunctualClock, grid_of

VO_DOWN, MACHINE_DOWN = (
    Action(TAKE_VO_DOWN, vo="south"),
    Action(TAKE_MACHINE_DOWN, "north", "", "cluster", 0),
)
CUT = Action(CUT_OFF, vo="north", other="south")


def done(*actions: tuple[float, Action]) -> Done:
    """What was done, at these seconds of both clocks."""
    return tuple(
        Intervention(place + 1, round(at * SECOND_US), at, action)
        for place, (at, action) in enumerate(actions)
    )


class Played:
    """A grid on two hosts, by a clock that is never late; the host of one dies when it is told."""

    def __init__(
        self,
        grid: Grid,
        folder: Path,
        told: Done,
        dies_s: float | None,
        events: bool = False,
    ) -> None:
        self.grid, self.folder, self.told, self.events = grid, folder, told, events
        self.clock = PunctualClock()
        self.dies_us = NEVER if dies_s is None else round(dies_s * SECOND_US)
        self.under_way: list[tuple[str, Outbox]] = []
        self.host_of = {name: name.partition("/")[0] for name in grid.names}
        asyncio.run(self._play())

    def _host(self, here: str) -> Host:
        members = [name for name, host in self.host_of.items() if host == here]
        host = Host(
            self.grid, members, self.folder, 1.0, self.host_of,
            lambda to, outbox: self.under_way.append((to, outbox)), lambda: None,
            watched=True, events=self.events,
        )  # fmt: skip
        host.intervene(self.told)
        host.begin(self.clock)
        return host

    async def _play(self) -> None:
        hosts = {here: self._host(here) for here in ("north", "south")}
        while sum(one.status.jobs for one in hosts.values()) < sum(self.grid.jobs_by_vo()):
            if self.clock.time >= self.dies_us:
                self.dies_us = NEVER
                hosts = {here: self._host(here) for here in hosts}
            for one in hosts.values():
                while one.next_time() <= self.clock.time:
                    one.work()
                assert one.status.error == ""
                await one.save()
            while self.under_way:
                to, outbox = self.under_way.pop()
                hosts[to].receive(outbox)
            self.clock.time = min(one.next_time() for one in hosts.values())
            assert self.clock.time < NEVER, "nothing is left to do, and jobs have not ended"
        for one in hosts.values():
            await one.finish()
        self.looks = {here: one.look() for here, one in hosts.items()}

    def results(self, spool: EventSpool | None = None) -> JobResults:
        """The jobs, by the journals; all ended once, and no rule was broken."""
        store, chunks = RecordStore(), []
        for number, path in enumerate(sorted(self.folder.glob(f"*{SUFFIX}"))):
            journal = Journal(path)
            store.add(list(journal.records()))
            journal.close()
            chunks += store.take()
            if spool is not None:
                spool.add(number, store.take_events())
        assert store.records["violations"] == []
        results = in_order(chunks)
        assert check(results, self.grid.directory, sum(self.grid.jobs_by_vo())) == []
        return results


@pytest.mark.parametrize("dies_s", [None, 3.0, 9.0, 25.0], ids="dies at {}".format)
def test_what_is_down_starts_nothing_and_what_is_cut_off_hears_nothing(
    tmp_path: Path, dies_s: float | None
) -> None:
    """Also where the actors die meanwhile: from their journals they are as they were."""
    told = done((2, MACHINE_DOWN), (4, CUT), (6, VO_DOWN), (40, Action(HEAL)))
    results = Played(grid_of("two", {}), tmp_path, told, dies_s).results()
    start_s = results.outcome.start_us / SECOND_US
    host = results.placement.executed_vo
    assert (start_s[host == 0] >= 40).sum() == (start_s[host == 0] > 2).sum() > 0
    moved = (host != results.vo) & (results.submit_us / SECOND_US > 4)
    assert (start_s[moved] >= 40).all()
    # What south had handed to its cluster before it went down, if anything, started by then.
    assert ((start_s < 7) | (start_s >= 40)).all()


def test_events_tell_when_a_machine_was_taken_down_and_mended(tmp_path: Path) -> None:
    grid = grid_of("two", {})
    (tmp_path / "live").mkdir()
    told = done((2, MACHINE_DOWN), (30, Action(HEAL)))
    played, spool = Played(grid, tmp_path / "live", told, 20.0, events=True), spool_of(grid)
    spool.write(tmp_path / EVENTS_FILE, played.results(spool), grid.directory)
    file = EventFile(tmp_path)
    north = next(facts for facts in file.clusters if facts.vo == "north")
    log = ClusterLog(north, file.of_cluster(north))
    assert log.facts.outages == ((0, 2 * SECOND_US, 30 * SECOND_US),)


def test_without_interventions_a_watched_run_is_as_it_was(tmp_path: Path) -> None:
    """But for a machine that comes up, jobs start when they would have."""
    grid = grid_of("two", {})
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    alone = Played(grid, tmp_path / "a", (), None).results()
    late = Played(grid, tmp_path / "b", done((1000, Action(HEAL)), (1001, CUT)), None).results()
    assert alone.outcome.start_us.tolist() == late.outcome.start_us.tolist()


def test_looks_of_an_actor_tell_of_each_job_once_and_of_all_after_a_restart(tmp_path: Path) -> None:
    played = Played(grid_of("two", {}), tmp_path, (), 20.0)
    told = in_order([chunk for look in played.looks.values() for chunk in look.ended])
    assert sorted(zip(told.vo.tolist(), told.number.tolist(), strict=True)) == sorted(
        zip(played.results().vo.tolist(), played.results().number.tolist(), strict=True)
    )


@pytest.mark.parametrize("dies_s", [None, 12.0], ids="dies at {}".format)
def test_events_are_those_of_virtual_time(
    tmp_path: Path, dies_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that is never late; of an actor that dies, each is told once."""
    grid = grid_of("two", {})
    monkeypatch.setattr(host_module, "live_rules", lambda _: virtual_rules(grid))
    virtual = spool_of(grid)
    outcome = run_sequential(grid, spool=virtual)
    (tmp_path / "live").mkdir()
    live, played = spool_of(grid), Played(grid, tmp_path / "live", (), dies_s, events=True)
    files = []
    for spool, results in (
        (virtual, in_order(outcome.chunks)),
        (live, played.results(live)),
    ):
        folder = tmp_path / f"{len(files)}"
        folder.mkdir()
        spool.write(folder / EVENTS_FILE, results, grid.directory)
        files.append(EventFile(folder))
    expected, found = (file.all() for file in files)
    ended_us = found[-1].time_us
    if dies_s is None:
        assert found == [one for one in expected if one.time_us <= ended_us]
    for vo in grid.vos:
        for row in range(len(played.results())):
            key = (vo.name, row + 1)
            words = [line.event.event for line in job_history(key, found)]
            assert words.count("end") <= 1
            assert words.count("submit_job") <= 1
            assert bool(words) == bool(job_history(key, expected))


def test_cuts_end_when_all_is_healed_and_others_stay() -> None:
    told = done((1, CUT), (5, Action(HEAL)), (7, CUT))
    faults = with_cuts(Faults(1, heal_us=2 * SECOND_US), 9, ["north", "south", "west"], told)
    for at_s, cut in ((0, False), (1, True), (4.9, True), (5, False), (7, True), (1e6, True)):
        now = round(at_s * SECOND_US)
        arrivals = faults.arrivals(now, now + 1, (0, 1), (0, 1, 1))
        assert (arrivals == ()) == cut, at_s
        assert faults.arrivals(now, now + 1, (0, 2), (0, 1, 1)) == (now + 1,)


def test_a_vo_is_stopped_from_its_order_until_all_is_healed() -> None:
    told = done((1, VO_DOWN), (2, VO_DOWN), (5, Action(HEAL)), (6, Action(HEAL)))
    stops = [is_stopped(told, "south", at * SECOND_US) for at in range(7)]
    assert stops == [False, True, True, True, True, False, False]
    assert not is_stopped(told, "north", 3 * SECOND_US)


def test_the_clock_stands_still_in_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    real = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: real[0])
    clock = Clock(epoch_in(0.0), speedup=2.0)
    told = done((2, Action(PAUSE)), (3, Action(PAUSE)), (5, Action(GO_ON)), (9, Action(PAUSE)))
    clock.pauses = pauses(told)
    assert clock.pauses == ((2, 5), (9, float("inf")))
    expected = {0.0: 0, 2.0: 4, 4.0: 4, 5.0: 4, 6.0: 6, 9.0: 12, 50.0: 12}
    for real_s, virtual_s in expected.items():
        real[0] = 1000.0 + real_s
        assert clock.now() == virtual_s * SECOND_US, real_s
    real[0] = 1001.0
    assert clock.seconds_until(6 * SECOND_US) == pytest.approx(5.0)
    assert clock.seconds_until(4 * SECOND_US) == pytest.approx(1.0)
    real[0] = 1009.5
    assert clock.seconds_until(13 * SECOND_US) == 3600
    assert clock.seconds_until(11 * SECOND_US) == 0


def test_what_was_done_is_read_as_it_was_written(tmp_path: Path) -> None:
    actions = [
        MACHINE_DOWN, CUT, VO_DOWN, Action(KILL, entity="north/scheduler"),
        Action(HEAL), Action(PAUSE), Action(GO_ON),
    ]  # fmt: skip
    told = done(*((place + 0.5, action) for place, action in enumerate(actions)))
    assert {action.what for action in actions} == set(FIELDS)
    refused = Refusal(2, 2 * SECOND_US, 9.25, VO_DOWN, "south was taken down already")
    pressed = InterventionLog(told, (refused,))
    write_interventions(tmp_path / INTERVENTIONS_FILE, pressed)
    assert read_interventions(tmp_path) == pressed
    rows = json.loads((tmp_path / INTERVENTIONS_FILE).read_text())
    assert [row.get("number") for row in rows] == [1, 2, None, *range(3, 8)]
    assert rows[2]["refused"] == refused.why and rows[2]["vo"] == "south"
    assert {key for row in rows for key in row} == set(FILES["interventions"].columns)
    assert read_interventions(tmp_path / "nowhere") == InterventionLog()
    assert all(action.in_words() and action.as_request() for action in actions)


def test_machines_taken_down_are_down_in_the_directory_as_those_of_faults() -> None:
    directory = grid_of("two", {}).directory
    first, *others = directory.clusters
    first = replace(first, outages=(MachineOutage(0, 3 * SECOND_US, 6 * SECOND_US),))
    other = Action(TAKE_MACHINE_DOWN, "north", "", "cluster", 1)
    pressed = done(
        (1, MACHINE_DOWN), (2, MACHINE_DOWN), (3, VO_DOWN), (4, Action(HEAL)), (8, other), (9, CUT)
    )  # fmt: skip
    found = with_outages(replace(directory, clusters=(first, *others)), pressed)
    assert found.clusters[0].outages == (
        MachineOutage(0, 1 * SECOND_US, 6 * SECOND_US),
        MachineOutage(1, 8 * SECOND_US, NEVER),
    )
    assert found.clusters[1:] == directory.clusters[1:]
    assert with_outages(directory, ()) == directory
