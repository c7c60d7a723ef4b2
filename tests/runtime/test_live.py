"""Live runs on real Ray actors: they end with every job in one state, whatever is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from grid.cli import app
from grid.model.job_results import JobResults, in_order
from grid.results.checkers import check
from grid.runtime.lateness import Lateness
from grid.runtime.live import LiveFailed, LiveOutcome, run_live
from grid.runtime.pace import Pace, late_share, live_lines
from grid.runtime.sequential import run_sequential
from grid.scenario.build import Grid
from grid.scenario.load import load_scenario
from grid.scenario.workload import realize

SCENARIOS = Path(__file__).parents[1] / "runtime" / "fault_scenarios"
KILLS = 50
on_ray = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def grid_of(name: str) -> Grid:
    path = SCENARIOS / f"{name}.yaml"
    return realize(load_scenario(path), str(path))[0]


def sound(outcome: LiveOutcome, grid: Grid) -> JobResults:
    """The jobs of a run in which all ended, and no rule was broken."""
    results = in_order(outcome.run.chunks)
    assert outcome.unfinished == 0
    assert check(results, grid.directory, sum(grid.jobs_by_vo())) == []
    assert outcome.run.broken_rules() == []
    return results


class TestOnRay:
    pytestmark = on_ray

    def test_every_entity_an_actor_and_the_jobs_end_as_in_virtual_time(
        self, tmp_path: Path
    ) -> None:
        grid = grid_of("two")
        outcome = run_live(grid, tmp_path / "journals", Pace(speedup=4))
        results = sound(outcome, grid)
        expected = in_order(run_sequential(grid).chunks)
        assert outcome.run.actors == len(grid.names) == 10
        for name in ("number", "state", "executed_vo", "machine", "hops", "utility"):
            assert getattr(results, name).tolist() == getattr(expected, name).tolist(), name
        # No entity is ever early.
        assert (results.outcome.end_us >= expected.outcome.end_us).all()
        assert not (tmp_path / "journals").exists()

    @pytest.mark.parametrize("name", ["partial-utility", "mixed"])
    def test_killed_actors_lose_no_job_and_end_none_twice(self, name: str, tmp_path: Path) -> None:
        grid = grid_of(name)
        kills = 0
        while kills < KILLS // 2:
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
        assert f"the time was over before {unfinished} jobs had ended" in done.output

    def test_a_mistake_in_an_entity_ends_the_run_and_is_told(self, tmp_path: Path) -> None:
        grid = grid_of("partial-utility")
        table = grid.submitted[0]
        assert table is not None
        del table.requirements[1:]
        with pytest.raises(LiveFailed, match="IndexError"):
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
    assert live_lines(live)[-1] == "warning: the time was over before 2 jobs had ended"
