"""Markov chains of a few servers that are alike: how much of the time they are in each state.

A state is how many jobs are at each server, in ascending order, since which server is which makes
no difference. Chains without an end are cut off where hardly any time is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np

from grid.model.arrays import Floats

State = tuple[int, ...]
Moves = Callable[[State], Iterable[tuple[float, State]]]
"""The rates from a state to others, whose servers may be in any order."""

FEW_STATES, CLOSE = 1_000, 1e-9
BEYOND = 1e-7
"""The chance of more jobs than a chain that is cut off by all jobs has."""
MOST_STATES, MOST_WORK = 200_000, 20_000_000.0
"""Of a chain that is solved: its states, and these over the rate at which it forgets."""


def up_to(servers: int, jobs: int, longest: int | None = None) -> Iterator[State]:
    """All states with so many jobs at most, and none with more than `longest` at a server."""
    if servers == 0:
        yield ()
        return
    for last in range(min(jobs, jobs if longest is None else longest) + 1):
        for others in up_to(servers - 1, jobs - last, last):
            yield (*others, last)


def changed(state: State, server: int, jobs: int) -> State:
    """The same with so many jobs more at that server."""
    return (*state[:server], state[server] + jobs, *state[server + 1 :])


def most_jobs(servers: int, load: float) -> int:
    """So many jobs are hardly ever exceeded by queues M/M/1 that do not share anything."""
    from scipy.stats import nbinom

    return int(nbinom.isf(BEYOND, servers, 1.0 - load))


def is_solved(servers: int, load: float) -> bool:
    """Whether the chain of queues with up to `most_jobs` is small enough."""
    most = MOST_STATES if servers <= 2 else min(MOST_STATES, MOST_WORK * forgets(load))
    jobs = most_jobs(servers, load)
    # States with so many jobs: partitions of these into parts of `servers` at most.
    count = [1] + [0] * jobs
    for part in range(1, servers + 1):
        for total in range(part, jobs + 1):
            count[total] += count[total - part]
        if sum(count) > most:
            return False
    return True


def forgets(load: float) -> float:
    """The rate at which a queue M/M/1 forgets its beginning."""
    return (1.0 - sqrt(load)) ** 2


def mean_time(states: Sequence[State], load: float, moves: Moves) -> float:
    """The mean time of a job in the system, by Little's law; each server has the `load`."""
    share = shares_of(states, moves, forgets(load))
    jobs = np.array([sum(state) for state in states])
    return float((jobs * share).sum()) / (len(states[0]) * load)


def shares_of(states: Sequence[State], moves: Moves, rate: float) -> Floats:
    """The share of the time in each of `states`; moves to others are left out. Shape (states,).

    The chain forgets its beginning at about `rate`.
    """
    from scipy.sparse import coo_matrix

    number = {state: place for place, state in enumerate(states)}
    entries: list[tuple[float, int, int]] = []
    for source, state in enumerate(states):
        for speed, after in moves(state):
            to = number.get(tuple(sorted(after)))
            if to is not None and speed > 0.0:
                entries += [(speed, to, source), (-speed, source, source)]
    rates, targets, sources = zip(*entries, strict=True)
    balance = coo_matrix((rates, (targets, sources)), shape=(len(states),) * 2).tocsc()
    # Two servers are a plane, whose equations are solved at once, however many they are.
    few = len(states) if len(states[0]) <= 2 else FEW_STATES
    share = _balanced(balance, rate, few)
    share /= share.sum()
    return share


def _balanced(balance: Any, rate: float, few: int) -> Floats:
    """The shares that `balance`, the rates into and out of each state, leaves as they are.

    Solved where there are few states, all shares reckoned by that of the first; else by the chain's
    own steps, until what is left to change is small against the rate at which it forgets.
    """
    from scipy.sparse.linalg import spsolve

    if balance.shape[0] <= few:
        rest, by_first = balance[1:, 1:], -balance[1:, 0].toarray().ravel()
        return np.append(1.0, spsolve(rest, by_first, permc_spec="MMD_AT_PLUS_A"))
    rates, speed = balance.tocsr(), float(-balance.diagonal().min())
    share: Floats = np.zeros(balance.shape[0])
    share[0] = 1.0
    while True:
        for _ in range(100):
            change = rates @ share
            share += change / speed
        if np.abs(change).sum() < CLOSE * rate:
            return share
