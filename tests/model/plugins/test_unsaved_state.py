"""A part that keeps what cannot be written down ends a run that saves states, with a line."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.errors import PluginFailed
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, Plan
from grid.runtime.window import Window


class Locked:
    """One job after the other, with a lock that nobody needs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def plan(self, view: ClusterView, now: Time) -> Plan:
        starts = [(int(slot), 0) for slot in view.queue if view.fits(slot, 0)]
        return Plan(start=starts[:1])


def scenario(faults: dict[str, Any] | None) -> dict[str, Any]:
    jobs = [{"submit_s": 2 * n, "run_s": 1} for n in range(200)]
    vo = {
        "name": "a",
        "clusters": [{"name": "c", "machines": [{"count": 1}], "policy": "locked"}],
        "workload": {"jobs": jobs},
    }
    return {"vos": [vo]} | ({} if faults is None else {"faults": faults})


def test_a_cluster_that_may_crash_names_itself() -> None:
    crash = {"entity": "a/cluster/c", "at_s": 300, "for_s": 5}
    with pytest.raises(PluginFailed, match=r"^the state of a/cluster/c cannot be saved: .*lock"):
        grid.run(scenario({"heal_s": 400, "crashes": [crash]}), policies={"locked": Locked})


def test_a_window_that_is_saved_says_so() -> None:
    given = load_scenario(scenario(None), objects={"policies": {"locked": Locked}})
    made, _ = realize(given, "")
    window = Window(made, 0, [0] * len(made.names))
    window.advance(NEVER)
    with pytest.raises(PluginFailed, match=r"^the state of the run cannot be saved: .*lock"):
        window.save()
