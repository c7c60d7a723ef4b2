"""Histories and reasons of random jobs, and that their checks reject wrong ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.records import DECISION, MESSAGE, ClusterFacts, Event
from grid.results.history import ClusterLog, why_waiting
from tests.results.slow_history import (
    checked,
    errors_of_history,
    errors_of_reason,
    jobs_at,
)

SCENARIOS = Path(__file__).parents[2] / "scenarios"
JOBS = 40
FULL = {"migration": "full"}


GANGS: dict[str, Any] = {
    "vos": [
        {
            "name": "a",
            "clusters": [
                {"name": name, "cpus": 8, "policy": {"name": "afcfs", "settings": FULL}}
                for name in ("one", "two")
            ],
            "workload": {
                "jobs": [
                    {"submit_s": n, "run_s": 20 + n % 7, "cpus": 1 + n % 5} for n in range(100)
                ]
            },
        }
    ]
}


@pytest.mark.parametrize(
    ("scenario", "settings", "waits"),
    [
        (SCENARIOS / "two-vos.yaml", {}, 3),
        (GANGS, {}, 30),
        (SCENARIOS / "convergent-2.yaml", {"jobs": 300}, 15),
    ],
)
def test_histories_and_reasons_agree_with_the_events(
    scenario: Any, settings: dict[str, Any], waits: int, tmp_path: Path
) -> None:
    grid.run(scenario, set=settings, out=tmp_path / "run", events=True)
    found = checked(tmp_path / "run", JOBS)
    assert found.errors == []
    assert found.waits >= waits


def events_of(*rows: tuple[int, str, int, dict[str, Any]]) -> list[Event]:
    """Events of a cluster, from (time, event, job, fields)."""
    return [
        Event(
            time, "v/cluster/c", DECISION if word in ("start", "end") else MESSAGE, word,
            vo="v", job=job, **{"processors": 1, **more},
        )
        for time, word, job, more in rows
    ]  # fmt: skip


def test_a_reason_that_is_wrong_is_found() -> None:
    facts = ClusterFacts("v", "c", "fcfs", (2,), (0.0,), (0,))
    events = events_of(
        (0, "submit", 1, {"processors": 2}), (1, "start", 1, {"machine": 0}),
        (2, "submit", 2, {}), (3, "submit", 3, {}),
    )  # fmt: skip
    why = why_waiting(("v", 3), ClusterLog(facts, events).at(5))
    assert why is not None
    there = list(jobs_at(events, 5, "v/cluster/c"))
    assert list(errors_of_reason(why, there, facts, 5)) == []
    for wrong in (
        {"ahead": ()}, {"ahead": (("v", 2), ("v", 1))}, {"lacks": ()}, {"holders": ()},
        {"machine": -1}, {"machine": 1},
    ):  # fmt: skip
        assert list(errors_of_reason(replace(why, **wrong), there, facts, 5)), wrong  # type: ignore[arg-type]


def test_a_history_that_contradicts_the_table_is_found() -> None:
    mine = events_of((0, "submit", 1, {}), (1_000_000, "start", 1, {"machine": 0}))
    mine += events_of((3_000_000, "end", 1, {"state": "completed"}))
    row: dict[str, Any] = {
        "submission_time": 0.0, "starting_time": 1.0, "hops": 0, "state": "completed"
    }  # fmt: skip
    key = ("v", 1)
    assert list(errors_of_history(key, mine, row)) == []
    for wrong in (
        {"submission_time": 2.0}, {"starting_time": 2.0}, {"starting_time": None}, {"hops": 1},
        {"state": "failed"},
    ):  # fmt: skip
        assert list(errors_of_history(key, mine, row | wrong)), wrong
    assert list(errors_of_history(key, mine[1:], row))
    assert list(errors_of_history(key, mine[:2], row))
    assert list(errors_of_history(key, mine[::-1], row))
