"""What a plan takes is the plan, and not what was compiled for it."""

from __future__ import annotations

import time
from typing import Any

from numba import njit

import grid
from grid.policies.interface import Plan
from grid.runtime.measurement import plan_time


def fresh_sum() -> Any:
    """A function that has not been compiled."""

    def add(numbers: Any) -> float:
        total = 0.0
        for number in numbers:
            total += number
        return total

    return njit(add)


class Compiles:
    """Starts what fits, and compiles something for its first plan."""

    def __init__(self) -> None:
        self._sum = fresh_sum()

    def plan(self, view: Any, now: int) -> Plan:
        assert now >= 0
        self._sum(view.free)
        return Plan(start=[(int(slot), 0) for slot in view.queue[: int(view.free[0])]])


def test_compiling_is_no_plan() -> None:
    clusters = [{"policy": "mine", "machines": [{"cpus": 1}]}]
    jobs = [{"submit_s": 10 * n, "run_s": 5} for n in range(3)]
    vo = {"name": "a", "clusters": clusters, "workload": {"jobs": jobs}}
    began_s = time.thread_time()
    run = grid.run({"vos": [vo]}, policies={"mine": Compiles})
    compiled_s = time.thread_time() - began_s
    (plans,) = run.manifest["plan_seconds"].values()
    assert plans["count"] >= 3
    again = fresh_sum()
    began_s, began_plan_s = time.thread_time(), plan_time()
    again(run.results.submit_us)
    took_s, told_s = time.thread_time() - began_s, plan_time() - began_plan_s
    # The least that compiling takes is many times what a plan takes.
    assert plans["max"] < took_s / 2 < compiled_s
    assert 0.0 <= told_s < took_s / 2
