"""Control variates reduce variance and add no bias."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grid.lab.verify.cases import Jobs, pool_waits, steady
from grid.lab.verify.theory import mmc_wait
from grid.lab.verify.verify import estimate


def test_a_function_of_the_controls_has_no_error() -> None:
    controls = np.random.Generator(np.random.PCG64(1)).normal([5.0, 7.0], 1.0, (20, 2))
    found = 3.0 + controls @ np.array([2.0, -1.0])
    mean, error = estimate(found, controls, np.array([5.0, 7.0]))
    assert mean == pytest.approx(3.0 + 10.0 - 7.0)
    assert error == pytest.approx(0.0, abs=1e-9)


def test_intervals_have_their_coverage() -> None:
    """In 400 experiments of 20 runs of a value that depends on a control and on noise."""
    rng = np.random.Generator(np.random.PCG64(2))
    off = []
    for _ in range(400):
        controls = rng.normal(1.0, 1.0, (20, 1))
        found = 4.0 + 3.0 * (controls[:, 0] - 1.0) + rng.normal(0.0, 0.5, 20)
        mean, error = estimate(found, controls, np.array([1.0]))
        off.append((mean - 4.0) / error)
        assert error < 0.25 * found.std(ddof=1) / 20**0.5 + 0.1
    assert 0.92 < np.mean(np.abs(off) < 2.101) < 0.98


def test_few_runs_or_no_controls_give_the_mean() -> None:
    found = np.array([1.0, 2.0, 3.0])
    assert estimate(found, np.ones((3, 1)), np.zeros(1)) == (2.0, pytest.approx(1 / 3**0.5))
    assert estimate(found[:1], np.ones((1, 1)), np.zeros(1)) == (1.0, 0.0)
    assert estimate(np.tile(found, 4), np.empty((12, 0)), np.empty(0)).mean == 2.0


def test_a_pool_by_hand() -> None:
    """Two servers: the third job waits for the first end, the fourth for both others."""
    submit, work = np.array([0, 1, 2, 3]), np.array([10, 4, 5, 1])
    assert pool_waits(submit, work, 2) == [0, 0, 3, 7]
    assert pool_waits(submit, work, 1) == [0, 9, 12, 16]


def test_expected_waits_are_those_of_erlang() -> None:
    work_s, gap_s, wait_s = Jobs(1000.0, 125.0, 10).expected()
    assert (work_s, gap_s) == (1000.0, 125.0)
    assert wait_s == pytest.approx(1000.0 * mmc_wait(10, 0.8))
    assert Jobs(1000.0, 50.0, 0).expected().tolist() == [1000.0, 50.0]


def test_steady_jobs_are_submitted_while_no_vo_warms_up_or_shuts_down() -> None:
    def rows(vo: Any, submit: Any) -> Any:
        run: Any = SimpleNamespace(results=SimpleNamespace(vo=vo, submit_us=submit))
        return steady(run)

    vo = np.array([0] * 20 + [2] * 20)
    submit = np.concatenate([np.arange(20) * 10, 5 + np.arange(20) * 5])
    found = submit[rows(vo, submit)]
    assert found.min() == 40  # A fifth of the first VO's jobs.
    assert found.max() == 95  # 95 % of those of the other, which ends first.
    assert rows(vo[:20], submit[:20]).tolist() == list(range(4, 20))
