"""Limits of admission: each alone refuses what passes it, and takes in what just does not."""

from __future__ import annotations

from typing import Any

import pytest

from grid.forwarding.admission import Request, limited
from grid.model.job import Job


def asks(processors: int = 2, **more: Any) -> Request:
    job = Job(number=1, vo="a", submit_us=0, processors=processors, estimate_us=10, run_us=10)
    request = Request(job, jobs=2, processors=5, assigned=6, cpus=10, now=0)
    return request._replace(**more)


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ({}, True),
        ({"from_vos": ("b", "a")}, True),
        ({"from_vos": ("b",)}, False),
        ({"jobs": 3}, True),
        ({"jobs": 2}, False),
        ({"processors": 7}, True),
        ({"processors": 6}, False),
        ({"processors": 6, "processors_of": {"a": 7}}, True),
        ({"processors": 7, "processors_of": {"a": 6}}, False),
        ({"processors": 7, "processors_of": {"b": 0}}, True),
        ({"load": 0.8}, True),
        ({"load": 0.79}, False),
    ],
)
def test_a_limit_holds_to_the_last_processor(settings: dict[str, Any], taken: bool) -> None:
    assert limited(asks(), **settings) is taken
