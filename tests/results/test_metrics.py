"""The figures of a run: each paper's equation by hand, and all of them against a slow version."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given

from grid.model.job import JobState
from grid.model.job_results import JobResults, JobRow
from grid.model.records import ClusterFigure
from grid.model.time import NEVER
from grid.results.metrics import combine, metrics
from tests.results.results_tables import TWO_VOS, flat, job, table, tables

FAILED, REJECTED = JobState.FAILED, JobState.REJECTED


def grid_figures(rows: list[JobRow]) -> dict[str, Any]:
    return metrics(table(rows), TWO_VOS)["grid"]


def test_pu_eq_2_user_success_ratio_is_averaged_over_users_not_jobs() -> None:
    rows = [
        job(1, 0, 1, 2, user=1),
        job(2, 0, user=1, state=REJECTED),
        job(3, 0, 1, 2, user=1, state=FAILED),
        job(4, 0, 1, 2, user=1),
        job(5, 0, 1, 2, user=2),
    ]
    # User 1: 2 of 4; user 2: 1 of 1. (Over jobs it would be 3 of 5.)
    assert grid_figures(rows)["user_success_ratio"] == 0.75


def test_pu_eq_3_user_utility_and_the_two_literal_readings() -> None:
    rows = [
        job(1, 0, 1, 2, user=1, utility=1.0),
        job(2, 0, 1, 2, user=1, utility=0.5),
        job(3, 0, user=1, state=REJECTED),  # used no resource: utility 0
        job(4, 0, 1, 2, user=2, utility=0.25),
    ]
    figures = grid_figures(rows)
    assert figures["user_utility"] == (1.5 / 3 + 0.25) / 2
    assert figures["user_utility_one_minus_mean"] == 1 - (1.5 / 3 + 0.25) / 2
    literal = ((1 - math.sqrt(1.5) / 3) + (1 - math.sqrt(0.25) / 1)) / 2
    assert figures["user_utility_one_minus_root"] == pytest.approx(literal, rel=1e-15)


def test_pu_eq_4_submission_time_is_from_submission_to_assignment() -> None:
    rows = [
        job(1, 10, 20, 30, user=1, assigned=12),
        job(2, 10, 20, 30, user=1, assigned=16),
        job(3, 10, user=1, state=REJECTED),  # never assigned: counts in neither sum
        job(4, 0, 20, 30, user=2, assigned=10, state=FAILED),
        job(5, 0, user=3, state=REJECTED),  # a user without an assigned job has no mean
    ]
    assert grid_figures(rows)["submission_time_mean"] == ((2 + 6) / 2 + 10) / 2


def test_pu_eq_5_execution_time_is_from_assignment_to_end() -> None:
    rows = [
        job(1, 0, 20, 30, user=1, assigned=5),
        job(2, 0, 20, 40, user=1, assigned=5),
        job(3, 0, 20, 90, user=1, assigned=5, state=FAILED),  # was not completely executed
        job(4, 0, 1, 2, user=2, assigned=0.5),
    ]
    assert grid_figures(rows)["execution_time_mean"] == ((25 + 35) / 2 + 1.5) / 2


def test_pu_eq_6_load_balance_is_one_less_deviation_over_mean() -> None:
    rows = [
        job(1, 0, 0, 10, at=(0, 0, 0), processors=4),  # pool: 40 of 40 CPU seconds
        job(2, 0, 0, 5, vo=1, at=(1, 1, 0), processors=2),  # first machine: 10 of 20
        job(3, 0, 5, 10, vo=1, at=(1, 1, 0), state=FAILED),  # and 5 more: failed jobs held it too
    ]  # second machine: none
    loads = [1.0, 0.75, 0.0]
    mean = sum(loads) / 3
    deviation = math.sqrt(sum((load - mean) ** 2 for load in loads) / 3)
    figures = metrics(table(rows), TWO_VOS)
    assert figures["grid"]["load_balance"] == pytest.approx(1 - deviation / mean, rel=1e-14)
    assert figures["vos"]["north"]["load_balance"] == 1.0
    assert figures["vos"]["south"]["load_balance"] == pytest.approx(0.0, abs=1e-15)
    assert figures["grid"]["utilization"] == pytest.approx(55 / 70, rel=1e-15)
    assert figures["vos"]["south"]["utilization"] == pytest.approx(15 / 30, rel=1e-15)


def test_utilization_of_a_vo_is_of_its_own_machines_over_the_span_of_the_grid() -> None:
    rows = [
        job(1, 10, 10, 20, vo=0, at=(1, 1, 1), hops=1),  # north's job on south's second machine
        job(1, 10, 10, 30, vo=1, at=(1, 1, 0)),
    ]
    figures = metrics(table(rows), TWO_VOS)
    assert figures["vos"]["north"]["utilization"] == 0.0
    assert figures["vos"]["north"]["load_balance"] is None  # no load to be balanced
    assert figures["vos"]["south"]["utilization"] == pytest.approx((10 + 20) / (3 * 20))
    assert figures["vos"]["north"]["makespan"] == 10.0
    assert figures["grid"]["makespan"] == 20.0
    assert figures["vos"]["north"]["jobs_forwarded"] == 1
    assert figures["vos"]["south"]["jobs_forwarded"] == 0
    assert figures["grid"]["hops_mean"] == 0.5


def test_wait_response_and_slowdowns() -> None:
    rows = [
        job(1, 0, 10, 30),  # wait 10, run 20: slowdown 1.5
        job(2, 0, 8, 10),  # wait 8, run 2: slowdown 5, bounded max(1, 10 / 10) = 1
        job(3, 0, 30, 31, state=FAILED),  # waited, but has no run time that means anything
        job(4, 0, state=REJECTED),
    ]
    figures = grid_figures(rows)
    assert figures["wait_mean"] == 16.0
    assert figures["response_time_mean"] == 20.0
    assert figures["slowdown_mean"] == 3.25
    assert figures["bounded_slowdown_mean"] == 1.25


def test_late_percent_is_of_the_jobs_with_a_deadline() -> None:
    rows = [
        job(1, 0, 1, 10, deadline=10),  # on time to the microsecond
        job(2, 0, 1, 10.000001, deadline=10),
        job(3, 0, 1, 5, deadline=10, state=FAILED),
        job(4, 0, deadline=10, state=REJECTED),
        job(5, 0, 1, 1000),
    ]
    assert grid_figures(rows)["late_percent"] == 75.0
    assert grid_figures(rows[4:])["late_percent"] is None


@pytest.mark.parametrize("rows", [[], [job(1, 0, state=REJECTED)]])
def test_metrics_without_data_are_null(rows: list[JobRow]) -> None:
    figures = metrics(table(rows), TWO_VOS)
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    for name in ["wait_mean", "makespan", "utilization", "load_balance", "execution_time_mean"]:
        assert figures["grid"][name] is None
    assert figures["vos"]["south"]["user_success_ratio"] is None
    assert list(figures["vos"]["south"]) == list(figures["grid"])


def slow_figures(rows: list[Any], vo: int | None) -> dict[str, float | None]:
    """The same definitions, one job at a time."""
    ran_anywhere = [row for row in rows if row.start_us >= 0]
    span = (
        max(row.end_us for row in ran_anywhere) - min(row.submit_us for row in rows)
        if ran_anywhere
        else 0
    )
    loads, busy_sum, cpus_sum = [], 0.0, 0
    for cluster, entry in enumerate(TWO_VOS.clusters):
        for machine, cpus in enumerate(entry.cpus):
            if vo in (None, entry.vo):
                here = [r for r in ran_anywhere if (r.cluster, r.machine) == (cluster, machine)]
                busy = sum((r.end_us - r.start_us) * r.processors for r in here)
                loads.append(busy / cpus / span if span else 0.0)
                busy_sum += busy
                cpus_sum += cpus
    mean = sum(loads) / len(loads)
    deviation = math.sqrt(sum((load - mean) ** 2 for load in loads) / len(loads))
    rows = [row for row in rows if vo in (None, row.vo)]
    done = [row for row in rows if row.state == JobState.COMPLETED]
    due = [row for row in rows if row.deadline_us < NEVER]
    users: dict[tuple[int, int], list[Any]] = {}
    for row in rows:
        users.setdefault((row.vo, row.user), []).append(row)
    mine = list(users.values())
    return {
        "jobs_submitted": len(rows),
        "hops_mean": average([row.hops for row in rows]),
        "user_success_ratio": average([average([r in done for r in jobs]) for jobs in mine]),
        "user_utility": average([average([r.utility for r in jobs]) for jobs in mine]),
        "submission_time_mean": average(
            [
                average([(r.assigned_us - r.submit_us) / 1e6 for r in jobs if r.assigned_us >= 0])
                for jobs in mine
            ]
        ),
        "execution_time_mean": average(
            [
                average([(r.end_us - r.assigned_us) / 1e6 for r in jobs if r in done])
                for jobs in mine
            ]
        ),
        "wait_mean": average([(r.start_us - r.submit_us) / 1e6 for r in rows if r.start_us >= 0]),
        "response_time_mean": average([(r.end_us - r.submit_us) / 1e6 for r in done]),
        "slowdown_mean": average(
            [
                (r.end_us - r.submit_us) / (r.end_us - r.start_us)
                for r in done
                if r.end_us > r.start_us
            ]
        ),
        "bounded_slowdown_mean": average(
            [max(1, (r.end_us - r.submit_us) / max(r.end_us - r.start_us, 10**7)) for r in done]
        ),
        "late_percent": average([100 * (r not in done or r.end_us > r.deadline_us) for r in due]),
        "utilization": busy_sum / cpus_sum / span if span else None,
        "load_balance": 1 - deviation / mean if span and mean else None,
    }


def average(values: list[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@given(tables())
def test_the_arrays_agree_with_one_job_at_a_time(results: JobResults) -> None:
    rows = flat(results)
    figures = metrics(results, TWO_VOS)
    for vo, found in [(None, figures["grid"]), *enumerate(figures["vos"].values())]:
        for name, expected in slow_figures(rows, vo).items():
            close = expected if expected is None else pytest.approx(expected, rel=1e-12, abs=1e-12)
            assert found[name] == close, name


FIGURES = [
    ClusterFigure(0, "moves", 2),
    ClusterFigure(2, "moves", 3),
    ClusterFigure(0, "usage.part", 1.0),
    ClusterFigure(0, "usage.whole", 4.0),
    ClusterFigure(1, "usage.part", 3.0),
    ClusterFigure(1, "usage.whole", 4.0),
    ClusterFigure(2, "idle.part", 0.0),
    ClusterFigure(2, "idle.whole", 0.0),
]


def test_counts_add_up_and_a_share_is_a_ratio_of_sums() -> None:
    assert combine(FIGURES) == {"moves": 5, "usage": 50.0, "idle": None}
    assert combine(one for one in FIGURES if one.cluster == 0) == {"moves": 2, "usage": 25.0}
