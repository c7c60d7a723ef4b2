"""VOs that join and leave: a VO outside the grid neither shares nor uses resources."""

from __future__ import annotations

from typing import Any

import pytest

import grid

POLICIES: list[Any] = [
    "queue", "forward", "to_the_best", "when_nothing_free", "above_load", "until_idle",
    "best_expected_finish", "reserve", "redundant", "auction", "delegated",
    {"name": "pull", "settings": {"every_s": 5.0}},
]  # fmt: skip
OVERLAYS: list[Any] = [
    "all", "gossip", "index", "none",
    {"name": "probes", "settings": {"count": 2, "timeout_s": 3.0}},
]  # fmt: skip


def executed(protocol: dict[str, Any] | None = None, **member: Any) -> tuple[str, grid.Run]:
    """Six jobs come to `a`, which has one CPU; `b` has four, and one small job of its own.

    Returns where the jobs of `a` ran, in the order of submission.
    """
    jobs = [{"submit_s": 10.0 * number, "run_s": 100.0} for number in range(1, 7)]
    own = {"name": "a", "clusters": [{"cpus": 1}], "workload": {"jobs": jobs}}
    small = {"jobs": [{"submit_s": 5.0, "run_s": 10.0}]}
    run = grid.run(
        {
            "network": {"latency_s": 1.0, "local_latency_s": 0.1},
            "protocol": {
                "ttl": 2,
                "snapshots": {"period_s": 5.0, "load_above": 0.9, "jobs_above": 10},
                **(protocol or {}),
            },
            "vos": [own, {"name": "b", "clusters": [{"cpus": 4}], "workload": small, **member}],
        }
    )
    found = run.jobs()
    where = found[found.vo == "a"].executed_vo.astype(object).fillna("-")
    return "".join(where), run


@pytest.mark.parametrize(
    ("member", "where"),
    [
        ({}, "abbbba"),
        ({"joins_s": 25.0}, "aabbbb"),
        ({"leaves_s": 25.0}, "abaaaa"),
        ({"joins_s": 15.0, "leaves_s": 45.0}, "abbbaa"),
    ],
)
def test_jobs_go_to_a_vo_while_it_is_in_the_grid(member: dict[str, float], where: str) -> None:
    """`a` decides 0.2 s after a submission, and `b` is known 1 s after it joined or left."""
    assert executed(**member)[0] == where


@pytest.mark.parametrize(("when_refused", "where"), [("next", "a"), ("reject", "-")])
def test_a_job_in_transit_to_a_vo_that_leaves_is_refused(when_refused: str, where: str) -> None:
    """The job of 20 s is sent at 20.3 s, and arrives at 21.4 s."""
    found, run = executed({"when_refused": when_refused}, leaves_s=21.0)
    assert found[1] == where
    assert run.metrics["grid"]["not_admitted"] == 1


@pytest.mark.parametrize("overlay", ["all", {"name": "gossip", "settings": {"period_s": 30.0}}])
def test_a_vo_that_was_busy_before_it_joined_is_not_taken_for_idle(overlay: Any) -> None:
    """Its four CPUs are busy from 5 s to 205 s; no snapshot was published, and none is due."""
    busy = {"jobs": [{"submit_s": 5.0, "run_s": 200.0, "cpus": 4}]}
    protocol = {"snapshots": {"load_above": 0.9, "jobs_above": 10}, "information": overlay}
    assert executed(protocol, joins_s=15.0, workload=busy)[0] == "aaaaaa"


@pytest.mark.parametrize("number", range(len(POLICIES)))
def test_no_job_goes_to_a_vo_that_has_left(number: int) -> None:
    """From 43 s on all VOs know; calls and probes of before are answered."""
    protocol = {"forwarding": POLICIES[number], "information": OVERLAYS[number % len(OVERLAYS)]}
    where, run = executed(protocol, leaves_s=41.0)
    assert where[4:] == "aa"
    assert run.metrics["grid"]["jobs_completed"] == 7
