"""VOs that decide by different rules: one result, however they are placed."""

from __future__ import annotations

from typing import Any

import pytest

from grid.config.build import Grid
from grid.config.wrapped import entities_of
from grid.kernel.process import LogicalProcess
from grid.model.job_results import in_order
from grid.model.time import from_seconds
from grid.protocol.registry import FORWARDING
from grid.results.checkers import check, digest
from grid.runtime.codec import decode, encode
from grid.runtime.sequential import run_sequential
from grid.runtime.windowed import run_windowed
from tests.config.grids import grid_of, vo

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
        protocol={"ttl": 4, "snapshot_period_s": 3, **protocol},
        network={"latency_s": 0.3, "local_latency_s": 0.01, "bandwidth_mbps": 100},
        vos=vos,
    )


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_the_number_of_actors_cannot_be_seen() -> None:
    grid = every_rule(avoid_loops=True)
    expected = run_sequential(grid)
    table = in_order(expected.chunks)
    assert check(table, grid.directory, sum(grid.jobs_by_vo())) == []
    assert expected.violations == []
    assert len(set(table.placement.hops.tolist())) > 3
    for actors in (1, 2, 4):
        outcome = run_windowed(grid, actors=actors)
        assert digest(in_order(outcome.chunks)) == digest(table)
        assert outcome.messages == expected.messages


def test_a_journal_can_hold_what_is_in_hand() -> None:
    """In the middle of calls, leases, queues and requests, decoding restores the states."""
    grid = every_rule()
    process = LogicalProcess(
        entities_of(grid, grid.names), grid.network, grid.seed, grid.first_rows()
    )
    process.start()
    seen: set[str] = set()
    for second in range(1, 30):
        process.advance(from_seconds(second))
        for entity in process._entities:
            text = encode(entity)
            assert encode(decode(text)) == text
            seen |= {
                name for name in ("_Negotiation", "_OpenCall", "RequestReservation") if name in text
            }
    assert seen == {"_Negotiation", "_OpenCall", "RequestReservation"}


@pytest.mark.parametrize("when_refused", ["next", "origin", "reject"])
def test_what_refused_jobs_do_makes_a_difference_that_breaks_no_rule(when_refused: str) -> None:
    grid = every_rule(when_refused=when_refused)
    outcome = run_sequential(grid)
    table = in_order(outcome.chunks)
    assert check(table, grid.directory, sum(grid.jobs_by_vo())) == []
    assert outcome.violations == []
