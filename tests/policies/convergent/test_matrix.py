"""The compiled matrix against a transcription of the papers, on random states."""

from __future__ import annotations

import numpy as np
import pytest

from grid.policies.convergent.cs2_heuristics import CS2_HEURISTICS, CS2_WEIGHTS
from grid.policies.convergent.cs2007 import BANDWIDTH_MBPS
from grid.policies.convergent.cs2007_heuristics import (
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    cs2007_heuristics,
    mean_priorities,
)
from grid.policies.convergent.farm import Farm, Heuristic, Survey
from grid.policies.convergent.priority import cs2_priority, cs2007_priority
from grid.policies.interface import ClusterView
from tests.policies.convergent.clusters import random_view
from tests.policies.convergent.slow_matrix import SlowFarm, cs2_matrix, cs2007_matrix

SEEDS = range(40)


def farm_of(view: ClusterView, heuristics: dict[str, Heuristic], weights: dict[str, float]) -> Farm:
    farm = Survey()(view, view.now)
    for name, weight in weights.items():
        heuristics[name](farm, weight)
    return farm


@pytest.mark.parametrize("seed", SEEDS)
def test_cs2_matrix(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once, and five jobs at a time."""
    view = random_view(seed)
    expected = cs2_matrix(view, CS2_WEIGHTS)
    farm = farm_of(view, CS2_HEURISTICS, CS2_WEIGHTS)
    np.testing.assert_allclose(farm.priority, expected, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr("grid.policies.convergent.farm.PART_PAIRS", 5 * len(view.free))
    weighed = [(CS2_HEURISTICS[name], weight) for name, weight in CS2_WEIGHTS.items()]
    assert (Survey()(view, view.now, weighed).priority == farm.priority).all()


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_cs2007_matrix(seed: int, literal: bool) -> None:
    view = random_view(seed, one_a_machine=True)
    bandwidths = [100.0, 1000.0, 250.0]
    links = [bandwidths[m % 3] for m in range(len(view.free))]
    heuristics = cs2007_heuristics(DEADLINE_MINIMUM, DEADLINE_K, bandwidths, literal)
    farm = farm_of(view, heuristics, CS2007_WEIGHTS)
    slow = cs2007_matrix(view, CS2007_WEIGHTS, DEADLINE_MINIMUM, DEADLINE_K, links, literal)
    np.testing.assert_allclose(farm.priority, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_priorities_are_the_means_of_the_matrix(seed: int) -> None:
    """To the last bit, whatever rows are worked out together."""
    view = random_view(seed)
    cs2 = farm_of(view, CS2_HEURISTICS, CS2_WEIGHTS)
    waiting = slice(cs2.running, None)
    assert (cs2_priority(view, view.now) == mean_priorities(cs2)[waiting]).all()
    heuristics = cs2007_heuristics(DEADLINE_MINIMUM, DEADLINE_K, [BANDWIDTH_MBPS])
    cs2007 = farm_of(view, heuristics, CS2007_WEIGHTS)
    assert (cs2007_priority(view, view.now) == mean_priorities(cs2007)[waiting]).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_depends_on_the_machine(seed: int) -> None:
    view = random_view(seed)
    farm, slow = Survey()(view, view.now), SlowFarm(view)
    assert farm.longest_s == pytest.approx(slow.longest(), abs=2e-6)
    assert farm.eligible.tolist() == [len(slow.affine(slot)) for slot in slow.slots]
    for row, slot in enumerate(slow.slots):
        for m in range(len(view.free)):
            assert farm.remaining_s[row, m] == pytest.approx(slow.remaining(slot, m), abs=2e-6)
    assert farm.copies.tolist() == slow.copies
    held = [sum(view.jobs.processors[i] for i in slow.runs if view.jobs.machine[i] == m)
            for m in range(len(view.free))]  # fmt: skip
    assert farm.capacity.tolist() == (view.free + held).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_cs2_heuristic_stays_within_its_weight(seed: int) -> None:
    view = random_view(seed)
    for name, heuristic in CS2_HEURISTICS.items():
        farm = farm_of(view, {name: heuristic}, {name: 1.0})
        added = farm.priority[farm.priority > -np.inf]
        assert ((added >= 0) & (added <= 1 + 1e-12)).all(), name


def test_a_heuristic_of_ten_lines() -> None:
    """What the module's own documentation tells a user to write."""

    def narrow(farm: Farm, weight: float) -> None:
        farm.priority += weight / farm.processors[:, None]

    view = random_view(1)
    plain = Survey()(view, view.now).priority.copy()
    farm = farm_of(view, {"narrow": narrow}, {"narrow": 3.0})
    eligible = plain > -np.inf
    expected = np.broadcast_to(3.0 / farm.processors[:, None], plain.shape)
    assert (farm.priority[eligible] == expected[eligible]).all()
    assert (farm.priority[~eligible] == -np.inf).all()
