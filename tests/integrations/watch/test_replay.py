"""What a page is told of a run that is over, against the tables of the run's folder."""

from __future__ import annotations

import bisect
import json
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest

import grid
from grid.config.load import load_scenario
from grid.integrations.watch.replay import Replay
from grid.integrations.watch.source import NotThere
from grid.model.errors import InputError
from grid.runtime.run import execute, save
from tests.integrations.watch.small_runs import write_run
from tests.lab.report.small_reports import SCENARIO


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def replay(folder: Path) -> Replay:
    return Replay(folder)


def test_all_jobs_have_ended_in_the_end_and_none_is_there_before(replay: Replay) -> None:
    about = replay.about()
    assert about["vos"] == ["vo1", "vo2", "vo3"]
    assert sum(replay.frame(about["to"])["states"][2]) == 30
    before = replay.frame(about["from"] - 1)
    assert sum(map(sum, before["states"])) == 0 and sum(before["busy"]) == 0


def test_a_digest_is_told_where_it_means_something(folder: Path, tmp_path: Path) -> None:
    assert "digest" in Replay(folder).about()["figures"]
    copy = shutil.copytree(folder, tmp_path / "live")
    manifest = json.loads((folder / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"live": {}}))
    assert "digest" not in Replay(copy).about()["figures"]


def test_a_frame_has_what_the_tables_have(folder: Path, replay: Replay) -> None:
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    series = pyarrow.parquet.read_table(folder / "series.parquet").to_pylist()
    about = replay.about()
    time = series[len(series) // 9]["time_s"]
    frame = replay.frame(time)
    running = [
        sum(job["vo"] == vo and job["starting_time"] <= time < job["finish_time"] for job in jobs)
        for vo in about["vos"]
    ]
    assert frame["states"][1] == running and sum(running) > 0
    busy = [row["busy_cpus"] for row in series if row["time_s"] == time]
    assert frame["busy"] == pytest.approx(busy) and sum(busy) > 0
    flows = replay.flows(about["to"])["flows"]
    moved = sum(job["executed_vo"] not in (None, job["vo"]) for job in jobs)
    assert sum(flows[2::4]) == moved > 0


def test_what_happened_is_told_newest_first_and_not_ahead(folder: Path, replay: Replay) -> None:
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    time = sorted(job["starting_time"] for job in jobs)[20]
    told = replay.events(1, None, time)["events"]
    times = [when for when, *_ in told]
    assert times == sorted(times, reverse=True) and max(times) <= time
    first = min(jobs, key=lambda job: job["starting_time"])
    said = replay.events(None, None, first["starting_time"])["events"][0][1]
    place = first["executed_vo"]
    assert said.startswith(f"job {first['job_id']} of {first['vo']} started on {place} ")


def test_a_gantt_chart_has_what_ran_in_its_time(folder: Path, replay: Replay) -> None:
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    about = replay.about()
    since, until = about["to"] / 4, about["to"] / 2
    answer = replay.gantt(2, since, until)
    ran = [
        job["job_id"]
        for job in jobs
        if job["executed_vo"] == "vo3"
        and job["starting_time"] < until
        and job["finish_time"] > since
    ]
    assert sorted(answer["rows"]["job"]) == sorted(ran) and answer["jobs"] == len(ran) > 0
    assert replay.gantt(2, about["to"], about["to"])["chart"] is None


def test_figures_over_time_of_a_vo_are_not_those_of_the_grid(replay: Replay) -> None:
    grid, vo = replay.course(None), replay.course(0)
    assert len(grid["time"]) == len(grid["wait"]) == len(vo["utility"])
    assert len(grid["level_time"]) == len(grid["utilization"])
    assert max(grid["utilization"]) <= 1 and grid["utilization"] != vo["utilization"]
    assert all(
        one <= all_of + 1e-9 for one, all_of in zip(vo["queued"], grid["queued"], strict=True)
    )


def test_cpus_that_were_never_busy_are_cpus_all_the_same(tmp_path: Path) -> None:
    vos = [{"name": name, "clusters": [{"processors": 10}]} for name in ("busy", "idle")]
    vos[0]["workload"] = {"jobs": [{"run_s": 100.0, "processors": 10}]}
    grid.run({"protocol": {"ttl": 0}, "vos": vos}, out=tmp_path / "run")
    replay = Replay(tmp_path / "run")
    assert [one["cpus"] for one in replay.about()["clusters"]] == [10, 10]
    assert replay.course(None)["utilization"][100] == 0.5
    assert replay.course(1)["utilization"][100] == 0.0


def test_a_job_is_told_of_with_events_and_without(tmp_path: Path, replay: Replay) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    run = execute(load_scenario(tmp_path / "scenario.yaml"), "", in_process=True, events=True)
    save(run, tmp_path / "run")
    with_events = Replay(tmp_path / "run")
    to = replay.about()["to"]
    vo, number = run.results.vo[0], run.results.number[0]
    told, short = (one.job(int(vo), int(number), to) for one in (with_events, replay))
    assert told["has_events"] and not short["has_events"]
    assert len(told["lines"]) > len(short["lines"]) == 4
    assert told["now"] and max(time for time, _ in told["lines"]) <= to
    submitted = run.results.submit_us[0] / 1e6
    assert with_events.job(int(vo), int(number), submitted - 1)["lines"] == []
    for one in (with_events, replay):
        none = one.job(0, 999, to)
        assert (none["lines"], none["now"]) == ([], ["There is no job 999 of vo1 in this run."])


def test_the_age_of_beliefs_is_told_of_runs_with_events(tmp_path: Path, replay: Replay) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    run = execute(load_scenario(tmp_path / "scenario.yaml"), "", in_process=True, events=True)
    save(run, tmp_path / "run")
    with_events = Replay(tmp_path / "run")
    assert with_events.about()["has_ages"] and not replay.about()["has_ages"]
    assert "age" not in replay.course(None)
    rows = pyarrow.parquet.read_table(tmp_path / "run" / "events.parquet").to_pylist()
    for vo, names in ((None, {"vo1", "vo2", "vo3"}), (1, {"vo2"})):
        ages = [
            (row["time_us"] / 1e6, row["age_us"] / 1e6)
            for row in rows
            if row["kind"] == "decision"
            and row["entity"].split("/")[0] in names
            and (row["age_us"] or 0) > 0
        ]
        told = with_events.course(vo)
        known = {place for place, age in enumerate(told["age"]) if age is not None}
        edges = [*told["time"][1:], float("inf")]
        places = [bisect.bisect_right(edges, time) for time, _ in ages]
        assert set(places) == known and len(known) > 3
        first = min(known)
        mine = [age for (_, age), place in zip(ages, places, strict=True) if place == first]
        assert told["age"][first] == pytest.approx(sum(mine) / len(mine))


def test_what_is_not_there_is_refused(replay: Replay) -> None:
    for ask in (
        lambda: replay.course(3),
        lambda: replay.events(None, 17, 0.0),
        lambda: replay.gantt(-1, 0.0, 1.0),
    ):
        with pytest.raises(NotThere):
            ask()


def test_a_folder_without_a_run_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Replay(tmp_path)
