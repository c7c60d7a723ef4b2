"""Jobs that are submitted after their predecessor, by SWF's preceding job and think time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import grid
from grid.config.load import load_scenario
from grid.runtime.chaos import attempt, subject_of

D = 0.001
"""The latency inside a VO in seconds."""
BETWEEN = 0.05


def line(number: int, submit: int, run: int, vo: int, before: int = -1, think: int = -1) -> str:
    fields = [number, submit, -1, run, 1, -1, -1, 1, run, -1, 1, 1, 1, 1, 1, vo, before, think]
    return " ".join(map(str, fields))


LOG = [
    line(1, 0, 100, 1),
    line(2, 5, 10, 1, before=1, think=20),
    line(3, 6, 10, 2, before=2, think=0),
    # One whose predecessor is not there, one that names itself, and one that names a later job.
    line(4, 50, 10, 2, before=99, think=7),
    line(5, 60, 10, 2, before=5),
    line(6, 70, 10, 2, before=7),
    line(7, 500, 10, 1, before=3, think=1),
]


def scenario(folder: Path, **workload: Any) -> dict[str, Any]:
    log = folder / "log.swf"
    log.write_text("\n".join(LOG) + "\n")
    vos = [{"name": name, "clusters": [{"cpus": 4}]} for name in ("a", "b")]
    return {
        "name": "waiting",
        "network": {"local_latency_s": D, "latency_s": BETWEEN},
        "vos": vos,
        "workload": {
            "trace": str(log), "route": "partition", "waits_for_predecessors": True, **workload,
        },
    }  # fmt: skip


def submissions(run: Any) -> dict[int, float]:
    numbers, times = run.results.number.tolist(), run.results.submit_us.tolist()
    return {number: time / 1e6 for number, time in zip(numbers, times, strict=True)}


def test_jobs_are_submitted_their_think_time_after_their_predecessor(tmp_path: Path) -> None:
    run = grid.run(scenario(tmp_path))
    found, ends = submissions(run), {}
    for number, end in zip(run.results.number, run.results.outcome.end_us, strict=True):
        ends[int(number)] = int(end) / 1e6
    # The Resource Manager, the Local Scheduler and the users are notified of an end.
    assert found[2] == pytest.approx(ends[1] + 3 * D + 20)
    # Users of another VO hear of it over the link between both.
    assert found[3] == pytest.approx(ends[2] + 2 * D + BETWEEN)
    assert found[7] == pytest.approx(ends[3] + 2 * D + BETWEEN + 1)
    assert {number: found[number] for number in (1, 4, 5, 6)} == {1: 0, 4: 50, 5: 60, 6: 70}
    assert run.metrics["grid"]["jobs_completed"] == 7


def test_deadlines_move_with_the_jobs(tmp_path: Path) -> None:
    run = grid.run(scenario(tmp_path, attributes={"deadline": {"least": 2, "most": 2}}))
    slack = run.results.deadline_us - run.results.submit_us
    assert (slack == 2 * run.results.estimate_us).all()


def test_dependent_jobs_are_submitted_under_faults_and_crashes(tmp_path: Path) -> None:
    file = tmp_path / "waiting.yaml"
    file.write_text(yaml.safe_dump(scenario(tmp_path)))
    subject = subject_of(load_scenario(file), str(file))
    trials = [attempt(subject, seed) for seed in range(8)]
    assert not [trial for trial in trials if trial.broken]
