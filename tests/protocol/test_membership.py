"""VOs that join and leave: a VO outside the grid neither shares nor uses resources."""

from __future__ import annotations

from typing import Any

import pandas

import grid

RULES: list[Any] = [
    "queue", "forward", "to_the_best", "when_nothing_free", "above_load", "until_idle",
    "best_expected_finish", "reserve", "redundant", "auction", "delegated",
    {"name": "pull", "settings": {"every_s": 5.0}},
]  # fmt: skip
PROBES = {"name": "probes", "settings": {"count": 2, "timeout_s": 3.0}}
OVERLAYS = [
    "all",
    "gossip",
    "index",
    {"name": "probes", "settings": {"count": 2, "timeout_s": 5}},
    "none",
]


def two_vos(protocol: dict[str, Any] | None = None, **member: Any) -> dict[str, Any]:
    """Six jobs come to `a`, which has one CPU; `b` has four, and one small job of its own."""
    jobs = [{"submit_s": 10.0 * number, "run_s": 100.0} for number in range(1, 7)]
    one, four = ([{"name": "p", "cpus": size}] for size in (1, 4))
    small = {"jobs": [{"submit_s": 5.0, "run_s": 10.0}]}
    return {
        "name": "members",
        "network": {"latency_s": 1.0, "local_latency_s": 0.1},
        "protocol": {"ttl": 2, "snapshot_period_s": 5.0, **(protocol or {})},
        "vos": [
            {"name": "a", "clusters": one, "workload": {"jobs": jobs}},
            {"name": "b", "clusters": four, "workload": small, **member},
        ],
    }


def placed(scenario: dict[str, Any]) -> tuple[list[str], grid.Run]:
    """Where the jobs of `a` ran, in the order of their submission."""
    run = grid.run(scenario)
    jobs: pandas.DataFrame = run.jobs()
    return jobs[jobs.vo == "a"].executed_vo.tolist(), run
