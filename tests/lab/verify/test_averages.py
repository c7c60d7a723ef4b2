"""Theory of gossip of averages, against limits that are known and exchanges drawn here."""

from __future__ import annotations

from math import e, sqrt

import numpy as np
import pytest

from grid.lab.verify import theory as averages
from grid.lab.verify.cases import paired_messages
from grid.lab.verify.theory import PERIODS, Exchanges, left_a_period, left_by


def extrapolated(times: str) -> float:
    return 2 * left_a_period(120, times) - left_a_period(60, times)


def test_limits_of_many_vos() -> None:
    assert extrapolated("shuffled") == pytest.approx(1 / (2 * sqrt(e)), rel=1e-3)
    assert extrapolated("poisson") == pytest.approx(1 / e, rel=1e-3)
    assert extrapolated("periodic") < 0.98 * extrapolated("shuffled")


def test_a_fixed_order_has_its_known_limit() -> None:
    def left(vos: int) -> float:
        products = averages._centred(vos)
        for _ in range(8):
            before, products = products, averages._after_a_period(products)
        return float(np.trace(products) / np.trace(before))

    assert 2 * left(128) - left(64) == pytest.approx(0.2934, abs=1e-4)


@pytest.mark.parametrize("times", ["periodic", "shuffled", "poisson"])
def test_random_exchanges_have_the_expected_variance(times: str) -> None:
    vos, periods, rng = 6, 4_001 * PERIODS, np.random.default_rng(1)
    orders = np.array([rng.permutation(vos) for _ in range(periods)])
    if times == "periodic":
        orders[:] = np.arange(vos)
    if times == "poisson":
        orders = rng.integers(vos, size=orders.shape)
    first = orders.ravel()
    second = (first + rng.integers(1, vos, len(first))) % vos
    drawn = Exchanges(first, second, np.repeat(np.arange(periods), vos))
    assert left_by(drawn, vos) == pytest.approx(left_a_period(vos, times), rel=0.01)


def test_a_reply_is_no_exchange() -> None:
    # VO 0 sends to 1, which replies; then 1 to 0, which replies; then 2 to 1.
    found = paired_messages([12, 13, 22, 23, 35], [1, 0, 0, 1, 1], [0, 1, 1, 0, 2], 10)
    assert [column.tolist() for column in found] == [[0, 1, 2], [1, 0, 1], [1, 2, 3]]


def test_exchanges_per_period() -> None:
    exchanges = Exchanges(np.array([0, 2, 0]), np.array([1, 1, 2]), np.array([0, 1, 2]))
    assert averages.exchanges_a_period(exchanges, 3) == pytest.approx(1 / 3)
