"""Small grids at saturation with random timing settings: each run has to end, by all rules.

Leases, waits, waves, probe timeouts and periods are between a tenth of and ten times a round trip
between VOs; the latency within a VO may be longer than that between VOs. As a script it runs a
range of seeds: `python -m tests.protocol.random_timings 0 20000`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from grid.config.build import Grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.errors import InputError
from grid.results.checkers import check
from grid.runtime.outcome import RunOutcome
from grid.runtime.sequential import NeverEnds, run_sequential

POLICIES = (
    "queue", "forward", "reject", "never", "to_the_best", "when_nothing_free", "above_load",
    "until_idle", "best_expected_finish", "reserve", "redundant", "auction", "delegated", "pull",
)  # fmt: skip
EVENTS_A_JOB = 20_000
"""A run that handles more events a job makes no progress: the protocol takes a few hundred."""


def scenario(seed: int) -> dict[str, Any]:
    """The scenario of that seed, as in YAML."""
    rng = np.random.default_rng(seed)
    draw = rng.choice
    latency_s = float(10.0 ** rng.uniform(-3, 1))
    local_s = float(latency_s * 10.0 ** rng.uniform(-5, 1))
    trip_s = 2 * latency_s

    def time_s() -> float:
        exact = bool(rng.random() < 0.3)
        factor = float(draw([0.5, 1.0, 2.0])) if exact else float(10.0 ** rng.uniform(-1, 1))
        return float(max(1e-6, round(trip_s * factor, 6)))

    policy = POLICIES[seed % len(POLICIES)]
    settings: dict[str, dict[str, Any]] = {
        "reserve": {
            "lease_s": time_s(), "wait_s": time_s(), "tries": int(draw([1, 3])),
            "at_once": int(draw([1, 2])),
        },
        "redundant": {
            "lease_s": time_s(), "wave_s": time_s(), "copies": int(draw([2, 3, 4])),
            "wave": draw([None, 1, 2]), "others": str(draw(["best", "random"])),
        },
        "auction": {
            "wait_s": time_s(), "lease_s": float(draw([0.0, time_s()])),
            "when": str(draw(["busy", "always"])),
        },
        "delegated": {"lease_s": time_s(), "wait_s": time_s(), "children": int(draw([2, 3]))},
        "pull": {
            "every_s": max(1e-3, time_s()), "tries": int(draw([1, 2])),
            "from_vo": str(draw(["random", "most_loaded"])),
        },
    }  # fmt: skip
    information: list[Any] = [
        "all",
        "none",
        {"name": "probes", "settings": {"count": 2, "timeout_s": time_s()}},
        {"name": "gossip", "settings": {"period_s": time_s()}},
    ]
    cpus = [int(draw([2, 4, 8])) for _ in range(int(draw([1, 2, 2, 3, 4])))]
    work_s = max(1e-3, trip_s * float(10.0 ** rng.uniform(-1, 2)))
    jobs = int(draw([5, 20]))
    sizes = [{"cpus": 1, "share": 1}, {"cpus": max(cpus), "share": float(rng.random())}]
    if rng.random() < 0.3:
        sizes = [{"cpus": 1, "share": 1}, {"cpus": min(cpus), "share": 0.5}]
    workload = {
        "generator": "stochastic",
        "settings": {
            "jobs": jobs,
            "load": float(draw([0.5, 0.9, 2.0, 10.0])),
            "arrivals": {"distribution": str(draw(["fixed", "exponential"]))},
            "work": {"distribution": "fixed", "mean_s": work_s},
            "sizes": sizes,
        },
    }
    vos: list[dict[str, Any]] = []
    for number, count in enumerate(cpus):
        cluster = {
            "policy": str(draw(["fcfs", "easy"])), "resource": str(draw(["cluster", "machine"])),
            "machines": [{"cpus": count}],
        }  # fmt: skip
        one: dict[str, Any] = {"name": f"v{number}", "clusters": [cluster] * int(draw([1, 1, 2]))}
        one["clusters"] = [{"name": f"c{n}", **of} for n, of in enumerate(one["clusters"])]
        one["priority"] = str(draw(["none", "local", "remote"]))
        # Jobs of one VO may be wider than its own clusters.
        fits = all(size["cpus"] <= max(cpus) for size in sizes)
        patience_s = work_s * float(10.0 ** rng.uniform(-1, 1))
        cancel = {"share": 0.5, "least_s": patience_s, "most_s": 2 * patience_s}
        if fits and (number == len(cpus) - 1 or rng.random() < 0.7):
            one["workload"] = workload
            if seed // len(POLICIES) % 2:
                one["workload"] = workload | {"attributes": {"cancel_after": cancel}}
        vos.append(one)
    return {
        "seed": seed,
        "name": f"timing-{seed}",
        "network": {"latency_s": latency_s, "local_latency_s": max(1e-6, local_s)},
        "protocol": {
            "ttl": int(draw([0, 1, 2, 5])),
            "avoid_loops": bool(draw([True, False])),
            "when_refused": str(draw(["next", "origin", "reject"])),
            "snapshots": {"period_s": time_s(), "load_above": 0.9, "jobs_above": 10},
            "snapshot_detail": str(draw(["full", "summary"])),
            "forwarding": {"name": policy, "settings": settings.get(policy, {})},
            "information": information[int(draw(4))],
        },
        "vos": vos,
    }


def judged(grid: Grid) -> tuple[str, RunOutcome | None]:
    """What is wrong with a run of the grid, if anything, and the run if it ends."""
    jobs = sum(grid.jobs_by_vo())
    try:
        run = run_sequential(grid, limit=EVENTS_A_JOB * max(1, jobs))
    except NeverEnds as error:
        return f"never ends: {error}", None
    broken = run.broken_rules() + check(run.results(), grid.directory, jobs)
    return run.stalled or (f"broken rules: {broken[0]}" if broken else ""), run


def outcome(seed: int) -> str:
    """`ended`, `refused` by the checks of scenarios, or what is wrong."""
    try:
        grid, _ = realize(load_scenario(scenario(seed)), "timing.yaml")
    except InputError as error:
        return f"refused: {error.errors[0].field}"
    return judged(grid)[0] or "ended"


def main(first: int, count: int) -> int:
    """Run seeds and print a summary; returns how many did not end."""
    outcomes: dict[str, int] = {}
    for seed in range(first, first + count):
        result = outcome(seed)
        kind = result.partition(":")[0]
        outcomes[kind] = outcomes.get(kind, 0) + 1
        if kind not in ("ended", "refused"):
            print(f"seed {seed}, {POLICIES[seed % len(POLICIES)]}: {result}", flush=True)
    print(outcomes)
    return count - outcomes.get("ended", 0) - outcomes.get("refused", 0)


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), int(sys.argv[2])) else 0)
