"""The measured time of a plan excludes compilation."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
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
    """Starts what fits, and compiles a function for its first plan."""

    def __init__(self) -> None:
        self._sum = fresh_sum()

    def plan(self, view: Any, now: int) -> Plan:
        self._sum(view.free)
        return Plan(start=[(int(slot), 0) for slot in view.queue[: int(view.free[0])]])


def test_compilation_is_not_part_of_a_plan() -> None:
    jobs = [{"submit_s": 10 * n, "run_s": 5} for n in range(3)]
    vo = {"name": "a", "clusters": [{"policy": "mine", "cpus": 1}], "workload": {"jobs": jobs}}
    (plans,) = (
        grid.run({"vos": [vo]}, policies={"mine": Compiles}).manifest["plan_seconds"].values()
    )
    assert plans["count"] >= 3
    began_s, began_plan_s = time.thread_time(), plan_time()
    fresh_sum()(np.zeros(3))
    compile_s = time.thread_time() - began_s
    assert plans["max"] < compile_s / 2
    assert 0.0 <= plan_time() - began_plan_s < compile_s / 2
