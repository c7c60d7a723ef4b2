"""Small scenarios to learn in, and agents that learn nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

SIZES = [
    {"cpus": 1, "share": 5},
    {"cpus": 2, "share": 3},
    {"cpus": 4, "share": 2},
    {"cpus": 8, "share": 1},
]


def jobs(count: int, load: float, **more: Any) -> dict[str, Any]:
    settings = {
        "jobs": count,
        "load": load,
        "arrivals": {"distribution": "exponential"},
        "work": {"distribution": "lognormal", "mean_s": 400, "cv": 1.5},
        "sizes": SIZES,
    }
    return {"generator": "stochastic", "settings": settings, **more}


def one_pool(count: int = 60, load: float = 0.9, **cluster: Any) -> dict[str, Any]:
    pool = {"name": "pool", "policy": "easy", "cpus": 8, **cluster}
    lab = {"name": "lab", "clusters": [pool], "workload": jobs(count, load, entry_point="cluster")}
    return {"name": "one-pool", "seed": 1, "vos": [lab]}


def three_vos(count: int = 20, load: float = 0.8) -> dict[str, Any]:
    vos = [
        {
            "name": name,
            "clusters": [{"name": "pool", "policy": "easy", "cpus": processors}],
            "workload": jobs(count, load),
        }
        for name, processors in (("north", 8), ("south", 16), ("west", 8))
    ]
    network = {"local_latency_s": 0.01, "latency_s": 0.5}
    return {"name": "three-vos", "seed": 1, "network": network, "vos": vos}


class Chance:
    """Takes one of the open actions by chance, that of its seed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, seen: Any, is_open: Any) -> int:
        return int(self._rng.choice(np.flatnonzero(is_open)))
