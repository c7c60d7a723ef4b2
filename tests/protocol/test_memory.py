"""A job that holds memory goes where a machine has as much, whoever chooses and by what rule."""

from __future__ import annotations

import math
from typing import Any

import pytest

import grid
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.resources import resources_of
from grid.protocol.registry import FORWARDING, SELECTIONS
from grid.protocol.selection import best_choice

SMALL = {"count": 1, "cpus": 4, "ram_mb": 1000}
LARGE = {"count": 1, "cpus": 4, "ram_mb": 8000}
COMPLETED = "COMPLETED_SUCCESSFULLY"


def two_vos(resource: str, protocol: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One VO of a small machine, and one of a small and a large one; all hear of each other."""
    jobs = [
        {"submit_s": 5, "run_s": 60, "ram_mb": 4000},
        {"submit_s": 6, "run_s": 60, "ram_mb": 4000, "cpus": 4},
        {"submit_s": 7, "run_s": 60, "ram_mb": 500},
        {"submit_s": 8, "run_s": 60, "ram_mb": 9000},
    ]
    return {
        "name": "memory",
        "protocol": {"ttl": 3, "snapshot_period_s": 1, **(protocol or {})},
        "vos": [
            {"name": "a", "clusters": [{"resource": resource, "machines": [SMALL]}],
             "workload": {"jobs": jobs}, **more},
            {"name": "b", "clusters": [{"resource": resource, "machines": [SMALL, LARGE]}], **more},
        ],
    }  # fmt: skip


def check(scenario: dict[str, Any]) -> None:
    jobs = grid.run(scenario).jobs().sort_values("job_id")
    # No machine has 9,000 MB.
    assert jobs.final_state.tolist() == [COMPLETED] * 3 + ["REJECTED"]
    assert jobs.executed_vo.tolist()[:2] == ["b", "b"]


@pytest.mark.parametrize("resource", ["machine", "cluster"])
@pytest.mark.parametrize("selection", SELECTIONS.own)
def test_whatever_the_selection(selection: str, resource: str) -> None:
    check(two_vos(resource, selection=selection))


# `never` forwards none, and `reject` rejects what would have to wait.
@pytest.mark.parametrize("rule", sorted({*FORWARDING.own} - {"never", "reject"}))
def test_whatever_the_rule_of_forwarding(rule: str) -> None:
    check(two_vos("machine", {"forwarding": rule}))


class First:
    """The first resource of the table, whatever the job asks for."""

    def choose(self, job: Any, table: Any, own_vo: int, own_only: bool) -> Any:
        return best_choice(table.columns.mips, job, table, own_vo, own_only, "first")


def test_whatever_a_selection_of_another_looks_at() -> None:
    jobs = grid.run(two_vos("machine", selection="mine"), selections={"mine": First}).jobs()
    assert jobs.sort_values("job_id").final_state.tolist() == [COMPLETED] * 3 + ["REJECTED"]


def test_at_home_it_goes_to_the_cluster_that_has_the_memory() -> None:
    clusters = [
        {"name": name, "resource": "cluster", "policy": "easy", "machines": [machine]}
        for name, machine in (("small", SMALL), ("large", LARGE))
    ]
    jobs = [{"submit_s": n, "run_s": 10, "ram_mb": 5000} for n in range(6)]
    lab = {"name": "lab", "clusters": clusters, "workload": {"jobs": jobs}}
    done = grid.run({"name": "memory", "vos": [lab]}).jobs()
    assert set(done.final_state) == {COMPLETED}
    # One after the other, for two of them have no room in the large machine at a time.
    assert done.finish_time.sort_values().diff().dropna().min() >= 10.0


@pytest.mark.parametrize(("by_machine", "most"), [(True, [1000.0, math.inf]), (False, [math.inf])])
def test_a_machine_without_memory_of_its_own_sets_no_limit(
    by_machine: bool, most: list[float]
) -> None:
    machines = (Machine("m", 4, ram_mb=1000.0), Machine("n", 4))
    cluster = Cluster("c", machines, by_machine=by_machine)
    columns = resources_of(VirtualOrganization("v", (cluster,)), 0)
    assert columns.most_ram_mb.tolist() == most
