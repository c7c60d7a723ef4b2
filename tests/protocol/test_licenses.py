"""A job that needs licenses goes to a machine or cluster of its VO that has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grid
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, JobLimits, License, Machine, VirtualOrganization
from grid.model.resources import resources_of
from grid.protocol.registry import FORWARDING, SELECTIONS

S = 1_000_000
COMPLETED = "COMPLETED_SUCCESSFULLY"
NAMES = ("solver", "viewer", "none")
LICENSES = [{"name": name, "copies": 2 * (name != "none")} for name in NAMES]
PLAIN = {"cpus": 4, "mips": 2000}
LICENSED = {"cpus": 4, "licenses": list(NAMES)}
NEEDED = [1, 3, 2, 0, 4]
"""Bit masks. The last job needs a license that nobody may use."""


def five_jobs(names: Any, *_: Any) -> dict[str, JobTable]:
    """Jobs of a VO, a second apart."""
    run_us = np.full(5, 10 * S)
    table = JobTable.of(
        number=np.arange(1, 6), submit_us=np.arange(5, 10) * S, processors=np.ones(5, np.int64),
        run_us=run_us, estimate_us=run_us, licenses=np.array(NEEDED),
    )  # fmt: skip
    return dict.fromkeys(names, table)


def played(clusters: list[dict[str, Any]], protocol: dict[str, Any], **more: Any) -> Any:
    """One VO of these clusters, and a larger and faster one without licenses."""
    vos = [
        {"name": "a", "clusters": clusters, "workload": {"generator": "five"}, **more},
        {"name": "b", "clusters": [{"cpus": 64, "mips": 9000.0}], **more},
    ]
    scenario = {"name": "licenses", "protocol": {"snapshot_period_s": 1, **protocol}, "vos": vos}
    run = grid.run(scenario, job_generators={"five": five_jobs})
    return run.jobs().sort_values("job_id").reset_index()


def check(jobs: Any) -> None:
    assert jobs.final_state.tolist() == [COMPLETED] * 4 + ["REJECTED"]
    assert jobs.executed_vo.tolist()[:3] == ["a"] * 3


ONE_CLUSTER = {"policy": "easy", "licenses": LICENSES, "machines": [PLAIN, LICENSED]}


@pytest.mark.parametrize("resource", ["machine", "cluster"])
@pytest.mark.parametrize("selection", SELECTIONS.own)
def test_whatever_the_selection(selection: str, resource: str) -> None:
    check(played([{**ONE_CLUSTER, "resource": resource}], {}, selection=selection))


@pytest.mark.parametrize("rule", sorted({*FORWARDING.own} - {"never", "reject"}))
def test_whatever_the_rule_of_forwarding(rule: str) -> None:
    check(played([ONE_CLUSTER], {"forwarding": rule}))


def test_the_grid_dispatcher_asks_for_licenses() -> None:
    """The least loaded cluster has none."""
    clusters = [
        {
            "name": "plain",
            "resource": "cluster",
            "policy": "easy",
            "machines": [{"count": 9, **PLAIN}],
        },
        {**ONE_CLUSTER, "name": "licensed", "resource": "cluster"},
    ]
    jobs = played(clusters, {"ttl": 0})
    assert jobs.final_state.tolist() == [COMPLETED] * 4 + ["REJECTED"]
    assert jobs.cluster.tolist()[:3] == ["licensed"] * 3


def cluster_of(*machines: Machine, by_machine: bool = False) -> Cluster:
    licenses = (License("x", 1), License("y", 0), License("z", 3))
    return Cluster("c", machines, licenses=licenses, by_machine=by_machine)


FEW = Machine("few", 4, ram_mb=500.0, licenses=("x", "y"))
MANY = Machine("many", 2, licenses=("z", "x"))


@pytest.mark.parametrize(("by_machine", "bits"), [(True, [1, 5, 0]), (False, [5])])
def test_licenses_without_copies_are_nobodys(by_machine: bool, bits: list[int]) -> None:
    cluster = cluster_of(FEW, MANY, Machine("none", 8), by_machine=by_machine)
    columns = resources_of(VirtualOrganization("v", (cluster,)), 0)
    assert columns.licenses.tolist() == bits


def test_what_a_cluster_can_run_is_what_one_of_its_machines_can() -> None:
    """Not the CPUs of one with the licenses of another; and nothing is listed twice."""
    limits = cluster_of(
        FEW, MANY, FEW, Machine("less", 3, ram_mb=500.0, licenses=("x",))
    ).job_limits()
    assert sorted(limits) == [JobLimits(2, float("inf"), 5), JobLimits(4, 500.0, 1)]

    def runs(processors: int, ram_mb: float, licenses: int) -> bool:
        return any(one.allow(processors, ram_mb, licenses) for one in limits)

    assert runs(4, 500.0, 1) and runs(2, 9000.0, 5) and runs(1, 0.0, 4)
    assert not (runs(4, 0.0, 4) or runs(3, 600.0, 0) or runs(1, 0.0, 2) or runs(5, 0.0, 0))
