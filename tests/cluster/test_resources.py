"""Resources of machines and of clusters: how much jobs hold at any time, by policy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import ClusterState, PlanError, make_cluster
from grid.model.job import Job, JobState, amounts
from grid.model.platform import Cluster, Machine
from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import ClusterView, Plan
from grid.policies.registry import make_policy, policy_names
from tests.cluster.clusters import Asking, general_cluster

S = SECOND_US
POLICIES = sorted(
    # The others are refused: see `test_capabilities`.
    {*policy_names()} - {"batsim", "afcfs", "lgfs"}
)
SETTINGS: dict[str, dict[str, Any]] = {"tabu": {"iterations": 5}, "slurm": {"cpus_per_node": 4}}
FARM = Cluster(
    "farm",
    (
        Machine("a", 4, 2000.0, ram_mb=100.0, resources={"gpus": 4}),
        Machine("b", 4, resources={"gpus": 2}),
        Machine("c", 2, 500.0),
    ),
    resources={"burst_buffer_gb": 8.0},
)
MOST = {"gpus": (4, 2, 0), "ram_mb": (100.0, NEVER, NEVER), "burst_buffer_gb": (8.0,) * 3}


def job(number: int, submit_s: int = 0, cpus: int = 1, run_s: int = 10, **held: float) -> Job:
    times = {"submit_us": submit_s * S, "estimate_us": run_s * S, "run_us": run_s * S}
    return Job(
        number=number, vo="v", user=number % 3, processors=cpus, resources=amounts(held), **times
    )


def of_policy(platform: Cluster, name: str) -> ClusterState:
    return general_cluster(platform, make_policy(name, SETTINGS.get(name, {})))


def outcomes(cluster: ClusterState, jobs: list[Job]) -> list[Any]:
    for one in jobs:
        cluster.advance(one.submit_us)
        assert list(cluster.broken_limits()) == []
        cluster.submit(one, -1, one.submit_us)
    cluster.advance(NEVER)
    ended = sorted(cluster.take_ended())
    assert [one.key[1] for one in ended] == [one.number for one in jobs]
    return [one.outcome for one in ended]


@st.composite
def job_lists(draw: st.DrawFn) -> list[Job]:
    jobs, now = [], 0
    for number in range(draw(st.integers(1, 20))):
        now += draw(st.sampled_from((0, 0, 3)))
        held = {
            "gpus": draw(st.sampled_from((0, 0, 1, 2, 3, 5))),
            "ram_mb": draw(st.sampled_from((0, 40, 150))),
            "burst_buffer_gb": draw(st.sampled_from((0, 0, 3, 6.5))),
            "tapes": draw(st.sampled_from((0,) * 9 + (1,))),
        }
        cpus, run_s = draw(st.integers(1, 4)), draw(st.integers(1, 12))
        jobs.append(job(number, now, cpus, run_s, **held))
    return jobs


@pytest.mark.parametrize("policy", POLICIES)
@given(jobs=job_lists())
@settings(max_examples=12, deadline=None)
def test_no_resource_is_exceeded(policy: str, jobs: list[Job]) -> None:
    """And each job runs that a machine can run; preemptive policies may interrupt it."""
    found = outcomes(of_policy(FARM, policy), jobs)
    for one, outcome in zip(jobs, found, strict=True):
        held = dict(one.resources)
        may_run = "tapes" not in held and any(
            one.processors <= machine.cpus
            and all(held.get(name, 0) <= most[m] for name, most in MOST.items())
            for m, machine in enumerate(FARM.machines)
        )
        assert outcome.state == (JobState.COMPLETED if may_run else JobState.REJECTED)
    ran = [(one, how) for one, how in zip(jobs, found, strict=True) if how.start_us >= 0]
    if any(how.preemptions for _, how in ran):
        return
    for name, most in MOST.items():
        for _, at in ran:
            here = [pair for pair in ran if pair[1].start_us <= at.start_us < pair[1].end_us]
            for m, amount in enumerate(most):
                on = [one for one, how in here if name == "burst_buffer_gb" or how.machine == m]
                assert sum(dict(one.resources).get(name, 0) for one in on) <= amount


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        # 1 waits for all GPUs and delays the others.
        ("fcfs", [0, 10, 20, 20, 20]),
        # 2 passes 1 with the GPU that is left until 10 s, 4 without any; 3 comes too late for it.
        ("easy", [0, 10, 0, 20, 0]),
        ("conservative", [0, 10, 0, 20, 0]),
    ],
)
def test_gpus_of_one_machine_by_hand(policy: str, starts: list[int]) -> None:
    """8 CPUs, 4 GPUs: only GPUs are scarce."""
    platform = Cluster("c", (Machine("m", 8, resources={"gpus": 4}),))
    held = ((10, 3), (10, 4), (10, 1), (20, 1), (30, 0))
    jobs = [job(number, 0, 1, run_s, gpus=gpus) for number, (run_s, gpus) in enumerate(held)]
    assert [one.start_us // S for one in outcomes(of_policy(platform, policy), jobs)] == starts


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_shared_resource_is_reserved_for_the_head_on_all_machines(policy: str) -> None:
    """1 needs all 8 GB, at 10 s. 2 would hold 2 GB on the other machine until 20 s; 3 ends at 10 s.

    Both machines are wide enough for everything.
    """
    platform = Cluster("c", (Machine("a", 8), Machine("b", 8)), resources={"burst_buffer_gb": 8.0})
    jobs = [job(0, burst_buffer_gb=6), job(1, burst_buffer_gb=8)]
    jobs += [job(2, run_s=20, burst_buffer_gb=2), job(3, burst_buffer_gb=2)]
    found = [one.start_us // S for one in outcomes(of_policy(platform, policy), jobs)]
    assert found == [0, 10, 20, 0]


def test_a_python_policy_that_starts_too_much_is_refused() -> None:
    def planned(view: ClusterView) -> Plan:
        return Plan(start=[(slot, 1) for slot in view.queue.tolist()])

    cluster = make_cluster(FARM, Asking(planned))
    cluster.submit(job(0, gpus=2), -1, 0)
    cluster.submit(job(1, gpus=1), -1, 0)
    with pytest.raises(PlanError, match="machine 1, which lacks free gpus"):
        cluster.advance(1)


def test_a_view_counts_what_the_plan_takes_and_gives_back() -> None:
    def planned(view: ClusterView) -> Plan:
        if len(view.running):
            return Plan()
        first, second = view.queue.tolist()
        assert view.machines.resource_names == ("gpus", "ram_mb", "burst_buffer_gb")
        view.take(first, 0)
        assert view.free_resources[:, 0].tolist() == [1.0, 100.0, 2.0]
        assert view.free_resources[2].tolist() == [2.0] * 3
        assert not view.fits(second, 1)
        return Plan(start=[(first, 0)])

    cluster = make_cluster(FARM, Asking(planned))
    cluster.submit(job(0, gpus=3, burst_buffer_gb=6), -1, 0)
    cluster.submit(job(1, burst_buffer_gb=3), -1, 0)
    cluster.advance(1)
