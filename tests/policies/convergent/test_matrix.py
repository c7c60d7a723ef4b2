"""The compiled matrix against a transcription of the papers, on random states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.plugins.registry import Plugins
from grid.policies.convergent.heuristics import (
    CS2_WEIGHTS,
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    F1,
    HeuristicPriority,
    Heuristics,
    cs2_heuristics,
    cs2007_heuristics,
)
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder
from grid.policies.interface import ClusterView
from tests.examples import examples
from tests.policies.convergent.clusters import random_view
from tests.policies.convergent.slow_matrix import Matrix, SlowMatrix, cs2_matrix, cs2007_matrix

SEEDS = st.integers(0, 2**32)
CS2 = cs2_heuristics({}, Plugins())


def matrix_of(view: ClusterView, heuristics: Heuristics) -> JobMachineMatrix:
    return MatrixBuilder().matrix(view, heuristics)


@settings(max_examples=examples(20))
@given(seed=SEEDS)
def test_cs2_matrix(seed: int) -> None:
    view = random_view(seed)
    matrix = matrix_of(view, CS2)
    np.testing.assert_allclose(matrix.priority, cs2_matrix(view, CS2_WEIGHTS), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("f1", F1)
@settings(max_examples=examples(20))
@given(seed=SEEDS)
def test_cs2007_matrix(f1: str, seed: int) -> None:
    view = random_view(seed, one_a_machine=True)
    bandwidths = (100.0, 1000.0, 250.0)
    links = [bandwidths[m % 3] for m in range(len(view.free))]
    heuristics = cs2007_heuristics({}, Plugins(), f1=f1, bandwidths_mbps=bandwidths)
    slow = cs2007_matrix(view, CS2007_WEIGHTS, DEADLINE_MINIMUM, DEADLINE_K, links, f1)
    np.testing.assert_allclose(matrix_of(view, heuristics).priority, slow, rtol=1e-9, atol=1e-9)


@settings(max_examples=examples(20))
@given(seed=SEEDS)
def test_what_is_left_depends_on_the_machine(seed: int) -> None:
    view = random_view(seed)
    matrix, slow = matrix_of(view, CS2), SlowMatrix(view)
    assert matrix.longest_s == pytest.approx(slow.longest(), abs=2e-6)
    assert matrix.eligible.tolist() == [len(slow.affine(slot)) for slot in slow.slots]
    for row, slot in enumerate(slow.slots):
        for m in range(len(view.free)):
            assert matrix.remaining_s[row, m] == pytest.approx(slow.remaining(slot, m), abs=2e-6)
    assert matrix.copies.tolist() == slow.copies
    held = [sum(view.jobs.processors[i] for i in slow.runs if view.jobs.machine[i] == m)
            for m in range(len(view.free))]  # fmt: skip
    assert matrix.capacity.tolist() == (view.free + held).tolist()


@pytest.mark.parametrize(("row", "of_row"), [("mean", np.mean), ("largest", np.max)])
def test_priorities_for_other_policies_are_rows_of_the_matrix(
    row: str, of_row: Callable[[Matrix], float]
) -> None:
    view = random_view(4)
    links = [1000.0] * len(view.free)
    cases = [(CS2, cs2_matrix(view, CS2_WEIGHTS))]
    for f1 in F1:
        slow = cs2007_matrix(view, CS2007_WEIGHTS, DEADLINE_MINIMUM, DEADLINE_K, links, f1)
        cases.append((cs2007_heuristics({}, Plugins(), f1=f1), slow))
    for heuristics, matrix in cases:
        found = HeuristicPriority(heuristics, row)(view, view.now)
        rows = [one[one > -np.inf] for one in matrix[len(view.running) :]]
        expected = [float(of_row(one)) if len(one) else 0.0 for one in rows]
        assert found == pytest.approx(expected)
