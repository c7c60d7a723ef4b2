"""Live runs on real Ray actors: they end with every job in one state, whatever is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.config.build import Grid
from grid.config.faults import FaultsSection
from grid.config.load import load_scenario
from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.model.arrays import Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults, in_order
from grid.model.time import SECOND_US
from grid.results.checkers import check
from grid.results.run_folder import folder_for
from grid.runtime.clock import Lateness, Pace, late_share, live_lines
from grid.runtime.live import LiveFailed, LiveOutcome, run_live
from grid.runtime.progress import RunProgress
from grid.runtime.sequential import run_sequential
from tests.examples import examples

SCENARIOS = Path(__file__).parents[1] / "runtime" / "fault_scenarios"
KILLS = examples(25)
on_ray = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def grid_of(name: str, faults: dict[str, Any] | None = None) -> Grid:
    path = SCENARIOS / f"{name}.yaml"
    section = None if faults is None else FaultsSection.model_validate(faults)
    return realize(load_scenario(path).model_copy(update={"faults": section}), str(path))[0]


def grid_of_one(jobs: list[dict[str, Any]], faults: dict[str, Any] | None) -> Grid:
    """One VO with a machine for one job at a time."""
    only = {"name": "only", "clusters": [{"machines": [{"cpus": 1}]}], "workload": {"jobs": jobs}}
    given = {"name": "one", "vos": [only]} | ({} if faults is None else {"faults": faults})
    return realize(Scenario.model_validate(given), "one.yaml")[0]


def run_us(grid: Grid, results: JobResults) -> Ints:
    """How long each job of the results runs on a machine of the reference speed."""
    run_us = {
        (vo, number): run
        for vo, table in enumerate(grid.submitted)
        if table is not None
        for number, run in zip(table.number.tolist(), table.run_us.tolist(), strict=True)
    }
    return np.array([run_us[key] for key in zip(results.vo, results.number, strict=True)])


def sound(outcome: LiveOutcome, grid: Grid) -> JobResults:
    """The jobs of a run in which all ended, and no rule was broken."""
    results = in_order(outcome.run.chunks)
    assert outcome.unfinished == 0
    assert check(results, grid.directory, sum(grid.jobs_by_vo())) == []
    assert outcome.run.broken_rules() == []
    return results


class TestOnRay:
    pytestmark = on_ray

    def test_its_time_goes_on_while_nothing_happens(self, tmp_path: Path) -> None:
        """A job runs for 100 s, of which nobody hears anything."""
        seen: list[int] = []

        def hear(now: int, ended: int, *_: Any) -> None:
            if not ended:
                seen.append(now)

        grid = grid_of_one([{"run_s": 100}], None)
        run = run_live(grid, tmp_path / "run", Pace(20), progress=hear).run
        between = {now for now in seen if 10 * SECOND_US < now < 90 * SECOND_US}
        assert len(between) > 3
        assert seen == sorted(seen)
        # Acknowledgements are no messages of the grid.
        assert run.messages == run_sequential(grid).messages
        assert run.cpu_seconds > 0

    @pytest.mark.thorough
    def test_every_entity_an_actor(self, tmp_path: Path) -> None:
        """What must be true however late this machine is."""
        grid = grid_of("two")
        outcome = run_live(grid, tmp_path / "journals", Pace(speedup=4))
        results = sound(outcome, grid)
        expected = in_order(run_sequential(grid).chunks)
        assert outcome.run.actors == len(grid.names) == 10
        for name in ("vo", "number", "submit_us", "processors"):
            assert getattr(results, name).tolist() == getattr(expected, name).tolist(), name
        assert set(results.outcome.state.tolist()) == {JobState.COMPLETED}
        assert (results.placement.hops <= 2).all()
        # A machine of twice the speed takes half the time; nothing is ever early.
        took_us = results.outcome.end_us - results.outcome.start_us
        speed = np.where(results.placement.executed_vo == 1, 2.0, 1.0)
        assert (took_us >= run_us(grid, results) / speed).all()
        assert (results.outcome.start_us > results.submit_us).all()
        assert not (tmp_path / "journals").exists()

    def test_a_vo_that_is_down_adds_its_outage_to_the_makespan(self, tmp_path: Path) -> None:
        """All jobs are there: those that are submitted when it goes down wait until it is up."""
        jobs = [{"submit_s": 0.5, "run_s": 2}] * 3
        without = grid_of_one(jobs, None)
        down = grid_of_one(
            jobs, {"heal_s": 60, "vo_outages": [{"vo": "only", "at_s": 0.5, "for_s": 10}]}
        )
        results = sound(run_live(down, tmp_path / "journals", Pace(speedup=4), "vo"), down)
        expected = in_order(run_sequential(without).chunks)
        added_us = results.outcome.end_us.max() - expected.outcome.end_us.max()
        assert added_us >= 10 * SECOND_US
        assert (results.outcome.start_us >= 10.5 * SECOND_US).all()

    @pytest.mark.parametrize("kill_rate", [0.0, pytest.param(1.0, marks=pytest.mark.thorough)])
    def test_crashes_partitions_and_machine_outages_take_effect(
        self, kill_rate: float, tmp_path: Path
    ) -> None:
        grid = grid_of("two", {
            "heal_s": 60,
            "crashes": [{"entity": "north/source", "at_s": 5, "for_s": 15}],
            "random_crashes": {"every_s": 30, "for_s": 2},
            "machine_outages": [{"vo": "north", "at_s": 0, "for_s": 25}],
            "partitions": [{"one": ["north"], "other": ["south"], "at_s": 1, "for_s": 30}],
        })  # fmt: skip
        pace = Pace(speedup=3, kill_rate=kill_rate)
        outcome = run_live(grid, tmp_path / "journals", pace, "vo")
        results = sound(outcome, grid)
        assert outcome.run.snapshots > 0
        start_us = results.outcome.start_us
        # The users of north submit their second and third job when they are back.
        late = (results.vo == 0) & (results.submit_us >= 5 * SECOND_US)
        assert (start_us[late] >= 20 * SECOND_US).all()
        on_north = results.placement.executed_vo == 0
        assert (results.outcome.end_us[on_north] > 25 * SECOND_US).all()
        # What is submitted while nothing crosses the partition moves when it is over.
        moved = results.placement.executed_vo != results.vo
        cut_off = moved & (results.submit_us >= 1 * SECOND_US)
        assert (start_us[cut_off] >= 31 * SECOND_US).all()

    @pytest.mark.parametrize(
        "name", ["partial-utility", pytest.param("mixed", marks=pytest.mark.thorough)]
    )
    def test_killed_actors_lose_no_job_and_end_none_twice(self, name: str, tmp_path: Path) -> None:
        grid = grid_of(name)
        kills = 0
        while kills < KILLS:
            pace = Pace(speedup=2, kill_rate=2)
            outcome = run_live(grid, tmp_path / "journals", pace, "vo")
            sound(outcome, grid)
            assert outcome.restarts > 0
            kills += outcome.kills

    def test_a_run_whose_time_is_over_ends_with_what_there_is(self, tmp_path: Path) -> None:
        scenario, out = str(SCENARIOS / "two.yaml"), tmp_path / "out"
        command = ["run", scenario, "--live", "--time-limit", "4", "--placement", "vo"]
        done = CliRunner().invoke(app, [*command, "--out", str(out)])
        assert done.exit_code == 0, done.output
        manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        ended = len((out / "jobs.csv").read_text(encoding="utf-8").splitlines()) - 1
        unfinished = manifest["live"]["unfinished"]
        assert 0 < unfinished == sum(grid_of("two").jobs_by_vo()) - ended
        assert f"the time was over, and {unfinished} jobs had not ended" in done.output
        # It does not take the place of a whole one, but of one that is not.
        assert folder_for(out, {"unfinished": 1}) == out
        whole = manifest | {"live": manifest["live"] | {"unfinished": 0}}
        (out / "manifest.json").write_text(json.dumps(whole))
        done = CliRunner().invoke(app, [*command, "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert json.loads((out / "manifest.json").read_text())["live"]["unfinished"] == 0
        beside = json.loads((tmp_path / "out-unfinished" / "manifest.json").read_text())
        assert beside["live"]["unfinished"] > 0
        assert f"results in {tmp_path}/out-unfinished" in done.output
        assert folder_for(out, {"unfinished": 0}) == folder_for(out, None) == out

    def test_an_interrupted_run_gives_what_there_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = []

        def interrupt(_: Any, now: int, jobs: int, total: int, more: str = "") -> None:
            seen.append((now, total, more))
            if jobs:
                raise KeyboardInterrupt

        monkeypatch.setattr(RunProgress, "__call__", interrupt)
        scenario, out = str(SCENARIOS / "two.yaml"), tmp_path / "out"
        command = ["run", scenario, "--live", "--speedup", "4", "--placement", "vo", "--quiet"]
        done = CliRunner().invoke(app, [*command, "--out", str(out)])
        assert done.exit_code == 130, done.output
        live = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["live"]
        ended = len((out / "jobs.csv").read_text(encoding="utf-8").splitlines()) - 1
        jobs = sum(grid_of("two").jobs_by_vo())
        assert live["interrupted"] and 0 < ended == jobs - live["unfinished"]
        assert f"interrupted: {live['unfinished']} jobs had not ended" in done.output
        assert {total for _, total, _ in seen} == {jobs}
        assert all("wait or run, 0 actors killed" in more for _, _, more in seen)

    @pytest.mark.parametrize("when", ("it starts", "a message comes"))
    def test_a_mistake_in_an_entity_ends_the_run_and_is_told(
        self, when: str, tmp_path: Path
    ) -> None:
        grid = grid_of("partial-utility")
        table = grid.submitted[0]
        assert table is not None
        requirements = list(table.requirements)
        object.__setattr__(table, "requirements", requirements)
        if when == "it starts":
            # The source makes its first jobs then, all with their requirements.
            del requirements[1:]
            told = "in vo1/.*: ValueError: zip"
        else:
            # Nothing that a scheduler could weigh.
            requirements[1] = ("nonsense",)  # type: ignore[assignment]
            told = "in vo1/scheduler: AttributeError"
        with pytest.raises(LiveFailed, match=told):
            run_live(grid, tmp_path / "journals", Pace(speedup=10), "vo")
        assert not (tmp_path / "journals").exists()

    def test_the_command_tells_how_it_went(self, tmp_path: Path) -> None:
        scenario, out = str(SCENARIOS / "two.yaml"), tmp_path / "out"
        command = ["run", scenario, "--live", "--speedup", "10", "--placement", "1"]
        done = CliRunner().invoke(app, [*command, "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert "live at 10 times real time, 1 Ray actors; 0 killed" in done.output
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_live_and_in_process_are_two_things() -> None:
    command = ["run", str(SCENARIOS / "two.yaml"), "--live", "--in-process"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "--in-process" in done.output


def test_quantiles_of_lateness_are_right_to_a_class() -> None:
    rng = np.random.default_rng(1)
    late = rng.exponential(1e6, 10_000).astype(np.int64)
    parts = Lateness(), Lateness()
    for number, value in enumerate(late.tolist()):
        parts[number % 2].add(value)
    parts[0].merge(parts[1])
    told = parts[0].report(speedup=2.0)
    assert told["count"] == 10_000
    assert told["p50_s"] == pytest.approx(np.quantile(late, 0.5) / 2e6, rel=0.06)
    assert told["p99_s"] == pytest.approx(np.quantile(late, 0.99) / 2e6, rel=0.06)
    assert told["max_s"] == pytest.approx(late.max() / 2e6, abs=1e-6)
    assert parts[0].total_us == late.sum()
    assert Lateness().report(1.0) == {"count": 0, "p50_s": 0.0, "p99_s": 0.0, "max_s": 0.0}


def test_a_machine_that_cannot_keep_up_is_told_of() -> None:
    results = in_order([])
    assert late_share(results, 5) == 0.0
    late: dict[str, Any] = {"count": 9, "p50_s": 0.001, "p99_s": 0.02, "max_s": 0.5}
    live: dict[str, Any] = {
        "speedup": 100.0, "actors": 3, "kills": 0, "restarts": 0, "unfinished": 0,
        "late": {"messages": late, "timers": late, "share": 0.2},
    }  # fmt: skip
    assert "--speedup 25" in live_lines(live)[-1]
    live["late"]["share"] = 0.05
    assert not [line for line in live_lines(live) if "warning" in line]
    live["unfinished"] = 2
    assert live_lines(live)[-1] == "warning: the time was over, and 2 jobs had not ended"
