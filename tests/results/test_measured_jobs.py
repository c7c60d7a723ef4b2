"""Values of the jobs that were submitted in an interval, which leaves out the warm-up of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grid
from grid.lab.report.run_page import write_run_page
from grid.model.job_results import JobResults, MeasuredJobs
from grid.results.definitions import GROUPS
from grid.results.metrics import metrics
from grid.results.summary import measured_line
from grid.runtime.run import save
from tests.results.results_tables import TWO_VOS, job, table, tables, us

JOB_FIGURES = [one.name for one in GROUPS["jobs"].metrics]

SERVERS: dict[str, Any] = {
    "name": "servers",
    "vos": [{"name": "vo", "clusters": [{"name": "server", "cpus": 1, "policy": "fcfs"}]}],
    "workload": {
        "generator": "stochastic",
        "settings": {
            "jobs": 400,
            "load": 0.7,
            "arrivals": {"distribution": "exponential"},
            "work": {"distribution": "exponential", "mean_s": 10},
        },
    },
}
"""One server, at which some 400 jobs come in some 5,700 s."""


def test_a_job_counts_from_the_beginning_of_the_interval_and_not_at_its_end() -> None:
    rows = [job(1, 0, 0, 10), job(2, 5, 10, 20), job(3, 9, 20, 30), job(4, 9.5, 30, 40, vo=1)]
    found = metrics(table(rows), TWO_VOS, measured=MeasuredJobs(us(5), us(9.5)))
    assert found["grid"]["jobs_submitted"] == 2
    assert found["grid"]["wait_mean"] == (5 + 11) / 2
    assert found["vos"]["north"]["response_time_mean"] == (15 + 21) / 2
    assert found["vos"]["south"]["jobs_submitted"] == 0
    assert found["vos"]["south"]["wait_mean"] is None
    # The machines of both VOs worked all the same, from 0 s to 40 s.
    assert found["vos"]["south"]["utilization"] == 10 / (3 * 40)
    assert found["grid"]["utilization"] == 40 / (7 * 40)


@given(tables(), st.integers(0, 50), st.integers(1, 50))
def test_metrics_of_jobs_equal_those_of_a_table_without_other_jobs(
    results: JobResults, from_s: int, longer_s: int
) -> None:
    measured = MeasuredJobs(us(from_s), us(from_s + longer_s))
    inside = [us(from_s) <= at < us(from_s + longer_s) for at in results.submit_us.tolist()]
    found = metrics(results, TWO_VOS, measured=measured)
    expected = metrics(results.take(np.array(inside, np.bool_)), TWO_VOS)
    whole = metrics(results, TWO_VOS)
    for vo in (None, *TWO_VOS.vos):
        of_jobs, of_all, mine = (
            each["grid"] if vo is None else each["vos"][vo] for each in (expected, whole, found)
        )
        for name, value in mine.items():
            assert value == (of_jobs if name in JOB_FIGURES else of_all)[name], name


def test_the_digest_and_the_files_have_all_jobs_and_the_line_says_which_are_measured(
    tmp_path: Path,
) -> None:
    plain = grid.run(SERVERS)
    run = grid.run(
        SERVERS, set={"metrics.submitted_from_s": 1500, "metrics.submitted_until_s": 4e3}
    )
    assert run.manifest["digest"] == plain.manifest["digest"]
    assert "measured" not in plain.manifest
    assert measured_line(plain.manifest) is None
    jobs = run.jobs_table()
    submitted = jobs["submission_time"]
    chosen = jobs.filter(pc.and_(pc.greater_equal(submitted, 1500), pc.less(submitted, 4000)))
    assert 0 < len(chosen) < len(jobs) == 400
    response = pc.subtract(chosen["finish_time"], chosen["submission_time"])
    mean = pc.mean(pc.cast(response, "float64")).as_py()
    assert run.metrics["grid"]["response_time_mean"] == pytest.approx(mean)
    assert run.metrics["grid"]["utilization"] == plain.metrics["grid"]["utilization"]
    line = f"job metrics cover {len(chosen)} jobs, submitted from 1,500 s on and before 4,000 s"
    assert measured_line(run.manifest) == line
    save(run, tmp_path / "run")
    write_run_page(tmp_path / "run", tmp_path / "page.html")
    assert line in (tmp_path / "page.html").read_text()
