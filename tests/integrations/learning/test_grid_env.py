"""`GridEnv`: what PettingZoo demands, the same episodes again, and news that take their time."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from grid.integrations.learning.resource_agent import AgentForwarding, AgentSelection
from grid.protocol.selection.by_utility import partial
from tests.integrations.learning.grids import Chance, three_vos

pytest.importorskip("pettingzoo", reason="needs the extra `learning`")
pytest.importorskip("greenlet", reason="needs the extra `learning`")

from pettingzoo.test import parallel_api_test

from grid.integrations.learning.cluster_env import ClusterEnv
from grid.integrations.learning.grid_env import GridEnv

VOS = ["north", "south", "west"]


def act(seen: dict[str, Any], agent: Any) -> dict[str, int]:
    return {name: agent(one["observation"], one["action_mask"]) for name, one in seen.items()}


def episode(env: GridEnv, seed: int, agent: Any) -> tuple[str, dict[str, float]]:
    said, total = hashlib.sha256(), dict.fromkeys(env.possible_agents, 0.0)
    seen, _ = env.reset(seed=seed)
    while env.agents:
        seen, gained, _, _, _ = env.step(act(seen, agent))
        said.update(b"".join(one["observation"].tobytes() for one in seen.values()))
        said.update(repr(sorted(gained.items())).encode())
        total = {name: total[name] + gained[name] for name in total}
    return said.hexdigest(), total


def test_pettingzoo_finds_no_fault() -> None:
    parallel_api_test(GridEnv(three_vos(6)), num_cycles=200)


def test_episodes_of_a_seed_are_the_same() -> None:
    once, again = GridEnv(three_vos(5)), GridEnv(three_vos(5))
    first = [episode(once, seed, Chance(seed)) for seed in range(100)]
    assert first == [episode(again, seed, Chance(seed)) for seed in range(100)]
    assert len({digest for digest, _ in first}) == 100


def test_one_agent_decides_and_the_others_do_nothing() -> None:
    env = GridEnv(three_vos(10))
    assert env.possible_agents == VOS
    seen, _ = env.reset(seed=1)
    decided = set()
    while env.agents:
        assert env.agents == VOS
        busy = [name for name, one in seen.items() if one["action_mask"][:-1].any()]
        assert len(busy) == 1
        decided.add(busy[0])
        idle = [one for name, one in seen.items() if name != busy[0]]
        assert all(one["action_mask"].tolist() == [0, 0, 0, 1] for one in idle)
        assert not any(one["observation"].any() for one in idle)
        seen, *_ = env.step(act(seen, Chance(1)))
    assert decided == set(VOS)


def test_the_reward_is_the_slowdown_that_users_see() -> None:
    env = GridEnv(three_vos(20))
    _, total = episode(env, 3, Chance(3))
    for name, figures in env.metrics()["vos"].items():
        mean = figures["bounded_slowdown_mean"]
        assert mean is not None
        assert total[name] == pytest.approx(-20 * mean)


def test_figures_that_are_asked_for_again_are_the_same() -> None:
    env = GridEnv(three_vos(5))
    episode(env, 3, Chance(3))
    first = env.metrics()
    assert first["grid"]["jobs_completed"] == 15
    assert env.metrics() == first


def test_news_of_an_end_come_as_late_as_their_message() -> None:
    """A job that ran elsewhere is heard of a hop later than it ended."""
    scenario = three_vos(1)
    for number, vo in enumerate(scenario["vos"]):
        job = {"submit_s": 10.0 if number == 0 else 1000.0, "run_s": 100.0}
        later = [{"submit_s": 110.3 + 0.02 * n, "run_s": 5.0} for n in range(60)]
        vo["workload"] = {"jobs": [job] if number else [job, *later]}
    env = GridEnv(scenario)
    seen, infos = env.reset(seed=1)
    heard = None
    while env.agents and heard is None:
        actions = act(seen, lambda _, is_open: 1 if is_open[1] else int(np.argmax(is_open)))
        seen, gained, _, _, infos = env.step(actions)
        if gained["north"]:
            heard = infos["north"]["time_s"]
    # It arrives in the south after more than half a second, runs for 100 s, and the news come back.
    assert heard is not None
    assert 111.0 < heard < 112.0


def test_what_was_trained_is_a_rule_and_a_selection_of_a_scenario() -> None:
    import grid

    env = GridEnv(three_vos(15))

    def home_last(_: Any, is_open: Any) -> int:
        return int(np.flatnonzero(is_open)[-1])

    episode(env, 4, home_last)
    scenario = three_vos(15)
    scenario["protocol"] = {"forwarding": "mine"}
    run = grid.run(
        scenario, set={"seed": 4}, forwarding={"mine": AgentForwarding(home_last, vos=3)}
    )
    assert run.metrics["grid"] == env.metrics()["grid"]


def test_an_agent_of_one_selection_as_a_part() -> None:
    import grid

    env = ClusterEnv(three_vos(15), selection="north")
    _, info = env.reset(seed=4)
    over = False
    while not over:
        *_, over, _, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
    scenario = three_vos(15)
    scenario["vos"][0]["selection"] = "mine"

    def mine() -> AgentSelection:
        return AgentSelection(lambda _, is_open: int(np.flatnonzero(is_open)[-1]), partial())

    run = grid.run(scenario, set={"seed": 4}, selections={"mine": mine})
    assert run.metrics["grid"] == env.metrics()["grid"]
