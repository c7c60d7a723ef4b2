"""Histories and reasons of random jobs, and that their checks reject wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from tests.results.slow_history import checked

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
