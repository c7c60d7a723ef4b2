"""What the page of a run shows, in progress and finished, against the tables of its folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest

import grid
from grid.config.load import load_scenario
from grid.integrations.watch.views import MAX_SAMPLES, NotThere, Replay, Running
from grid.model.errors import InputError
from grid.model.job_results import in_order
from grid.runtime.run import execute, save
from tests.integrations.watch.pages import (
    Watching,
    looks_at_one_that_goes_down,
    watched,
    write_run,
    write_scenario,
)
from tests.lab.report.small_reports import FARM, SCENARIO

WITH_FAULTS = SCENARIO + "faults: {heal_s: 60, between_vos: {lost: 0.02, doubled: 0.02}}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def replay(folder: Path) -> Replay:
    return Replay(folder)


@pytest.fixture(scope="module")
def with_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    file = write_scenario(folder)
    save(execute(load_scenario(file), str(file), in_process=True, events=True), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Watching:
    """A run at which there are several looks."""
    text = SCENARIO.replace("jobs_per_user: 6", "jobs_per_user: 60")
    return watched(write_scenario(tmp_path_factory.mktemp("long"), text), in_process=True)[0]


def test_a_frame_equals_the_tables(folder: Path, replay: Replay) -> None:
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    series = pyarrow.parquet.read_table(folder / "series.parquet").to_pylist()
    about = replay.about()
    assert about["vos"] == ["vo1", "vo2", "vo3"]
    time = series[len(series) // 9]["time_s"]
    frame = replay.frame(time)
    running = [
        sum(job["vo"] == vo and job["starting_time"] <= time < job["finish_time"] for job in jobs)
        for vo in about["vos"]
    ]
    assert frame["states"][1] == running and sum(running) > 0
    busy = [row["busy_cpus"] for row in series if row["time_s"] == time]
    assert frame["busy"] == pytest.approx(busy) and sum(busy) > 0
    moved = sum(job["executed_vo"] not in (None, job["vo"]) for job in jobs)
    assert sum(replay.flows(about["to"])["flows"][2::4]) == moved > 0
    assert sum(replay.frame(about["to"])["states"][2]) == 30
    before = replay.frame(about["from"] - 1)
    assert sum(map(sum, before["states"])) == 0 == sum(before["busy"])


def test_events_are_newest_first_and_of_the_past(folder: Path, replay: Replay) -> None:
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    time = sorted(job["starting_time"] for job in jobs)[20]
    times = [when for when, *_ in replay.events(1, None, time)["events"]]
    assert times == sorted(times, reverse=True) and max(times) <= time
    first = min(jobs, key=lambda job: job["starting_time"])
    text = replay.events(None, None, first["starting_time"])["events"][0][1]
    assert text.startswith(
        f"job {first['job_id']} of {first['vo']} started on {first['executed_vo']} "
    )


def test_a_gantt_chart_has_the_jobs_of_its_time(folder: Path, replay: Replay) -> None:
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    last = replay.about()["to"]
    since, until = last / 4, last / 2
    ran = [
        job["job_id"]
        for job in jobs
        if job["executed_vo"] == "vo3"
        and job["starting_time"] < until
        and job["finish_time"] > since
    ]
    answer = replay.gantt(2, since, until)
    assert sorted(answer["rows"]["job"]) == sorted(ran) and answer["jobs"] == len(ran) > 0
    assert replay.gantt(2, last, last)["chart"] is None


def test_utilization_includes_cpus_that_were_never_busy(tmp_path: Path) -> None:
    vos = [{"name": name, "clusters": [{"cpus": 10}]} for name in ("busy", "idle")]
    vos[0]["workload"] = {"jobs": [{"run_s": 100.0, "cpus": 10}]}
    grid.run({"protocol": {"ttl": 0}, "vos": vos}, out=tmp_path / "run")
    replay = Replay(tmp_path / "run")
    assert [one["cpus"] for one in replay.about()["clusters"]] == [10, 10]
    assert replay.course(None)["utilization"][100] == 0.5
    assert replay.course(1)["utilization"][100] == 0.0


def test_a_job_has_a_history_with_and_without_events(with_events: Path, replay: Replay) -> None:
    detailed, to = Replay(with_events), replay.about()["to"]
    first = pyarrow.parquet.read_table(with_events / "jobs.parquet").slice(0, 1).to_pylist()[0]
    vo = detailed.vos.index(first["vo"])
    long, short = (one.job(vo, first["job_id"], to) for one in (detailed, replay))
    assert long["has_events"] and not short["has_events"]
    assert len(long["lines"]) > len(short["lines"]) == 4
    assert long["now"] and max(time for time, _ in long["lines"]) <= to
    assert detailed.job(vo, first["job_id"], first["submission_time"] - 1)["lines"] == []
    for one in (detailed, replay):
        assert one.job(0, 999, to)["lines"] == []


def test_ages_of_information_are_those_of_the_decisions(with_events: Path, replay: Replay) -> None:
    detailed = Replay(with_events)
    assert detailed.about()["has_ages"] and not replay.about()["has_ages"]
    assert "age" not in replay.course(None)
    rows = pyarrow.parquet.read_table(with_events / "events.parquet").to_pylist()
    ages = [
        row["age_us"] / 1e6
        for row in rows
        if row["kind"] == "decision" and row["entity"] == "vo2/scheduler" and row["age_us"]
    ]
    found = [age for age in detailed.course(1)["age"] if age is not None]
    assert min(ages) - 1e-6 <= min(found) <= max(found) <= max(ages) + 1e-6


def test_unknown_vos_and_folders_are_refused(replay: Replay, tmp_path: Path) -> None:
    for query in (
        lambda: replay.course(3),
        lambda: replay.events(None, 17, 0.0),
        lambda: replay.gantt(-1, 0.0, 1.0),
        lambda: replay.intervene({"what": "heal"}),
    ):
        with pytest.raises(NotThere):
            query()
    with pytest.raises(InputError):
        Replay(tmp_path)


@pytest.mark.parametrize("text", [SCENARIO, FARM, WITH_FAULTS], ids=["vos", "farm", "faults"])
def test_a_watched_run_ends_as_its_folder_shows_it(tmp_path: Path, text: str) -> None:
    file = write_scenario(tmp_path, text)
    alone = grid.run(file, out=tmp_path / "run").manifest
    watching, run = watched(file, in_process=True)
    assert run.manifest["digest"] == alone["digest"]
    replay, view = Replay(tmp_path / "run"), watching.run
    to = replay.about()["to"]
    assert view.flows(to)["flows"][2::4] == replay.flows(to)["flows"][2::4]
    last = view.frame(1e9)
    zeros = [0] * len(last["states"][0])
    assert last["over"] and last["states"] == [zeros, *replay.frame(to)["states"][2:]]
    assert sum(last["busy"]) == sum(last["running"]) == sum(last["queued"]) == 0
    assert sum(last["messages"].values()) == alone["messages"] == last["figures"]["messages"]
    assert view.events(None, None, to) == replay.events(None, None, to)
    assert view.job(0, 1, to)["lines"] == replay.job(0, 1, to)["lines"]
    drawn, expected = (sorted(one.gantt(0, 0.0, to)["rows"]["job"]) for one in (view, replay))
    assert drawn == expected


def test_a_frame_of_the_past_is_of_that_time(long: Watching) -> None:
    assert len(long.looks) > 2
    middle = long.looks[1]
    frame = long.run.frame(middle.now_us / 1e6)
    busy = {row[0]: row[1] for row in middle.processes[0].clusters.tolist()}
    assert frame["busy"] == [busy[place] for place in range(3)]
    assert frame["states"][0] != long.run.frame(1e9)["states"][0]
    before, last = long.looks[-2:]
    assert frame["between_looks"] == pytest.approx(last.real_s - before.real_s, abs=1e-3)


def test_jobs_are_reported_again_after_a_restart(long: Watching) -> None:
    chunk = in_order([one for look in long.looks for one in look.processes[0].ended])
    cuts = slice(0, 10), slice(10, 20), slice(20, len(chunk))
    last = long.looks[-1]
    first, second, third = (
        last._replace(processes=(last.processes[0]._replace(ended=[chunk.take(part)]),))
        for part in cuts
    )
    run = Running(long.beginning)
    for look in (first._replace(is_saved=True), second, second._replace(began_again=True), third):
        run.take(look)
        # A page that asks between two looks does not change the answers to come.
        run.frame(1e9)
    assert run.frame(1e9)["states"] == long.run.frame(1e9)["states"]


def test_samples_of_the_past_are_bounded(long: Watching) -> None:
    last = long.looks[-1]
    quiet = last._replace(processes=(last.processes[0]._replace(ended=[]),))
    run = Running(long.beginning)
    for number in range(3 * MAX_SAMPLES):
        run.take(quiet._replace(now_us=last.now_us + number))
    assert len(run.course(None)["level_time"]) <= 201
    assert run.about()["to"] == pytest.approx((last.now_us + 3 * MAX_SAMPLES - 1) / 1e6)


def test_a_cluster_that_is_down_is_shown_as_last_observed(long: Watching) -> None:
    before, during = looks_at_one_that_goes_down(long.looks)
    run, frames = Running(long.beginning), []
    for look in (before, during, before._replace(now_us=during.now_us + 1)):
        run.take(look)
        frames.append(run.frame(1e9))
    assert [one["down"] for one in frames] == [[], [0], []]
    assert frames[0]["busy"] == frames[1]["busy"] and frames[0]["busy"][0] > 0
    run.take(during._replace(now_us=during.now_us + 2, is_over=True))
    assert run.frame(1e9)["busy"][0] == 0
