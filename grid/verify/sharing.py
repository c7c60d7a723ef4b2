"""Theory of virtual organizations that share work: two of them, or so many that none matters.

Each is offered Poisson arrivals and has exponential service of mean 1. Of two, the Markov chain of
the jobs at each is solved, cut off where it has no end; of many, the limit is taken in which what a
job finds at one VO says nothing of the next (mean field).
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from grid.model.arrays import Bools, Ints
from grid.verify.theory import erlang_b, stationary

Moves = list[tuple[float, Bools, int]]
LONGEST = 150


def until_idle(load: float, hops: int) -> float:
    """Mean time in the system where a job moves to `hops` VOs at most until it finds one idle."""
    return float(1.0 / (1.0 - load ** (hops + 1)))


def until_idle_of_two(load: float, hops: int) -> float:
    """The same for two VOs: with both busy, a job queues where an odd or even way ends."""
    mine, other = _lengths(LONGEST)
    width = LONGEST + 1
    idle, stays, room = mine == 0, hops % 2 == 0, mine < LONGEST
    elsewhere = ~idle & (other == 0 if hops else np.zeros_like(idle))
    goes = elsewhere | (~idle & ~elsewhere & (not stays))
    arrivals: Moves = [
        (load, ~goes & room, width),
        (load, goes & (other < LONGEST), 1),
        (1.0, mine > 0, -width),
    ]
    return _time(arrivals, load)


def steal(load: float) -> float:
    """Mean time in the system where a server that gets idle takes a job from one random VO."""
    share = (1.0 + load - sqrt((1.0 + load) ** 2 - 4.0 * load**2)) / 2.0
    return 1.0 / (1.0 - share / load)


def steal_of_two(load: float) -> float:
    """The same for two VOs."""
    mine, other = _lengths(LONGEST)
    width = LONGEST + 1
    steals = (mine == 1) & (other >= 2)
    moves: Moves = [
        (load, mine < LONGEST, width),
        (1.0, (mine > 0) & ~steals, -width),
        (1.0, steals, -1),
    ]
    return _time(moves, load)


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


def retries_of_two(servers: int, work: float, hops: int) -> float:
    """The same for two VOs: a job is lost if both are full."""
    if hops == 0:
        return erlang_b(servers, work)
    mine, other = _lengths(servers)
    width = servers + 1
    full = mine == servers
    moves = _both([(work, ~full, width), (work, full & (other < servers), 1)], servers)
    for busy in range(1, servers + 1):
        moves += _both([(float(busy), mine == busy, -width)], servers)
    return float(stationary(width * width, moves)[-1])


def _lengths(longest: int) -> tuple[Ints, Ints]:
    """Jobs at one VO and at the other, in each state."""
    mine, other = np.divmod(np.arange((longest + 1) ** 2), longest + 1)
    return mine, other


def _both(moves: Moves, longest: int) -> Moves:
    """The moves of one VO, and those of the other, which are their mirror image."""
    width = longest + 1
    mirrored = np.arange(width * width).reshape(width, width).T.ravel()
    images = {width: 1, -width: -1, 1: width, -1: -width}
    return moves + [(rate, possible[mirrored], images[step]) for rate, possible, step in moves]


def _time(moves: Moves, load: float) -> float:
    """The mean time in the system, by Little's law."""
    mine, other = _lengths(LONGEST)
    share = stationary(len(mine), _both(moves, LONGEST))
    return float(((mine + other) * share).sum()) / (2.0 * load)
