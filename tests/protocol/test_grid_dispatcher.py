"""Level one: the least loaded eligible cluster, at random among equals."""

from __future__ import annotations

import numpy as np
import pytest

from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US
from tests.config.grids import grid_of, run

CLUSTERS = [
    {"name": "pool", "cpus": 2, "policy": "easy", "resource": "cluster"},
    {
        "name": "farm",
        "machines": [{"count": 2, "cpus": 2}],
        "policy": "fcfs",
        "resource": "cluster",
    },
    {"name": "gangs", "machines": [{"count": 6}], "policy": "afcfs"},
]


def results_of(jobs: list[dict[str, object]]) -> JobResults:
    vo = {"name": "a", "clusters": CLUSTERS, "workload": {"jobs": jobs}}
    network = {"latency_s": 0.01, "local_latency_s": 0.001}
    return run(grid_of(vos=[vo], network=network, protocol={"forwarding": "queue"}))


def test_idle_clusters_are_chosen_at_random() -> None:
    """Three hundred jobs, each alone: a hundred for each cluster, give or take."""
    results = results_of([{"submit_s": 2 * n, "run_s": 1, "cpus": 2} for n in range(300)])
    counts = np.bincount(results.placement.cluster)
    assert counts.sum() == 300
    assert (abs(counts - 100) < 35).all()


def test_the_least_loaded_cluster_is_chosen() -> None:
    """Eq. 2: tasks over processors, not tasks alone."""
    first = {"submit_s": 0, "run_s": 100, "cpus": 6}
    others = [{"submit_s": 5 * n, "run_s": 1000, "cpus": 2} for n in range(1, 4)]
    results = results_of([first, *others])
    # The first fits the gangs only, and fills them. The next two find the others idle; then the
    # pool has two tasks on two processors, the farm two on four.
    assert results.placement.cluster.tolist()[0] == 2
    assert set(results.placement.cluster.tolist()[1:3]) == {0, 1}
    assert results.placement.cluster.tolist()[3] == 1
    assert (results.outcome.state == JobState.COMPLETED).all()


@pytest.mark.parametrize("selection", ["partial", "matchmaking", "least_loaded"])
def test_a_job_with_requirements_goes_to_clusters_that_fulfil_them(selection: str) -> None:
    """Two clusters are alike and fast, and the slow one stays idle."""
    requirement = {"kind": "speed", "options": [{"value": 2000, "utility": 0.5}]}
    jobs = [{"submit_s": n, "run_s": 100, "requirements": [requirement]} for n in range(1, 7)]
    clusters = [
        {"name": f"c{n}", "cpus": 4, "mips": mips, "policy": "fcfs", "resource": "cluster"}
        for n, mips in enumerate((500, 2000, 2000))
    ]
    vo = {"name": "a", "clusters": clusters, "selection": selection, "workload": {"jobs": jobs}}
    results = run(grid_of(vos=[vo]))
    assert np.bincount(results.placement.cluster).tolist() == [0, 3, 3]
    assert (results.placement.utility == 0.5).all()
    assert (results.outcome.held_us == 50 * SECOND_US).all()
