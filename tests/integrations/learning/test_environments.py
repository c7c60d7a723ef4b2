"""Environments: the checks of Gymnasium and PettingZoo, repeatable episodes, rewards, seats."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np
import pytest

import grid
from grid.integrations.learning.agents import AgentForwarding, AgentPolicy, AgentSelection
from grid.model.errors import InputError
from grid.protocol.selection.by_utility import partial
from tests.integrations.learning.grids import Chance, one_pool, three_vos

pytest.importorskip("gymnasium", reason="needs the extra `learning`")
pytest.importorskip("pettingzoo", reason="needs the extra `learning`")
pytest.importorskip("greenlet", reason="needs the extra `learning`")

from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from grid.integrations.learning import ClusterEnv, GridEnv, WaitSoFar

VOS = ["north", "south", "west"]


def episode(env: ClusterEnv, seed: int, agent: Any) -> tuple[str, float]:
    """A digest of all observations and rewards, and the sum of rewards."""
    digest, total, over = hashlib.sha256(), 0.0, False
    seen, info = env.reset(seed=seed)
    while not over:
        action = agent(seen, info["action_mask"])
        digest.update(seen.tobytes() + info["action_mask"].tobytes())
        seen, reward, over, _, info = env.step(action)
        digest.update(repr((reward, info["time_s"])).encode())
        total += reward
    return digest.hexdigest(), total


def act(seen: dict[str, Any], agent: Any) -> dict[str, int]:
    return {name: agent(one["observation"], one["action_mask"]) for name, one in seen.items()}


def grid_episode(env: GridEnv, seed: int, agent: Any) -> tuple[str, dict[str, float]]:
    digest, total = hashlib.sha256(), dict.fromkeys(env.possible_agents, 0.0)
    seen, _ = env.reset(seed=seed)
    while env.agents:
        seen, rewards, _, _, _ = env.step(act(seen, agent))
        digest.update(b"".join(one["observation"].tobytes() for one in seen.values()))
        digest.update(repr(sorted(rewards.items())).encode())
        total = {name: total[name] + rewards[name] for name in total}
    return digest.hexdigest(), total


def first_open(_: Any, is_open: Any) -> int:
    return int(np.argmax(is_open))


def last_open(_: Any, is_open: Any) -> int:
    return int(np.flatnonzero(is_open)[-1])


@pytest.mark.parametrize(
    "settings",
    [{"scenario": one_pool(20)}, {"scenario": three_vos(8), "selection": "north"}],
    ids=["queue", "selection"],
)
def test_gymnasium_accepts_it(settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        # It prefers a registered id to an object.
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(ClusterEnv(**settings), skip_render_check=True)


def test_pettingzoo_accepts_it() -> None:
    parallel_api_test(GridEnv(three_vos(6)), num_cycles=200)


def farm() -> dict[str, Any]:
    scenario = one_pool(15, machines=[{"cpus": 8, "count": 2}])
    del scenario["vos"][0]["clusters"][0]["cpus"]
    return scenario


@pytest.mark.parametrize(
    "settings",
    [
        {"scenario": one_pool(15)},
        {"scenario": farm()},
        {"scenario": three_vos(5), "selection": "south"},
    ],
    ids=["pool", "farm", "selection"],
)
def test_episodes_of_a_seed_are_equal(settings: dict[str, Any]) -> None:
    once, again = ClusterEnv(**settings), ClusterEnv(**settings)
    first = [episode(once, seed, Chance(seed)) for seed in range(5)]
    assert first == [episode(again, seed, Chance(seed)) for seed in range(5)]
    assert len({digest for digest, _ in first}) == 5


def test_episodes_of_a_grid_of_a_seed_are_equal() -> None:
    once, again = GridEnv(three_vos(5)), GridEnv(three_vos(5))
    first = [grid_episode(once, seed, Chance(seed)) for seed in range(5)]
    assert first == [grid_episode(again, seed, Chance(seed)) for seed in range(5)]
    assert len({digest for digest, _ in first}) == 5


def test_rewards_of_a_queue_add_up_to_slowdowns_and_waits() -> None:
    for reward, metric in ((None, "bounded_slowdown_mean"), (WaitSoFar(), "wait_mean")):
        env = ClusterEnv(one_pool(80), reward=reward)
        _, total = episode(env, 5, Chance(5))
        mean = env.metrics()["grid"][metric]
        assert mean is not None
        # Estimates are exact here; a bounded slowdown hides short waits of jobs under 10 s.
        expected = -80 * mean / 3600.0 if reward else 80 * (1.0 - mean)
        assert total == pytest.approx(expected, rel=1e-6 if reward else 0.02)


def test_rewards_of_vos_are_the_slowdowns_of_their_users() -> None:
    env = GridEnv(three_vos(20))
    _, total = grid_episode(env, 3, Chance(3))
    first = env.metrics()
    for name, figures in first["vos"].items():
        mean = figures["bounded_slowdown_mean"]
        assert mean is not None
        assert total[name] == pytest.approx(-20 * mean)
    assert env.metrics() == first


def test_observations_do_not_depend_on_actual_run_times() -> None:
    def seen_before_an_end(run_s: float) -> list[bytes]:
        listed = [
            {"submit_s": n, "run_s": run_s, "estimate_s": 500, "cpus": 1 + n % 3} for n in range(12)
        ]
        scenario = one_pool()
        scenario["vos"][0]["workload"] = {"jobs": listed, "entry_point": "cluster"}
        env, found, over = ClusterEnv(scenario), list[bytes](), False
        seen, info = env.reset(seed=1)
        while not over and info["time_s"] < 100:
            found.append(seen.tobytes() + info["action_mask"].tobytes())
            seen, reward, over, _, info = env.step(info["action_mask"].argmax())
            found.append(repr(reward).encode() if info["time_s"] < 100 else b"")
        return found

    assert seen_before_an_end(100) == seen_before_an_end(400)


def test_one_agent_decides_at_a_time() -> None:
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


def test_a_job_that_fits_is_started_while_nothing_runs() -> None:
    env = ClusterEnv(one_pool(10), offered=4)
    _, info = env.reset(seed=3)
    assert info["action_mask"].tolist() == [True, False, False, False, False]
    _, _, over, _, info = env.step(4)
    assert info["forbidden"] == 1
    while not over:
        _, _, over, _, info = env.step(4)
    assert env.metrics()["grid"]["jobs_completed"] == 10


def test_an_episode_can_be_cut_or_have_no_decision() -> None:
    env = ClusterEnv(one_pool(30), most_decisions=5)
    env.reset(seed=1)
    assert [env.step(0)[3] for _ in range(5)] == [False, False, False, False, True]
    for refused in (lambda: env.step(0), env.metrics):
        with pytest.raises(InputError):
            refused()
    jobs = {"jobs": [{"submit_s": 1.0, "run_s": 5.0}]}
    lab = {"name": "lab", "clusters": [{"name": "pool", "cpus": 2}], "workload": jobs}
    env = ClusterEnv({"vos": [lab]}, selection="lab")
    env.reset(seed=1)
    assert env.step(0)[1:4] == (-1.0, True, False)
    assert env.metrics()["grid"]["jobs_completed"] == 1
    with pytest.raises(InputError):
        env.step(0)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"cluster": "lab/pol"}, "cluster"),
        ({"selection": "laboratory"}, "selection"),
        ({"overrides": {"seed": -1}}, "seed"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=field):
        ClusterEnv(one_pool(), **settings)
    with pytest.raises(InputError, match="cluster"):
        ClusterEnv(one_pool(policy="afcfs"))


def test_machines_may_fail_but_messages_may_not_be_lost() -> None:
    outage = {"vo": "lab", "cluster": "pool", "machine": 0, "at_s": 50.0, "for_s": 100.0}
    scenario = one_pool(20)
    scenario["vos"][0]["workload"]["entry_point"] = "scheduler"
    env = ClusterEnv(scenario | {"faults": {"heal_s": 1000.0, "machine_outages": [outage]}})
    episode(env, 1, first_open)
    assert env.metrics()["grid"]["jobs_completed"] == 20
    lossy = scenario | {"faults": {"heal_s": 1000.0, "within_vos": {"lost": 0.1}}}
    with pytest.raises(InputError, match="faults"):
        ClusterEnv(lossy).reset(seed=1)


def test_trained_agents_make_the_same_decisions_in_a_scenario() -> None:
    scenario = one_pool(40)
    env = ClusterEnv(scenario)
    episode(env, 7, first_open)
    scenario["vos"][0]["clusters"][0]["policy"] = "mine"
    run = grid.run(scenario, set={"seed": 7}, policies={"mine": lambda: AgentPolicy(first_open)})
    assert run.metrics["grid"] == env.metrics()["grid"]

    scenario = three_vos(15)
    env = ClusterEnv(scenario, selection="north")
    episode(env, 4, last_open)
    scenario["vos"][0]["selection"] = "mine"
    selections = {"mine": lambda: AgentSelection(last_open, partial())}
    run = grid.run(scenario, set={"seed": 4}, selections=selections)
    assert run.metrics["grid"] == env.metrics()["grid"]

    scenario = three_vos(15)
    vos = GridEnv(scenario)
    grid_episode(vos, 4, last_open)
    scenario["protocol"] = {"forwarding": "mine"}
    forwarding = {"mine": AgentForwarding(last_open, vos=3)}
    run = grid.run(scenario, set={"seed": 4}, forwarding=forwarding)
    assert run.metrics["grid"] == vos.metrics()["grid"]
