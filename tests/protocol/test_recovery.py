"""Lost VOs and recall: each job has one final state, wherever its copies are."""

from __future__ import annotations

from typing import Any

import pytest

from grid.config.build import Grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.errors import InputError
from grid.model.job import COPIES, JobState
from grid.model.job_results import JobResults, in_order
from grid.protocol.recovery import Recovery
from grid.results.checkers import check, digest
from grid.runtime.sequential import run_sequential
from tests.protocol.lost_vos import attempt, faulty_grid
from tests.protocol.random_timings import POLICIES
from tests.runtime.test_window import in_windows

ONE_CPU = [{"name": "p", "cpus": 1, "policy": "fcfs"}]


def made(
    jobs: list[dict[str, Any]],
    faults: dict[str, Any] | None,
    local_latency_s: float = 0.001,
    **protocol: Any,
) -> Grid:
    """A busy hub, m1, and m2, which joins at 60 s. Snapshots every 10 s."""
    given = {
        "name": "lost",
        "network": {"latency_s": 0.5, "local_latency_s": local_latency_s},
        "protocol": {"snapshots": {"period_s": 10}, **protocol},
        "vos": [
            {"name": "hub", "clusters": ONE_CPU, "workload": {"jobs": jobs}},
            {"name": "m1", "clusters": ONE_CPU},
            {"name": "m2", "joins_s": 60, "clusters": ONE_CPU},
        ],
    }
    return realize(load_scenario(given | ({"faults": faults} if faults else {})), "lost.yaml")[0]


def m1_is_down(for_s: float, machine: bool = True) -> dict[str, Any]:
    """m1 is down from 50 s on; then its entities go on from where they were."""
    when = {"vo": "m1", "at_s": 50, "for_s": for_s}
    machines = [{**when, "cluster": "p", "machine": 0}] if machine else []
    return {"heal_s": 1000, "vo_outages": [when], "machine_outages": machines}


def ended(grid: Grid) -> tuple[list[float], dict[str, float], JobResults]:
    """The ends of the jobs in seconds, in order of number, and counts; no rule is broken."""
    outcome = run_sequential(grid)
    results = outcome.results()
    assert outcome.broken_rules() + check(results, grid.directory, sum(grid.jobs_by_vo())) == []
    counts: dict[str, float] = {}
    for one in outcome.decisions:
        counts[one.figure] = counts.get(one.figure, 0) + one.value
    return (results.outcome.end_us / 1e6).tolist(), counts, results


LONG_AND_SHORT = [{"run_s": 5000}, {"submit_s": 1, "run_s": 200}]


@pytest.mark.parametrize("policy", [one for one in POLICIES if one != "never"])
def test_a_job_in_a_lost_vo_runs_elsewhere(policy: str) -> None:
    """m2 looks for work every 300 s under `pull`; else the copy starts when m1 is lost, at 76 s."""
    grid = made(LONG_AND_SHORT, m1_is_down(700), forwarding=policy, lost_after_s=30)
    ends, counts, _ = ended(grid)
    assert ends[1] < (510 if policy == "pull" else 300)
    assert counts["resubmissions"] == 1
    assert 0 < counts["duplicate_cpu_s"] < 60


def test_without_recovery_a_job_waits_for_the_lost_vo() -> None:
    ends, counts, _ = ended(made(LONG_AND_SHORT, m1_is_down(700)))
    assert ends[1] > 900
    assert "resubmissions" not in counts


def test_new_jobs_do_not_go_to_a_lost_vo() -> None:
    """The third job is for the first of equal VOs, which is m1 unless that is lost."""
    jobs = [*LONG_AND_SHORT, {"submit_s": 300, "run_s": 10}]
    ends, counts, _ = ended(made(jobs, m1_is_down(700), lost_after_s=30))
    assert ends[2] < 320
    assert counts["resubmissions"] == 1


def test_a_vo_that_reports_in_time_is_not_lost() -> None:
    """Snapshots are at most 10.5 s old when they are read, and 12.5 s when they are used."""
    grid = made(LONG_AND_SHORT, None, local_latency_s=2.0, lost_after_s=12.01)
    _, counts, _ = ended(grid)
    assert counts["messages.ForwardJob"] == 1
    assert "resubmissions" not in counts


def test_copies_of_a_job_become_rarer() -> None:
    """m1 and m2 do not report in turn, for 50 s each, and the job needs 200 s."""
    down = [{"vo": f"m{1 + turn % 2}", "at_s": 80 + 50 * turn, "for_s": 50} for turn in range(180)]
    grid = made(LONG_AND_SHORT, {"heal_s": 10_000, "vo_outages": down}, lost_after_s=20)
    ends, counts, _ = ended(grid)
    assert ends[1] < 2000
    assert counts["resubmissions"] < 8


def test_the_first_completion_counts() -> None:
    """m1 is cut off and goes on: it completes at 201 s, and reports that when the link is back."""
    cut = {"one": ["m1"], "other": ["hub", "m2"], "at_s": 50, "for_s": 170}
    grid = made(LONG_AND_SHORT, {"heal_s": 1000, "partitions": [cut]}, lost_after_s=30)
    ends, counts, results = ended(grid)
    assert ends[1] == pytest.approx(202, abs=1)
    assert results.placement.executed_vo[1] == 1
    assert 140 < counts["duplicate_cpu_s"] < 160, "the copy at m2 is cancelled soon after 220 s"


def test_the_later_completion_is_duplicate_work() -> None:
    cut = {"one": ["m1"], "other": ["hub", "m2"], "at_s": 50, "for_s": 400}
    grid = made(LONG_AND_SHORT, {"heal_s": 1000, "partitions": [cut]}, lost_after_s=30)
    ends, counts, results = ended(grid)
    assert ends[1] == pytest.approx(280, abs=6)
    assert results.placement.executed_vo[1] == 2
    assert counts["duplicate_cpu_s"] == pytest.approx(200)


def test_a_job_that_waits_for_long_is_called_back() -> None:
    """m1 runs a job of 1,000 s of its own users' when the hub's second job arrives to queue."""
    jobs = [{"run_s": 5000}, {"submit_s": 1, "run_s": 1000}, {"submit_s": 2, "run_s": 100}]
    policy = {"name": "best_expected_finish", "settings": {"queued_run_s": 50}}
    never = ended(made(jobs, None, forwarding=policy))[0]
    recalled = ended(made(jobs, None, forwarding=policy, recall_after_s=100))[0]
    assert never[2] > 1000
    assert recalled[2] == pytest.approx(205, abs=2)
    assert recalled[:2] == never[:2], "a job that has started stays"


@pytest.mark.parametrize("policy", [one for one in POLICIES if one not in ("never", "reject")])
def test_a_job_that_no_other_vo_can_run_is_not_recalled(policy: str) -> None:
    """m1 has a job of its own users' until 510 s; only it has the CPUs of the hub's job."""
    pool = [{"name": "p", "cpus": 4, "policy": "fcfs"}]
    busy = {"jobs": [{"submit_s": 10, "run_s": 500, "cpus": 4}]}
    wide = {"jobs": [{"submit_s": 20, "run_s": 50, "cpus": 4}]}
    given = {
        "name": "wide",
        "protocol": {"forwarding": policy, "ttl": 2, "recall_after_s": 100},
        "vos": [
            {"name": "hub", "clusters": ONE_CPU, "workload": wide},
            {"name": "m1", "clusters": pool, "workload": busy},
        ],
    }
    ends, _, _ = ended(realize(load_scenario(given), "wide.yaml")[0])
    assert ends[1] == pytest.approx(560, abs=2)


def test_a_cancellation_by_the_user_counts() -> None:
    """Both copies wait when it comes: the job is cancelled once."""
    jobs = [{"run_s": 5000}, {"submit_s": 1, "run_s": 500}]
    jobs += [{"submit_s": 2, "run_s": 500, "cancel_after_s": 150}]
    grid = made(jobs, m1_is_down(200), forwarding="best_expected_finish", lost_after_s=30)
    _, _, results = ended(grid)
    assert results.outcome.state[2] == JobState.CANCELLED


FOUND = {2101: "a copy had its result while the job, which was not needed, was on its way back"}
"""Seeds that broke a rule once."""


def test_each_job_has_one_final_state_with_random_faults() -> None:
    trials = {seed: attempt(seed) for seed in (*range(84), *FOUND)}
    assert {seed: one.wrong for seed, one in trials.items() if one.wrong} == {}
    assert sum(one.counts["copies"] for one in trials.values()) > 0


@pytest.mark.parametrize("seed", [30, 71, 102])
def test_two_processes_give_the_same_results(seed: int) -> None:
    """Under these seeds, 12 to 15 copies of jobs are made."""
    grid = faulty_grid(seed)
    expected = run_sequential(grid).results()
    chunks, _ = in_windows(grid, [0, 1, 1, 0, 1])
    assert digest(in_order(chunks)) == digest(expected)


def test_a_copy_that_also_counts_breaks_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Recovery.result

    def all_count(self: Recovery, ctx: Any, row: Any) -> Any:
        right(self, ctx, row)
        return row._replace(job=self._originals.setdefault(row.job.number % COPIES, row.job))

    monkeypatch.setattr(Recovery, "_originals", {}, raising=False)
    monkeypatch.setattr(Recovery, "result", all_count)
    cut = {"one": ["m1"], "other": ["hub", "m2"], "at_s": 50, "for_s": 400}
    grid = made(LONG_AND_SHORT, {"heal_s": 1000, "partitions": [cut]}, lost_after_s=30)
    assert any("ended twice" in line for line in run_sequential(grid).broken_rules())


@pytest.mark.parametrize(
    "protocol",
    [
        {"information": "gossip"},
        {"information": "none"},
        {"snapshots": {"load_above": 0.5}},
        {"snapshots": {"period_s": 29.5}},
    ],
)
def test_without_heartbeats_no_vo_can_be_lost(protocol: dict[str, Any]) -> None:
    with pytest.raises(InputError) as error:
        made(LONG_AND_SHORT, None, lost_after_s=30, **protocol)
    assert [one.field for one in error.value.errors] == ["protocol.lost_after_s"]
