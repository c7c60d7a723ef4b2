"""Theory of VOs that share work, against enumeration and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from grid.lab.verify import theory as sharing
from grid.lab.verify.theory import erlang_b, listed, up_to

State = tuple[int, ...]
Moves = Iterator[tuple[float, State]]


def test_vos_that_retry_without_limit_are_one_pool() -> None:
    assert sharing.retries(2, 10, 8.0, 1) == pytest.approx(erlang_b(20, 16.0))
    assert sharing.retries(4, 3, 2.5, 500) == pytest.approx(erlang_b(12, 10.0))


def test_each_state_of_a_chain_is_listed_once() -> None:
    states = list(up_to(3, 5))
    every = {tuple(sorted(one)) for one in product(range(6), repeat=3) if sum(one) <= 5}
    assert (len(states), set(states)) == (len(every), every)
    with pytest.raises(ValueError, match="states"):
        listed(up_to(40, 40))


def walks(at: int, vos: int, hops: int, takes: Callable[[int], bool]) -> dict[int, float]:
    """The probabilities of the VOs at which a job that came to `at` ends, over all its paths."""
    if takes(at) or hops == 0 or vos == 1:
        return {at: 1.0}
    ends: dict[int, float] = {}
    for to in set(range(vos)) - {at}:
        for end, chance in walks(to, vos, hops - 1, takes).items():
            ends[end] = ends.get(end, 0.0) + chance / (vos - 1)
    return ends


def plain_shares(states: list[State], moves: Callable[[State], Moves]) -> dict[State, float]:
    """A chain whose servers have names, solved as a dense system."""
    number = {state: place for place, state in enumerate(states)}
    balance = np.zeros((len(states), len(states)))
    for state in states:
        for rate, after in moves(state):
            if after in number:
                balance[number[after], number[state]] += rate
                balance[number[state], number[state]] -= rate
    balance[0] = 1.0
    share = np.linalg.solve(balance, np.eye(len(states))[0])
    return dict(zip(states, share.tolist(), strict=True))


def changed(state: State, vo: int, jobs: int) -> State:
    return (*state[:vo], state[vo] + jobs, *state[vo + 1 :])


def mean_time(load: float, moves: Callable[[State], Moves]) -> float:
    states = [one for one in product(range(19), repeat=3) if sum(one) <= 18]
    shares = plain_shares(states, moves)
    return sum(sum(state) * share for state, share in shares.items()) / (3 * load)


@pytest.mark.parametrize("hops", [1, 2])
def test_forwarding_among_three_vos_by_enumeration(hops: int) -> None:
    def moves(state: State) -> Moves:
        for vo in range(3):
            for end, chance in walks(vo, 3, hops, lambda one: state[one] == 0).items():
                yield 0.3 * chance, changed(state, end, 1)
            if state[vo]:
                yield 1.0, changed(state, vo, -1)

    assert sharing.until_idle(3, 0.3, hops) == pytest.approx(mean_time(0.3, moves), rel=1e-4)


def test_stealing_among_three_vos_by_enumeration() -> None:
    def moves(state: State) -> Moves:
        for vo in range(3):
            yield 0.3, changed(state, vo, 1)
            for asked in set(range(3)) - {vo} if state[vo] else ():
                takes = state[vo] == 1 and state[asked] >= 2
                yield 0.5, changed(state, asked if takes else vo, -1)

    assert sharing.steal(3, 0.3) == pytest.approx(mean_time(0.3, moves), rel=1e-4)


@pytest.mark.parametrize("hops", [1, 3])
def test_rejecting_by_three_vos_by_enumeration(hops: int) -> None:
    states = list(product(range(3), repeat=3))
    lost = dict.fromkeys(states, 0.0)

    def moves(state: State) -> Moves:
        lost[state] = 0.0
        for vo in range(3):
            for end, chance in walks(vo, 3, hops, lambda one: state[one] < 2).items():
                if state[end] < 2:
                    yield 1.4 * chance, changed(state, end, 1)
                else:
                    lost[state] += chance / 3
            yield float(state[vo]), changed(state, vo, -1)

    shares = plain_shares(states, moves)
    expected = sum(share * lost[state] for state, share in shares.items())
    assert sharing.retries(3, 2, 1.4, hops) == pytest.approx(expected)
