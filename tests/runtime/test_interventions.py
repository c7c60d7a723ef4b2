"""Interventions in a live run and their effects, without Ray."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grid.config.wrapped import virtual_rules
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
)
from grid.model.job_results import in_order
from grid.model.platform import MachineOutage
from grid.model.time import NEVER, SECOND_US
from grid.results.definitions import FILES
from grid.results.events import EventFile
from grid.results.history import job_history
from grid.results.run_folder import (
    EVENTS_FILE,
    INTERVENTIONS_FILE,
    read_interventions,
    write_interventions,
)
from grid.runtime import host as host_module
from grid.runtime.interventions import Done, is_stopped, pauses, with_cuts, with_outages
from grid.runtime.run import spool_of
from grid.runtime.sequential import run_sequential
from tests.runtime.test_host import HostedRun, grid_of

VO_DOWN, MACHINE_DOWN = (
    Action(TAKE_VO_DOWN, vo="south"),
    Action(TAKE_MACHINE_DOWN, "north", "", "cluster", 0),
)
CUT = Action(CUT_OFF, vo="north", other="south")


def done(*actions: tuple[float, Action]) -> Done:
    """Interventions at these seconds of both clocks."""
    return tuple(
        Intervention(place + 1, round(at * SECOND_US), at, action)
        for place, (at, action) in enumerate(actions)
    )


@pytest.mark.parametrize("dies_s", [None, 9.0], ids="dies at {}".format)
def test_interventions_take_effect_once(tmp_path: Path, dies_s: float | None) -> None:
    """Also if actors are killed and restored from their journals."""
    actions_done = done((2, MACHINE_DOWN), (4, CUT), (6, VO_DOWN), (40, Action(HEAL)))
    results = HostedRun(grid_of("two", {}), tmp_path, actions_done, dies_s).results()
    start_s = results.outcome.start_us / SECOND_US
    host = results.placement.executed_vo
    assert (start_s[host == 0] >= 40).sum() == (start_s[host == 0] > 2).sum() > 0
    moved = (host != results.vo) & (results.submit_us / SECOND_US > 4)
    assert (start_s[moved] >= 40).all()
    # What south had handed to its cluster before it went down, if anything, started by then.
    assert ((start_s < 7) | (start_s >= 40)).all()


@pytest.mark.parametrize("dies_s", [None, 12.0], ids="dies at {}".format)
def test_events_are_those_of_virtual_time(
    tmp_path: Path, dies_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is recorded once, also if a host is killed."""
    grid = grid_of("two", {})
    monkeypatch.setattr(host_module, "live_rules", lambda _: virtual_rules(grid))
    virtual = spool_of(grid)
    outcome = run_sequential(grid, spool=virtual)
    live, hosted = spool_of(grid), HostedRun(grid, tmp_path / "live", (), dies_s, events=True)
    files = []
    for spool, results in ((virtual, in_order(outcome.chunks)), (live, hosted.results(live))):
        folder = tmp_path / f"{len(files)}"
        folder.mkdir()
        spool.write(folder / EVENTS_FILE, results, grid.directory)
        files.append(EventFile(folder))
    expected, found = (file.all() for file in files)
    ended_us = found[-1].time_us
    if dies_s is None:
        assert found == [one for one in expected if one.time_us <= ended_us]
    for vo in grid.vos:
        for row in range(len(hosted.results())):
            key = (vo.name, row + 1)
            words = [line.event.event for line in job_history(key, found)]
            assert words.count("end") <= 1
            assert words.count("submit_job") <= 1
            assert bool(words) == bool(job_history(key, expected))


def test_cuts_end_when_all_is_healed_and_others_stay() -> None:
    actions_done = done((1, CUT), (5, Action(HEAL)), (7, CUT))
    faults = with_cuts(
        Faults(1, heal_us=2 * SECOND_US), 9, ["north", "south", "west"], actions_done
    )
    for at_s, cut in ((0, False), (1, True), (4.9, True), (5, False), (7, True), (1e6, True)):
        now = round(at_s * SECOND_US)
        arrivals = faults.arrivals(now, now + 1, (0, 1), (0, 1, 1))
        assert (arrivals == ()) == cut, at_s
        assert faults.arrivals(now, now + 1, (0, 2), (0, 1, 1)) == (now + 1,)


def test_pauses_begin_and_end_once() -> None:
    pressed = done((2, Action(PAUSE)), (3, Action(PAUSE)), (5, Action(GO_ON)), (9, Action(PAUSE)))
    assert pauses(pressed) == ((2, 5), (9, float("inf")))


def test_a_vo_is_stopped_from_its_order_until_all_is_healed() -> None:
    actions_done = done((1, VO_DOWN), (2, VO_DOWN), (5, Action(HEAL)), (6, Action(HEAL)))
    stops = [is_stopped(actions_done, "south", at * SECOND_US) for at in range(7)]
    assert stops == [False, True, True, True, True, False, False]
    assert not is_stopped(actions_done, "north", 3 * SECOND_US)


def test_what_was_done_is_read_as_it_was_written(tmp_path: Path) -> None:
    actions = [
        MACHINE_DOWN, CUT, VO_DOWN, Action(KILL, entity="north/scheduler"),
        Action(HEAL), Action(PAUSE), Action(GO_ON),
    ]  # fmt: skip
    actions_done = done(*((place + 0.5, action) for place, action in enumerate(actions)))
    assert {action.what for action in actions} == set(FIELDS)
    write_interventions(tmp_path / INTERVENTIONS_FILE, actions_done)
    assert read_interventions(tmp_path) == list(actions_done)
    rows = json.loads((tmp_path / INTERVENTIONS_FILE).read_text())
    assert [row["number"] for row in rows] == [*range(1, 8)]
    assert {key for row in rows for key in row} == set(FILES["interventions"].columns)
    assert read_interventions(tmp_path / "nowhere") == []
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
