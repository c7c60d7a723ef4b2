"""A run that goes on is shown as it is, and is the same as one that nobody watches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from grid.config.load import load_scenario
from grid.integrations.watch.replay import Replay
from grid.integrations.watch.running import MOST_SAMPLES, Running
from grid.model.job_results import in_order
from grid.runtime.run import execute
from tests.integrations.watch.looking import Watching, looks_at_one_that_goes_down
from tests.lab.report.small_reports import FARM, SCENARIO

WITH_FAULTS = (
    SCENARIO
    + """\
faults:
  heal_s: 60
  between_vos: {lost: 0.02, doubled: 0.02}
"""
)


def watched(file: Path, **settings: Any) -> tuple[Watching, Any]:
    watching = Watching()
    run = execute(load_scenario(file), str(file), watcher=watching, **settings)
    return watching, run


@pytest.mark.parametrize("text", [SCENARIO, FARM, WITH_FAULTS], ids=["vos", "farm", "faults"])
def test_a_watched_run_has_the_same_digest_and_tells_all(tmp_path: Path, text: str) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    alone = grid.run(file, out=tmp_path / "run").manifest
    watching, run = watched(file, in_process=True)
    assert run.manifest["digest"] == alone["digest"]
    replay, shown = Replay(tmp_path / "run"), watching.run
    to = replay.about()["to"]
    assert shown.flows(to)["flows"][2::4] == replay.flows(to)["flows"][2::4]
    last = shown.frame(1e9)
    assert last["over"] and last["states"] == [
        [0] * len(last["states"][0]), *replay.frame(to)["states"][2:]
    ]  # fmt: skip
    assert sum(last["busy"]) == sum(last["running"]) == sum(last["queued"]) == 0
    assert sum(last["messages"].values()) == alone["messages"] == last["figures"]["messages"]
    told = shown.events(None, None, to)["events"]
    assert told == replay.events(None, None, to)["events"]
    assert sorted(shown.gantt(0, 0.0, to)["rows"]["job"]) == sorted(
        replay.gantt(0, 0.0, to)["rows"]["job"]
    )


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("transport", ["sockets", "calls"])
def test_on_ray_actors_too(tmp_path: Path, transport: str) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    alone = grid.run(file, out=tmp_path / "run").manifest
    watching, run = watched(file, placement="2", transport=transport)
    assert run.manifest["digest"] == alone["digest"]
    assert sum(map(sum, watching.run.frame(1e9)["states"])) == 30
    assert watching.looks[-1].is_over and len(watching.looks[-1].processes) == 2
    messages = watching.run.frame(1e9)["messages"]
    assert sum(messages.values()) == alone["messages"]


def test_a_frame_of_the_past_is_of_that_time(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO.replace("jobs_per_user: 6", "jobs_per_user: 60"))
    watching, _ = watched(file, in_process=True)
    assert len(watching.looks) > 2
    middle = watching.looks[1]
    frame = watching.run.frame(middle.now_us / 1e6)
    busy = {row[0]: row[1] for row in middle.processes[0].clusters.tolist()}
    assert frame["busy"] == [busy[place] for place in range(3)]
    assert frame["states"][0] != watching.run.frame(1e9)["states"][0]
    before, last = watching.looks[-2:]
    assert frame["between_looks"] == pytest.approx(last.real_s - before.real_s, abs=1e-3)


def test_what_was_told_after_the_last_save_is_told_again(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    watching, _ = watched(file, in_process=True)
    chunk = in_order([one for look in watching.looks for one in look.processes[0].ended])
    parts = [chunk.take(slice(0, 10)), chunk.take(slice(10, 20)), chunk.take(slice(20, 30))]
    first, second, third = (
        watching.looks[-1]._replace(
            processes=(watching.looks[-1].processes[0]._replace(ended=[part]),), is_over=False
        )
        for part in parts
    )
    beginning, expected = watching.beginning, watching.run.frame(1e9)["states"]
    run = Running(beginning)
    for look in (
        first._replace(is_saved=True),
        second,
        second._replace(began_again=True),
        third,
    ):
        run.take(look)
    assert run.frame(1e9)["states"] == expected


def test_what_is_kept_of_the_past_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    watching, _ = watched(file, in_process=True)
    last = watching.looks[-1]
    quiet = last._replace(processes=(last.processes[0]._replace(ended=[]),))
    run = watching.run
    for number in range(3 * MOST_SAMPLES):
        run.take(quiet._replace(now_us=last.now_us + number))
    assert len(run.course(None)["level_time"]) <= 201
    assert run.about()["to"] == pytest.approx((last.now_us + 3 * MOST_SAMPLES - 1) / 1e6)


def test_a_cluster_that_is_down_is_shown_as_it_was_when_it_went_down(tmp_path: Path) -> None:
    """Its jobs go on, and nobody can ask it how many they are."""
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO.replace("jobs_per_user: 6", "jobs_per_user: 60"))
    watching, _ = watched(file, in_process=True)
    before, during = looks_at_one_that_goes_down(watching.looks)
    run = Running(watching.beginning)
    frames = []
    for look in (before, during, before._replace(now_us=during.now_us + 1)):
        run.take(look)
        frames.append(run.frame(1e9))
    assert [one["down"] for one in frames] == [[], [0], []]
    assert frames[0]["busy"] == frames[1]["busy"] and frames[0]["busy"][0] > 0
    run.take(during._replace(now_us=during.now_us + 2, is_over=True))
    assert run.frame(1e9)["busy"][0] == 0
