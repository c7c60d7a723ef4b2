"""The greedy matching against a plain sort of all pairs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from grid.policies.convergent.matching import (
    CLASSES,
    NO_CLASS,
    Limits,
    classify,
    in_order,
    match_greedily,
    match_in_order,
)

Instance = tuple[Any, tuple[Any, ...]]
"""Priorities; CPUs, licenses and resources of jobs, resources that are shared, what there is."""


def instance(seed: int, levels: int) -> Instance:
    """If there are few levels, many priorities are equal."""
    rng = np.random.default_rng(seed)
    jobs, machines, licenses = rng.integers(1, 40), rng.integers(1, 12), rng.integers(0, 6)
    priority = rng.integers(0, levels, (jobs, machines)) / 7.0
    priority[rng.random((jobs, machines)) < 0.3] = -np.inf
    masks = (rng.random((jobs, licenses)) < 0.4) @ (1 << np.arange(licenses, dtype=np.int64))
    resources, shared = int(rng.integers(0, 4)), int(rng.integers(0, 2))
    amounts = rng.integers(0, 6, (resources, machines)).astype(float)
    shared = min(shared, resources)
    amounts[resources - shared :] = 20.0
    held = rng.choice([0.0, 0.0, 1.5, 3.0], (resources, jobs))
    return priority, (
        rng.integers(1, 9, jobs),
        masks.astype(np.int64),
        held,
        shared,
        rng.integers(0, 17, machines),
        rng.integers(0, 4, licenses),
        amounts,
    )


def plain_sort(
    priority: Any,
    processors: Any,
    licenses: Any,
    resources: Any,
    shared: int,
    capacity: Any,
    copies: Any,
    amounts: Any,
) -> Any:
    """CS2 IV.B: all pairs by falling priority, each taken if it still fits."""

    def enough(number: int, i: int, m: int) -> bool:
        of_all = number >= len(amounts) - shared
        there = [j for j, at in enumerate(machine_of) if at >= 0 and (of_all or at == m)]
        return sum(resources[number, [*there, i]]) <= amounts[number, m]

    jobs, machines = priority.shape
    pairs = [(-priority[i, m], i, m) for i in range(jobs) for m in range(machines)]
    machine_of, free, left = [-1] * jobs, capacity.tolist(), copies.tolist()
    held: list[set[int]] = [set() for _ in range(machines)]
    for negative, i, m in sorted(pairs):
        asked = {n for n in range(len(left)) if licenses[i] >> n & 1}
        new = sorted(asked - held[m])
        fits = negative < np.inf and machine_of[i] < 0 and free[m] >= processors[i]
        fits = fits and all(enough(number, i, m) for number in range(len(amounts)))
        if fits and all(left[n] for n in new):
            machine_of[i] = m
            free[m] -= int(processors[i])
            held[m] |= asked
            for n in new:
                left[n] -= 1
    return machine_of


@pytest.mark.parametrize("levels", [3, 1000])
@pytest.mark.parametrize("classes", [False, True])
def test_greedy_matching_is_that_of_a_plain_sort(levels: int, classes: bool) -> None:
    """Of priorities, and of classes, which the paper sorts by counting."""
    for seed in range(40):
        priority, limits = instance(seed, levels)
        nothing: float = -np.inf
        plain = priority
        if classes:
            priority, nothing = classify(priority), NO_CLASS
            plain = np.where(priority == NO_CLASS, -np.inf, priority.astype(float))
        expected = plain_sort(plain, *limits)
        left = Limits(*deepcopy(limits))
        assert match_greedily(priority, nothing, left).tolist() == expected
        order, left = in_order(priority, nothing), Limits(*deepcopy(limits))
        assert match_in_order(order, left).tolist() == expected


def test_classes_span_1_to_1024_and_keep_the_order() -> None:
    rng = np.random.default_rng(7)
    priority = rng.random((50, 40)) * 73
    priority[rng.random(priority.shape) < 0.2] = -np.inf
    classes = classify(priority)
    some = priority > -np.inf
    assert (classes[~some] == NO_CLASS).all()
    assert (classes[some].min(), classes[some].max()) == (1, CLASSES)
    order = np.argsort(priority[some])
    assert (np.diff(classes[some][order]) >= 0).all()


@pytest.mark.parametrize("value", [0.0, -np.inf])
def test_classes_of_priorities_that_are_all_alike(value: float) -> None:
    expected = NO_CLASS if value == -np.inf else 1
    mixed = np.array([[value, -np.inf]])
    assert classify(mixed).tolist() == [[expected, NO_CLASS]]


def test_jobs_of_a_machine_share_a_copy() -> None:
    """One copy, two jobs that need it: both go to the machine that holds it, none to the other."""
    priority = np.array([[9.0, 1.0], [2.0, 8.0], [7.0, 6.0]])
    one, two = np.array([1, 1, 1]), np.array([2, 2])
    asked, copies = np.array([1, 1, 1]), np.array([1])
    left = Limits(one, asked, np.zeros((0, 3)), 0, two, copies, np.zeros((0, 2)))
    chosen = match_greedily(priority, -np.inf, left)
    assert chosen.tolist() == [0, -1, 0]
