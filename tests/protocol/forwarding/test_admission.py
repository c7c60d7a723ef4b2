"""Limits of admission, and jobs that are not admitted."""

from __future__ import annotations

from typing import Any

import pytest

import grid
from grid.model.job import Job
from grid.protocol.admission import Request, limited


def request(processors: int = 2, **more: Any) -> Request:
    job = Job(number=1, vo="a", submit_us=0, processors=processors, estimate_us=10, run_us=10)
    one = Request(job, jobs=2, processors=5, assigned=6, cpus=10, now=0)
    return one._replace(**more)


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({}, True),
        ({"from_vos": ("b", "a")}, True),
        ({"from_vos": ("b",)}, False),
        ({"jobs": 3}, True),
        ({"jobs": 2}, False),
        ({"cpus": 7}, True),
        ({"cpus": 6}, False),
        ({"cpus": 6, "cpus_of": {"a": 7}}, True),
        ({"cpus": 7, "cpus_of": {"a": 6}}, False),
        ({"cpus": 7, "cpus_of": {"b": 0}}, True),
        ({"load": 0.8}, True),
        ({"load": 0.79}, False),
    ],
)
def test_a_limit_is_inclusive(settings: dict[str, Any], taken: bool) -> None:
    assert limited(request(), **settings) is taken


@pytest.mark.parametrize(
    ("rule", "loops"),
    [("queue", True), ("to_the_best", False), ("best_expected_finish", True), ("auction", True)],
)
def test_a_job_that_is_not_admitted_may_queue_in_a_vo_that_it_had_left(
    rule: str, loops: bool
) -> None:
    """With `avoid_loops` that VO is barred for others, and not for itself."""
    pool = [{"cpus": 1}]
    jobs = [{"submit_s": 1, "run_s": 100}, {"submit_s": 70, "run_s": 10}]
    made = {
        "protocol": {"forwarding": rule, "avoid_loops": loops},
        "vos": [
            {"name": "a", "clusters": pool, "workload": {"jobs": jobs}},
            {"name": "b", "clusters": pool, "admission": "none"},
        ],
    }
    second = grid.run(made).jobs().iloc[1]
    assert (second.executed_vo, second.final_state) == ("a", "COMPLETED_SUCCESSFULLY")
    assert second.waiting_time == pytest.approx(31.0, abs=0.01)
