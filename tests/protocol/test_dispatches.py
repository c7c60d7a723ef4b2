"""The correction `own_dispatches`: 21 jobs at once, and hand-worked cases of the counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.model.job import Job, JobOutcome, JobState
from grid.model.job_results import JobPlacement
from grid.model.messages import JobDone
from grid.model.platform import Distances
from grid.model.resources import ResourceTable, concatenate_resources, resources_of
from grid.model.time import SECOND_US
from grid.protocol.dispatches import Dispatches
from tests.config.grids import grid_of, run


def sites(selection: str = "partial", **protocol: Any) -> Any:
    """A VO of one CPU whose users submit 21 jobs of 1,000 s at once, and two VOs of two CPUs."""
    hub = {"name": "hub", "selection": selection, "clusters": [{"name": "p", "cpus": 1}]}
    return grid_of(
        network={"latency_s": 0.5, "local_latency_s": 0.001},
        protocol=protocol,
        vos=[
            {**hub, "workload": {"jobs": [{"run_s": 1000}] * 21}},
            {"name": "m1", "clusters": [{"name": "p", "cpus": 2}]},
            {"name": "m2", "clusters": [{"name": "p", "cpus": 2}]},
        ],
    )


def ends_s(**protocol: Any) -> float:
    return float(run(sites(**protocol)).outcome.end_us.max()) / SECOND_US


@pytest.mark.parametrize("information", ["all", "none", "gossip", "index", "probes"])
def test_jobs_at_once_spread_over_all_sites(information: str) -> None:
    """Five CPUs need at least five rounds for 21 jobs."""
    with_correction = ends_s(information=information, discount="own_dispatches")
    if information in ("all", "gossip", "index"):
        assert 5000 <= with_correction <= 5100
    assert with_correction <= ends_s(information=information)


@pytest.mark.parametrize("selection", ["least_loaded", "earliest_completion"])
def test_other_selections(selection: str) -> None:
    grid = sites(selection, discount="own_dispatches")
    assert run(grid).outcome.end_us.max() <= 5100 * SECOND_US


def job(number: int, cpus: int = 1) -> Job:
    return Job(number=number, vo="a", submit_us=0, processors=cpus, estimate_us=1, run_us=1)


def corrected(dispatches: Dispatches, observed_us: float, now: int, assigned: float = 1.0) -> float:
    """Assigned CPUs of the resource of VO 1, with one status of `assigned` CPUs."""
    vos = sites().vos[:2]
    columns = concatenate_resources([resources_of(vo, n) for n, vo in enumerate(vos)])
    times = np.array([float(now), observed_us])
    table = ResourceTable(columns, np.array([0.0, assigned]), np.empty(0), times, times, now)
    return float(dispatches.correct(table, now).assigned_cpus[1])


def done(number: int, vo: int, assigned_us: int, end_us: int) -> JobDone:
    outcome = JobOutcome(0, int(JobState.COMPLETED), assigned_us, end_us, 0, 0, 0, 0)
    return JobDone(("a", number), JobPlacement(assigned_us, vo, vo, 1, 1.0), outcome)


def test_a_job_counts_until_status_includes_it() -> None:
    dispatches = Dispatches(Distances(0, 100))
    dispatches.sent(job(1, cpus=2), (1, 0), True, 1000)
    assert corrected(dispatches, 900, 1000) == 3
    assert corrected(dispatches, 1099, 1200) == 3
    assert corrected(dispatches, 1100, 1200) == 1


def test_a_job_that_has_ended_is_subtracted_until_status_excludes_it() -> None:
    dispatches = Dispatches(Distances(0, 100))
    dispatches.sent(job(1), (1, 0), True, 1000)
    dispatches.done(done(1, 1, assigned_us=1100, end_us=2000))
    assert corrected(dispatches, 1050, 2100) == 1, "neither included nor running"
    assert corrected(dispatches, 1500, 2100) == 0
    assert corrected(dispatches, 2000, 2200) == 1
    assert corrected(dispatches, 1500, 2300) == 1, "it is forgotten"


def test_a_job_that_ran_elsewhere_does_not_count() -> None:
    dispatches = Dispatches(Distances(0, 100))
    dispatches.sent(job(1), (1, 0), True, 1000)
    dispatches.done(done(1, 2, assigned_us=1100, end_us=2000))
    assert corrected(dispatches, 1050, 2100) == 1


def test_local_jobs_count_until_they_are_assigned() -> None:
    dispatches = Dispatches(Distances(1, 100))
    dispatches.sent(job(1), (1, 0), True, 1000)
    assert corrected(dispatches, 1000, 1000) == 2
    dispatches.assigned(("a", 1), 1002)
    assert corrected(dispatches, 1001, 1001) == 2
    assert corrected(dispatches, 1002, 1002) == 1
