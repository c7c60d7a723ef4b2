"""Queued reservations under `redundant`: which jobs go before them."""

from __future__ import annotations

from typing import Any

import pytest

import grid

PROTOCOL = {
    "ttl": 3,
    "forwarding": {"name": "redundant", "settings": {"copies": 2}},
    "snapshot_period_s": None,
    "snapshot_load_limit": None,
    "snapshot_jobs_limit": None,
}


def vo(
    name: str, processors: list[int], jobs: list[tuple[float, float, int]], **more: Any
) -> dict[str, Any]:
    """A VO with a cluster for each number of processors, and jobs (submitted, run time, CPUs)."""
    return more | {
        "name": name,
        "clusters": [{"name": f"c{n}", "cpus": one} for n, one in enumerate(processors)],
        "workload": {
            "jobs": [{"submit_s": at, "run_s": run, "cpus": cpus} for at, run, cpus in jobs]
        },
    }


def jobs_of(*vos: dict[str, Any]) -> dict[str, tuple[str, float]]:
    """Of each job, named by its VO and number, the VO where it ran and when it started."""
    network = {"latency_s": 0.05, "local_latency_s": 0.001}
    run = grid.run({"name": "line", "protocol": PROTOCOL, "network": network, "vos": list(vos)})
    table = run.jobs()
    rows = zip(table.vo, table.executed_vo, table.starting_time, strict=True)
    return {f"{vo}{n}": (there, start) for n, (vo, there, start) in enumerate(rows)}


@pytest.mark.parametrize("rule", ["redundant", "never"])
def test_local_jobs_go_before_reservations_of_guests(rule: str) -> None:
    """The guest waits for six of eight CPUs, of which four are busy; c1 is busy throughout."""
    own = vo("a", [8, 1], [(1, 1000, 4), (2, 1000, 1), (10, 10, 1)], priority="local")
    if rule == "never":
        own["forwarding"] = "never"
    found = jobs_of(own, vo("b", [8], [(1, 2000, 8), (3, 10, 6)]))
    there, start_s = next(one for one in found.values() if 10 <= one[1] < 1000)
    assert there == "a" and start_s < 10.1


def test_guests_with_priority_go_before_local_reservations() -> None:
    own = vo("a", [8, 1], [(1, 1000, 4), (2, 1000, 1), (3, 10, 6)], priority="remote")
    found = jobs_of(own, vo("b", [4], [(1, 2000, 4), (10, 10, 1)]))
    there, start_s = next(one for one in found.values() if 10 <= one[1] < 1000)
    assert there == "a" and start_s < 10.3


def test_a_remote_reservation_goes_before_a_free_local_resource() -> None:
    """When the bid of b arrives, c1 has become free; the job is in the queue of c0."""
    busy = [(1, 100, 1), (1, 4.52, 1)]
    found = jobs_of(vo("a", [1, 1], [*busy, (2, 10, 1)]), vo("b", [1], [(1, 4.5, 1)]))
    (last,) = [one for one in found.values() if one[1] > 5]
    assert last[0] == "b" and last[1] < 6
