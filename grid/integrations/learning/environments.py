"""Environments: the queue of a cluster or the selection of a VO, and the forwarding of all VOs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.errors import missing

try:
    import gymnasium
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ModuleNotFoundError as error:
    raise missing(
        "an environment of grid.integrations.learning", "learning", str(error.name)
    ) from None

from grid.cluster import ClusterState, make_cluster
from grid.config.build import Grid
from grid.integrations.learning.agents import (
    AgentForwarding,
    AgentPolicy,
    AgentSelection,
    Decide,
    QueueObservation,
    ResourceObservation,
)
from grid.integrations.learning.episode import Episodes, Source
from grid.integrations.learning.rewards import ReportedSlowdown, SlowdownSoFar
from grid.model.arrays import Bools
from grid.model.errors import expected_name, input_error
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import Time
from grid.policies.interface import ClusterView, Plan
from grid.results.metrics import Metrics

Observed = npt.NDArray[np.float32]
LARGEST_SEED = 2**31


class _QueueSeat(AgentPolicy):
    """A policy that also sums up the reward of its decisions."""

    def __init__(self, decide: Decide, observation: Any, offered: int, reward: Any) -> None:
        super().__init__(decide, observation, offered)
        self._reward = reward
        self._sum = 0.0

    def plan(self, view: ClusterView, now: Time) -> Plan:
        self._sum += self._reward(view, now)
        return super().plan(view, now)

    def take_reward(self) -> float:
        total, self._sum = self._sum, 0.0
        return total


class ClusterEnv(gymnasium.Env[Observed, np.int64]):
    """The queue of `cluster` ("VO/cluster"), or the `selection` of a VO ("VO"), of a scenario.

    By default, the queue of the grid's first cluster. All else is as in the scenario. A step is one
    decision; any time may pass between two.

    - Queue: action n starts the n-th of the first `offered` waiting jobs, on the fastest machine on
      which it fits; the last action starts no more at this instant (`AgentPolicy`). The default
      observation is `QueueObservation`, the default reward `SlowdownSoFar`: a reward is called with
      the policy's view and the time before each decision, and `reset` at the start of an episode.
    - Selection: action n sends the job to the n-th resource known to the VO (`AgentSelection`).
      The default observation is `ResourceObservation`, the default reward `ReportedSlowdown`.

    `info["action_mask"]` and `action_masks()` mark the open actions. A closed action is replaced as
    those classes describe, and counted in `info["forbidden"]`. `info["time_s"]` is virtual time.

    `reset(seed=n)` runs the scenario with that seed; without one, with the next of a series that
    follows from the last seed. An episode is a whole run, or `most_decisions` of it. `metrics()`
    returns the metrics of an episode that has ended. Raises InputError.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: Source,
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
        self._episodes = Episodes(scenario, overrides, most_decisions)
        vos = self._episodes.first.vos
        self._is_queue = selection is None
        if selection is not None:
            names = [vo.name for vo in vos]
            _check_name("selection", selection, names)
            self._place, self._vo = selection, names.index(selection)
            actions = sum(map(len, self._episodes.first.first_rows().values()))
            self._observation: Any = observation or ResourceObservation(actions)
            self._reward: Any = reward or ReportedSlowdown()
        else:
            clusters = {f"{vo.name}/{one.name}": one for vo in vos for one in vo.clusters}
            self._place = cluster or next(iter(clusters))
            _check_name("cluster", self._place, list(clusters))
            if clusters[self._place].gangs:
                expected = "a cluster whose jobs wait in a single queue"
                raise input_error("cluster", f"{self._place} under a policy for gangs", expected)
            self._offered, actions = offered, offered + 1
            self._observation = observation or QueueObservation(offered)
            self._reward = reward or SlowdownSoFar()
        self.action_space = spaces.Discrete(actions)
        self.observation_space = spaces.Box(0.0, 1.0, self._observation.shape, np.float32)
        self._seat: Any = None
        self._is_over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observed, dict[str, Any]]:
        """Begin an episode. Returns the first observation and `info`."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(LARGEST_SEED)) if seed is None else seed
        if self._is_queue:
            self._reward.reset()
            self._episodes.begin(drawn, clusters={self._place: self._cluster})
        else:
            self._episodes.begin(drawn, selections={self._place: self._selection})
        self._is_over = False
        return self._observed(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Observed, float, bool, bool, dict[str, Any]]:
        """Decide, and run to the next decision. Raises InputError if the episode is over.

        An episode without a decision is over after one step, which does nothing.
        """
        episodes = self._episodes
        if self._is_over:
            raise input_error("step", "a finished episode", "reset() first")
        if episodes.decision is not None:
            episodes.decide(int(action))
        if self._is_queue:
            reward = float(self._seat.take_reward())
        else:
            rows = [row for row in episodes.ended_rows() if row.vo == self._vo]
            reward = float(self._reward(rows))
        over = episodes.decision is None
        self._is_over = over or episodes.is_cut
        return self._observed(), reward, over, episodes.is_cut, self._info()

    def action_masks(self) -> Bools:
        """The open actions, shape (actions,); all, when the episode is over."""
        if self._episodes.decision is None or self._is_over:
            return np.ones(int(self.action_space.n), np.bool_)  # type: ignore[attr-defined]
        return self._episodes.decision.is_open

    def metrics(self) -> Metrics:
        """The metrics of the episode's run. Raises InputError if it has not ended."""
        return self._episodes.metrics()

    def close(self) -> None:
        """Abandon the episode."""
        self._episodes.close()
        self._is_over = True

    def _cluster(self, grid: Grid, vo: VirtualOrganization, cluster: Cluster) -> ClusterState:
        outages, ask = grid.outages_of(vo, cluster), partial(self._episodes.ask, 0)
        self._seat = policy = _QueueSeat(ask, self._observation, self._offered, self._reward)
        return make_cluster(cluster, policy, None, outages, jobs=grid.job_features)

    def _selection(self, own: Any) -> AgentSelection:
        ask = partial(self._episodes.ask, 0)
        self._seat = seat = AgentSelection(ask, own, self._observation)
        return seat

    def _observed(self) -> Observed:
        if self._episodes.decision is None:
            return np.zeros(self._observation.shape, np.float32)
        observed: Observed = self._episodes.decision.observation
        return observed

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks(),
            "time_s": self._episodes.time_s,
            "forbidden": self._seat.forbidden,
        }


class GridEnv(ParallelEnv[str, dict[str, Any], int]):
    """The Local Schedulers of a scenario's VOs, each an agent that chooses where a job goes.

    Agents have the names of their VOs, and are the same in all steps. The forwarding policy of each
    VO is an `AgentForwarding`: action n sends the job to the best resource of VO n. At each step
    one agent has a decision, in the order of virtual time; for the others only the last action is
    open, which does nothing.

    An agent's observation has an `observation` (`ResourceObservation`, zeros without a decision)
    and an `action_mask`. Its default reward is `ReportedSlowdown`: minus the bounded slowdown of
    each job of its users whose end its Local Scheduler received since the last step. A custom
    observation has a `shape`; a custom `reward` is called with the rows of those jobs.

    `reset(seed=n)` runs the scenario with that seed; without one, with the next of a series that
    follows from the last seed. An episode is a whole run, or `most_decisions` of it. All agents end
    together. Raises InputError.
    """

    metadata: dict[str, Any] = {"name": "grid", "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: Source,
        *,
        overrides: Mapping[str, Any] | tuple[str, ...] = (),
        observation: ResourceObservation | None = None,
        reward: Any = None,
        most_decisions: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self._episodes = Episodes(scenario, overrides, most_decisions)
        self.possible_agents = [vo.name for vo in self._episodes.first.vos]
        self.agents: list[str] = []
        vos = len(self.possible_agents)
        self._observation = observation or ResourceObservation(vos)
        self._reward = reward or ReportedSlowdown()
        one = spaces.Dict(
            {
                "observation": spaces.Box(0.0, 1.0, self._observation.shape, np.float32),
                "action_mask": spaces.Box(0, 1, (vos + 1,), np.int8),
            }
        )
        self.observation_spaces = dict.fromkeys(self.possible_agents, one)
        self.action_spaces = {name: spaces.Discrete(vos + 1) for name in self.possible_agents}
        self._rng = np.random.default_rng(self._episodes.first.seed)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of the agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The space of the agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode. Returns the first observations and infos by agent."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        drawn = int(self._rng.integers(LARGEST_SEED)) if seed is None else seed
        ask, vos = self._episodes.ask, len(self.possible_agents)
        self._seats = {
            name: AgentForwarding(partial(ask, number), vos, self._observation)
            for number, name in enumerate(self.possible_agents)
        }
        self._episodes.begin(drawn, rules=self._seats)
        self.agents = list(self.possible_agents) if self._episodes.decision is not None else []
        return self._observed(), self._infos()

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[
        dict[str, dict[str, Any]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Decide, and run to the next decision. Raises InputError if the action is missing."""
        episodes, names = self._episodes, self.agents
        if not names:
            return {}, {}, {}, {}, {}
        assert episodes.decision is not None
        agent = self.possible_agents[episodes.decision.agent]
        if agent not in actions:
            raise input_error("actions", f"no action for {agent}", "an action for each agent")
        episodes.decide(int(actions[agent]))
        over, cut = episodes.decision is None, episodes.is_cut
        rows = episodes.ended_rows()
        rewards = dict.fromkeys(names, 0.0)
        if rows:
            for number, name in enumerate(names):
                rewards[name] = float(self._reward([row for row in rows if row.vo == number]))
        if over or cut:
            self.agents = []
        ends = dict.fromkeys(names, over), dict.fromkeys(names, cut)
        return self._observed(), rewards, *ends, self._infos()

    def metrics(self) -> Metrics:
        """The metrics of the episode's run. Raises InputError if it has not ended."""
        return self._episodes.metrics()

    def close(self) -> None:
        """Abandon the episode."""
        self._episodes.close()

    def _observed(self) -> dict[str, dict[str, Any]]:
        idle = np.zeros(len(self.possible_agents) + 1, np.int8)
        idle[-1] = 1
        nothing = np.zeros(self._observation.shape, np.float32)
        # Agents may keep or change their arrays.
        observed = {
            name: {"observation": nothing.copy(), "action_mask": idle.copy()}
            for name in self.possible_agents
        }
        if self._episodes.decision is not None:
            agent, seen, is_open = self._episodes.decision
            mask = is_open.astype(np.int8)
            observed[self.possible_agents[agent]] = {"observation": seen, "action_mask": mask}
        return observed

    def _infos(self) -> dict[str, dict[str, Any]]:
        time_s = self._episodes.time_s
        return {
            name: {"time_s": time_s, "forbidden": seat.forbidden}
            for name, seat in self._seats.items()
        }


def _check_name(field: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise input_error(field, repr(name), expected_name(str(name), names, f"a {field}"))
