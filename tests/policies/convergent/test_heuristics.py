"""The heuristics of both papers, each with numbers worked by hand.

The job has 10,000 MI to do (100 s at 100 MIPS); the machines have 100, 200 and 50 MIPS, so it
takes 100, 50 and 200 s on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.model.plugins.registry import Plugins
from grid.policies.convergent.heuristics import (
    CS2_WEIGHTS,
    CS2007_WEIGHTS,
    cs2_heuristics,
    cs2007_heuristics,
)
from grid.policies.convergent.kernels import row_values
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder
from grid.policies.interface import ClusterView
from tests.policies.convergent.clusters import S, running, view_of, waiting

MIPS = [100.0, 200.0, 50.0]
LINKS = (100.0, 1000.0, 50.0)


def view_at(now_s: float, *jobs: dict[str, Any], copies: tuple[int, ...] = ()) -> ClusterView:
    return view_of(now_s, list(jobs), MIPS, copies=copies)


def plain(view: ClusterView) -> JobMachineMatrix:
    """The matrix without heuristics."""
    none = cs2_heuristics(dict.fromkeys(CS2_WEIGHTS, 0.0), Plugins())
    return MatrixBuilder().matrix(view, none)


def matrix_at(now_s: float, *jobs: dict[str, Any]) -> JobMachineMatrix:
    return plain(view_at(now_s, *jobs))


def added_cs2(name: str, view: ClusterView) -> Any:
    """What one heuristic of CS 2.0 adds with the paper's weight, a row a job."""
    weights = dict.fromkeys(CS2_WEIGHTS, 0.0) | {name: CS2_WEIGHTS[name]}
    return MatrixBuilder().matrix(view, cs2_heuristics(weights, Plugins())).priority


def added_c07(name: str, view: ClusterView, f1: str = "words") -> Any:
    """The same of C07, with its constants."""
    weights = dict.fromkeys(CS2007_WEIGHTS, 0.0) | {name: CS2007_WEIGHTS[name]}
    heuristics = cs2007_heuristics(weights, Plugins(), f1=f1, bandwidths_mbps=LINKS)
    return MatrixBuilder().matrix(view, heuristics).priority


# CS 2.0


def test_equation_1_remaining_time() -> None:
    assert matrix_at(0, waiting()).remaining_s.tolist() == [[100, 50, 200]]


def test_equation_1_a_running_job_starts_again_elsewhere() -> None:
    matrix = matrix_at(20, running(1, 0, 50))
    assert matrix.remaining_s.tolist() == [[100, 30, 200]]


def test_equation_1_a_checkpointable_job_goes_on_anywhere() -> None:
    """30 s at 200 MIPS are left: 6,000 MI."""
    matrix = matrix_at(20, running(1, 0, 50, checkpointable=True))
    assert matrix.remaining_s.tolist() == [[60, 30, 120]]


def test_equations_2_to_5_urgency() -> None:
    """Deadline 130. Machine 0: last 30, end 100, f = 70 / 100. Machine 1: last 80, end 50, f = 0.
    Machine 2: end 200 is too late, f = 1. So 1 - f is 0.3, 1 and 0 (Eq. 6), F = 1.7 / 3 (Eq. 7).
    """
    row = added_cs2("deadline", view_at(0, waiting(deadline_us=130 * S)))[0]
    mean = 1.7 / 3
    assert row == pytest.approx([15 * 0.3 * mean, 15 * mean, 0.0])


def test_equation_6_nothing_without_a_deadline_or_after_it() -> None:
    never, over = waiting(), waiting(deadline_us=10 * S)
    assert (added_cs2("deadline", view_at(20, never, over)) == 0.0).all()


def test_equation_7_averages_over_the_machines_that_can_run_the_job() -> None:
    """Without machine 2, F = 0.7 / 2."""
    view = view_of(0, [waiting(deadline_us=130 * S, processors=2)], MIPS, cpus=[2, 2, 1])
    row = added_cs2("deadline", view)[0]
    assert row[:2] == pytest.approx([15 * 0.3 * 0.35, 15 * 0.35])
    assert row[2] == -np.inf


def test_equation_8_overhead_minimization() -> None:
    """After 20 s 30 are left: 20 / 30 of the weight. After 40 s 10 are left: all of it."""
    assert added_cs2("overhead", view_at(20, running(1, 0, 50)))[0] == pytest.approx([0, 80 / 3, 0])
    assert added_cs2("overhead", view_at(40, running(1, 0, 50)))[0] == pytest.approx([0, 40, 0])


def test_equation_8_a_suspended_job_is_drawn_to_its_machine() -> None:
    """40 s at 100 MIPS are 20 s of machine 1, where 30 s are left."""
    suspended = waiting(machine=1, done_us=40 * S, start_us=0)
    assert added_cs2("overhead", view_at(500, suspended))[0] == pytest.approx([0, 80 / 3, 0])


def test_equations_9_to_11_licenses() -> None:
    """Two jobs ask for the one copy of license 0 (rho 2), two for the four of license 1 (rho 0.5).
    Means: 2, (2 + 0.5) / 2 and 0.5, the first two cut to 1.
    """
    jobs = [waiting(licenses=mask) for mask in (0b01, 0b11, 0b10, 0)]
    rows = added_cs2("licenses", view_at(0, *jobs, copies=(1, 4)))
    assert rows[:, 0].tolist() == [5.0, 5.0, 2.5, 0.0]


def test_equation_12_wait_minimization() -> None:
    """The longest remaining time is 200 s."""
    assert added_cs2("wait", view_at(0, waiting()))[0] == pytest.approx([4, 6, 0])


def test_equation_13_anti_aging() -> None:
    """Submitted 50 s ago: 50 / 150, 50 / 100, 50 / 250."""
    assert added_cs2("anti_aging", view_at(50, waiting()))[0] == pytest.approx([5 / 3, 2.5, 1])


# C07


def test_c07_f1_and_equation_1_to_the_letter() -> None:
    """Deadline 130, k = 1.3. Machine 0: t = 0, Extime 100, f1 = 9.9 / 130 * 100 + 0.1 = 7.71538.
    Machine 1: Extime 50 is before t = 65, f1 = MIN. Machine 2: Extime 200 is too late, f1 = MIN.
    Sum 7.91538; MAX - f1 is 2.28462, 9.9, 9.9, together d = 22.08462.
    """
    row = added_c07("deadline", view_at(0, waiting(deadline_us=130 * S)), f1="formula")[0]
    assert row == pytest.approx([0.818833, 3.548276, 3.548276], abs=1e-6)


def test_c07_equation_1_by_its_words() -> None:
    """f1 = MAX for machine 2, where the job would be late: the sum is 17.81538, d = 12.18462."""
    row = added_c07("deadline", view_at(0, waiting(deadline_us=130 * S)), f1="words")[0]
    assert row == pytest.approx([3.340387, 14.474995, 0.0], abs=1e-4)


@pytest.mark.parametrize(("f1", "value"), [("words", 0.1), ("words_max", 10.0), ("formula", 0.1)])
def test_c07_equation_1_of_a_job_that_is_late_everywhere(f1: str, value: float) -> None:
    """By the words f1 = MAX on all three, so d_i = 0; by the formula f1 = MIN on all three."""
    view = view_at(20, waiting(deadline_us=10 * S))
    assert added_c07("deadline", view, f1)[0] == pytest.approx([value] * 3)


def test_c07_equation_1_without_a_deadline_is_the_minimum() -> None:
    assert added_c07("deadline", view_at(0, waiting()))[0] == pytest.approx([0.1] * 3)


def test_c07_licenses_w() -> None:
    """Of two licenses, rho is 2 (critical) and 0.5. w = 2 * 2, 2 * 2 + 0.5, 0.5 and 0."""
    jobs = [waiting(licenses=mask) for mask in (0b01, 0b11, 0b10, 0)]
    rows = added_c07("licenses", view_at(0, *jobs, copies=(1, 4)))
    assert rows[:, 0] == pytest.approx([2.5 * 4 / 4.5, 2.5, 2.5 * 0.5 / 4.5, 0])


def test_c07_input_transfer() -> None:
    """100 MB on machine 0 are 800 Mb: 8 s over 100 Mb/s to machine 1, 16 s over 50 to machine 2."""
    row = added_c07("input", view_at(0, waiting(input_mb=100.0, user=0)))[0]
    assert row == pytest.approx([3, 2, 1])


def test_c07_wait_minimization() -> None:
    assert added_c07("wait", view_at(0, waiting()))[0] == pytest.approx([2, 3, 0])


def test_c07_overhead_minimization() -> None:
    """Only where the job is running, not where it once ran."""
    rows = added_c07("overhead", view_at(9, running(1, 0, 50), waiting(machine=2, start_us=0)))
    assert rows.tolist() == [[0, 8, 0], [0, 0, 0]]


def test_c07_anti_aging() -> None:
    assert added_c07("anti_aging", view_at(50, waiting()))[0] == pytest.approx([1, 1, 1])


def test_c07_values_of_rows() -> None:
    """c of the knapsack is the mean over the machines that can run the job."""
    priority = np.array([[4.0, 8.0, -np.inf], [-np.inf] * 3])
    assert row_values(priority, np.array([2, 0]), 0, True).tolist() == [6.0, 0.0]
    assert row_values(priority, np.array([2, 0]), 0, False).tolist() == [8.0, 0.0]
