"""What decisions go by and lead to is measured in live runs, too, and adds up."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.model.job_results import in_order
from grid.results.definitions import GROUPS
from grid.results.metrics import metrics
from grid.runtime.live import run_live
from grid.runtime.pace import Pace
from grid.runtime.sequential import run_sequential
from tests.config.grids import grid_of, vo

SUMS = ("misjudged_arrivals", "refusals", "not_admitted", "leases", "leases_lost",
        "places_cancelled", "input_sent_mb", "input_wasted_mb")  # fmt: skip


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("rule", ["queue", "reserve"])
def test_figures_of_decisions_add_up_in_a_live_run(rule: str, tmp_path: Path) -> None:
    """How many there are hangs on real time; how they hang together does not."""
    jobs = [{"submit_s": 1 + n, "run_s": 6, "input_mb": 1} for n in range(6)]
    grid = grid_of(
        protocol={"snapshot_period_s": 3, "forwarding": rule},
        network={"latency_s": 0.3, "bandwidth_mbps": 100},
        vos=[vo("a", 1, jobs), vo("b", 1, jobs[:2]), vo("c", 2)],
    )
    virtual = run_sequential(grid)
    live = run_live(grid, tmp_path / "journals", Pace(speedup=4), "vo").run
    table = in_order(live.chunks)
    found, expected = (
        metrics(jobs_of, grid.directory, one.figures, one.histories, one.decisions)
        for jobs_of, one in ((table, live), (in_order(virtual.chunks), virtual))
    )
    assert {one.name for one in GROUPS["decisions"].metrics} <= set(found["grid"])
    assert set(found["grid"]) == set(expected["grid"])
    whole, vos = found["grid"], list(found["vos"].values())
    for name in SUMS:
        assert whole[name] == pytest.approx(sum(one[name] for one in vos)), name
    kinds = [whole[f"messages_of_{kind}_a_job"] for kind in ("jobs", "places", "information")]
    assert whole["messages_a_job"] == pytest.approx(sum(kinds))
    # A megabyte goes along with each job that is sent, and each hop of a job was one.
    assert whole["input_sent_mb"] >= int(table.placement.hops.sum()) > 0
    assert whole["input_sent_mb"] - whole["input_wasted_mb"] == whole["jobs_forwarded"]
    if rule == "queue":
        assert 0 < whole["information_age_mean"] < 60
        assert whole["herd_largest"] >= whole["herd_mean"] >= 1
    else:
        assert whole["leases"] >= whole["jobs_forwarded"] + whole["leases_lost"]
