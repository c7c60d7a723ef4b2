"""Theory of VOs that share work, against values that are known and other theory where they meet."""

from __future__ import annotations

import pytest

from grid.verify import sharing
from grid.verify.theory import erlang_b, shorter_of_two


def test_limits_of_many_vos() -> None:
    assert sharing.until_idle(0.9, 1) == pytest.approx(5.2632, abs=1e-4)
    assert sharing.until_idle(0.9, 3) == pytest.approx(2.9078, abs=1e-4)
    assert sharing.steal(0.9) == pytest.approx(3.5414, abs=1e-4)
    losses = [sharing.retries(10, 8.0, hops) for hops in (1, 2, 3)]
    assert losses == pytest.approx([0.037516, 0.011066, 0.002926], abs=1e-6)


def test_two_vos_without_sharing_are_single_servers() -> None:
    assert sharing.until_idle_of_two(0.7, 0) == pytest.approx(1 / 0.3)
    assert sharing.retries_of_two(10, 8.0, 0) == erlang_b(10, 8.0)


def test_two_vos_that_reject_are_one_pool_of_all_servers() -> None:
    assert sharing.retries_of_two(10, 8.0, 1) == pytest.approx(erlang_b(20, 16.0))


@pytest.mark.thorough
def test_two_vos_that_share_lie_between_one_pool_and_none() -> None:
    pool, alone = 1 / (1 - 0.7**2), 1 / 0.3
    found = [sharing.steal_of_two(0.7), shorter_of_two(0.7), sharing.until_idle_of_two(0.7, 1)]
    assert pool < min(found)
    assert max(found) < alone
