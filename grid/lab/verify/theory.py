"""Closed forms and recursions of queueing theory, in plain code."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement
from math import ceil, comb, fsum, log

import numpy as np

from grid.lab.verify.chain import State, changed, mean_time
from grid.model.arrays import Bools, Floats, Ints


def fcfs_starts(submit_us: Ints, run_us: Ints, processors: Ints, servers: int) -> list[int]:
    """Start of every job, in order of submission, first come first served on `servers` processors.

    A job of k processors starts when it has come, the job before it has started, and k processors
    are free: at the k-th smallest time of the vector of times at which processors become free
    (Kiefer and Wolfowitz 1955, for k = 1).
    """
    free = [0] * servers
    last, starts = 0, []
    for submit, run, width in zip(
        submit_us.tolist(), run_us.tolist(), processors.tolist(), strict=True
    ):
        taken = [heapq.heappop(free) for _ in range(width)]
        last = max(last, submit, taken[-1])
        for _ in taken:
            heapq.heappush(free, last + run)
        starts.append(last)
    return starts


def lindley_waits(submit_us: Ints, run_us: Ints) -> list[int]:
    """Waits at one server: W(n + 1) = max(0, W(n) + S(n) - A(n + 1)) (Lindley 1952)."""
    waits, wait = [], 0
    gaps, work = np.diff(submit_us).tolist(), run_us.tolist()
    for number in range(len(work)):
        if number:
            wait = max(0, wait + work[number - 1] - gaps[number - 1])
        waits.append(wait)
    return waits


def erlang_b(servers: int, work: float) -> float:
    """Probability that all `servers` are busy where blocked jobs are lost; `work` in Erlang."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = work * blocked / (number + work * blocked)
    return blocked


def erlang_c(servers: int, load: float) -> float:
    """Probability that a job waits, at a `load` below 1 of each server."""
    blocked = erlang_b(servers, servers * load)
    return blocked / (1.0 - load * (1.0 - blocked))


def mmc_wait(servers: int, load: float) -> float:
    """Mean wait in units of the mean service time, M/M/c, first come first served."""
    return erlang_c(servers, load) / (servers * (1.0 - load))


def mg1_wait(load: float, variation: float) -> float:
    """Mean wait in units of the mean service time, M/G/1 (Pollaczek and Khinchine).

    `variation` is the service time's standard deviation divided by its mean.
    """
    return load * (1.0 + variation**2) / (2.0 * (1.0 - load))


def kaufman_roberts(
    capacity: int, work: Sequence[float], sizes: Sequence[int]
) -> tuple[float, ...]:
    """Share of lost jobs of each size, where a job that does not fit is lost.

    `work` is each size's offered load in Erlang (arrival rate x mean service time). Kaufman 1981,
    Roberts 1981: j q(j) = Σ work x size x q(j - size).
    """
    weights = [1.0]
    for used in range(1, capacity + 1):
        terms = (
            offered * size * weights[used - size]
            for offered, size in zip(work, sizes, strict=True)
            if size <= used
        )
        weights.append(fsum(terms) / used)
    total = fsum(weights)
    return tuple(fsum(weights[capacity - size + 1 :]) / total for size in sizes)


def shorter_of_two(load: float, longest: int = 400, widest: int = 60) -> float:
    """Mean time in the system, in units of the mean service time, of join the shorter of 2 queues.

    Each server has the `load`; arrivals are Poisson, service exponential. Solves the Markov chain
    of (jobs at the shorter queue, difference), cut off at `longest` and `widest`.
    """
    shorter, difference = np.divmod(np.arange((longest + 1) * (widest + 1)), widest + 1)
    uneven = difference > 0
    width = widest + 1
    moves = (
        # Who comes joins the shorter queue; of two equal ones, one becomes the longer.
        (2.0 * load, uneven & (shorter < longest), width - 1),
        (2.0 * load, ~uneven, 1),
        (1.0, uneven, -1),
        (1.0, uneven & (shorter > 0) & (difference < widest), 1 - width),
        (2.0, ~uneven & (shorter > 0), 1 - width),
    )
    share = stationary(len(shorter), moves)
    return float(((2 * shorter + difference) * share).sum()) / (2.0 * load)


def stationary(states: int, moves: Iterable[tuple[float, Bools, int]]) -> Floats:
    """How much of the time a Markov chain spends in each of its states. Shape (states,).

    A move has a rate, the states in which it is possible, and how much further its target is.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import spsolve

    rates, targets, sources = [], [], []
    for rate, possible, step in moves:
        source = np.flatnonzero(possible)
        rates += [np.full(len(source), rate), np.full(len(source), -rate)]
        targets += [source + step, source]
        sources += [source, source]
    entries = (np.concatenate(rates), (np.concatenate(targets), np.concatenate(sources)))
    balance = coo_matrix(entries, shape=(states, states)).tolil()
    balance[0, :] = 1.0
    share: Floats = spsolve(balance.tocsc(), np.eye(1, states)[0])
    return share


def round_robin_time(servers: int, load: float) -> float:
    """Mean time in the system where each of the `servers` gets every n-th job: E_n/M/1.

    In units of the mean service time. Arrivals at a server are sums of n exponential times; the
    time is 1 / (1 - σ), where σ is the root of σ = A(1 - σ) below 1, with the transform A of the
    times between arrivals (GI/M/1, Kendall 1953).
    """
    root = 0.0
    for _ in range(100_000):
        following = (servers * load / (servers * load + 1.0 - root)) ** servers
        if abs(following - root) < 1e-15:
            break
        root = following
    return 1.0 / (1.0 - root)


def _longest(servers: int, d: int, load: float) -> int:
    """The jobs of all servers together are about as many as with one queue before them."""
    return ceil(log(1e-8) / log(load) / (servers if d > 1 else 1)) + 5


def states_of(servers: int, d: int, load: float) -> int:
    """How many states the chain of `power_of_d` has."""
    return comb(_longest(servers, d, load) + servers, servers)


def power_of_d_of_many(d: int, load: float) -> float:
    """The limit of `power_of_d` for many servers (Vvedenskaya et al. 1996, Mitzenmacher 1996).

    T = Σ load^((d^i - d) / (d - 1)) over i from 1.
    """
    if d == 1:
        return 1.0 / (1.0 - load)
    exponents = ((d**i - d) // (d - 1) for i in range(1, 64))
    return fsum(load**exponent for exponent in exponents if exponent < 100_000)


def power_of_d(servers: int, d: int, load: float) -> float:
    """Mean time in the system where a job joins the shortest of `d` different queues drawn.

    In units of the mean service time. Each of the `servers` has the `load`; arrivals are Poisson,
    service exponential. Solves the Markov chain of the queues' lengths in ascending order, cut off
    where all that is beyond has a chance of about 1e-8; so it is for few servers. With d = servers:
    join the shortest queue.
    """
    longest = _longest(servers, d, load)
    states = list(combinations_with_replacement(range(longest + 1), servers))
    # The k-th shortest is joined if it is drawn and none that is shorter.
    joins = [comb(servers - 1 - k, d - 1) / comb(servers, d) for k in range(servers)]

    def moves(state: State) -> Iterator[tuple[float, State]]:
        for k, chance in enumerate(joins):
            yield servers * load * chance, changed(state, k, 1)
            yield float(state[k] > 0), changed(state, k, -1)

    return mean_time(states, load, moves)


def rigid_capacity(processors: int, share_of_ones: float) -> float:
    """The largest arrival rate x mean service time at which FCFS of rigid jobs is stable.

    Jobs take 1 processor with probability `share_of_ones`, else all `processors`; service times
    are exponential and do not hang on the size.
    """
    p, n = share_of_ones, processors
    ones = 1.0 + fsum(p**i / i for i in range(1, n))
    return 1.0 / ((1.0 - p) * ones + p**n / n)
