"""Joules by hand, on every core; what is conserved, whatever happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.model.job_results import JobResults, in_order
from grid.results.checkers import check
from grid.results.energy import cluster_energy, job_energy
from grid.results.metrics import Values, metrics
from grid.results.series import series
from grid.runtime.sequential import run_sequential
from tests.config.grids import grid_of

WATTS = {"watts_idle": 10.0, "watts_busy": 100.0}
# So short that what messages take is not seen in the joules.
NETWORK = {"latency_s": 1e-6, "local_latency_s": 1e-6}


def played(*vos: dict[str, Any], **scenario: Any) -> tuple[JobResults, list[float], list[Values]]:
    """The jobs, the joules of each, and the figures of the grid and of its VOs.

    What every run must keep is looked at: joules of jobs, idle CPUs and series go together.
    """
    grid = grid_of(vos=list(vos), network=NETWORK, **scenario)
    outcome = run_sequential(grid)
    results = in_order(outcome.chunks)
    assert check(results, grid.directory, sum(grid.jobs_by_vo())) == []
    figures = metrics(results, grid.directory, outcome.figures, outcome.histories)
    joules, whole = job_energy(results, grid.directory), figures["grid"]
    if "energy_j" in whole:
        assert np.nansum(joules) == pytest.approx(whole["energy_jobs_j"])
        assert whole["energy_jobs_j"] + whole["energy_idle_j"] == whole["energy_j"]  # type: ignore[operator]
        rows = series(results, grid.directory, histories=outcome.histories)
        by_cluster = cluster_energy(results, grid.directory, outcome.histories)
        last = results.outcome.end_us.max() / 1e6
        for number in range(len(grid.directory.clusters)):
            mine = rows.cluster == number
            lengths = np.diff(np.append(rows.time_s[mine], last))
            area = np.nansum(lengths * rows.power_w[mine])
            cluster_j = np.nan_to_num(np.add(*by_cluster))[number]
            assert area == pytest.approx(cluster_j, abs=1e-3)
    return results, joules.tolist(), [whole, *figures["vos"].values()]


def vo(name: str, clusters: list[dict[str, Any]], jobs: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "clusters": clusters, "workload": {"jobs": jobs}}


def test_a_pool() -> None:
    """4 CPUs for 20 s. 2 of 10 s at 100 W; 4 of 10 s at half of it; the other 20 CPU s idle."""
    jobs = [
        {"run_s": 10.0, "cpus": 2},
        {"run_s": 10.0, "cpus": 4, "power": 0.5},
        {"run_s": 1.0, "cpus": 5},
    ]
    _, joules, (whole, _) = played(vo("a", [{"cpus": 4, **WATTS}], jobs))
    assert joules[:2] == [2000.0, 2000.0]
    assert np.isnan(joules[2]), "a rejected job consumes nothing"
    assert whole["energy_idle_j"] == pytest.approx(200.0, abs=0.01)


def test_gangs_pay_for_each_task() -> None:
    """Two tasks of 10 s, one of them on a CPU twice as fast; one CPU idles for the last 5 s."""
    machines = [{"mips": 2000.0, **WATTS}, {"mips": 1000.0, **WATTS}]
    cluster = {"machines": machines, "policy": "afcfs"}
    _, joules, (whole, _) = played(vo("a", [cluster], [{"run_s": 10.0, "cpus": 2}]))
    assert joules == [pytest.approx(1500.0)]
    assert whole["energy_idle_j"] == pytest.approx(50.0, abs=0.01)


@pytest.mark.parametrize("policy", ["fcfs", "afcfs"])
def test_a_machine_that_is_down_draws_nothing_and_what_was_lost_is_paid_for(policy: str) -> None:
    """4 s of the job are lost, the machine is down for 6 s, and then the job takes 10 s."""
    outage = {"vo": "a", "cluster": "cluster", "machine": 0, "at_s": 4.0, "for_s": 6.0}
    cluster = {"machines": [{"cpus": 2, **WATTS}], "policy": policy}
    _, joules, (whole, _) = played(
        vo("a", [cluster], [{"run_s": 10.0}]), faults={"heal_s": 20.0, "machine_outages": [outage]}
    )
    assert joules == [pytest.approx(1400.0, abs=0.01)]
    assert whole["energy_idle_j"] == pytest.approx(140.0, abs=0.01)


def test_a_preempted_job_pays_for_what_it_held() -> None:
    """The urgent job holds the machine for 2 s; the other one waits so long, and has 1 s to read
    its state again."""
    machine = {"cpus": 1, **WATTS}
    overheads = {"suspend_s": 0.5, "resume_s": 0.5}
    cluster = {
        "machines": [machine],
        "policy": {"name": "edf", "settings": {"preemptive": True}},
        "preemption": overheads,
    }
    jobs = [
        {"run_s": 10.0, "deadline_s": 100.0},
        {"submit_s": 4.0, "run_s": 2.0, "deadline_s": 3.0},
    ]
    results, joules, (whole, _) = played(vo("a", [cluster], jobs))
    assert results.outcome.preemptions.tolist() == [1, 0]
    assert joules == [pytest.approx(1100.0, abs=0.01), pytest.approx(200.0, abs=0.01)]
    assert whole["energy_idle_j"] == pytest.approx(0.0, abs=0.01)


def test_a_forwarded_job_consumes_where_it_runs() -> None:
    """VO b's pool has no watts; a's one CPU is held by its own job and then by one of b."""
    here = vo("a", [{"cpus": 2, **WATTS}], [{"run_s": 10.0}])
    away = vo("b", [{"cpus": 1}], [{"run_s": 10.0, "cpus": 2, "submit_s": 5.0}])
    results, joules, (whole, a, b) = played(here, away)
    assert results.placement.executed_vo.tolist() == [0, 0]
    assert joules == [1000.0, 2000.0]
    assert (a["energy_jobs_j"], whole["energy_jobs_j"]) == (3000.0, 3000.0)
    assert a["energy_idle_j"] == pytest.approx(100.0, abs=0.01)
    assert "energy_j" not in b


# Machines that are switched off: after 5 s, and they boot for 2 s.

SWITCHED = {**WATTS, "switch_off": {"after_s": 5, "boot_s": 2, "watts_off": 1, "watts_boot": 50}}


def switched(
    cpus: int, jobs: list[dict[str, Any]], pool: bool = False, **outage: float
) -> tuple[JobResults, list[float], Values]:
    """The jobs of one machine that is switched off, the joules of each, and all figures.

    They enter the cluster, so that messages take no time.
    """
    cluster = {"machines": [{"cpus": cpus, **SWITCHED}], "policy": "fcfs"}
    if pool:
        cluster = {"cpus": cpus, **SWITCHED, "policy": "fcfs"}
    one = vo("a", [cluster], jobs)
    one["workload"]["entry_point"] = "cluster"
    down = [{"vo": "a", "cluster": "cluster", "machine": 0, **outage}] if outage else []
    faults = {"heal_s": 1000.0, "machine_outages": down}
    results, joules, (whole, _) = played(one, faults=faults)
    return results, joules, whole


@pytest.mark.parametrize("pool", [False, True])
def test_a_machine_is_off_until_a_job_comes_and_then_boots(pool: bool) -> None:
    """One of 2 CPUs is busy until 10 s (1000 J), the other idles (100 J). Both idle until 15 s
    (100 J), are off until 20 s (10 J), boot until 22 s (200 J) and are busy until 26 s (800 J)."""
    jobs = [{"run_s": 10.0}, {"submit_s": 20.0, "run_s": 4.0, "cpus": 2}]
    results, joules, whole = switched(2, jobs, pool)
    assert (results.outcome.start_us / 1e6).tolist() == [0.0, 20.0]
    assert (results.outcome.end_us / 1e6).tolist() == [10.0, 26.0]
    assert (results.outcome.lost_us / 1e6).tolist() == [0.0, 2.0]
    assert joules == [pytest.approx(1000.0), pytest.approx(800.0)]
    assert whole["energy_idle_j"] == pytest.approx(410.0)
    assert (whole["boots"], whole["lost_cpu_seconds"]) == (1, 4.0)


@pytest.mark.parametrize(("submit_s", "boots"), [(15.0, 0), (15.000001, 1)])
def test_a_machine_goes_off_when_it_has_been_idle_for_longer(submit_s: float, boots: int) -> None:
    _, _, whole = switched(1, [{"run_s": 10.0}, {"submit_s": submit_s, "run_s": 1.0}])
    assert whole["boots"] == boots


def test_a_machine_without_a_job_is_off_to_the_end() -> None:
    """The fast machine works for 20 s (2000 J); the other one idles for 5 s (50 J), then is off
    (10 J), down from 15 s to 18 s, and idles again (20 J), though no job could notice."""
    machines = [{"mips": 2000.0, **SWITCHED}, {"mips": 1000.0, **SWITCHED}]
    one = vo("a", [{"machines": machines, "resource": "cluster"}], [{"run_s": 40.0}])
    one["workload"]["entry_point"] = "cluster"
    outage = {"vo": "a", "cluster": "cluster", "machine": 1, "at_s": 15.0, "for_s": 3.0}
    faults = {"heal_s": 1000.0, "machine_outages": [outage]}
    _, joules, (whole, _) = played(one, faults=faults)
    assert joules == [pytest.approx(2000.0)]
    assert whole["energy_idle_j"] == pytest.approx(80.0)
