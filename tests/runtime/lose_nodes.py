"""Loses a node of a small cluster in a live run, and another in a windowed run; says what came out.

For `scripts/cluster run`, on three nodes. The argument is a folder for journals.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from grid.config.build import Grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.job_results import in_order
from grid.model.time import SECOND_US
from grid.results.checkers import check, digest
from grid.results.look import Observer
from grid.runtime import windowed
from grid.runtime.clock import Pace
from grid.runtime.cluster import ray_cluster
from grid.runtime.live import run_live
from grid.runtime.sequential import run_sequential

REPOSITORY = Path(__file__).parents[2]


class KillsNode(Observer):
    """Kills a node after some seconds of virtual time."""

    def __init__(self, node: int) -> None:
        self._node = node
        self.done = False

    def progress(self, now: int, jobs: int, total: int, more: str = "") -> None:
        if now > 5 * SECOND_US and not self.done:
            command = [REPOSITORY / "scripts" / "cluster", "kill", str(self._node)]
            subprocess.run(command, check=True)
            self.done = True


def grid_of(path: Path, settings: list[str]) -> Grid:
    return realize(load_scenario(path, settings), str(path))[0]


def live(folder: Path) -> dict[str, object]:
    grid = grid_of(REPOSITORY / "tests/runtime/fault_scenarios/partial-utility.yaml", [])
    kills = KillsNode(1)
    outcome = run_live(grid, folder, Pace(speedup=2), "vo", observer=kills)
    errors = check(in_order(outcome.run.chunks), grid.directory, sum(grid.jobs_by_vo()))
    return {
        "killed": kills.done,
        "restarts": outcome.restarts,
        "errors": errors + outcome.run.broken_rules(),
    }


def in_windows() -> dict[str, object]:
    grid = grid_of(REPOSITORY / "scenarios/partial-utility.yaml", ["vos.0.count=3"])
    windowed.ROUNDS_A_PAUSE = 7
    kills = KillsNode(2)
    expected = run_sequential(grid)
    outcome = windowed.run_windowed(grid, actors=2, rounds_a_checkpoint=50, observer=kills)
    return {
        "killed": kills.done,
        "rounds": outcome.rounds,
        "same": digest(in_order(outcome.chunks)) == digest(in_order(expected.chunks)),
    }


if __name__ == "__main__":
    with ray_cluster(None):
        print(json.dumps({"live": live(Path(sys.argv[1])), "windowed": in_windows()}))
