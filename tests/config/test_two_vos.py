"""The hand-worked scenario runs as the table in its comment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grid.config.load import load_scenario
from grid.model.time import to_seconds
from grid.runtime.run import Run, execute

FILE = Path(__file__).parents[2] / "scenarios" / "two-vos.yaml"
ROW = re.compile(
    r"#   (\w+) (\d)  (\w+)(?:, (\w+))? +([\d.-]+) +([\d.-]+)\*? +([\d.-]+) +([\d.]+)  "
)
MACHINES = {("north", 0): "linux", ("south", 0): "solaris", ("south", 1): "windows"}


@pytest.fixture(scope="module")
def run() -> Run:
    return execute(load_scenario(FILE), str(FILE), in_process=True)


def test_every_job_ends_as_in_the_table(run: Run) -> None:
    written = [match.groups() for match in map(ROW.match, FILE.read_text().splitlines()) if match]
    assert len(written) == 6
    jobs, vos = run.results, run.directory.vos
    found = []
    for row in range(len(jobs)):
        ran = jobs.placement.executed_vo[row] >= 0
        where = vos[jobs.placement.executed_vo[row]] if ran else "none"
        times = [
            jobs.placement.assigned_us[row],
            jobs.outcome.start_us[row],
            jobs.outcome.end_us[row],
        ]
        found.append(
            (
                vos[jobs.vo[row]],
                str(jobs.number[row]),
                where,
                MACHINES[where, int(jobs.outcome.machine[row])] if ran else None,
                *(f"{to_seconds(int(time)):.1f}" if ran else "-" for time in times),
                f"{jobs.placement.utility[row]:g}",
            )
        )
    assert sorted(found) == sorted(written)
