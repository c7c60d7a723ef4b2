"""What machines did, by hand, where the table of jobs tells it of the last machine alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.model.job_results import in_order
from grid.results.metrics import Values, metrics
from grid.results.series import series
from grid.runtime.sequential import run_sequential
from tests.config.grids import grid_of

WATTS = {"watts_idle": 10.0, "watts_busy": 100.0}
FROM_60_S = {"vo": "a", "cluster": "cluster", "machine": 0, "at_s": 60.0, "for_s": 1000.0}


def played(
    parts: int, cluster: dict[str, Any], jobs: list[dict[str, Any]], *outages: dict[str, Any]
) -> tuple[Values, list[float]]:
    """The figures, and the cluster's watts in so many parts of the time, all as long."""
    workload = {"entry_point": "cluster", "jobs": jobs}
    vo = {"name": "a", "clusters": [cluster], "workload": workload}
    faults = {"heal_s": 1e4, "machine_outages": list(outages)} if outages else None
    grid = grid_of(vos=[vo], **({"faults": faults} if faults else {}))
    outcome = run_sequential(grid)
    results = in_order(outcome.chunks)
    figures = metrics(results, grid.directory, outcome.figures, outcome.histories)
    rows = series(results, grid.directory, parts, outcome.histories)
    return figures["grid"], rows.power_w.tolist()


def machines(*more: dict[str, Any]) -> dict[str, Any]:
    return {"machines": [{"cpus": 1, **WATTS, **one} for one in more], "resource": "cluster"}


def test_a_job_that_moves_twice_and_begins_again() -> None:
    """60 s on machine 0 are lost; machine 1 runs for 30 s and goes down; 100 s on machine 2."""
    later = {**FROM_60_S, "machine": 1, "at_s": 90.0}
    figures, watts = played(19, machines({}, {}, {}), [{"run_s": 100}], FROM_60_S, later)
    loads = np.array([60.0, 30.0, 100.0]) / 190
    assert figures["load_balance"] == pytest.approx(1 - loads.std() / loads.mean())
    assert figures["utilization"] == pytest.approx(190 / 3 / 190)
    assert watts == pytest.approx([120] * 6 + [110] * 3 + [100] * 10)


def test_a_machine_that_boots_draws_for_the_job_from_then_on() -> None:
    """Busy until 10 s, idle until 15 s, off until 20 s, then it boots for 2 s and is busy."""
    off = {"after_s": 5, "boot_s": 2, "watts_off": 1, "watts_boot": 50}
    jobs = [{"run_s": 10, "power": 2.0}, {"submit_s": 20, "run_s": 8}]
    _, watts = played(30, machines({"switch_off": off}), jobs)
    assert watts == pytest.approx([200] * 10 + [10] * 5 + [1] * 5 + [50] * 2 + [100] * 8)


def test_a_gang_that_an_outage_stops_uses_the_machines_where_it_was() -> None:
    """Of three machines two run the gang for 60 s; then the other two for all of its 100 s."""
    cluster = machines({}, {}, {})
    del cluster["resource"]
    cluster["policy"] = "afcfs"
    figures, watts = played(16, cluster, [{"run_s": 100, "cpus": 2}], FROM_60_S)
    loads = np.array([60.0, 160.0, 100.0]) / 160
    assert figures["load_balance"] == pytest.approx(1 - loads.std() / loads.mean())
    assert watts == pytest.approx([210] * 6 + [200] * 10)
