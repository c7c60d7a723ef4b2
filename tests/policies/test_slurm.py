"""Slurm's main and backfill schedulers: schedules worked by hand from slurm.conf's documentation.

Four CPUs. Job 1 holds two of them until 100 s, with a limit of two minutes; job 2 needs four from
1 s on. Job 3 needs one from 2 s on, for 50 s, with a limit of one minute.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grid
from tests.examples import examples

JOBS = [
    {"run_s": 100, "estimate_s": 110, "cpus": 2, "user": 1},
    {"submit_s": 1, "run_s": 10, "cpus": 4, "user": 2},
    {"submit_s": 2, "run_s": 50, "cpus": 1, "user": 3},
]


def starts(jobs: list[dict[str, Any]], policy: str = "slurm", **parameters: int) -> list[float]:
    """The start of each job in seconds."""
    cluster = {"cpus": 4, "policy": {"name": policy, "settings": parameters}}
    workload = {"entry_point": "cluster", "jobs": jobs}
    done = grid.run({"vos": [{"name": "lab", "clusters": [cluster], "workload": workload}]})
    return list(done.jobs().sort_values("job_id")["starting_time"])


@pytest.mark.parametrize(
    ("parameters", "start"),
    [
        # The main scheduler stops at job 2. Backfill starts job 3 in its next iteration.
        ({}, 30),
        ({"bf_interval": 1}, 2),
        ({"bf_interval": 45}, 45),
        # At 70 s a limit of one minute would end after 120 s, when job 2 may start.
        ({"bf_interval": 70}, 110),
        # Only job 2 is tested.
        ({"bf_max_job_test": 1}, 110),
        # Job 2 does not block job 3.
        ({"bf_min_age_reserve": 1000}, 2),
    ],
)
def test_the_third_job(parameters: dict[str, int], start: float) -> None:
    assert starts(JOBS, **parameters) == [0, 100, start]


def test_limits_are_rounded_up_to_minutes_and_planned_times_to_the_resolution() -> None:
    """With a limit of 61 s, job 3 would end after 120 s; with 30 minutes, all ends count alike."""
    longer = [*JOBS[:2], {**JOBS[2], "estimate_s": 61}]
    assert starts(longer) == [0, 100, 110]
    assert starts(longer, bf_resolution=1800) == [0, 100, 30]


def test_no_reservation_beyond_the_window() -> None:
    """Job 2 can start at 120 s, beyond a window of one minute: job 3 starts, and delays it."""
    longer = [*JOBS[:2], {**JOBS[2], "run_s": 300}]
    assert starts(longer, bf_window=2) == [0, 100, 110]
    assert starts(longer, bf_window=1) == [0, 330, 30]


def test_only_some_jobs_have_reservations() -> None:
    """Job 3 needs four CPUs. Job 4 needs two and has a limit of three minutes.

    Without a reservation for job 3, job 4 takes the CPUs that job 2 leaves, and delays it.
    """
    jobs = [
        {"run_s": 100, "estimate_s": 110, "cpus": 2, "user": 1},
        {"submit_s": 1, "run_s": 50, "cpus": 2, "user": 2},
        {"submit_s": 2, "run_s": 10, "cpus": 4, "user": 3},
        {"submit_s": 3, "run_s": 170, "cpus": 2, "user": 4},
    ]
    assert starts(jobs, bf_interval=60) == [0, 1, 100, 110]
    assert starts(jobs, bf_interval=60, bf_min_age_reserve=500) == [0, 1, 221, 51]


def test_the_main_scheduler_tests_some_jobs_after_an_event() -> None:
    alone = [{"submit_s": 1, "run_s": 10, "user": 1}]
    assert starts(alone) == [1]
    assert starts(alone, default_queue_depth=0, bf_interval=45) == [45]
    assert starts(alone, default_queue_depth=0, bf_interval=10_000) == [60]
    two = [alone[0], {"submit_s": 2, "run_s": 10, "user": 1}]
    assert starts(two, sched_min_interval=5_000_000, bf_interval=10_000) == [1, 6]


def test_backfill_starts_and_tests_some_jobs_of_a_user() -> None:
    jobs = [
        JOBS[0],
        JOBS[1],
        {"submit_s": 2, "run_s": 10, "user": 3},
        {"submit_s": 2, "run_s": 10, "user": 3},
        {"submit_s": 2, "run_s": 10, "user": 4},
    ]
    assert starts(jobs) == [0, 100, 30, 30, 60]
    assert starts(jobs, bf_max_job_user=1)[2:] == [30, 60, 30]
    assert starts(jobs, bf_max_job_start=1, bf_interval=20)[2:] == [20, 40, 60]


def test_higher_priority_first() -> None:
    """User 1 has used 400 CPU seconds when the CPUs are free again, and users 2 nothing."""
    jobs = [
        {"run_s": 100, "cpus": 4, "user": 1},
        {"submit_s": 1, "run_s": 10, "cpus": 4, "user": 1},
        {"submit_s": 2, "run_s": 10, "cpus": 4, "user": 2},
    ]
    assert starts(jobs) == [0, 100, 110]
    assert starts(jobs, fair_share_weight=1000.0, calc_period_s=10.0) == [0, 110, 100]


def test_a_job_over_its_user_s_limit_is_skipped() -> None:
    jobs = [{"run_s": 100, "user": 1}, {"run_s": 10, "user": 1}, {"run_s": 10, "user": 2}]
    assert starts(jobs, max_running_jobs=1) == [0, 100, 0]


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 4)), max_size=9))
def test_without_backfill_it_is_fcfs(described: list[tuple[int, int, int]]) -> None:
    """With an iteration only every three hours, the main scheduler alone starts jobs in order."""
    jobs = [
        {"submit_s": 60 * submit + 1, "run_s": 60 * run, "cpus": cpus, "user": 1}
        for submit, run, cpus in sorted(described)
    ]
    if jobs:
        assert starts(jobs, bf_interval=10_800) == starts(jobs, "fcfs")
