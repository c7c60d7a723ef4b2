"""One cluster's queue, or one VO's selection, as an environment of Gymnasium."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.extras import missing

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise missing(
        "an environment of grid.integrations.learning", "learning", str(error.name)
    ) from None

from grid.cluster import ClusterShell, make_cluster
from grid.config.build import Grid
from grid.config.load import load_scenario, source_of
from grid.config.schema import Scenario
from grid.integrations.learning.play import Decision, Play, grid_of
from grid.integrations.learning.queue_agent import (
    AgentPolicy,
    Decide,
    Observation,
    QueueObservation,
)
from grid.integrations.learning.resource_agent import AgentSelection, ResourceObservation
from grid.integrations.learning.rewards import (
    QueueReward,
    SlowdownSoFar,
    SlowdownTold,
)
from grid.model.arrays import Bools
from grid.model.errors import expected_name, input_error
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import Time, to_seconds
from grid.policies.interface import ClusterView, Plan
from grid.results.metrics import Metrics

Observed = npt.NDArray[np.float32]
LARGEST_SEED = 2**31


class _SeatOfQueue(AgentPolicy):
    """A policy that also counts what its decisions gain."""

    def __init__(
        self, decide: Decide, observation: Observation, offered: int, reward: QueueReward
    ) -> None:
        super().__init__(decide, observation, offered)
        self._reward = reward
        self._gained = 0.0

    def plan(self, view: ClusterView, now: Time) -> Plan:
        self._gained += self._reward(view, now)
        return super().plan(view, now)

    def take_gained(self) -> float:
        gained, self._gained = self._gained, 0.0
        return gained


class ClusterEnv(gymnasium.Env[Observed, np.int64]):
    """The queue of `cluster` ("VO/cluster"), or the `selection` of a VO ("VO"), of a scenario.

    By default, the queue of the grid's first cluster. All else is as the scenario has it. A step is
    one decision; between two, any time may pass.

    - Of a queue: action n starts the n-th of the first `offered` waiting jobs, on the fastest
      machine where it fits; the last action starts no more at this instant (`AgentPolicy`).
      Observed is `QueueObservation`, the reward `SlowdownSoFar`, unless others are given.
    - Of a selection: action n sends the job to resource n of those that the VO knows of
      (`AgentSelection`). Observed is `ResourceObservation`, the reward `SlowdownTold`.

    `info["action_mask"]`, and `action_masks()`, say which actions are open. One that is not is
    taken for another, as those classes say, and counted in `info["forbidden"]`. `info["time_s"]`
    is the virtual time.

    `reset(seed=n)` plays the scenario with that seed; without one, with the next of a row that
    follows from the last seed given. An episode is a whole run, or `most_decisions` of them.
    `metrics()` are the figures of an episode that is over. Raises InputError.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
        *,
        cluster: str | None = None,
        selection: str | None = None,
        overrides: Mapping[str, Any] | tuple[str, ...] = (),
        offered: int = 16,
        observation: Any = None,
        reward: Any = None,
        most_decisions: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self._scenario = load_scenario(scenario, overrides)
        self._source = source_of(scenario)
        self._most = most_decisions
        first = grid_of(self._scenario, self._source, self._scenario.seed)
        self._place = selection or cluster or ""
        self._is_queue = selection is None
        if not self._is_queue:
            names = [vo.name for vo in first.vos]
            _known("selection", self._place, names)
            self._vo = names.index(self._place)
            rows = sum(len(rows) for rows in first.first_rows().values())
            self._observation: Any = observation or ResourceObservation(rows)
            self._reward: Any = reward or SlowdownTold()
            actions = rows
        else:
            vos = first.vos
            names = [f"{vo.name}/{one.name}" for vo in vos for one in vo.clusters]
            self._place = self._place or names[0]
            _known("cluster", self._place, names)
            gangs = [f"{vo.name}/{one.name}" for vo in vos for one in vo.clusters if one.gangs]
            if self._place in gangs:
                expected = "one whose jobs wait in one queue"
                raise input_error("cluster", f"{self._place} under a policy for gangs", expected)
            self._offered = offered
            self._observation = observation or QueueObservation(offered)
            self._reward = reward or SlowdownSoFar()
            actions = offered + 1
        self.action_space = spaces.Discrete(actions)
        self.observation_space = spaces.Box(0.0, 1.0, self._observation.shape, np.float32)
        self._nothing = np.zeros(self._observation.shape, np.float32)
        self._seat: Any = None
        self._play: Play | None = None
        self._decision: Decision | None = None
        self._is_over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observed, dict[str, Any]]:
        """Begin an episode: what is observed first, and what more there is to know."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(LARGEST_SEED)) if seed is None else seed
        self.close()
        grid = grid_of(self._scenario, self._source, drawn)
        self._decisions = 0
        play = self._play = Play()
        if self._is_queue:
            self._reward.reset()
            seats: dict[str, Any] = {"clusters": {self._place: partial(self._cluster, play)}}
        else:
            seats = {"selections": {self._place: partial(self._selection, play)}}
        self._decision, self._is_over = play.begin(grid, **seats), False
        return self._observed(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Observed, float, bool, bool, dict[str, Any]]:
        """Decide, and play to the next decision. Raises InputError where the episode is over.

        An episode in which there is nothing to decide is over after one step, which does nothing.
        """
        if self._play is None or self._is_over:
            raise input_error("step", "an episode that is over", "reset() first")
        if self._decision is not None:
            self._decision = self._play.answer(int(action))
            self._decisions += 1
        over = self._decision is None
        cut = not over and self._decisions == self._most
        observed, info, gained = self._observed(), self._info(), self._gains()
        self._is_over = over or cut
        if cut:
            self._decision = None
        return observed, gained, over, cut, info

    def action_masks(self) -> Bools:
        """Which actions are open now, shape (actions,); all, when the episode is over."""
        if self._decision is None:
            return np.ones(int(self.action_space.n), np.bool_)  # type: ignore[attr-defined]
        return self._decision.is_open

    def metrics(self) -> Metrics:
        """The figures of the episode, which is over. Raises InputError where it is not."""
        if self._play is None or self._decision is not None or self._decisions == self._most:
            raise input_error("metrics", "an episode that is not over", "the end of a whole run")
        return self._play.metrics()

    def close(self) -> None:
        """Leave the episode, if there is one."""
        if self._play is not None:
            self._play.close()
        self._play = self._decision = None

    def _cluster(
        self, play: Play, grid: Grid, vo: VirtualOrganization, cluster: Cluster
    ) -> ClusterShell:
        """The cluster with its queue decided by the agent."""
        outages, decide = grid.outages_of(vo, cluster), partial(play.ask, 0)
        self._seat = policy = _SeatOfQueue(decide, self._observation, self._offered, self._reward)
        return make_cluster(cluster, policy, None, outages, memory=grid.asks_for_memory)

    def _selection(self, play: Play, own: Any) -> AgentSelection:
        self._seat = seat = AgentSelection(partial(play.ask, 0), own, self._observation)
        return seat

    def _gains(self) -> float:
        assert self._play is not None
        if self._is_queue:
            return float(self._seat.take_gained())
        return float(self._reward([row for row in self._play.news() if row.vo == self._vo]))

    def _observed(self) -> Observed:
        if self._decision is None:
            return self._nothing.copy()
        observed: Observed = self._decision.observation
        return observed

    def _info(self) -> dict[str, Any]:
        assert self._play is not None
        return {
            "action_mask": self.action_masks(),
            "time_s": to_seconds(self._play.now),
            "forbidden": self._seat.forbidden,
        }


def _known(field: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise input_error(field, repr(name), expected_name(str(name), names, f"a {field}"))
