"""Queueing theory that simulations are validated against: closed forms, recursions, Markov chains.

Mean service times are 1 unless a function has a unit in its name.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, islice
from math import ceil, comb, fsum, log
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints


def fcfs_starts(submit_us: Ints, run_us: Ints, processors: Ints, servers: int) -> list[int]:
    """Start of every job, in order of submission, FCFS on `servers` processors.

    A job of k processors starts once it is submitted, the job before it has started, and k
    processors are free: at the k-th smallest entry of the vector of times at which processors
    become free (Kiefer and Wolfowitz 1955, for k = 1; Lindley 1952 for one server).
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


def erlang_b(servers: int, work: float) -> float:
    """Probability that all `servers` are busy if blocked jobs are lost; `work` in Erlang."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = work * blocked / (number + work * blocked)
    return blocked


def mmc_wait(servers: int, load: float) -> float:
    """Mean wait in units of the mean service time, M/M/c, first come first served (Erlang C)."""
    blocked = erlang_b(servers, servers * load)
    waiting = blocked / (1.0 - load * (1.0 - blocked))
    return waiting / (servers * (1.0 - load))


def mg1_wait(load: float, variation: float) -> float:
    """Mean wait in units of the mean service time, M/G/1 (Pollaczek and Khinchine).

    `variation` is the service time's standard deviation divided by its mean.
    """
    return load * (1.0 + variation**2) / (2.0 * (1.0 - load))


def kaufman_roberts(
    capacity: int, work: Sequence[float], sizes: Sequence[int]
) -> tuple[float, ...]:
    """Share of lost jobs of each size, if a job that does not fit is lost.

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


def round_robin_time(servers: int, load: float) -> float:
    """Mean time in the system if each of n `servers` gets every n-th job: E_n/M/1.

    In units of the mean service time. Arrivals at a server are sums of n exponential times; the
    time is 1 / (1 - σ), where σ is the root of σ = A(1 - σ) below 1, with the transform A of the
    times between arrivals (GI/M/1, Kendall 1953).
    """
    from scipy.optimize import fixed_point

    def transform(root: float) -> float:
        return (servers * load / (servers * load + 1.0 - root)) ** servers

    root = float(fixed_point(transform, 0.0, method="iteration", xtol=1e-15, maxiter=100_000))
    return 1.0 / (1.0 - root)


def power_of_d(servers: int, d: int, load: float) -> float:
    """Mean time in the system if a job joins the shortest of `d` different queues drawn.

    Arrivals are Poisson, service exponential, and each of a few `servers` has the `load`. Solves
    the Markov chain of ascending queue lengths, truncated at a probability of about 1e-8. With
    d = servers: join the shortest queue.
    """
    # All servers together have about as many jobs as a shared queue.
    longest = ceil(log(1e-8) / log(load) / (servers if d > 1 else 1)) + 5
    states = listed(combinations_with_replacement(range(longest + 1), servers))
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
    are exponential and independent of the size.
    """
    p, n = share_of_ones, processors
    ones = 1.0 + fsum(p**i / i for i in range(1, n))
    return 1.0 / ((1.0 - p) * ones + p**n / n)


# Markov chains of a few identical servers
#
# A state is the number of jobs at each server, in ascending order, as servers are identical.
# Infinite chains are truncated where hardly any time is spent.

State = tuple[int, ...]
Moves = Callable[[State], Iterable[tuple[float, State]]]
"""Rates from a state to others, whose servers may be in any order."""

BEYOND = 1e-7
"""The probability of more jobs than in a chain that is truncated by their total."""
MOST_STATES = 50_000
"""The states of the largest chain that is solved."""


def up_to(servers: int, jobs: int, longest: int | None = None) -> Iterator[State]:
    """All states with at most `jobs` in total and `longest` at a server."""
    if servers == 0:
        yield ()
        return
    for last in range(min(jobs, jobs if longest is None else longest) + 1):
        for others in up_to(servers - 1, jobs - last, last):
            yield (*others, last)


def listed(states: Iterable[State]) -> list[State]:
    """All states of a chain. Raises ValueError if there are more than MOST_STATES."""
    found = list(islice(states, MOST_STATES + 1))
    if len(found) > MOST_STATES:
        raise ValueError(f"a Markov chain of more than {MOST_STATES:,} states")
    return found


def changed(state: State, server: int, jobs: int) -> State:
    """The state with `jobs` added at a server."""
    return (*state[:server], state[server] + jobs, *state[server + 1 :])


def most_jobs(servers: int, load: float) -> int:
    """The total that independent M/M/1 queues exceed with probability BEYOND."""
    from scipy.stats import nbinom

    return int(nbinom.isf(BEYOND, servers, 1.0 - load))


def mean_time(states: Sequence[State], load: float, moves: Moves) -> float:
    """The mean time of a job in the system, by Little's law; each server has the `load`."""
    share = shares_of(states, moves)
    jobs = np.array([sum(state) for state in states])
    return float((jobs * share).sum()) / (len(states[0]) * load)


def shares_of(states: Sequence[State], moves: Moves) -> Floats:
    """The stationary distribution over `states`; moves out of them are ignored. Shape (states,)."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import spsolve

    number = {state: place for place, state in enumerate(states)}
    entries: list[tuple[float, int, int]] = []
    for source, state in enumerate(states):
        for speed, after in moves(state):
            to = number.get(tuple(sorted(after)))
            if to is not None and speed > 0.0:
                entries += [(speed, to, source), (-speed, source, source)]
    rates, targets, sources = zip(*entries, strict=True)
    balance = coo_matrix((rates, (targets, sources)), shape=(len(states),) * 2).tocsc()
    # Relative to the first state, whose equation follows from the others.
    by_first = -balance[1:, 0].toarray().ravel()
    rest = spsolve(balance[1:, 1:], by_first, permc_spec="MMD_AT_PLUS_A")
    share: Floats = np.append(1.0, rest)
    share /= share.sum()
    return share


# VOs that share work


def until_idle(vos: int, load: float, hops: int) -> float:
    """Mean time in the system if a job is forwarded at most `hops` times until a VO is idle.

    Each hop is to any of the other VOs.
    """

    def moves(state: State) -> Iterator[tuple[float, State]]:
        idle = state.count(0)
        found = _one_of(idle, vos, hops)
        for vo, jobs in enumerate(state):
            # Hops between busy VOs are symmetric: as many paths end at a busy VO as begin there.
            rest = (vos - idle) * found / idle if jobs == 0 else -found
            yield load * (1.0 + rest), changed(state, vo, 1)
            if jobs:
                yield 1.0, changed(state, vo, -1)

    return mean_time(listed(up_to(vos, most_jobs(vos, load))), load, moves)


def steal(vos: int, load: float) -> float:
    """Mean time in the system if a VO that becomes idle pulls a job from one random VO."""

    def moves(state: State) -> Iterator[tuple[float, State]]:
        for vo, jobs in enumerate(state):
            yield load, changed(state, vo, 1)
            if jobs > 1 or (jobs == 1 and vos == 1):
                yield 1.0, changed(state, vo, -1)
            elif jobs == 1:
                for other, queued in enumerate(state):
                    if other != vo:
                        yield 1.0 / (vos - 1), changed(state, other if queued > 1 else vo, -1)

    return mean_time(listed(up_to(vos, most_jobs(vos, load))), load, moves)


def retries(vos: int, servers: int, work: float, hops: int) -> float:
    """The share of jobs that are rejected by a VO of `servers` and by `hops` others.

    `work` is the offered load of a VO in Erlang; each hop is to any of the other VOs.
    """

    def moves(state: State) -> Iterator[tuple[float, State]]:
        full = state.count(servers)
        found = _one_of(vos - full, vos, hops)
        for vo, busy in enumerate(state):
            if busy < servers:
                yield work * (1.0 + full * found / (vos - full)), changed(state, vo, 1)
            yield float(busy), changed(state, vo, -1)

    states = listed(combinations_with_replacement(range(servers + 1), vos))
    full = [state.count(servers) for state in states]
    lost = [count / vos * (1.0 - _one_of(vos - count, vos, hops)) for count in full]
    return float((np.array(lost) * shares_of(states, moves)).sum())


def _one_of(wanted: int, vos: int, hops: int) -> float:
    """The probability that a job reaches one of `wanted` VOs by random hops from another one."""
    return 1.0 - (1.0 - wanted / (vos - 1)) ** hops if vos > 1 else 0.0


# Periodic status updates
#
# Mitzenmacher, "How useful is old information?" (2000): each job goes to the shortest of `d`
# servers drawn, by the queue lengths at the last update. Between updates the arrival rate of a
# server depends only on these, so each server is an M/M/1 queue, and the lengths at updates are a
# Markov chain.

FIXED = 1e-11
MOST_PERIODS = 200_000


def over_a_period(rates: Floats, period: float) -> tuple[Floats, Floats]:
    """M/M/1 queues of initial length n and arrival rate rates[n] over a period.

    Returns the distribution of lengths at the end, shape (lengths, lengths), and the time integral
    of the number of jobs, shape (lengths,), from one matrix exponential (Van Loan 1978) for each
    different rate. The longest queue has no arrivals.
    """
    from scipy.linalg import expm

    count = len(rates)
    after, jobs = np.empty((count, count)), np.empty(count)
    for rate in np.unique(rates):
        flow = np.zeros((count + 1, count + 1))
        flow[:count, :count] = np.diag(np.full(count - 1, rate), 1) + np.eye(count, k=-1)
        flow -= np.diag(flow.sum(axis=1))
        flow[:count, count] = np.arange(count)
        solved, rows = expm(flow * period), rates == rate
        after[rows], jobs[rows] = solved[:count, :count][rows], solved[:count, count][rows]
    return after, jobs


def periodic_updates(servers: int, d: int, load: float, period: float, longest: int = 40) -> float:
    """Mean time in the system, each of 2 or 3 servers with the `load`; `period` in service times.

    The state at an update is the tensor of probabilities of all lengths up to `longest`. States
    with the same order of servers have the same arrival rates until the next update.
    """
    lengths = np.indices((longest + 1,) * servers)
    shorter = (lengths[:, None] > lengths[None, :]).sum(axis=1)
    orders = np.unique(shorter.reshape(servers, -1), axis=1).T
    moves: dict[tuple[int, int], tuple[Floats, Floats]] = {}
    steps: list[tuple[Floats, list[tuple[Floats, Floats]]]] = []
    for order in orders:
        # The shortest of d is one of `alike` servers if one of them is drawn and none before them.
        ranks = [(int(rank), int((order == rank).sum())) for rank in order]
        for rank, alike in ranks:
            drawn = comb(servers - rank, d) - comb(servers - rank - alike, d)
            rate = servers * load * drawn / comb(servers, d) / alike
            if (rank, alike) not in moves:
                moves[rank, alike] = over_a_period(np.full(longest + 1, rate), period)
        is_so = (shorter == order.reshape(-1, *(1,) * servers)).all(axis=0)
        steps.append((is_so, [moves[one] for one in ranks]))
    share = np.zeros((longest + 1,) * servers)
    share[(0,) * servers] = 1.0
    for _ in range(MOST_PERIODS):
        after = np.zeros_like(share)
        for is_so, of_servers in steps:
            part = share * is_so
            # Each product replaces the first axis by the next length, as the last axis.
            for one, _ in of_servers:
                part = np.tensordot(part, one, (0, 0))
            after += part
        if np.abs(after - share).sum() < FIXED:
            break
        share = after
    jobs = 0.0
    for is_so, of_servers in steps:
        part = share * is_so
        for axis, (_, one) in enumerate(of_servers):
            jobs += float(np.tensordot(part, one, (axis, 0)).sum())
    return jobs / (period * servers * load)


# Gossip of averages
#
# When two VOs exchange their numbers, both keep the mean (Jelasity, Montresor and Babaoglu 2005).
# The variance that is left depends on the pairs and their order, not on the numbers.

PERIODS = 4
"""The number of periods after which numbers are replaced, before the variance vanishes."""


class Exchanges(NamedTuple):
    """Initiator, peer and period of each exchange, in order. Shapes (exchanges,)."""

    first: Ints
    second: Ints
    period: Ints


def left_a_period(vos: int, times: str) -> float:
    """The share of the variance that is left per period, from the second of `PERIODS` on.

    A period has as many exchanges as there are VOs, each with a random peer. VOs begin them once a
    period in a fixed order (`periodic`) or a new random order (`shuffled`), or the next one is
    drawn (`poisson`). The limits for many VOs are 0.2934, 1 / (2 √e) and 1 / e.
    """
    if times == "poisson":
        # Each exchange of any two of n leaves 1 - 1 / (n - 1) on average.
        return float((1.0 - 1.0 / (vos - 1)) ** vos)
    variances = []
    products = _centred(vos)
    for _ in range(PERIODS):
        products = _after_a_period(products)
        variances.append(float(np.trace(products)))
        if times == "shuffled":
            # The next order is independent of the numbers.
            products = _centred(vos) * variances[-1] / (vos - 1)
    return _share(variances[0], variances[-1])


def _centred(vos: int) -> Floats:
    return np.eye(vos) - 1.0 / vos


def _share(first: float, last: float) -> float:
    return float((last / first) ** (1.0 / (PERIODS - 1)))


def _after_a_period(products: Floats) -> Floats:
    """Expected products of any two numbers after each VO has begun one exchange."""
    vos = len(products)
    chance = 1.0 / (vos - 1)
    for one in range(vos):
        own = products[one].copy()
        squares = products.diagonal().copy()
        means = (own[one] + 2.0 * own + squares) / 4.0
        others = np.arange(vos) != one
        after = products * (1.0 - 2.0 * chance)
        after += chance * (2.0 * products + own[:, None] + own[None, :]) / 2.0
        np.fill_diagonal(after, (1.0 - chance) * squares + chance * means)
        # Product with the peer: their mean, squared; with any other: half of both.
        met = (products[:, others].sum(axis=1) - squares) * chance
        mixed = (own * (1.0 - chance) + met) / 2.0 + chance * means
        after[one, :] = after[:, one] = mixed
        after[one, one] = chance * means[others].sum()
        products = after
    return products


def left_by(exchanges: Exchanges, vos: int) -> float:
    """The same share for these exchanges, averaged over all initial numbers.

    Each VO has a row of weights of the initial numbers. The first period, which may be incomplete,
    is left out.
    """
    variances = np.zeros(PERIODS)
    begin = int(np.searchsorted(exchanges.period, 1))
    for block in range(begin, len(exchanges.first) - PERIODS * vos + 1, PERIODS * vos):
        weights = _centred(vos)
        for period in range(PERIODS):
            for row in range(block + period * vos, block + (period + 1) * vos):
                one, other = exchanges.first[row], exchanges.second[row]
                weights[[one, other]] = (weights[one] + weights[other]) / 2.0
            variances[period] += (weights**2).sum()
    return _share(variances[0], variances[-1])


def exchanges_a_period(exchanges: Exchanges, vos: int) -> float:
    """Mean number of exchanges that a VO begins in a complete period."""
    last = int(exchanges.period[-1])
    whole = (exchanges.period >= 1) & (exchanges.period < last)
    return float(whole.sum()) / (vos * (last - 1))
