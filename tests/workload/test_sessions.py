"""Users in sessions: how many jobs, how long between them, and when in the day."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.workload.stochastic import DayCycle, SessionJobs, session_jobs

VO = VirtualOrganization("a", (Cluster("c", (Machine("m", 8, 1000.0),)),))


def jobs(names: tuple[str, ...] = ("a",), **settings: Any) -> dict[str, JobTable]:
    given: dict[str, Any] = {
        "jobs": 20_000,
        "users": 20,
        "jobs_per_session": 4,
        "between_sessions": {"distribution": "exponential", "mean_s": 100_000},
        "think": {"distribution": "fixed", "mean_s": 60},
        "work": {"distribution": "exponential", "mean_s": 30},
    }
    rng = np.random.Generator(np.random.PCG64(5))
    read = SessionJobs.model_validate(given | settings)
    return session_jobs(names, [VO] * len(names), rng, read)


def test_jobs_of_a_session_follow_each_other_by_run_and_think_time() -> None:
    table = jobs()["a"]
    sessions, followed = 0, 0
    for user in range(20):
        rows = np.flatnonzero(table.user == user)
        expected = table.submit_us[rows] + table.run_us[rows] + 60_000_000
        follows = np.abs(table.submit_us[rows][1:] - expected[:-1]) <= 2
        followed += int(follows.sum())
        sessions += len(rows) - int(follows.sum())
    # Geometric of mean 4: three of four jobs have a predecessor. Sessions of one user seldom meet.
    assert followed / len(table) == pytest.approx(0.75, abs=0.02)
    # 20 users with a session in 100,000 s each.
    assert sessions * 100_000 / 20 == pytest.approx(table.submit_us[-1] / 1e6, rel=0.1)


def test_sessions_begin_by_day_and_other_vos_have_other_days() -> None:
    tables = jobs(("a", "b"), night_rate=0.05, hours_between_vos=9, jobs_per_session=1)
    share_of_day = 10 / (10 + 14 * 0.05)
    for table, noon in zip(tables.values(), (13.0, 4.0), strict=True):
        hour = table.submit_us / 3.6e9 % 24
        by_day = np.abs((hour - noon + 12) % 24 - 12) < 5
        assert by_day.mean() == pytest.approx(share_of_day, abs=0.02)


def test_what_comes_is_in_order_and_as_much_as_asked_for() -> None:
    table = jobs(jobs=777, users=3, sizes=[{"cpus": 4, "share": 1}])["a"]
    assert len(table) == 777
    assert (np.diff(table.submit_us) >= 0).all()
    assert set(table.user.tolist()) == {0, 1, 2}
    assert (table.processors == 4).all()


def test_a_day_that_is_twice_as_fast_takes_half_the_time() -> None:
    cycle = DayCycle(np.array([0.5, 1.5]), 0.0)
    noon, day = 43_200.0, 86_400.0
    assert cycle.times_s(np.array([0.0, noon / 2, day, day + noon / 2])) == pytest.approx(
        [0.0, noon, day, day + noon]
    )
    later = DayCycle(np.array([0.5, 1.5]), noon)
    assert later.times_s(np.array([0.0, 1.5 * noon, day])) == pytest.approx([0.0, noon, day])
