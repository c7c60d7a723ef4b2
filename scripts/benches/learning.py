"""Decisions of agents for each second of processor time, and how many the environment could make.

The cluster and the grid of the tutorial on learning. The environment's own share is what an episode
takes beyond the same jobs in the same grid without agents, whose policy or rule decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from grid.integrations.learning import ClusterEnv, GridEnv
from grid.integrations.learning.episode import Episodes

EPISODES, JOBS = 4, 300
SIZES = {1: 4, 2: 2, 4: 2, 8: 1}


def users(load: float, **more: Any) -> dict[str, Any]:
    settings = {
        "jobs": JOBS,
        "load": load,
        "arrivals": {"distribution": "exponential"},
        "work": {"distribution": "lognormal", "mean_s": 600, "cv": 2},
        "sizes": [{"cpus": size, "share": share} for size, share in SIZES.items()],
    }
    return {"generator": "stochastic", "settings": settings, **more}


def one_cluster(cluster: dict[str, Any], **workload: Any) -> dict[str, Any]:
    one = {"name": "pool", "policy": "fcfs", **cluster}
    vo = {"name": "lab", "clusters": [one], "workload": users(1.1, **workload)}
    return {"name": "one", "seed": 1, "vos": [vo]}


def three_vos() -> dict[str, Any]:
    machines = {"small": (8, 1000), "large": (24, 1000), "fast": (8, 2000)}
    pools = {
        name: {"name": "pool", "policy": "easy", "machines": [{"cpus": cpus, "mips": mips}]}
        for name, (cpus, mips) in machines.items()
    }
    return {
        "name": "three",
        "seed": 1,
        "network": {"latency_s": 5, "local_latency_s": 0.1},
        "protocol": {
            "forwarding": "queue",
            "snapshots": {"period_s": 120, "load_above": 0.9, "jobs_above": 10},
        },
        "vos": [
            {"name": name, "clusters": [pool], "workload": users(0.95)}
            for name, pool in pools.items()
        ],
    }


def decide_for_cluster(env: ClusterEnv, seed: int) -> int:
    _, info = env.reset(seed=seed)
    over, steps = False, 0
    while not over:
        _, _, over, _, info = env.step(int(info["action_mask"].argmax()))
        steps += 1
    return steps


def decide_for_grid(env: GridEnv, seed: int) -> int:
    seen, _ = env.reset(seed=seed)
    steps, idle = 0, len(env.possible_agents)
    actions = dict.fromkeys(env.possible_agents, idle)
    while env.agents:
        (busy,) = (name for name, one in seen.items() if not one["action_mask"][idle])
        seen, *_ = env.step(actions | {busy: int(seen[busy]["action_mask"].argmax())})
        steps += 1
    return steps


def without_agents(scenario: dict[str, Any], seed: int) -> None:
    episodes = Episodes(scenario, {}, None)
    episodes.begin(seed)
    assert episodes.decision is None


def seconds(play: Callable[[int], Any]) -> tuple[float, int]:
    """What some episodes take, and how many decisions were made in them, if it is reported."""
    started = time.process_time()
    episodes = [play(seed) for seed in range(EPISODES)]
    return time.process_time() - started, sum(steps or 0 for steps in episodes)


def measure() -> dict[str, float]:
    """Decisions a CPU second, all in all and, where the grid alone is known, of the environment."""
    two = {"machines": [{"cpus": 8, "count": 2}]}
    pool, routed = (one_cluster({"cpus": 16}, entry_point="cluster"), one_cluster({"cpus": 16}))
    grid, farm = three_vos(), one_cluster(two, entry_point="cluster")
    figures = {}
    episodes: tuple[tuple[str, dict[str, Any], Any, Any, bool], ...] = (
        ("one pool", pool, ClusterEnv(pool), decide_for_cluster, True),
        # FCFS on several machines is none of the compiled loop, which the agent's cluster is.
        ("two machines", farm, ClusterEnv(farm), decide_for_cluster, False),
        ("a pool behind a Local Scheduler", routed, ClusterEnv(routed), decide_for_cluster, True),
        ("GridEnv of three VOs", grid, GridEnv(grid), decide_for_grid, True),
    )
    for name, scenario, env, decide, compares in episodes:
        all_s, steps = seconds(lambda seed, env=env, decide=decide: decide(env, seed))
        figures[f"{name}, decisions a CPU second"] = steps / all_s
        if compares:
            alone_s, _ = seconds(lambda seed, played=scenario: without_agents(played, seed))
            figures[f"{name}, nanoseconds a decision of the grid"] = 1e9 * alone_s / steps
            own = f"{name}, nanoseconds a decision of the environment"
            figures[own] = 1e9 * (all_s - alone_s) / steps
    return figures
