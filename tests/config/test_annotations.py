"""Attributes that a workload adds to the jobs of its log or generator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grid.config.workload import with_attributes
from grid.model.job import RequirementKind
from grid.model.job_table import JobTable
from grid.model.time import NEVER
from grid.model.workload import AttributesSection

COUNT = 20_000
SYSTEMS = [
    {"value": "linux", "utility": 1.0},
    {"value": "windows", "utility": 0.6},
    {"value": "solaris", "utility": 0.2},
]


def plain(count: int = COUNT) -> JobTable:
    run_us = np.full(count, 10_000_000)
    return JobTable.of(
        number=np.arange(count), submit_us=np.arange(count) * 1_000_000,
        processors=np.ones(count), estimate_us=run_us, run_us=run_us,
    )  # fmt: skip


def given(seed: int = 3, vo: str = "a", **wanted: Any) -> JobTable:
    return with_attributes(plain(), AttributesSection.model_validate(wanted), seed, vo)


def test_requirements_have_their_shares_and_random_preferences() -> None:
    system = {"kind": "operating_system", "options": SYSTEMS, "order": "drawn", "share": 0.5}
    speed = {"kind": "speed", "options": [{"value": 500}], "weight": 0.3}
    jobs = given(requirements=[system, speed])
    asked = [{one.kind: one for one in of_job} for of_job in jobs.requirements]
    assert all(one[RequirementKind.SPEED].weight == 0.3 for one in asked)
    systems = [one.get(RequirementKind.OPERATING_SYSTEM) for one in asked]
    having = [one for one in systems if one is not None]
    assert len(having) / COUNT == pytest.approx(0.5, abs=0.02)
    assert {tuple(option.utility for option in one.options) for one in having} == {(1.0, 0.6, 0.2)}
    first = np.bincount([int(one.options[0].value) for one in having])
    assert first[first > 0] / len(having) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_deadlines_are_multiples_of_the_estimate() -> None:
    jobs = given(deadline={"share": 0.25, "least": 2, "most": 4})
    due = jobs.deadline_us < NEVER
    assert due.mean() == pytest.approx(0.25, abs=0.02)
    slack = (jobs.deadline_us - jobs.submit_us)[due] / jobs.estimate_us[due]
    assert (slack.min(), slack.max()) == pytest.approx((2, 4), abs=0.01)
    assert slack.mean() == pytest.approx(3, abs=0.03)


def test_times_of_a_log_in_whole_seconds() -> None:
    """Submissions are truncated, and run times are differences of truncated times."""
    jobs, log = given(resolution_s=1, cancel_after={"least_s": 5, "most_s": 5}), plain()
    later_us, longer_us = jobs.submit_us - log.submit_us, jobs.run_us - log.run_us
    assert (later_us.min() // 1000, later_us.max() // 1000) == (0, 999)
    assert later_us.mean() == pytest.approx(500_000, abs=10_000)
    assert (jobs.cancel_us - jobs.submit_us == 5_000_000).all()
    # Cut at the estimate, which is the run time of the log: half of a triangle's mean, 1 / 6.
    assert longer_us.max() == 0
    assert longer_us.mean() == pytest.approx(-1e6 / 6, abs=5000)
    same_second = with_attributes(
        replace(log, submit_us=log.submit_us * 0),
        AttributesSection.model_validate({"resolution_s": 1}), 3, "a",
    )  # fmt: skip
    assert (np.diff(same_second.submit_us) >= 0).all()


def test_input_is_lognormal() -> None:
    size = given(input={"mean_mb": 50, "cv": 1.5}).input_mb
    assert size.mean() == pytest.approx(50, rel=0.05)
    assert np.log(size).std() == pytest.approx(np.log(1 + 1.5**2) ** 0.5, rel=0.03)


def test_each_attribute_has_its_own_random_stream() -> None:
    deadline, size = {"least": 1, "most": 9}, {"mean_mb": 5, "share": 0.5}
    one, two = given(input=size), given(input=size, deadline=deadline)
    assert (one.input_mb == two.input_mb).all()
    assert (given(deadline=deadline).deadline_us == two.deadline_us).all()
    assert (given(seed=4, input=size).input_mb != one.input_mb).any()
    assert (given(vo="b", input=size).input_mb != one.input_mb).any()
    own_seed = with_attributes(
        plain(), AttributesSection.model_validate({"seed": 3, "input": size}), 4, "a"
    )
    assert (own_seed.input_mb == one.input_mb).all()
