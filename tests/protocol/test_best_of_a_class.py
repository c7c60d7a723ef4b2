"""Decisions by the best resource of each class equal those by all resources, bit for bit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from grid.config import information
from grid.config.build import Grid, RuntimeHooks
from grid.config.information import GridInformation
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.config.wrapped import entities_of
from grid.kernel.process import LogicalProcess
from grid.model.job import dtypes
from grid.model.job_results import in_order
from grid.model.resources import ResourceColumns, SomeResources, concatenate_resources, resources_of
from grid.model.time import NEVER, from_seconds
from grid.results.checkers import digest
from grid.runtime.outcome import RecordStore
from grid.runtime.sequential import run_sequential


@pytest.fixture(autouse=True)
def _a_small_grid_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(information, "LEAST_RESOURCES", 1)


def grid_of(selection: Any = "partial", **protocol: Any) -> Grid:
    machines = {
        "generator": "partial_utility", "count": 6,
        "settings": {"cores": [1, 2], "speeds_mips": [500.0]},
    }  # fmt: skip
    farm = {"policy": "fcfs", "resource": "machine", "machines": machines}
    scenario = {
        "seed": 7,
        "network": {"latency_s": 0.1, "local_latency_s": 0.001},
        "protocol": {
            "ttl": 3,
            "snapshots": {"period_s": 3, "load_above": 0.9, "jobs_above": 2},
            **protocol,
        },
        "vos": [{"name": "vo", "count": 12, "selection": selection, "clusters": [farm]}],
        "workload": {
            "generator": "partial_utility",
            "settings": {"users": 60, "jobs_per_user": 6, "mean_interarrival_s": 2},
        },
    }
    return realize(load_scenario(scenario), "many.yaml")[0]


def classes_of(grid: Grid) -> Any:
    return grid._information._classes


def digest_of(grid: Grid) -> str:
    return digest(in_order(run_sequential(grid).chunks))


@pytest.mark.parametrize(
    "decides",
    [
        *({"forwarding": one} for one in ("queue", "forward", "reject", "when_nothing_free")),
        {"selection": {"name": "binary", "settings": {"ties": "less_loaded"}}},
        {"selection": "matchmaking"},
        {"selection": {"name": "least_loaded", "settings": {"ties": "first", "by_utility": True}}},
    ],
)
def test_policies_by_the_best_resource_decide_the_same(
    decides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_class = grid_of(**decides)
    assert classes_of(by_class) is not None
    found = digest_of(by_class)
    monkeypatch.setattr(GridInformation, "_classes", None)
    assert digest_of(grid_of(**decides)) == found


@pytest.mark.parametrize(
    "other",
    [
        {"selection": {"name": "partial", "settings": {"ties": "first"}}},
        {"selection": "random"},
        {"forwarding": "to_the_best"},
        {"avoid_loops": True},
        {"snapshot_detail": "summary"},
        {"information": "ring"},
    ],
)
def test_other_settings_read_all_resources(other: dict[str, Any]) -> None:
    assert classes_of(grid_of(**other)) is None


def test_small_classes_read_all_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(information, "LEAST_OF_A_CLASS", 100)
    assert classes_of(grid_of()) is None


def test_a_pickled_process_decides_the_same() -> None:
    grid = grid_of()
    entities = entities_of(grid, grid.names, RuntimeHooks(), events=False)
    process = LogicalProcess(entities, grid.network, grid.seed, grid.first_rows())
    process.start()
    process.advance(from_seconds(8))
    again = pickle.loads(pickle.dumps(process))
    again.advance(NEVER)
    store = RecordStore()
    store.add(again.records)
    assert digest(in_order(store.take())) == digest_of(grid)


def test_some_resources_equal_the_rows_taken() -> None:
    whole = concatenate_resources([resources_of(vo, n) for n, vo in enumerate(grid_of().vos)])
    rows = np.array([4, 0, 5])
    some, taken = SomeResources(whole, rows), whole.take(rows)
    sent = pickle.loads(pickle.dumps(some))
    assert type(sent) is ResourceColumns
    for name in dtypes(ResourceColumns):
        for one in (some, sent):
            assert getattr(one, name).tolist() == getattr(taken, name).tolist()
            assert getattr(one, name).dtype == getattr(taken, name).dtype
