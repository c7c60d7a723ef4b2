"""Theory of jobs that go by a board which tells how long queues were at the last of its periods.

Mitzenmacher, "How useful is old information?" (2000): servers with exponential service of mean 1;
each job goes to the shortest by the board of `d` servers drawn, any of equal ones alike. Within a
period the board stays as it is, so that each server is a queue M/M/1 whose arrival rate hangs on
the board alone. Of two servers the Markov chain from board to board is solved; of many, the fixed
point of the equations for a period.
"""

from __future__ import annotations

from math import ceil, exp, sqrt

import numpy as np

from grid.model.arrays import Floats

CLOSE = 1e-11
MOST_PERIODS = 200_000


def over_a_period(rates: Floats, period: float) -> tuple[Floats, Floats]:
    """What becomes within a period of queues that begin with n jobs and have arrivals at rates[n].

    Returns the chances of each length in the end, shape (lengths, lengths), and how many jobs are
    there, summed over the time, shape (lengths,). By uniformization: steps of a Poisson process
    that is faster than all changes. Nobody comes to the longest queue.
    """
    from scipy.special import gammainc

    count = len(rates)
    speed = float(rates.max()) + 1.0
    joins = np.repeat(rates[:, None], count, axis=1) / speed
    joins[:, -1] = 0.0
    stays = 1.0 - joins - 1.0 / speed
    stays[:, 0] += 1.0 / speed
    expected = speed * period
    steps = ceil(expected + 10.0 * sqrt(expected) + 20.0)
    state, weight = np.eye(count), exp(-expected)
    if weight == 0.0:
        raise ValueError("a shorter period")
    beyond = gammainc(np.arange(1, steps + 2), expected)
    after, lasts = np.zeros_like(state), np.zeros_like(state)
    for step in range(steps + 1):
        after += weight * state
        lasts += beyond[step] * state
        moved = state * stays
        moved[:, 1:] += (state * joins)[:, :-1]
        moved[:, :-1] += state[:, 1:] / speed
        state = moved
        weight *= expected / (step + 1)
    return after, lasts @ np.arange(count) / speed


def of_two(d: int, load: float, period: float, longest: int = 100) -> float:
    """Mean time in the system of two servers with that `load` each; `period` in service times."""
    lengths = np.arange(longest + 1)
    # Chances of one server to be taken if its queue is the shorter by the board, as long, longer.
    shares = (0.5, 0.5, 0.5) if d == 1 else (1.0, 0.5, 0.0)
    mine = [over_a_period(np.full(longest + 1, 2.0 * load * share), period) for share in shares]
    cases = [
        np.less.outer(lengths, lengths),
        np.equal.outer(lengths, lengths),
        np.greater.outer(lengths, lengths),
    ]
    share = np.zeros((longest + 1, longest + 1))
    share[0, 0] = 1.0
    for _ in range(MOST_PERIODS):
        after = np.zeros_like(share)
        for case, (one, _), (other, _) in zip(cases, mine, mine[::-1], strict=True):
            after += one.T @ (share * case) @ other
        if np.abs(after - share).sum() < CLOSE:
            break
        share = after
    jobs = 0.0
    for case, (_, one), (_, other) in zip(cases, mine, mine[::-1], strict=True):
        within = share * case
        jobs += float(one @ within.sum(axis=1) + other @ within.sum(axis=0))
    return jobs / (period * 2.0 * load)


def of_many(d: int, load: float, period: float, longest: int = 150, close: float = CLOSE) -> float:
    """The same for so many servers that none matters."""
    share = np.eye(1, longest + 1)[0]
    area = np.zeros(longest + 1)
    for _ in range(MOST_PERIODS):
        tails = np.append(np.cumsum(share[::-1])[::-1], 0.0)
        # All jobs that draw nothing shorter, over the servers of that length.
        taken = tails[:-1] ** d - tails[1:] ** d
        limit = d * tails[:-1] ** (d - 1)
        rates = load * np.where(share > 1e-14, taken / np.maximum(share, 1e-14), limit)
        after, area = over_a_period(rates, period)
        moved = share @ after
        if np.abs(moved - share).sum() < close:
            break
        share = moved
    return float(share @ area) / (period * load)
