"""VOs with different local policies: every job runs on a resource that it fits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.job import JobState
from grid.model.job_results import in_order
from grid.results.checkers import check
from grid.runtime.sequential import run_sequential

SMALL = Path(__file__).parents[1] / "runtime" / "fault_scenarios" / "policies.yaml"


@pytest.mark.parametrize("forwarding", ["queue", "forward", "reject"])
def test_every_job_runs_on_a_resource_that_it_fits(forwarding: str) -> None:
    travelled = licensed = gangs_away = 0
    for seed in range(6):
        overrides = (f"protocol.forwarding={forwarding}", f"seed={seed}")
        grid, _ = realize(load_scenario(SMALL, overrides), str(SMALL))
        outcome = run_sequential(grid)
        results = in_order(outcome.chunks)
        assert check(results, grid.directory, sum(grid.jobs_by_vo())) == []
        clusters = [cluster for vo in grid.vos for cluster in vo.clusters]
        for row in np.flatnonzero(results.outcome.state == JobState.COMPLETED):
            home, vo = int(results.vo[row]), int(results.placement.executed_vo[row])
            jobs = grid.submitted[home]
            assert jobs is not None
            place = int(np.flatnonzero(jobs.number == results.number[row])[0])
            job = jobs.job(place, grid.vos[home].name)
            cluster = clusters[results.placement.cluster[row]]
            assert job.processors <= cluster.widest
            assert results.placement.utility[row] > 0
            if job.licenses:
                licensed += 1
                assert vo == home, "its licenses are at home"
            travelled += vo != home
            gangs_away += vo != home and grid.vos[home].name == "gangs"
    assert licensed > 10
    assert travelled > 10 and gangs_away > 3
