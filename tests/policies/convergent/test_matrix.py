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
    F1,
    cs2007_heuristics,
)
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix, MatrixBuilder
from grid.policies.convergent.priority import ROW_PRIORITIES, HeuristicPriority
from grid.policies.interface import ClusterView
from tests.policies.convergent.clusters import random_view
from tests.policies.convergent.slow_matrix import SlowMatrix, cs2_matrix, cs2007_matrix

SEEDS = range(40)


def matrix_of(
    view: ClusterView, heuristics: dict[str, Heuristic], weights: dict[str, float]
) -> JobMachineMatrix:
    matrix = MatrixBuilder().whole(view)
    for name, weight in weights.items():
        heuristics[name](matrix, weight)
    return matrix


@pytest.mark.parametrize("seed", SEEDS)
def test_cs2_matrix(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once, and five jobs at a time."""
    view = random_view(seed)
    expected = cs2_matrix(view, CS2_WEIGHTS)
    matrix = matrix_of(view, CS2_HEURISTICS, CS2_WEIGHTS)
    np.testing.assert_allclose(matrix.priority, expected, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr("grid.policies.convergent.matrix.PART_PAIRS", 5 * len(view.free))
    weighed = [(CS2_HEURISTICS[name], weight) for name, weight in CS2_WEIGHTS.items()]
    assert (MatrixBuilder().whole(view, weighed).priority == matrix.priority).all()


@pytest.mark.parametrize("f1", F1)
@pytest.mark.parametrize("seed", SEEDS)
def test_cs2007_matrix(seed: int, f1: str) -> None:
    view = random_view(seed, one_a_machine=True)
    bandwidths = [100.0, 1000.0, 250.0]
    links = [bandwidths[m % 3] for m in range(len(view.free))]
    heuristics = cs2007_heuristics(DEADLINE_MINIMUM, DEADLINE_K, bandwidths, f1)
    matrix = matrix_of(view, heuristics, CS2007_WEIGHTS)
    slow = cs2007_matrix(view, CS2007_WEIGHTS, DEADLINE_MINIMUM, DEADLINE_K, links, f1)
    np.testing.assert_allclose(matrix.priority, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("row", ROW_PRIORITIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_priorities_of_waiting_jobs_are_those_of_the_whole_matrix(
    seed: int, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit, whatever rows are worked out together."""
    view = random_view(seed)
    monkeypatch.setattr("grid.policies.convergent.matrix.PART_PAIRS", 5 * len(view.free))
    cs2007 = cs2007_heuristics(DEADLINE_MINIMUM, DEADLINE_K, [BANDWIDTH_MBPS])
    for own, weights in ((CS2_HEURISTICS, CS2_WEIGHTS), (cs2007, CS2007_WEIGHTS)):
        matrix = matrix_of(view, own, weights)
        priority = HeuristicPriority([(own[name], weights[name]) for name in weights], row)
        found = priority(view, view.now)
        assert (found == ROW_PRIORITIES[row](matrix)[matrix.running :]).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_depends_on_the_machine(seed: int) -> None:
    view = random_view(seed)
    matrix, slow = MatrixBuilder().whole(view), SlowMatrix(view)
    assert matrix.longest_s == pytest.approx(slow.longest(), abs=2e-6)
    assert matrix.eligible.tolist() == [len(slow.affine(slot)) for slot in slow.slots]
    for row, slot in enumerate(slow.slots):
        for m in range(len(view.free)):
            assert matrix.remaining_s[row, m] == pytest.approx(slow.remaining(slot, m), abs=2e-6)
    assert matrix.copies.tolist() == slow.copies
    held = [sum(view.jobs.processors[i] for i in slow.runs if view.jobs.machine[i] == m)
            for m in range(len(view.free))]  # fmt: skip
    assert matrix.capacity.tolist() == (view.free + held).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_cs2_heuristic_stays_within_its_weight(seed: int) -> None:
    view = random_view(seed)
    for name, heuristic in CS2_HEURISTICS.items():
        matrix = matrix_of(view, {name: heuristic}, {name: 1.0})
        added = matrix.priority[matrix.priority > -np.inf]
        assert ((added >= 0) & (added <= 1 + 1e-12)).all(), name


def test_a_heuristic_of_ten_lines() -> None:
    """What the module's own documentation tells a user to write."""

    def narrow(matrix: JobMachineMatrix, weight: float) -> None:
        matrix.priority += weight / matrix.processors[:, None]

    view = random_view(1)
    plain = MatrixBuilder().whole(view).priority.copy()
    matrix = matrix_of(view, {"narrow": narrow}, {"narrow": 3.0})
    eligible = plain > -np.inf
    expected = np.broadcast_to(3.0 / matrix.processors[:, None], plain.shape)
    assert (matrix.priority[eligible] == expected[eligible]).all()
    assert (matrix.priority[~eligible] == -np.inf).all()
