"""`ClusterEnv`: what Gymnasium demands, the same episodes again, and what an agent may know."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np
import pytest

from grid.cluster import make_cluster
from grid.integrations.learning.queue_agent import AgentPolicy
from grid.model.arrays import Ints
from grid.model.errors import InputError
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine
from grid.policies.interface import ClusterView, Slots
from tests.integrations.learning.grids import Chance, one_pool, three_vos

pytest.importorskip("gymnasium", reason="needs the extra `learning`")
pytest.importorskip("greenlet", reason="needs the extra `learning`")

from gymnasium.utils.env_checker import check_env

from grid.integrations.learning.cluster_env import ClusterEnv
from grid.integrations.learning.rewards import WaitSoFar


def episode(env: ClusterEnv, seed: int, agent: Any) -> tuple[str, float, int]:
    """A digest of all that was seen and gained, what was gained, and the steps."""
    said, total, steps = hashlib.sha256(), 0.0, 0
    seen, info = env.reset(seed=seed)
    over = False
    while not over:
        said.update(seen.tobytes() + info["action_mask"].tobytes() + repr(info["time_s"]).encode())
        seen, gained, over, _, info = env.step(agent(seen, info["action_mask"]))
        said.update(np.float64(gained).tobytes())
        total += gained
        steps += 1
    return said.hexdigest(), total, steps


@pytest.mark.parametrize(
    "settings",
    [{"scenario": one_pool(20)}, {"scenario": three_vos(8), "selection": "north"}],
    ids=["queue", "selection"],
)
def test_gymnasium_finds_no_fault(settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        # It would rather have a registered id than an object.
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(ClusterEnv(**settings), skip_render_check=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"scenario": one_pool(15)},
        {"scenario": one_pool(15, machines=[{"cpus": 8, "count": 2}], processors=None)},
        {"scenario": three_vos(5), "selection": "south"},
    ],
    ids=["pool", "farm", "selection"],
)
def test_episodes_of_a_seed_are_the_same(settings: dict[str, Any]) -> None:
    cluster = settings["scenario"]["vos"][0]["clusters"][0]
    cluster |= {} if cluster.get("processors") else {"cpus": None}
    clean = {key: value for key, value in cluster.items() if value is not None}
    settings["scenario"]["vos"][0]["clusters"][0] = clean
    once, again = ClusterEnv(**settings), ClusterEnv(**settings)
    first = [episode(once, seed, Chance(seed)) for seed in range(100)]
    assert first == [episode(again, seed, Chance(seed)) for seed in range(100)]
    assert len({digest for digest, _, _ in first}) == 100


class OneByOne(AgentPolicy):
    """Asks for the machine of each job in plain Python."""

    def _machines(self, view: ClusterView, queue: Slots) -> tuple[Ints, int]:
        places = np.full(self.offered, -1, np.int64)
        for place, slot in enumerate(queue[: self.offered].tolist()):
            places[place] = view.fastest(slot)
        return places, int((places >= 0).sum())


def test_compiled_code_finds_the_machines_that_plain_code_finds() -> None:
    from tests.policies.batsim.asked_functions import drawn_jobs

    machines = (Machine("a", 8, 500.0), Machine("b", 4, 2000.0), Machine("c", 16, 1000.0))
    told: list[list[bytes]] = []
    for kind in (AgentPolicy, OneByOne):
        seen: list[bytes] = []

        def decide(told: Any, is_open: Any, seen: list[bytes] = seen) -> int:
            seen.append(told.tobytes() + is_open.tobytes())
            return int(np.flatnonzero(is_open)[len(seen) % int(is_open.sum())])

        cluster = make_cluster(Cluster("farm", machines), kind(decide))
        cluster.submit_rows(drawn_jobs(150, 4))
        cluster.advance(2**60)
        rows, outcome = cluster.take_ended_rows()
        told.append([*seen, outcome.machine.tobytes(), outcome.start_us.tobytes(), rows.tobytes()])
    assert told[0] == told[1]
    assert len(told[0]) > 150


def test_more_jobs_at_once_than_the_pool_has_room_for() -> None:
    listed = [{"submit_s": 0 if n < 600 else 50, "run_s": 9 + n % 7} for n in range(1500)]
    scenario = one_pool()
    scenario["vos"][0]["workload"] = {"jobs": listed, "entry_point": "cluster"}
    env = ClusterEnv(scenario)
    episode(env, 1, Chance(1))
    assert env.metrics()["grid"]["jobs_completed"] == 1500


def test_the_reward_adds_up_to_minus_the_slowdown_above_one() -> None:
    scenario = one_pool(80)
    env = ClusterEnv(scenario)
    _, total, _ = episode(env, 5, Chance(5))
    jobs = env.metrics()["grid"]
    # Estimates are exact here. A job under 10 s may have waited less than a bounded slowdown shows.
    mean = jobs["bounded_slowdown_mean"]
    assert mean is not None
    assert total == pytest.approx(80 * (1.0 - mean), rel=0.02)


def test_the_wait_adds_up_to_minus_the_hours_waited() -> None:
    env = ClusterEnv(one_pool(80), reward=WaitSoFar())
    _, total, _ = episode(env, 5, Chance(5))
    mean = env.metrics()["grid"]["wait_mean"]
    assert mean is not None
    assert total == pytest.approx(-80 * mean / 3600.0)


def test_nothing_that_an_agent_sees_hangs_on_true_run_times() -> None:
    """Two workloads that differ in run times alone look alike until the first job ends."""

    def seen_before_an_end(run_s: float) -> list[bytes]:
        listed = [
            {"submit_s": n, "run_s": run_s, "estimate_s": 500, "cpus": 1 + n % 3} for n in range(12)
        ]
        scenario = one_pool()
        scenario["vos"][0]["workload"] = {"jobs": listed, "entry_point": "cluster"}
        env, told = ClusterEnv(scenario), []
        seen, info = env.reset(seed=1)
        over = False
        while not over and info["time_s"] < 100:
            told.append(seen.tobytes() + info["action_mask"].tobytes())
            seen, gained, over, _, info = env.step(info["action_mask"].argmax())
            told.append(repr(gained).encode() if info["time_s"] < 100 else b"")
        return told

    assert seen_before_an_end(100) == seen_before_an_end(400)


def test_a_job_that_fits_is_started_while_nothing_runs() -> None:
    env = ClusterEnv(one_pool(10), offered=4)
    _, info = env.reset(seed=3)
    assert info["action_mask"].tolist() == [True, False, False, False, False]
    _, _, _, _, info = env.step(4)
    assert info["forbidden"] == 1
    over = False
    while not over:
        _, _, over, _, info = env.step(4)
    assert env.metrics()["grid"]["jobs_completed"] == 10


def test_an_episode_that_is_cut_short() -> None:
    env = ClusterEnv(one_pool(30), most_decisions=5)
    env.reset(seed=1)
    steps = [env.step(0) for _ in range(5)]
    assert [cut for _, _, _, cut, _ in steps] == [False, False, False, False, True]
    with pytest.raises(InputError, match=r"reset\(\) first"):
        env.step(0)
    with pytest.raises(InputError, match="the end of a whole run"):
        env.metrics()


def test_an_episode_without_a_decision_is_over_after_one_step() -> None:
    """A VO that hears of no other resource than its own one has nothing to choose."""
    pool = {"name": "pool", "cpus": 2}
    jobs = {"jobs": [{"submit_s": 1.0, "run_s": 5.0}]}
    lab = {"name": "lab", "clusters": [pool], "workload": jobs}
    env = ClusterEnv({"vos": [lab]}, selection="lab")
    env.reset(seed=1)
    assert env.step(0)[1:4] == (-1.0, True, False)
    assert env.metrics()["grid"]["jobs_completed"] == 1
    with pytest.raises(InputError, match="an episode that is over"):
        env.step(0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cluster": "lab/pol"}, "a cluster, such as lab/pool"),
        ({"selection": "laboratory"}, "a selection"),
        ({"overrides": {"seed": -1}}, "seed"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        ClusterEnv(one_pool(), **settings)


def test_machines_may_fail_but_nobody_forgets_what_was_decided() -> None:
    """After a crash an entity goes through its inputs again, and would ask the agent again."""
    outage = {"vo": "lab", "cluster": "pool", "machine": 0, "at_s": 50.0, "for_s": 100.0}
    for kind in ({"machine_outages": [outage]}, {"within_vos": {"lost": 0.1}}):
        scenario = one_pool(20) | {"faults": {"heal_s": 1000.0, **kind}}
        scenario["vos"][0]["workload"]["entry_point"] = "scheduler"
        if "within_vos" in kind:
            with pytest.raises(InputError, match="faults: found faults of messages or of entities"):
                ClusterEnv(scenario).reset(seed=1)
            continue
        env = ClusterEnv(scenario)
        _, info = env.reset(seed=1)
        over = False
        while not over:
            _, _, over, _, info = env.step(info["action_mask"].argmax())
        assert env.metrics()["grid"]["jobs_completed"] == 20


def test_a_cluster_of_gangs_has_no_queue_to_decide() -> None:
    with pytest.raises(InputError, match="a policy for gangs"):
        ClusterEnv(one_pool(policy="afcfs"))


def test_what_was_trained_is_a_policy_of_a_scenario() -> None:
    """The same decisions in the environment and as a policy give the same run."""
    import grid

    scenario = one_pool(40)
    env = ClusterEnv(scenario)
    episode(env, 7, lambda _, is_open: int(is_open.argmax()))
    scenario["vos"][0]["clusters"][0]["policy"] = "first_fit"
    run = grid.run(
        scenario,
        set={"seed": 7},
        policies={"first_fit": lambda: AgentPolicy(lambda _, is_open: int(is_open.argmax()))},
    )
    assert run.metrics["grid"] == env.metrics()["grid"]


def test_an_agent_on_machines_starts_jobs_where_they_fit() -> None:
    asked = []

    def decide(_: Any, is_open: Any) -> int:
        asked.append(is_open.tolist())
        return int(is_open.argmax())

    cluster = make_cluster(
        Cluster("farm", (Machine("slow", 4, 500.0), Machine("fast", 2, 1000.0))),
        AgentPolicy(decide, offered=2),
    )
    ones = np.ones(3, np.int64)
    cluster.submit_rows(
        JobTable.of(
            number=[1, 2, 3],
            submit_us=0 * ones,
            processors=[2, 3, 2],
            estimate_us=100 * ones,
            run_us=100 * ones,
        )
    )
    cluster.advance(1000)
    _, outcome = cluster.take_ended_rows()
    # The first on the fast machine, the second on the slow one; the third when the first has ended.
    assert outcome.machine.tolist() == [1, 0, 1]
    assert outcome.start_us.tolist() == [0, 0, 100]
    assert asked == [[True, True, False], [True, True, True], [True, False, True]]
