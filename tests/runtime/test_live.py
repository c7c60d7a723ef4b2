"""Live runs on real Ray actors: they end with every job in one state, whatever is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.config.build import Grid
from grid.config.faults import FaultsSection
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.arrays import Ints
from grid.model.job_results import JobResults, in_order
from grid.runtime.clock import late_share, live_lines

SCENARIOS = Path(__file__).parents[1] / "runtime" / "fault_scenarios"
on_ray = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def grid_of(name: str, faults: dict[str, Any] | None = None) -> Grid:
    path = SCENARIOS / f"{name}.yaml"
    section = None if faults is None else FaultsSection.model_validate(faults)
    return realize(load_scenario(path).model_copy(update={"faults": section}), str(path))[0]


def run_us(grid: Grid, results: JobResults) -> Ints:
    """How long each job of the results runs on a machine of the reference speed."""
    run_us = {
        (vo, number): run
        for vo, table in enumerate(grid.submitted)
        if table is not None
        for number, run in zip(table.number.tolist(), table.run_us.tolist(), strict=True)
    }
    return np.array([run_us[key] for key in zip(results.vo, results.number, strict=True)])


def test_live_and_in_process_are_two_things() -> None:
    command = ["run", str(SCENARIOS / "two.yaml"), "--live", "--in-process"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "--in-process" in done.output


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
    assert "2 jobs" in live_lines(live)[-1]
