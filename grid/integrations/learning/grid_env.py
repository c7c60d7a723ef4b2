"""The forwarding of all VOs of a grid as a parallel environment of PettingZoo."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from grid.model.extras import missing

try:
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ModuleNotFoundError as error:
    raise missing(
        "an environment of grid.integrations.learning", "learning", str(error.name)
    ) from None

from grid.config.load import load_scenario, source_of
from grid.config.schema import Scenario
from grid.integrations.learning.play import Decision, Play, grid_of
from grid.integrations.learning.resource_agent import AgentForwarding, ResourceObservation
from grid.integrations.learning.rewards import NewsReward, SlowdownTold
from grid.model.errors import input_error
from grid.model.time import to_seconds
from grid.results.metrics import Metrics

LARGEST_SEED = 2**31


class GridEnv(ParallelEnv[str, dict[str, Any], int]):
    """The Local Schedulers of a scenario's VOs, each an agent that says where a job goes.

    Agents are called like their VOs, and are the same ones from the first step to the last. The
    rule of forwarding of each VO is an `AgentForwarding`: action n sends the job to the best
    resource of VO number n. Decisions come one by one, in the order of virtual time, as those of
    two VOs never fall together in a grid: at each step one agent has a decision to make, and to all
    others only the last action is open, which does nothing.

    An agent's observation has an `observation` (`ResourceObservation`, zeros for those who have
    nothing to decide) and an `action_mask`. Its reward is `SlowdownTold`: minus the bounded
    slowdown of each job of its users whose end its Local Scheduler has heard of since the last
    step. Others can be given: an observation with a `shape`, and a `reward` that is called with
    the rows of the jobs.

    `reset(seed=n)` plays the scenario with that seed; without one, with the next of a row that
    follows from the last seed given. An episode is a whole run, or `most_decisions` of them. All
    agents end together. Raises InputError.
    """

    metadata: dict[str, Any] = {"name": "grid", "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
        *,
        overrides: Mapping[str, Any] | tuple[str, ...] = (),
        observation: ResourceObservation | None = None,
        reward: NewsReward | None = None,
        most_decisions: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self._scenario = load_scenario(scenario, overrides)
        self._source = source_of(scenario)
        self._most = most_decisions
        first = grid_of(self._scenario, self._source, self._scenario.seed)
        self.possible_agents = [vo.name for vo in first.vos]
        self.agents: list[str] = []
        vos = len(self.possible_agents)
        self._observation = observation or ResourceObservation(vos)
        self._reward = reward or SlowdownTold()
        one = spaces.Dict(
            {
                "observation": spaces.Box(0.0, 1.0, self._observation.shape, np.float32),
                "action_mask": spaces.Box(0, 1, (vos + 1,), np.int8),
            }
        )
        self.observation_spaces = dict.fromkeys(self.possible_agents, one)
        self.action_spaces = {name: spaces.Discrete(vos + 1) for name in self.possible_agents}
        self._nothing = np.zeros(self._observation.shape, np.float32)
        self._idle = np.zeros(vos + 1, np.int8)
        self._idle[-1] = 1
        self._rng = np.random.default_rng(first.seed)
        self._play: Play | None = None
        self._decision: Decision | None = None

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """What the agent may observe."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """What the agent may do."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Begin an episode: what each agent observes first, and what more there is to know."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        drawn = int(self._rng.integers(LARGEST_SEED)) if seed is None else seed
        self.close()
        grid = grid_of(self._scenario, self._source, drawn)
        play = self._play = Play()
        vos = len(self.possible_agents)
        self._seats = {
            name: AgentForwarding(partial(play.ask, number), vos, self._observation)
            for number, name in enumerate(self.possible_agents)
        }
        self._decisions = 0
        self._decision = play.begin(grid, rules=self._seats)
        self.agents = list(self.possible_agents) if self._decision is not None else []
        return self._observed(self.possible_agents), self._infos(self.possible_agents)

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[
        dict[str, dict[str, Any]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Decide, and play to the next decision. Raises InputError where its action is missing."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        assert self._decision is not None and self._play is not None
        who = self.possible_agents[self._decision.who]
        if who not in actions:
            raise input_error("actions", f"none of {who}", "one of each agent")
        self._decision = self._play.answer(int(actions[who]))
        self._decisions += 1
        over = self._decision is None
        cut = not over and self._decisions == self._most
        names = self.agents
        rewards = self._rewards(names)
        observed, infos = self._observed(names), self._infos(names)
        if over or cut:
            self.agents = []
        return observed, rewards, dict.fromkeys(names, over), dict.fromkeys(names, cut), infos

    def metrics(self) -> Metrics:
        """The figures of the episode, which is over. Raises InputError where it is not."""
        if self._play is None or self._decision is not None:
            raise input_error("metrics", "an episode that is not over", "the end of a whole run")
        return self._play.metrics()

    def close(self) -> None:
        """Leave the episode, if there is one."""
        if self._play is not None:
            self._play.close()
        self._play = self._decision = None

    def _rewards(self, names: list[str]) -> dict[str, float]:
        assert self._play is not None
        news = self._play.news()
        if not news:
            return dict.fromkeys(names, 0.0)
        return {
            name: float(self._reward([row for row in news if row.vo == number]))
            for number, name in enumerate(names)
        }

    def _observed(self, names: list[str]) -> dict[str, dict[str, Any]]:
        nothing, idle = self._nothing, self._idle
        # Each has arrays of its own, for an agent may keep or change what it sees.
        observed = {
            name: {"observation": nothing.copy(), "action_mask": idle.copy()} for name in names
        }
        if self._decision is not None:
            who, told, is_open = self._decision
            observed[names[who]] = {"observation": told, "action_mask": is_open.astype(np.int8)}
        return observed

    def _infos(self, names: list[str]) -> dict[str, dict[str, Any]]:
        assert self._play is not None
        time_s = to_seconds(self._play.now)
        return {
            name: {"time_s": time_s, "forbidden": self._seats[name].forbidden} for name in names
        }
