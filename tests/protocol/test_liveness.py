"""Every run ends: random timings, a livelock that was found, and policies that retry forever."""

from __future__ import annotations

from typing import Any

import pytest

import grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.errors import OutOfMemory
from grid.protocol.forwarding import Answer, Ask, Destination, Question
from grid.protocol.local_scheduler import LocalScheduler
from grid.runtime.run import Stalled
from grid.runtime.sequential import run_sequential
from tests.protocol.random_timings import EVENTS_A_JOB, POLICIES, outcome

RECORDED = range(2 * len(POLICIES))
"""Two seeds for each policy."""


def stochastic(**settings: Any) -> dict[str, Any]:
    return {"generator": "stochastic", "settings": settings}


@pytest.mark.parametrize("seed", RECORDED)
def test_a_run_with_random_timings_ends(seed: int) -> None:
    assert outcome(seed).partition(":")[0] in ("ended", "refused")


@pytest.mark.parametrize("lease_s", [0.1, 1.0, 1.001, 1.5])
def test_leases_that_expire_before_the_job_arrives(lease_s: float) -> None:
    """The probe of the job's scheduler takes as long as the lease, so each award comes too late."""
    settings = {"copies": 2, "wave": 1, "wave_s": 1, "lease_s": lease_s}
    sizes = [{"cpus": 1, "share": 1}, {"cpus": 10, "share": 0.3}]
    workload = stochastic(
        jobs=20, load=0.9, sizes=sizes, arrivals={"distribution": "fixed"},
        work={"distribution": "fixed", "mean_s": 20},
    )  # fmt: skip
    scenario = {
        "seed": 753347,
        "network": {"latency_s": 0.5, "local_latency_s": 1e-6},
        "protocol": {
            "ttl": 1,
            "when_refused": "origin",
            "snapshot_detail": "summary",
            "forwarding": {"name": "redundant", "settings": settings},
            "information": {"name": "probes", "settings": {"count": 2, "timeout_s": 1}},
        },
        "vos": [
            {"name": "a", "clusters": [{"cpus": 8}]},
            {"name": "c-1", "clusters": [{"cpus": 10}], "workload": workload},
        ],
    }
    made, _ = realize(load_scenario(scenario), "case.yaml")
    assert len(run_sequential(made, limit=20 * EVENTS_A_JOB).results()) == 20


def asks_forever(question: Question) -> Answer:
    """A policy that never sends the jobs from number 3 on anywhere."""
    if question.job.number < 3:
        return Destination(question.local_choice().own, True)
    return Ask((1 - question.vo,), 1_000_000)


def always_refused(question: Question) -> Answer:
    """A policy that never queues."""
    return Destination(question.local_choice().own, False)


def scenario_of(policy: str) -> dict[str, Any]:
    workload = stochastic(
        jobs=6, load=2.0, sizes=[{"cpus": 4, "share": 1}], arrivals={"distribution": "fixed"},
        work={"distribution": "fixed", "mean_s": 20},
    )  # fmt: skip
    return {
        "protocol": {"forwarding": policy},
        "vos": [
            {"name": "a", "clusters": [{"cpus": 4}], "workload": workload},
            {"name": "b", "clusters": [{"cpus": 4}]},
        ],
    }


def test_a_policy_that_asks_forever_is_stopped_with_partial_results() -> None:
    with pytest.raises(Stalled) as stalled:
        grid.run(scenario_of("mine"), forwarding={"mine": asks_forever})
    line = str(stalled.value)
    assert "job 3 of a in a" in line
    assert "CallForBids" in line
    assert len(stalled.value.run.results) == 3


def test_a_job_that_is_refused_forever_queues() -> None:
    run = grid.run(scenario_of("mine"), forwarding={"mine": always_refused})
    assert len(run.results) == 6


def test_a_run_without_memory_ends_and_reports_its_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def exhausts(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(LocalScheduler, "on_job_ended", exhausts)
    with pytest.raises(OutOfMemory, match=r"memory exhausted: .* 0 of 6 jobs ended"):
        grid.run(scenario_of("queue"))
