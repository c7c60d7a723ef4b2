"""Closed forms against values that are known, and against one another where they meet."""

from __future__ import annotations

import numpy as np
import pytest

from grid.lab.verify import theory


def test_erlang_c_and_b_at_ten_servers() -> None:
    assert theory.mmc_wait(10, 0.9) == pytest.approx(0.668732, abs=1e-6)
    assert theory.erlang_b(10, 8.0) == pytest.approx(0.121661, abs=1e-6)


def test_kaufman_and_roberts_with_one_size_is_erlang_b() -> None:
    assert theory.kaufman_roberts(10, (8.0,), (1,))[0] == pytest.approx(theory.erlang_b(10, 8.0))
    # Jobs of two processors on seven: three servers, for the seventh processor is of no use.
    assert theory.kaufman_roberts(7, (2.0,), (2,))[0] == pytest.approx(theory.erlang_b(3, 2.0))


def test_kaufman_and_roberts_with_three_sizes() -> None:
    expected = (0.014689, 0.063182, 0.320384)
    found = theory.kaufman_roberts(64, (16.0, 4.0, 1.0), (1, 4, 16))
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_shorter_of_two_lies_between_one_fast_server_and_two_separate_ones() -> None:
    found = theory.power_of_d(2, 2, 0.9)
    assert found == pytest.approx(5.4749, abs=1e-4)
    # One queue before both servers is better: M/M/2.
    assert theory.mmc_wait(2, 0.9) + 1.0 < found < 1.0 / (1.0 - 0.9)


def test_power_of_d_meets_what_is_known_at_both_ends() -> None:
    """One drawn: M/M/1. Both of two: join the shorter of two. Of three: between."""
    assert theory.power_of_d(3, 1, 0.5) == pytest.approx(2.0, rel=1e-6)
    found = [theory.power_of_d(3, d, 0.5) for d in (1, 2, 3)]
    assert found[0] > found[1] > found[2] > theory.mmc_wait(3, 0.5) + 1.0


def test_round_robin_over_one_is_no_choice_and_over_many_is_regular() -> None:
    assert theory.round_robin_time(1, 0.8) == pytest.approx(5.0)
    # D/M/1 at 0.5: σ = exp(-2 (1 - σ)) is 0.20319.
    assert theory.round_robin_time(100_000, 0.5) == pytest.approx(1 / (1 - 0.203188), rel=1e-4)


def test_rigid_capacity_of_two_processors() -> None:
    assert theory.rigid_capacity(2, 0.5) == pytest.approx(8 / 7)
    assert theory.rigid_capacity(5, 0.0) == pytest.approx(1.0)


def test_rigid_starts_by_hand() -> None:
    """Four processors: the wide job waits for both narrow ones, and the last waits behind it."""
    submit, run = np.array([0, 0, 1, 2]), np.array([10, 4, 5, 1])
    assert theory.fcfs_starts(submit, run, np.array([2, 1, 4, 1]), 4) == [0, 0, 10, 15]


def test_starts_on_one_server_are_those_of_lindley() -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    submit = np.cumsum(rng.integers(0, 20, 2_000))
    run = rng.integers(1, 19, 2_000)
    waits = [0]
    for gap, work in zip(np.diff(submit).tolist(), run.tolist(), strict=False):
        waits.append(max(0, waits[-1] + work - gap))
    starts = theory.fcfs_starts(submit, run, np.ones(2_000, np.int64), 1)
    assert (np.array(starts) - submit).tolist() == waits


# Periodic status updates


def test_current_information_is_join_the_shorter_and_stale_is_worse_than_none() -> None:
    current = theory.periodic_updates(2, 2, 0.5, 0.01, longest=30)
    assert current == pytest.approx(theory.power_of_d(2, 2, 0.5), rel=0.01)
    assert current < theory.periodic_updates(2, 2, 0.5, 1.0, longest=40) < 2.0
    assert theory.periodic_updates(2, 2, 0.5, 100.0, longest=120) > 2.0


def test_three_servers_with_old_information() -> None:
    """At random the period has no effect, and with rare updates all jobs go to the same server."""
    at_random, two, shortest = (
        theory.periodic_updates(3, d, 0.5, 5.0, longest=25) for d in (1, 2, 3)
    )
    assert at_random == pytest.approx(2.0, rel=1e-4)
    assert two < at_random < shortest


def test_queues_over_a_period_by_an_ordinary_differential_equation() -> None:
    from scipy.linalg import expm

    rates, period, count = np.array([0.3, 1.4, 0.8, 2.0]), 1.7, 4
    after, jobs = theory.over_a_period(rates, period)
    for row, rate in enumerate(rates):
        flow = np.diag([rate] * (count - 1), 1) + np.diag([1.0] * (count - 1), -1)
        flow -= np.diag(flow.sum(axis=1))
        augmented = np.zeros((count + 1, count + 1))
        augmented[:count, :count], augmented[:count, count] = flow, np.arange(count)
        exact = expm(augmented * period)[row]
        assert after[row] == pytest.approx(exact[:count], abs=1e-10)
        assert jobs[row] == pytest.approx(exact[count], abs=1e-9)
