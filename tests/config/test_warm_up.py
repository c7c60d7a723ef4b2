"""What is compiled before a run is what the run calls."""

from __future__ import annotations

from typing import Any

import pytest

from grid.cluster import make_cluster
from grid.cluster.shell import ClusterShell
from grid.config import warm_up
from grid.config.build import Grid
from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.model.job import Job

OUTAGE = {"vo": "b", "at_s": 5, "for_s": 10}


def grid_of(**given: Any) -> Grid:
    """Two VOs of one machine each, under the same policy; with an outage of the second one's."""
    vo = {"clusters": [{"machines": [{"cpus": 4}], "policy": "fcfs"}]}
    jobs = {"workload": {"jobs": [{"run_s": 5}]}}
    scenario: dict[str, Any] = {"vos": [{"name": "a", **vo, **jobs}, {"name": "b", **vo}]}
    return realize(Scenario.model_validate({"name": "two", **scenario, **given}), "two.yaml")[0]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[ClusterShell]:
    """The clusters that a warm-up makes, in order."""
    found: list[ClusterShell] = []

    def noted(*given: Any, **more: Any) -> ClusterShell:
        found.append(make_cluster(*given, **more))
        return found[-1]

    monkeypatch.setattr(warm_up, "make_cluster", noted)
    return found


def _kernels(cluster: ClusterShell) -> tuple[type, bool]:
    return type(cluster.core), getattr(cluster.core, "is_pool", False)


@pytest.mark.parametrize("faults", [None, {"heal_s": 60, "machine_outages": [OUTAGE]}])
def test_every_core_of_a_run_is_warmed_up(
    faults: dict[str, Any] | None, made: list[ClusterShell]
) -> None:
    grid = grid_of() if faults is None else grid_of(faults=faults)
    warm_up.warm_up(grid)
    shells = [grid.cluster_of(vo, cluster) for vo in grid.vos for cluster in vo.clusters]
    assert {_kernels(one) for one in made} == {_kernels(one) for one in shells}
    assert len({_kernels(one) for one in shells}) == (1 if faults is None else 2)


def test_a_run_in_which_machines_may_break_is_warmed_up_for_that(
    made: list[ClusterShell],
) -> None:
    """Its clusters are played by another core, whose policies call other compiled code."""
    grid = grid_of()
    warm_up.warm_up(grid, may_break=True)
    (vo, *_), cluster = grid.vos, grid.vos[0].clusters[0]
    live = make_cluster(cluster, grid.policy_of(cluster), may_break=True)
    assert {_kernels(one) for one in made} == {_kernels(live)}
    assert _kernels(live) != _kernels(grid.cluster_of(vo, cluster))


def test_the_outage_of_a_warm_up_meets_a_job() -> None:
    down = warm_up.AN_OUTAGE
    job: Job = warm_up._job("a", 0, 1)
    assert 0 < down.start_us < job.run_us
    assert down.end_us < warm_up.LONG_ENOUGH_US
