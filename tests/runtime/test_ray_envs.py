"""Environments on Ray actors: the same episodes as in one process."""

from __future__ import annotations

import numpy as np
import pytest

from tests.integrations.learning.grids import one_pool

pytest.importorskip("gymnasium", reason="needs the extra `learning`")
pytest.importorskip("greenlet", reason="needs the extra `learning`")

from gymnasium.vector import SyncVectorEnv

from grid.integrations.learning import ClusterEnv, RayVectorEnv


def make() -> ClusterEnv:
    return ClusterEnv(one_pool(8))


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_episodes_on_ray_are_those_of_one_process() -> None:
    there, here = RayVectorEnv(make, 3, actors=2), SyncVectorEnv([make] * 3)
    assert there.observation_space == here.observation_space
    assert there.action_space == here.action_space
    told, wanted = there.reset(seed=5), here.reset(seed=5)
    over = 0
    for _ in range(30):
        np.testing.assert_array_equal(told[0], wanted[0])
        np.testing.assert_array_equal(told[-1]["action_mask"], wanted[-1]["action_mask"])
        actions = np.array([mask.argmax() for mask in wanted[-1]["action_mask"]])
        told, wanted = there.step(actions), here.step(actions)
        for one, other in zip(told[1:4], wanted[1:4], strict=True):
            np.testing.assert_array_equal(one, other)
        over += int(wanted[2].sum())
    assert over >= 3
    there.close()
