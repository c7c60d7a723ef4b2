"""A vector environment of Gymnasium on Ray actors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import ray

from grid.model.errors import missing

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as error:
    raise missing(
        "an environment of grid.integrations.learning", "learning", str(error.name)
    ) from None

from grid.runtime.cluster import ray_cluster
from grid.runtime.cpus import usable_cpus


@ray.remote(num_cpus=0, max_restarts=0, scheduling_strategy="SPREAD")
class _Envs:
    """Some of the environments, stepped one by one."""

    def __init__(self, make: Callable[[], gymnasium.Env[Any, Any]], count: int) -> None:
        self._envs = SyncVectorEnv([make] * count)

    def spaces(self) -> tuple[Any, Any]:
        return self._envs.single_observation_space, self._envs.single_action_space

    def reset(self, seeds: list[int | None] | None) -> Any:
        return self._envs.reset(seed=seeds)

    def step(self, actions: Any) -> Any:
        return self._envs.step(actions)


class RayVectorEnv(VectorEnv[Any, Any, Any]):
    """`count` environments made by `make` on Ray actors, by default one for each CPU.

    It behaves like Gymnasium's `SyncVectorEnv`: environment n is reset with seed + n, and begins an
    episode with the step after the end of the last. Episodes do not depend on the number of
    `actors`. `address` is that of a Ray cluster; by default one is started, and ended by `close()`.
    """

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        count: int,
        *,
        actors: int | None = None,
        address: str | None = None,
    ) -> None:
        actors = min(count, actors or usable_cpus())
        self._kept = ExitStack()
        self._kept.enter_context(ray_cluster(address, cpus=None if address else actors))
        self._bounds = np.linspace(0, count, actors + 1).astype(int).tolist()
        sizes = np.diff(self._bounds).tolist()
        self._actors = [_Envs.remote(make, size) for size in sizes]  # type: ignore[attr-defined]
        seen, acts = ray.get(self._actors[0].spaces.remote())
        self.num_envs = count
        self.single_observation_space, self.single_action_space = seen, acts
        self.observation_space = batch_space(seen, count)
        self.action_space = batch_space(acts, count)
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode of each environment."""
        seeds = [seed + n for n in range(self.num_envs)] if isinstance(seed, int) else seed
        answers = ray.get(
            [
                actor.reset.remote(None if seeds is None else seeds[first:last])
                for actor, first, last in self._parts()
            ]
        )
        seen, infos = zip(*answers, strict=True)
        return np.concatenate(seen), _joined(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step each environment."""
        actions = np.asarray(actions)
        answers = ray.get(
            [actor.step.remote(actions[first:last]) for actor, first, last in self._parts()]
        )
        *columns, infos = zip(*answers, strict=True)
        seen, gained, over, cut = map(np.concatenate, columns)
        return seen, gained, over, cut, _joined(infos)

    def close_extras(self, **kwargs: Any) -> None:
        """End the actors, and Ray if it was started here."""
        for actor in self._actors:
            ray.kill(actor)
        self._kept.close()

    def _parts(self) -> list[tuple[Any, int, int]]:
        return list(zip(self._actors, self._bounds[:-1], self._bounds[1:], strict=True))


def _joined(infos: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    return {name: np.concatenate([one[name] for one in infos]) for name in infos[0]}
