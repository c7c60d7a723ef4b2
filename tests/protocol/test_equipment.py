"""Jobs that need memory or licenses run only on machines that have them, under every plugin."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest

import grid
from grid.model.job import Job, amounts
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, JobLimits, License, Machine, VirtualOrganization
from grid.model.resources import ResourceTable, resources_of
from grid.protocol.registry import FORWARDING, SELECTIONS

S = 1_000_000
COMPLETED = "COMPLETED_SUCCESSFULLY"
POLICIES = sorted({*FORWARDING.own} - {"never", "reject"})
"""`never` forwards no job, and `reject` rejects those that would have to wait."""
SMALL = {"count": 1, "cpus": 4, "ram_mb": 1000}
LARGE = {"count": 1, "cpus": 4, "ram_mb": 8000}
NAMES = ("solver", "viewer", "none")
LICENSES = [{"name": name, "copies": 2 * (name != "none")} for name in NAMES]
PLAIN = {"cpus": 4, "mips": 2000}
LICENSED = {"cpus": 4, "licenses": list(NAMES)}
ONE_CLUSTER = {"policy": "easy", "licenses": LICENSES, "machines": [PLAIN, LICENSED]}


def with_memory(resource: str = "machine", forwarding: str = "queue", **more: Any) -> Any:
    """A VO of a small machine, and one of a small and a large one; no machine has 9,000 MB."""
    jobs = [
        {"submit_s": 5, "run_s": 60, "ram_mb": 4000},
        {"submit_s": 6, "run_s": 60, "ram_mb": 4000, "cpus": 4},
        {"submit_s": 7, "run_s": 60, "ram_mb": 500},
        {"submit_s": 8, "run_s": 60, "ram_mb": 9000},
    ]
    clusters = [{"resource": resource, "machines": [SMALL]}]
    remote = [{"resource": resource, "machines": [SMALL, LARGE]}]
    return {
        "name": "memory",
        "protocol": {
            "ttl": 3,
            "snapshots": {"period_s": 1, "load_above": 0.9, "jobs_above": 10},
            "forwarding": forwarding,
        },
        "vos": [
            {"name": "a", "clusters": clusters, "workload": {"jobs": jobs}, **more},
            {"name": "b", "clusters": remote, **more},
        ],
    }


def check_memory(scenario: dict[str, Any], **plugins: Any) -> None:
    jobs = grid.run(scenario, **plugins).jobs().sort_values("job_id")
    assert jobs.final_state.tolist() == [COMPLETED] * 3 + ["REJECTED"]
    assert jobs.executed_vo.tolist()[:2] == ["b", "b"]


def five_jobs(names: Any, *_: Any) -> dict[str, JobTable]:
    """Jobs a second apart. The last needs a license without copies."""
    run_us = np.full(5, 10 * S)
    table = JobTable.of(
        number=np.arange(1, 6), submit_us=np.arange(5, 10) * S, processors=np.ones(5, np.int64),
        run_us=run_us, estimate_us=run_us, licenses=np.array([1, 3, 2, 0, 4]),
    )  # fmt: skip
    return dict.fromkeys(names, table)


def check_licenses(clusters: list[dict[str, Any]], protocol: dict[str, Any], **more: Any) -> Any:
    """A VO of these clusters, and a larger and faster one without licenses."""
    vos = [
        {"name": "a", "clusters": clusters, "workload": {"generator": "five"}, **more},
        {"name": "b", "clusters": [{"cpus": 64, "mips": 9000.0}], **more},
    ]
    scenario = {
        "name": "licenses",
        "protocol": {"snapshots": {"period_s": 1, "load_above": 0.9, "jobs_above": 10}, **protocol},
        "vos": vos,
    }
    run = grid.run(scenario, job_generators={"five": five_jobs})
    jobs = run.jobs().sort_values("job_id").reset_index()
    assert jobs.final_state.tolist() == [COMPLETED] * 4 + ["REJECTED"]
    assert jobs.executed_vo.tolist()[:3] == ["a"] * 3
    return jobs


@pytest.mark.parametrize("resource", ["machine", "cluster"])
@pytest.mark.parametrize("selection", SELECTIONS.own)
def test_every_selection_respects_memory_and_licenses(selection: str, resource: str) -> None:
    check_memory(with_memory(resource, selection=selection))
    check_licenses([{**ONE_CLUSTER, "resource": resource}], {}, selection=selection)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_forwarding_policy_respects_memory_and_licenses(policy: str) -> None:
    check_memory(with_memory(forwarding=policy))
    check_licenses([ONE_CLUSTER], {"forwarding": policy})


def test_the_grid_dispatcher_chooses_a_cluster_with_the_memory() -> None:
    clusters = [
        {"name": name, "resource": "cluster", "policy": "easy", "machines": [machine]}
        for name, machine in (("small", SMALL), ("large", LARGE))
    ]
    jobs = [{"submit_s": n, "run_s": 10, "ram_mb": 5000} for n in range(6)]
    lab = {"name": "lab", "clusters": clusters, "workload": {"jobs": jobs}}
    done = grid.run({"name": "memory", "vos": [lab]}).jobs()
    assert set(done.final_state) == {COMPLETED}
    # The large machine has memory for one of them at a time.
    assert done.finish_time.sort_values().diff().dropna().min() >= 10.0


Resource = Literal["machine", "cluster"]
FEW = Machine("few", 4, ram_mb=500.0, licenses=("x", "y"))
MANY = Machine("many", 2, licenses=("z", "x"))


def cluster_of(*machines: Machine, resource: Resource = "cluster") -> Cluster:
    licenses = (License("x", 1), License("y", 0), License("z", 3))
    return Cluster("c", machines, licenses=licenses, resource=resource)


@pytest.mark.parametrize(
    ("resource", "bits", "most"),
    [("machine", [1, 5, 0], [500.0, math.inf, math.inf]), ("cluster", [5], [math.inf])],
)
def test_limits_of_resources(resource: Resource, bits: list[int], most: list[float]) -> None:
    """A license without copies counts as none, a machine without `ram_mb` as one without limit."""
    cluster = cluster_of(FEW, MANY, Machine("none", 8), resource=resource)
    columns = resources_of(VirtualOrganization("v", (cluster,)), 0)
    assert columns.licenses.tolist() == bits
    assert columns.most("ram_mb").tolist() == most


def test_limits_of_a_cluster_are_those_of_one_machine() -> None:
    """Not the CPUs of one with the licenses of another."""
    less = Machine("less", 3, ram_mb=500.0, licenses=("x",))
    limits = cluster_of(FEW, MANY, FEW, less).job_limits()
    assert limits == (
        JobLimits(2, (), 5), JobLimits(3, (("ram_mb", 500.0),), 1),
        JobLimits(4, (("ram_mb", 500.0),), 1),
    )  # fmt: skip

    def runs(processors: int, ram_mb: float, licenses: int) -> bool:
        asked = Job(
            number=1, vo="v", submit_us=0, run_us=1, estimate_us=1, processors=processors,
            resources=amounts({"ram_mb": ram_mb}), licenses=licenses,
        )  # fmt: skip
        return any(one.allow(asked) for one in limits)

    assert runs(4, 500.0, 1) and runs(2, 9000.0, 5) and runs(1, 0.0, 4)
    assert not (runs(4, 0.0, 4) or runs(3, 600.0, 0) or runs(1, 0.0, 2) or runs(5, 0.0, 0))


GPU_SITES: dict[str, Any] = {
    "vos": [
        {"name": "none", "clusters": [{"machines": [{"cpus": 4}]}]},
        {"name": "few", "clusters": [{"machines": [{"cpus": 4, "resources": {"gpus": 1}}]}]},
        {
            "name": "many",
            "clusters": [
                {"machines": [{"cpus": 4, "resources": {"gpus": 4}}], "resources": {"tapes": 1}}
            ],
        },
    ]
}


def placed(jobs: list[dict[str, Any]]) -> list[Any]:
    """The VO that runs each job of VO `none`."""
    home, *others = GPU_SITES["vos"]
    timed = [{"submit_s": 10 + n, "run_s": 10, **job} for n, job in enumerate(jobs)]
    done = grid.run({"vos": [{**home, "workload": {"jobs": timed}}, *others]}).jobs()
    return list(done["executed_vo"])


def test_jobs_go_where_their_resources_are() -> None:
    """Of a VO, of one that has more, of the only cluster with a shared one; never."""
    held = [{"gpus": 1}, {"gpus": 2}, {"tapes": 1}, {}]
    first, *rest = placed([{"resources": one} for one in held])
    assert first in ("few", "many") and rest == ["many", "many", "none"]
    per_task = placed([{"cpus": 2, "resources_per_task": {"gpus": 1}}])
    assert per_task == ["many"]


@pytest.mark.parametrize("selection", ["partial", "least_loaded", "earliest_completion"])
@pytest.mark.parametrize("detail", ["full", "summary"])
def test_snapshots_have_free_resources(selection: str, detail: str) -> None:
    """Of two VOs with GPUs, one with all of them held: a job goes to the other one, and starts."""
    machine = {"cpus": 64, "resources": {"gpus": 4}}
    jobs = [{"submit_s": 5, "run_s": 500, "resources": {"gpus": 4}}]
    # The other VOs have no limit of memory.
    limited = {**machine, "ram_mb": 100}
    held = {"name": "held", "clusters": [{"machines": [limited]}], "workload": {"jobs": jobs}}
    asks = [
        {"submit_s": 60 + n, "run_s": 20, "cpus": 2, "ram_mb": 10, "resources": {"gpus": gpus}}
        for n, gpus in enumerate((1, 2))
    ]
    # The held VO would be the less loaded one by its CPUs.
    busy = [{"submit_s": 5, "run_s": 500, "cpus": 4}]
    free = {"name": "free", "clusters": [{"machines": [{**machine, "cpus": 8}]}]}
    scenario = {
        "protocol": {"ttl": 2, "snapshots": {"period_s": 5}, "snapshot_detail": detail},
        "vos": [
            {"name": "own", "clusters": [{"cpus": 4}], "workload": {"jobs": asks}},
            held,
            {**free, "workload": {"jobs": busy}},
        ],
    }
    for vo in scenario["vos"]:
        vo["selection"] = selection
    done = grid.run(scenario).jobs()
    done = done[done["submission_time"] >= 60]
    assert list(done["executed_vo"]) == ["free", "free"]
    assert done["waiting_time"].max() < 1.0


def test_a_scarce_resource_counts_as_assigned_cpus() -> None:
    """Of 8 CPUs, 2 assigned: 3 of 4 GPUs are held, so two of them lack a quarter, 2 CPUs."""
    machine = Machine("m", 8, resources={"gpus": 4})
    columns = resources_of(VirtualOrganization("v", (Cluster("c", (machine,)),)), 0)
    table = ResourceTable(columns, np.array([2.0]), held={"gpus": np.array([3.0])})

    def of(gpus: float, cpus: int) -> Job:
        times = {"submit_us": 0, "run_us": 1, "estimate_us": 1}
        held = amounts({"gpus": gpus})
        return Job(number=1, vo="v", processors=cpus, resources=held, **times)

    assert table.lacking(of(2, 1)).tolist() == [2.0]
    assert table.lacking(of(1, 1)).tolist() == [-5.0]
    assert table.lacking(of(1, 7)).tolist() == [1.0]
    assert table.assigned_for(of(0, 1)).tolist() == [2.0]


def test_a_job_waits_for_what_a_job_on_another_machine_holds() -> None:
    """Both hold two of three units of the cluster, and the second needs the fast machine."""
    fast = [{"kind": "speed", "options": [{"value": 2000}]}]
    job = {"run_s": 10, "resources": {"bb": 2}}
    cluster = {"machines": [{}, {"mips": 2000}], "resources": {"bb": 3}}
    vo = {"name": "v", "clusters": [cluster], "priority": "remote"}
    vo["workload"] = {"jobs": [job, {"submit_s": 1, "requirements": fast, **job}]}
    done = grid.run({"vos": [vo]}).jobs().sort_values("job_id")
    assert done["machine"].tolist() == [0, 1]
    assert done["starting_time"].tolist() == pytest.approx([0, 10], abs=0.1)


def test_a_requirement_can_name_a_resource() -> None:
    """By its utilities the job prefers four GPUs, and accepts one."""
    options = [{"value": 4, "utility": 1.0}, {"value": 1, "utility": 0.4}]
    requirement = {"kind": "gpus", "options": options}
    assert placed([{"requirements": [requirement]}]) == ["many"]
