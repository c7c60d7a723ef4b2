"""VOs with different forwarding policies: one result for every placement."""

from __future__ import annotations

from typing import Any

import pytest

from grid.config.build import Grid
from grid.model.job_results import in_order
from grid.protocol.registry import FORWARDING
from grid.results.checkers import check, digest
from grid.runtime.sequential import run_sequential
from tests.config.grids import grid_of, vo
from tests.runtime.test_window import in_windows

RECEPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"admission": {"name": "limited", "settings": {"jobs": 2, "load": 2.0}}, "priority": "local"},
    {"admission": "none"},
    {"priority": "remote"},
)


def every_rule(**protocol: Any) -> Grid:
    """A VO for each rule of forwarding, with more jobs than CPUs, and different receptions."""
    vos = []
    for number, rule in enumerate(sorted(FORWARDING.own)):
        jobs = [
            {"submit_s": 0.7 * n * (1 + number % 3), "run_s": 2 + (n * 7 + number) % 9,
             "cpus": 1 + (n + number) % 2, "input_mb": n % 3}
            for n in range(12)
        ]  # fmt: skip
        received = RECEPTIONS[number % len(RECEPTIONS)]
        vos.append(vo(f"v{number}", 2 + number % 3, jobs, forwarding=rule, **received))
    return grid_of(
        protocol={
            "ttl": 4,
            "snapshots": {"period_s": 3, "load_above": 0.9, "jobs_above": 10},
            **protocol,
        },
        network={"latency_s": 0.3, "local_latency_s": 0.01, "bandwidth_mbps": 100},
        vos=vos,
    )


def test_the_number_of_processes_does_not_change_the_result() -> None:
    grid = every_rule(avoid_loops=True)
    expected = run_sequential(grid)
    table = in_order(expected.chunks)
    assert check(table, grid.directory, sum(grid.jobs_by_vo())) == []
    assert expected.violations == []
    assert len(set(table.placement.hops.tolist())) > 3
    chunks, messages = in_windows(grid, [0, 1, 2])
    assert digest(in_order(chunks)) == digest(table)
    assert messages == expected.messages


@pytest.mark.parametrize("when_refused", ["next", "origin", "reject"])
def test_what_refused_jobs_do_makes_a_difference_that_breaks_no_rule(when_refused: str) -> None:
    grid = every_rule(when_refused=when_refused)
    outcome = run_sequential(grid)
    table = in_order(outcome.chunks)
    assert check(table, grid.directory, sum(grid.jobs_by_vo())) == []
    assert outcome.violations == []
