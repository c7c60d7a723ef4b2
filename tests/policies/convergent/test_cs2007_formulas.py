"""The formulas of Convergent Scheduling 2007, each with numbers worked by hand.

The job and the machines are those of `test_cs2_equations`: 100, 50 and 200 s.
"""

from __future__ import annotations

from typing import Any

import pytest

from grid.policies.convergent.cs2007_heuristics import (
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    cs2007_heuristics,
    mean_priorities,
)
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder
from tests.policies.convergent.clusters import S, running, view_of, waiting

MIPS = [100.0, 200.0, 50.0]
LINKS = [100.0, 1000.0, 50.0]


def matrix_at(
    now_s: float, *jobs: dict[str, Any], copies: tuple[int, ...] = ()
) -> JobMachineMatrix:
    view = view_of(now_s, list(jobs), MIPS, copies=copies)
    return MatrixBuilder().whole(view)


def added(heuristic: str, matrix: JobMachineMatrix, f1: str = "words") -> Any:
    """What the heuristic adds with the paper's constants, a row a job."""
    heuristics = cs2007_heuristics(DEADLINE_MINIMUM, DEADLINE_K, LINKS, f1)
    heuristics[heuristic](matrix, CS2007_WEIGHTS[heuristic])
    return matrix.priority


def test_f1_and_equation_1_to_the_letter() -> None:
    """Deadline 130, k = 1.3. Machine 0: t = 0, Extime 100, f1 = 9.9 / 130 * 100 + 0.1 = 7.71538.
    Machine 1: Extime 50 is before t = 65, f1 = MIN. Machine 2: Extime 200 is too late, f1 = MIN.
    Sum 7.91538; MAX - f1 is 2.28462, 9.9, 9.9, together d = 22.08462.
    """
    row = added("deadline", matrix_at(0, waiting(deadline_us=130 * S)), f1="formula")[0]
    assert row == pytest.approx([0.818833, 3.548276, 3.548276], abs=1e-6)


def test_equation_1_by_its_words() -> None:
    """f1 = MAX for machine 2, where the job would be late: the sum is 17.81538, d = 12.18462."""
    row = added("deadline", matrix_at(0, waiting(deadline_us=130 * S)), f1="words")[0]
    assert row == pytest.approx([3.340387, 14.474995, 0.0], abs=1e-4)


@pytest.mark.parametrize(("f1", "value"), [("words", 0.1), ("words_max", 10.0), ("formula", 0.1)])
def test_equation_1_of_a_job_that_is_late_everywhere(f1: str, value: float) -> None:
    """By the words f1 = MAX on all three, so d_i = 0; by the formula f1 = MIN on all three."""
    matrix = matrix_at(20, waiting(deadline_us=10 * S))
    assert added("deadline", matrix, f1)[0] == pytest.approx([value] * 3)


def test_f1_reaches_its_maximum_at_the_deadline() -> None:
    """Extime = deadline = 100 on the only machine: f1 = MAX and d_i = 0."""
    matrix = matrix_at(0, waiting(deadline_us=100 * S, bound_machine=0))
    assert added("deadline", matrix, "words_max")[0, 0] == pytest.approx(10.0)


def test_equation_1_without_a_deadline_is_the_minimum() -> None:
    assert added("deadline", matrix_at(0, waiting()))[0] == pytest.approx([0.1] * 3)


def test_licenses_w() -> None:
    """Of two licenses, rho is 2 (critical) and 0.5. w = 2 * 2, 2 * 2 + 0.5, 0.5 and 0."""
    jobs = [waiting(licenses=mask) for mask in (0b01, 0b11, 0b10, 0)]
    rows = added("licenses", matrix_at(0, *jobs, copies=(1, 4)))
    assert rows[:, 0] == pytest.approx([2.5 * 4 / 4.5, 2.5, 2.5 * 0.5 / 4.5, 0])


def test_licenses_order_by_critical_ones_first() -> None:
    """w1 decides, and w2 where w1 is equal: a job with many others stays behind a critical one."""
    many = 0b11110
    jobs = [waiting(licenses=mask) for mask in (0b00001, 0b00001, many, many)]
    rows = added("licenses", matrix_at(0, *jobs, copies=(1, 2, 2, 2, 2)))[:, 0]
    assert rows[0] == rows[1] > rows[2]


def test_input_transfer() -> None:
    """100 MB on machine 0 are 800 Mb: 8 s over 100 Mb/s to machine 1, 16 s over 50 to machine 2."""
    row = added("input", matrix_at(0, waiting(input_mb=100.0, user=0)))[0]
    assert row == pytest.approx([3, 2, 1])


def test_input_of_a_job_that_ran_lies_where_it_ran() -> None:
    """On machine 2, every way out of which is of 50 Mb/s: half of the weight to both others."""
    row = added("input", matrix_at(9, waiting(input_mb=100.0, user=0, machine=2, start_us=0)))[0]
    assert row == pytest.approx([1.5, 1.5, 3])


def test_wait_minimization() -> None:
    assert added("wait", matrix_at(0, waiting()))[0] == pytest.approx([2, 3, 0])


def test_overhead_minimization() -> None:
    """Only where the job is running, not where it once ran."""
    rows = added("overhead", matrix_at(9, running(1, 0, 50), waiting(machine=2, start_us=0)))
    assert rows.tolist() == [[0, 8, 0], [0, 0, 0]]


def test_anti_aging() -> None:
    assert added("anti_aging", matrix_at(50, waiting()))[0] == pytest.approx([1, 1, 1])


def test_mean_priority_of_a_job() -> None:
    """c of the knapsack: the mean over the machines that can run it."""
    view = view_of(0, [waiting(processors=2)], MIPS, cpus=[2, 2, 1])
    matrix = MatrixBuilder().whole(view)
    matrix.priority += [[4.0, 8.0, 1.0]]
    assert mean_priorities(matrix).tolist() == [6.0]
