"""Work done for others and by others, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import grid
from grid.results.metrics import exchange_metrics, jain


def test_exchange_by_hand() -> None:
    """VO 0 got 6 s of VO 1 and gave 2 s; VO 2 kept to itself, and VO 3 did nothing."""
    exchanged = np.array([[10.0, 6, 0, 0], [2, 4, 0, 0], [0, 0, 5, 0], [0, 0, 0, 0]])
    each = [tuple(exchange_metrics(exchanged, vo).values()) for vo in range(3)]
    assert each == [(2, 6, None), (6, 2, None), (0, 0, None)]
    # 16 s got for 12 s given, 6 for 10, and 5 for 5.
    shares = np.array([16 / 12, 6 / 10, 1])
    whole = exchange_metrics(exchanged, None)
    assert whole["fairness_of_exchange"] == pytest.approx(shares.sum() ** 2 / 3 / (shares**2).sum())
    assert whole["work_by_others_cpu_s"] == 8


def test_fairness_of_an_even_and_of_a_one_sided_exchange() -> None:
    assert jain(np.array([[0.0, 3.0], [3.0, 0.0]])) == 1.0
    assert jain(np.array([[4.0, 4.0, 4.0, 4.0]] + [[0.0] * 4] * 3)) == pytest.approx(1 / 4)
    assert jain(np.zeros((2, 2))) is None


def test_work_for_and_by_others_in_a_run() -> None:
    jobs = [{"submit_s": 0, "run_s": 10}, {"submit_s": 1, "run_s": 20}]
    vos = [
        {"name": "a", "clusters": [{"cpus": 1}], "workload": {"jobs": jobs}},
        {"name": "b", "clusters": [{"cpus": 1}]},
    ]
    run = grid.run({"name": "two", "vos": vos})
    assert run.metrics["vos"]["b"]["work_for_others_cpu_s"] == 20
    assert run.metrics["vos"]["a"]["work_by_others_cpu_s"] == 20
    # a got 30 s for 10 s that it gave, and b nothing for 20 s.
    assert run.metrics["grid"]["fairness_of_exchange"] == pytest.approx(0.5)
    alone = grid.run({"name": "one", "vos": vos[:1]})
    assert "fairness_of_exchange" not in alone.metrics["grid"]
