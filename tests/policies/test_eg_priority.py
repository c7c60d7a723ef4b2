"""The priority of EG, 3.1, against its formulas, also where a job begins and ceases to press."""

from __future__ import annotations

import pytest

from grid.policies.flexible import EgFactors, eg_priority
from grid.policies.interface import ClusterView
from tests.policies.convergent.clusters import S, view_of, waiting

NOW_S = 5000
FACTORS = (EgFactors(), EgFactors(0.5, 1e-9, 7.0, 3.0, 0.0), EgFactors(0.0, 1e9, 5.0, 0.0, 1.0))


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
def test_it_is_the_sum_of_the_three_heuristics(factors: EgFactors) -> None:
    view = view_around_bounds(factors.k)
    jobs, expected, pressing = view.jobs, [], 0
    shortest_s = min(jobs.estimate_us / 1e6)
    for slot in view.queue:
        estimated_s = jobs.estimate_us[slot] / 1e6
        next_s = estimated_s * jobs.reference_mips[slot] / 700.0
        deadline_s = (jobs.deadline_us[slot] - view.now) / 1e6
        begin_s = deadline_s - factors.k * next_s
        deadline = factors.minimum
        if begin_s < next_s <= deadline_s:
            span = factors.maximum - factors.minimum
            deadline += span * (next_s - begin_s) / (factors.k * next_s)
            pressing += 1
        age_s = (view.now - jobs.submit_us[slot]) / 1e6
        wait = factors.boost_value * shortest_s / estimated_s
        expected.append(factors.age_factor * age_s + deadline + wait)
    assert 3 <= pressing < len(expected)
    assert eg_priority(view, view.now, _values(factors)) == pytest.approx(expected, rel=1e-14)


def _values(factors: EgFactors) -> tuple[float, ...]:
    return tuple(float(getattr(factors, name)) for name in EgFactors.__dataclass_fields__)
