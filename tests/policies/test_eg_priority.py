"""The priority of EG, 3.1, against its formulas, also where a job begins and ceases to press."""

from __future__ import annotations

import numpy as np
import pytest

from grid.policies.columns import packed_view
from grid.policies.easy_kernels import eg_priorities
from grid.policies.fitting import unpacked
from grid.policies.interface import ClusterView
from tests.policies.convergent.clusters import S, view_of, waiting

NOW_S = 5000
FACTORS = ((0.01, 2.0, 20.0, 0.1, 2.0), (0.5, 1e-9, 7.0, 3.0, 0.0), (0.0, 1e9, 5.0, 0.0, 1.0))


def view_around_bounds(k: float) -> ClusterView:
    """Jobs whose deadlines are at, just before and just after the times that the formulas name."""
    jobs = []
    for estimate_us in (1, 7 * S, 3333 * S + 1):
        next_us = estimate_us * 300.0 / 700.0
        for bound_us in (0.0, next_us, next_us * (1 + k), next_us * (1 + k / 2)):
            for near_us in (-1, 0, 1):
                deadline_us = min(NOW_S * S + round(bound_us) + near_us, 2**62)
                jobs.append(
                    waiting(estimate_us=estimate_us, reference_mips=300.0, deadline_us=deadline_us)
                )
    return view_of(NOW_S, [*jobs, waiting()], [400.0, 700.0])


@pytest.mark.parametrize("factors", FACTORS, ids=["paper", "small k", "large k"])
def test_it_is_the_sum_of_the_three_heuristics(factors: tuple[float, ...]) -> None:
    age_factor, k, maximum, minimum, boost_value = factors
    view = view_around_bounds(k)
    jobs, expected, pressing = view.jobs, [], 0
    shortest_s = min(jobs.estimate_us / 1e6)
    for slot in view.queue:
        estimated_s = jobs.estimate_us[slot] / 1e6
        next_s = estimated_s * jobs.reference_mips[slot] / 700.0
        deadline_s = (jobs.deadline_us[slot] - view.now) / 1e6
        begin_s = deadline_s - k * next_s
        deadline = minimum
        if begin_s < next_s <= deadline_s:
            span = maximum - minimum
            deadline += span * (next_s - begin_s) / (k * next_s)
            pressing += 1
        age_s = (view.now - jobs.submit_us[slot]) / 1e6
        wait = boost_value * shortest_s / estimated_s
        expected.append(age_factor * age_s + deadline + wait)
    assert 3 <= pressing < len(expected)
    found = eg_priorities(unpacked(packed_view(view)), np.array(factors))
    assert found == pytest.approx(expected, rel=1e-14)
