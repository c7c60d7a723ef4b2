"""Every run ends: random timings, a livelock that was found, and policies that retry forever."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.errors import OutOfMemory
from grid.protocol import local_scheduler
from grid.protocol.local_scheduler import LocalScheduler
from grid.runtime.outcome import RunOutcome
from grid.runtime.run import Stalled
from grid.runtime.sequential import run_sequential
from tests.protocol.random_timings import EVENTS_A_JOB, POLICIES, outcome

RECORDED = (*range(2 * len(POLICIES)), 41325)
"""Two seeds for each policy, and one under which jobs once refused each other for long."""


def stochastic(**settings: Any) -> dict[str, Any]:
    return {"generator": "stochastic", "settings": settings}


@pytest.mark.parametrize("seed", RECORDED)
def test_a_run_with_random_timings_ends(seed: int) -> None:
    assert outcome(seed).partition(":")[0] in ("ended", "refused")


def run_with_lease(lease_s: float) -> RunOutcome:
    """The probe of the job's scheduler takes as long as a lease of 1 s, so awards come too late."""
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
    return run_sequential(made, limit=20 * EVENTS_A_JOB)


@pytest.mark.parametrize("lease_s", [0.1, 1.0, 1.001, 1.5])
def test_leases_that_expire_before_the_job_arrives(lease_s: float) -> None:
    assert len(run_with_lease(lease_s).results()) == 20


def test_without_a_limit_of_expired_leases_jobs_reserve_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_scheduler, "MOST_EXPIRED_LEASES", 10**9)
    monkeypatch.setattr(local_scheduler, "MOST_REFUSALS", 10**9)
    stalled = run_with_lease(1.0).stalled
    assert stalled is not None
    assert re.search("repeat: .*LeaseExpired", stalled)


POLICIES = """
from grid.protocol.forwarding import Ask, Destination


def always_refused(question):
    return Destination(question.local_choice().own, False)


def asks(question):
    return asking(question, (1 - question.vo,), 1_000_000)


def waits_briefly(question):
    return asking(question, (), 1)


def asking(question, vos, wait_us):
    if question.job.number < 3:
        return Destination(question.local_choice().own, True)
    return Ask(vos, wait_us)
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(POLICIES)
    monkeypatch.chdir(tmp_path)


def scenario_of(policy: str) -> dict[str, Any]:
    workload = stochastic(
        jobs=6, load=2.0, sizes=[{"cpus": 4, "share": 1}], arrivals={"distribution": "fixed"},
        work={"distribution": "fixed", "mean_s": 20},
    )  # fmt: skip
    return {
        "name": "retries",
        "protocol": {"forwarding": policy},
        "vos": [
            {"name": "a", "clusters": [{"cpus": 4}], "workload": workload},
            {"name": "b", "clusters": [{"cpus": 4}]},
        ],
    }


STALLED = r"no progress: .* job 3 of a in a, .* repeat: .*QueryResources"


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("policy", ["asks", "waits_briefly"])
def test_a_policy_that_asks_forever_is_stopped_with_partial_results(policy: str) -> None:
    scenario = Path("s.json")
    scenario.write_text(json.dumps(scenario_of(f"mine.py:{policy}")))
    ran = CliRunner().invoke(app, ["run", str(scenario), "--in-process", "--out", "r"])
    assert ran.exit_code == 1
    assert re.search(STALLED, ran.stderr.splitlines()[-1])
    assert pyarrow.csv.read_csv("r/jobs.csv").num_rows == 3


@pytest.mark.ray
@pytest.mark.usefixtures("mine", "ray_session")
def test_a_policy_that_asks_forever_is_stopped_on_ray() -> None:
    with pytest.raises(Stalled, match=STALLED) as stalled:
        grid.run(scenario_of("mine.py:asks"), ray=True, placement="2")
    assert len(stalled.value.run.results) == 3


@pytest.mark.usefixtures("mine")
def test_a_sweep_counts_a_run_without_progress_as_failed_and_goes_on() -> None:
    axes = {"protocol.forwarding": ["mine.py:asks", "queue"]}
    experiment = {"name": "retries", "scenario": scenario_of("queue"), "axes": axes, "seeds": [1]}
    done = grid.sweep(experiment, "folder", in_process=True)
    assert done.runs == 2
    assert len(done.failures) == 1
    assert re.search(STALLED, str(done.failures[0]))


@pytest.mark.usefixtures("mine")
def test_a_job_that_is_refused_forever_queues() -> None:
    assert len(grid.run(scenario_of("mine.py:always_refused")).results) == 6


def test_a_run_without_memory_ends_and_reports_its_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def exhausts(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(LocalScheduler, "on_job_ended", exhausts)
    with pytest.raises(OutOfMemory, match=r"memory exhausted: .* 0 of 6 jobs ended"):
        grid.run(scenario_of("queue"))
