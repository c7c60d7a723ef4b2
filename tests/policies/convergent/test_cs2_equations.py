"""The equations of CS 2.0, each with numbers worked by hand.

The job has 10,000 MI to do (100 s at 100 MIPS); the machines have 100, 200 and 50 MIPS, so it
takes 100, 50 and 200 s on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.policies.convergent.cs2_heuristics import CS2_HEURISTICS, CS2_WEIGHTS
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder
from tests.policies.convergent.clusters import S, running, view_of, waiting

MIPS = [100.0, 200.0, 50.0]


def matrix_at(
    now_s: float, *jobs: dict[str, Any], copies: tuple[int, ...] = ()
) -> JobMachineMatrix:
    view = view_of(now_s, list(jobs), MIPS, copies=copies)
    return MatrixBuilder().whole(view)


def added(heuristic: str, matrix: JobMachineMatrix) -> Any:
    """What the heuristic adds with the paper's weight, a row a job."""
    CS2_HEURISTICS[heuristic](matrix, CS2_WEIGHTS[heuristic])
    return matrix.priority


def test_minimal_requirements() -> None:
    wide = waiting(processors=2)
    licensed = waiting(licenses=1)
    view = view_of(0, [wide, licensed], MIPS, cpus=[1, 2, 4], usable=[1, 1, 0], copies=(1,))
    eligible = MatrixBuilder().whole(view).priority > -np.inf
    assert eligible.tolist() == [[False, True, True], [True, True, False]]


def test_equation_1_remaining_time() -> None:
    assert matrix_at(0, waiting()).remaining_s.tolist() == [[100, 50, 200]]


def test_equation_1_a_running_job_starts_again_elsewhere() -> None:
    matrix = matrix_at(20, running(1, 0, 50))
    assert matrix.remaining_s.tolist() == [[100, 30, 200]]


def test_equation_1_a_checkpointable_job_goes_on_anywhere() -> None:
    """30 s at 200 MIPS are left: 6,000 MI."""
    matrix = matrix_at(20, running(1, 0, 50, checkpointable=True))
    assert matrix.remaining_s.tolist() == [[60, 30, 120]]


def test_equation_1_a_suspended_job_goes_on_where_it_was() -> None:
    """40 of its 100 s at 100 MIPS are done: 6,000 MI are left to machine 1."""
    matrix = matrix_at(500, waiting(machine=1, done_us=40 * S, start_us=0))
    assert matrix.remaining_s.tolist() == [[100, 30, 200]]


def test_equations_2_to_5_urgency() -> None:
    """Deadline 130. Machine 0: last 30, end 100, f = 70 / 100. Machine 1: last 80, end 50, f = 0.
    Machine 2: end 200 is too late, f = 1. So 1 - f is 0.3, 1 and 0 (Eq. 6), F = 1.7 / 3 (Eq. 7).
    """
    row = added("deadline", matrix_at(0, waiting(deadline_us=130 * S)))[0]
    mean = 1.7 / 3
    assert row == pytest.approx([15 * 0.3 * mean, 15 * mean, 0.0])


def test_equation_4_at_its_corners() -> None:
    """End = last at deadline 200 on machine 0 (f = 0); end = deadline at 100 (f = 1)."""
    early = matrix_at(0, waiting(deadline_us=200 * S, bound_machine=0))
    due = matrix_at(0, waiting(deadline_us=100 * S, bound_machine=0))
    assert added("deadline", early)[0, 0] == 0.0
    assert added("deadline", due)[0, 0] == 0.0
    between = matrix_at(0, waiting(deadline_us=150 * S, bound_machine=0))
    assert added("deadline", between)[0, 0] == pytest.approx(15 * 0.5 * 0.5)


def test_equation_6_nothing_without_a_deadline_or_after_it() -> None:
    never, over = waiting(), waiting(deadline_us=10 * S)
    assert (added("deadline", matrix_at(20, never, over)) == 0.0).all()


def test_equation_7_averages_over_the_machines_that_can_run_the_job() -> None:
    """Without machine 2, F = 0.7 / 2."""
    view = view_of(0, [waiting(deadline_us=130 * S, processors=2)], MIPS, cpus=[2, 2, 1])
    row = added("deadline", MatrixBuilder().whole(view))[0]
    assert row[:2] == pytest.approx([15 * 0.3 * 0.35, 15 * 0.35])
    assert row[2] == -np.inf


def test_equation_8_overhead_minimization() -> None:
    """After 20 s 30 are left: 20 / 30 of the weight. After 40 s 10 are left: all of it."""
    assert added("overhead", matrix_at(20, running(1, 0, 50)))[0] == pytest.approx([0, 80 / 3, 0])
    assert added("overhead", matrix_at(40, running(1, 0, 50)))[0] == pytest.approx([0, 40, 0])


def test_equation_8_a_suspended_job_is_drawn_to_its_machine() -> None:
    """40 s at 100 MIPS are 20 s of machine 1, where 30 s are left."""
    suspended = waiting(machine=1, done_us=40 * S, start_us=0)
    assert added("overhead", matrix_at(500, suspended))[0] == pytest.approx([0, 80 / 3, 0])


def test_equations_9_to_11_licenses() -> None:
    """Two jobs ask for the one copy of license 0 (rho 2), two for the four of license 1 (rho 0.5).
    Means: 2, (2 + 0.5) / 2 and 0.5, the first two cut to 1.
    """
    jobs = [waiting(licenses=mask) for mask in (0b01, 0b11, 0b10, 0)]
    rows = added("licenses", matrix_at(0, *jobs, copies=(1, 4)))
    assert rows[:, 0].tolist() == [5.0, 5.0, 2.5, 0.0]


def test_equation_9_counts_running_jobs_and_all_copies() -> None:
    """A running job holds one of the four copies: 2 requests for 4, not for 3."""
    rows = added(
        "licenses", matrix_at(0, running(0, 0, 100, licenses=1), waiting(licenses=1), copies=(4,))
    )
    assert rows[:, 1].tolist() == [2.5, 2.5]


def test_equation_12_wait_minimization() -> None:
    """The longest remaining time is 200 s."""
    assert added("wait", matrix_at(0, waiting()))[0] == pytest.approx([4, 6, 0])


def test_equation_12_the_longest_time_is_one_that_can_be() -> None:
    """Without machine 2 it is 100 s."""
    view = view_of(0, [waiting(processors=2)], MIPS, cpus=[2, 2, 1])
    assert added("wait", MatrixBuilder().whole(view))[0, :2] == pytest.approx([0, 4])


def test_equation_13_anti_aging() -> None:
    """Submitted 50 s ago: 50 / 150, 50 / 100, 50 / 250."""
    assert added("anti_aging", matrix_at(50, waiting()))[0] == pytest.approx([5 / 3, 2.5, 1])
