"""Theory of virtual organizations that share work: a few of them, or so many that none matters.

Each is offered Poisson arrivals and has exponential service of mean 1. Of a few, the Markov chain
of the jobs at each is solved; of many, the limit is taken in which what a job finds at one VO says
nothing of the next (mean field).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import comb, sqrt

import numpy as np

from grid.lab.verify.chain import State, changed, mean_time, most_jobs, shares_of, up_to
from grid.lab.verify.theory import erlang_b

FEWEST = 32
"""Of fewer VOs the limit of many cannot be extrapolated."""


def until_idle(load: float, hops: int) -> float:
    """Mean time in the system where a job moves to `hops` VOs at most until it finds one idle."""
    return float(1.0 / (1.0 - load ** (hops + 1)))


def until_idle_of_few(vos: int, load: float, hops: int) -> float:
    """The same for a few VOs, where each hop is to any of the others."""

    def moves(state: State) -> Iterator[tuple[float, State]]:
        idle = state.count(0)
        found = _one_of(idle, vos, hops)
        for vo, jobs in enumerate(state):
            # Jobs walk between busy VOs as likely one way as the other, so that as many end their
            # way at a VO as begin it there.
            rest = (vos - idle) * found / idle if jobs == 0 else -found
            yield load * (1.0 + rest), changed(state, vo, 1)
            if jobs:
                yield 1.0, changed(state, vo, -1)

    return mean_time(list(up_to(vos, most_jobs(vos, load))), load, moves)


def steal(load: float) -> float:
    """Mean time in the system where a server that gets idle takes a job from one random VO."""
    share = (1.0 + load - sqrt((1.0 + load) ** 2 - 4.0 * load**2)) / 2.0
    return 1.0 / (1.0 - share / load)


def steal_of_few(vos: int, load: float) -> float:
    """The same for a few VOs."""

    def moves(state: State) -> Iterator[tuple[float, State]]:
        for vo, jobs in enumerate(state):
            yield load, changed(state, vo, 1)
            if jobs > 1 or (jobs == 1 and vos == 1):
                yield 1.0, changed(state, vo, -1)
            elif jobs == 1:
                for other, queued in enumerate(state):
                    if other != vo:
                        yield 1.0 / (vos - 1), changed(state, other if queued > 1 else vo, -1)

    return mean_time(list(up_to(vos, most_jobs(vos, load))), load, moves)


def retries(servers: int, work: float, hops: int) -> float:
    """The share of jobs that `hops` more VOs of so many `servers` reject as well.

    Each VO is offered its own `work` (Erlang) and that of further tries, x in all: with B its loss
    at x, x = work (1 - B^(hops + 1)) / (1 - B).
    """
    offered = work
    for _ in range(10_000):
        blocked = erlang_b(servers, offered)
        after = work * sum(blocked**tries for tries in range(hops + 1))
        if abs(after - offered) < 1e-13 * after:
            break
        offered = (offered + after) / 2.0
    return float(erlang_b(servers, offered) ** (hops + 1))


def retries_of_few(vos: int, servers: int, work: float, hops: int) -> float:
    """The same for a few VOs, where each hop is to any of the others."""

    def moves(state: State) -> Iterator[tuple[float, State]]:
        full = state.count(servers)
        found = _one_of(vos - full, vos, hops)
        for vo, busy in enumerate(state):
            if busy < servers:
                yield work * (1.0 + full * found / (vos - full)), changed(state, vo, 1)
            yield float(busy), changed(state, vo, -1)

    states = list(combinations_with_replacement(range(servers + 1), vos))
    full = [state.count(servers) for state in states]
    lost = [count / vos * (1.0 - _one_of(vos - count, vos, hops)) for count in full]
    return float((np.array(lost) * shares_of(states, moves, 1.0)).sum())


def retries_states(vos: int, servers: int) -> int:
    """How many states the chain of `retries_of_few` has."""
    return comb(vos + servers, vos)


def retries_fewest(servers: int, work: float, hops: int) -> int:
    """From so many VOs on, what n VOs lose beyond `retries` is about in proportion to 1 / n.

    The share F of full VOs goes up and down, by a variance of about B (1 - B) / n around its mean
    B, and E[F^(hops + 1)] is more than B^(hops + 1) by a share hops (hops + 1) (1 - B) / (2 n B).
    Where that is a tenth, its square, which falls as 1 / n^2, is about half a percent.
    """
    # Where next to nothing is lost, no number of VOs is enough.
    blocked = max(1e-9, float(retries(servers, work, hops) ** (1.0 / (hops + 1))))
    return max(FEWEST, round(5.0 * hops * (hops + 1) * (1.0 / blocked - 1.0)))


def fewest_queues(load: float) -> int:
    """The same where jobs queue: found with simulations, up to a load of 0.95."""
    return max(FEWEST, round(4.0 / (1.0 - load)))


def _one_of(wanted: int, vos: int, hops: int) -> float:
    """The chance that a job from one of the other VOs finds one of those wanted by such hops."""
    return 1.0 - (1.0 - wanted / (vos - 1)) ** hops if vos > 1 else 0.0
