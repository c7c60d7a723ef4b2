"""Theory of old boards, against published values and other theory where they meet."""

from __future__ import annotations

import numpy as np
import pytest

from grid.lab.verify import theory
from grid.lab.verify.theory import power_of_d


@pytest.mark.parametrize(("d", "period", "expected"), [(2, 10.0, 5.0595), (3, 10.0, 6.2216)])
def test_fixed_points_for_many_servers(d: int, period: float, expected: float) -> None:
    assert theory.periodic_updates_of_many(d, 0.9, period, longest=100) == pytest.approx(
        expected, abs=1e-4
    )


def test_one_choice_needs_no_information() -> None:
    assert theory.periodic_updates_of_two(1, 0.5, 1.0, longest=40) == pytest.approx(2.0, rel=1e-6)
    assert theory.periodic_updates_of_many(1, 0.5, 3.0, longest=40) == pytest.approx(2.0, rel=1e-6)


def test_a_fresh_board_is_the_shorter_of_two_and_an_old_one_is_worse_than_none() -> None:
    fresh = theory.periodic_updates_of_two(2, 0.5, 0.01, longest=30)
    assert fresh == pytest.approx(power_of_d(2, 2, 0.5), rel=0.01)
    assert fresh < theory.periodic_updates_of_two(2, 0.5, 1.0, longest=40) < 2.0
    assert theory.periodic_updates_of_two(2, 0.5, 100.0, longest=120) > 2.0
    assert theory.periodic_updates_of_many(2, 0.5, 0.01, longest=30) < power_of_d(3, 2, 0.5)


def test_queues_over_a_period_by_an_ordinary_differential_equation() -> None:
    from scipy.linalg import expm

    rates, period, count = np.array([0.3, 1.4, 0.8, 2.0]), 1.7, 4
    after, jobs = theory.over_a_period(rates, period)
    for row, rate in enumerate(rates):
        flow = np.diag([rate] * (count - 1), 1) + np.diag([1.0] * (count - 1), -1)
        flow -= np.diag(flow.sum(axis=1))
        augmented = np.zeros((count + 1, count + 1))
        augmented[:count, :count], augmented[:count, count] = flow, np.arange(count)
        exact = expm(augmented * period)[row]
        assert after[row] == pytest.approx(exact[:count], abs=1e-10)
        assert jobs[row] == pytest.approx(exact[count], abs=1e-9)
