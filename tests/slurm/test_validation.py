"""The policy `slurm` beside a real cluster: two minutes of what scripts/slurm-validation does."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.slurm_validation import (
    NODES,
    PARTITIONS,
    Shadow,
    Submission,
    clusters,
    emulated,
    same_plans,
    submit,
    times_of,
    workload,
)
from tests.slurm.real_slurm import needs_slurm

LOG = """\
[2026-01-01T00:00:10.500] debug:  sched/backfill: _attempt_backfill: beginning
[2026-01-01T00:00:11.000] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=4294901759 usec=389
[2026-01-01T00:00:11.510] debug:  sched/backfill: _attempt_backfill: beginning
[2026-01-01T00:00:11.510] sched/backfill: _start_job: Started JobId=1 in main on n1
[2026-01-01T00:00:12.015] sched: Allocate JobId=2 NodeList=n1 #CPUs=1 Partition=main
[2026-01-01T00:00:12.520] debug:  sched/backfill: _attempt_backfill: beginning
[2026-01-01T00:00:14.540] _job_complete: JobId=1 done
"""


def test_times_of_a_log_are_counted_in_iterations_of_backfill(tmp_path: Path) -> None:
    log = tmp_path / "controller.log"
    log.write_text(LOG)
    times = times_of(log)
    assert times.submitted == {1: pytest.approx(10.495, abs=1e-3)}
    assert times.started == {1: pytest.approx(11.0), 2: pytest.approx(11.5)}
    assert times.ended == {1: pytest.approx(14.0)}


def test_plans_of_a_log_are_compared(tmp_path: Path) -> None:
    """Job 2 is planned when the limit of job 1 ends; then on other nodes than by the policy."""
    jobs = [Submission(0.5, 32, 50.0, 1), Submission(2.0, 4, 50.0, 1)]
    iteration = """\
[2026-01-01T00:00:13.000] debug:  sched/backfill: _attempt_backfill: beginning
[2026-01-01T00:00:13.000] sched/backfill: _dump_job_sched: JobId=2 to start at \
2026-01-01T00:01:11, end at 2026-01-01T00:02:11 on nodes n1 in partition main
[2026-01-01T00:00:13.000] sched/backfill: _attempt_backfill: BACKFILL: reached end of job queue
"""
    log = tmp_path / "controller.log"
    log.write_text(
        "[2026-01-01T00:00:10.500] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=9 usec=1\n"
        "[2026-01-01T00:00:11.500] sched: Allocate JobId=1 NodeList=n[1-8] #CPUs=32\n"
        "[2026-01-01T00:00:12.500] _slurm_rpc_submit_batch_job: JobId=2 InitPrio=8 usec=1\n"
        + iteration
        + iteration.replace("nodes n1", "nodes n2")
    )
    assert list(same_plans(log, Shadow(jobs, PARTITIONS))) == [True, False]


@needs_slurm
@pytest.mark.thorough
def test_jobs_start_when_they_do_in_a_real_cluster() -> None:
    jobs = workload(0.9, 1, 40, 80.0)
    with clusters(1, NODES) as (conf,):
        submit(conf, jobs)
        times = times_of(conf.parent / "controller.log")
    starts = emulated(times, jobs, "slurm")
    close = [abs(start - times.started[number]) <= 5.0 for number, start in starts.items()]
    assert len(close) == 40
    assert sum(close) >= 32
