"""How gossip of averages brings what VOs hold together: theory, and the exchanges of a run.

Each VO holds a number. When two exchange, both hold the mean of their two numbers from then on
(Jelasity, Montresor and Babaoglu 2005). What is left of the variance after a period hangs on who
exchanges with whom, and when, not on the numbers.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints

if TYPE_CHECKING:
    from grid.runtime.run import Run

PERIODS = 4
"""Numbers are new after so many periods, before hardly any variance is left."""


class Exchanges(NamedTuple):
    """Who began each exchange, with whom, and in which period, in order. Shapes (exchanges,)."""

    first: Ints
    second: Ints
    period: Ints


def left_a_period(vos: int, times: str) -> float:
    """The share of the variance that is left a period, from the second of `PERIODS` on.

    A period is as many exchanges as there are VOs.

    Each VO begins exchanges with others drawn at random: once a period, all in one order that is
    the same in every period (`periodic`) or a new one in each (`shuffled`), or any VO as likely as
    all others is next (`poisson`). With very many VOs that leaves in the end 0.2934, 1 / (2 √e) and
    1 / e.
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
            # Who comes when in the next order has nothing to do with what it holds.
            products = _centred(vos) * variances[-1] / (vos - 1)
    return _share(variances[0], variances[-1])


def _centred(vos: int) -> Floats:
    return np.eye(vos) - 1.0 / vos


def _share(first: float, last: float) -> float:
    return float((last / first) ** (1.0 / (PERIODS - 1)))


def _after_a_period(products: Floats) -> Floats:
    """What is expected of the products of any two numbers when each VO has begun one exchange."""
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
        # With the one it meets: their mean, twice; with any other: half of both.
        met = (products[:, others].sum(axis=1) - squares) * chance
        mixed = (own * (1.0 - chance) + met) / 2.0 + chance * means
        after[one, :] = after[:, one] = mixed
        after[one, one] = chance * means[others].sum()
        products = after
    return products


def exchanges_of(run: Run, period_us: int) -> Exchanges:
    """The exchanges of a run with its events, until the last job is submitted: then VOs may rest.

    Each is two letters, of which the second answers the first.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    assert run.events is not None
    with tempfile.TemporaryDirectory(prefix="grid-verify-") as folder:
        file = Path(folder) / "events.parquet"
        run.events.write(file, run.results, run.directory)
        table = pq.read_table(
            file, columns=["time_us", "entity", "peer"], filters=pc.field("event") == "news"
        )
    number = {f"{name}/information": vo for vo, name in enumerate(run.directory.vos)}
    times_us = table["time_us"].to_pylist()
    to = [number[name] for name in table["entity"].to_pylist()]
    by = [number[name] for name in table["peer"].to_pylist()]
    found = _paired(times_us, to, by, period_us)
    until = found.period <= int(run.results.submit_us.max()) // period_us
    return Exchanges(*(column[until] for column in found))


def _paired(times_us: list[int], to: list[int], by: list[int], period_us: int) -> Exchanges:
    """A letter to one who has asked for it is no exchange of its own."""
    asked: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int, int]] = []
    for time_us, receiver, sender in zip(times_us, to, by, strict=True):
        if asked.get((receiver, sender), 0):
            asked[receiver, sender] -= 1
        else:
            asked[sender, receiver] = asked.get((sender, receiver), 0) + 1
            rows.append((sender, receiver, (time_us - 2) // period_us))
    first, second, period = np.array(rows, np.int64).reshape(-1, 3).T
    return Exchanges(first, second, period)


def left_by(exchanges: Exchanges, vos: int) -> float:
    """The same share, of the variance that these exchanges leave, whatever the numbers were.

    All numbers at once: a row of weights for each VO. A period is as many exchanges as there are
    VOs; the first one is left out, for it may not be whole.
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
    """How many exchanges a VO began in each period, in the mean of those that are whole."""
    last = int(exchanges.period[-1])
    whole = (exchanges.period >= 1) & (exchanges.period < last)
    return float(whole.sum()) / (vos * (last - 1))
