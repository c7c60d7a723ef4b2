"""Figures of the papers that metrics do not have, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grid.config.load import load_scenario
from grid.lab.experiment import PlannedRun, key_of
from grid.lab.paper_figures import paper_figures
from grid.lab.record import attempt
from grid.model.job import JobState
from grid.model.records import ClusterHistory, Levels
from grid.results.machines import ClusterEntry, Directory
from tests.results.results_tables import job, table, us

ONE = Directory(vos=("north",), clusters=(ClusterEntry(vo=0, name="pool", cpus=(4,)),))


def test_late_percent_of_all_counts_jobs_without_deadline() -> None:
    jobs = table(
        [
            job(1, 0, 0, 10, deadline=5),
            job(2, 0, 0, 10, deadline=20),
            job(3, 0, 0, 10),
            job(4, 0, state=JobState.REJECTED, deadline=50),
        ]
    )
    assert paper_figures(jobs, ONE, [])["late_percent_of_all"] == 50.0


def test_utility_of_jobs_that_ran_excludes_rejected_jobs() -> None:
    jobs = table(
        [
            job(1, 0, 0, 1, user=1, utility=0.8),
            job(2, 0, state=JobState.REJECTED, user=1, utility=0.0),
            job(3, 0, 0, 1, user=2, utility=0.2),
            job(4, 0, 0, 1, user=2, utility=0.4),
            job(5, 0, state=JobState.REJECTED, user=3, utility=0.0),
        ]
    )
    # The first user has 0.8, the second 0.3, and the third no job that ran.
    found = paper_figures(jobs, ONE, [])["user_utility_of_jobs_that_ran"]
    assert found == pytest.approx((0.8 + 0.3) / 2)


def test_utilization_while_jobs_arrive_counts_pools_which_keep_no_history() -> None:
    """The pool is full from 0 to 30 s; half of the other cluster until 40 s."""
    entries = tuple(ClusterEntry(0, name, (4,)) for name in ("pool", "farm"))
    jobs = table(
        [
            job(1, 0, 0, 30, processors=4),
            job(2, 0, 0, 60, processors=2, cluster=1),
            job(3, 40, state=JobState.REJECTED),
        ]
    )
    history = ClusterHistory(1, 4, Levels(np.array([us(0), us(60)]), np.array([2, 0])))
    for histories in ([], [history]):
        found = paper_figures(jobs, Directory(("a",), entries), histories)
        expected = 100 * (4 * 30 + 2 * 40) / (8 * 40)
        assert found["utilization_arriving_percent"] == pytest.approx(expected)


def test_utilization_shown_is_equation_5_between_interactions() -> None:
    """30 jobs of two CPUs, one after the other, 10 s each: starts and ends at 0, 10, 10, 20, ...

    Interactions 8 (of 60, from 0) and 52 are at 40 and 260 s; two CPUs of four are always in use.
    """
    jobs = table([job(n, 0, 10 * n, 10 * n + 10, processors=2) for n in range(30)])
    assert paper_figures(jobs, ONE, [])["utilization_shown_percent"] == pytest.approx(50.0)
    # The drain does not count: a last job that runs alone for long.
    more = table(
        [job(n, 0, 10 * n, 10 * n + 10, processors=2) for n in range(30)]
        + [job(30, 0, 300, 9000, processors=1)]
    )
    assert paper_figures(more, ONE, [])["utilization_shown_percent"] == pytest.approx(50.0)


def test_metrics_without_jobs_do_not_apply() -> None:
    jobs = table([job(1, 0, state=JobState.REJECTED, deadline=1)])
    found = paper_figures(jobs, ONE, [])
    assert found.pop("late_percent_of_all") == 100.0
    assert set(found.values()) == {None}


KNAPSACK = [
    "policy=cs_i_p", "interarrival=1", "jobs=60", "machines=10", "licenses=8",
    "ratio_least=0.2", "ratio_most=0.3",
]  # fmt: skip


def test_solvers_see_the_same_instances_and_the_exact_one_is_no_worse() -> None:
    found = {}
    for knapsack in ("greedy", "exact"):
        scenario = load_scenario("scenarios/knapsack.yaml", [*KNAPSACK, f"knapsack={knapsack}"])
        planned = PlannedRun({}, 1, scenario, "x", "knapsack")
        answer = attempt(planned)
        assert not isinstance(answer, str), answer
        record, clock = answer
        found[knapsack] = record["metrics"]["grid"]
        assert clock["plan_seconds"]["knapsack"]["count"] == found[knapsack]["choices"]
        assert key_of(planned, "code") != key_of(replace(planned, measure="run"), "code")
    greedy, exact = found["greedy"], found["exact"]
    assert greedy["choices"] == exact["choices"] > 10
    assert 0 < greedy["least_usage"] <= greedy["license_usage"] <= greedy["best_usage"] <= 100
    assert exact["proven_percent"] > 50


def test_jobs_in_system_do_not_grow_under_constant_load() -> None:
    """A job every second, of 10 s each: ten at a time, but for the first quarter of 100 s."""
    steady = table([job(n, n, n, n + 10) for n in range(101)])
    found = paper_figures(steady, ONE, [])
    assert found["jobs_in_system_growth"] == pytest.approx(1.0)
    # 1, 2, ... 10 in the seconds in which the farm fills.
    assert found["jobs_in_system_mean"] == pytest.approx((90 * 10 + 55) / 100)
    growing = table([job(n, n, 200 + n, 210 + n) for n in range(101)])
    # In the second quarter 25 to 50, in the last 75 to 100.
    assert paper_figures(growing, ONE, [])["jobs_in_system_growth"] == pytest.approx(
        88.0 / 38.0, rel=0.01
    )
