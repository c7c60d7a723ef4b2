"""Random failures and repairs of machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import grid
from grid.config.build import Grid
from grid.config.workload import realize
from grid.model.platform import MachineOutage

DAY_S = 86400.0
FAILING: dict[str, Any] = {"up_s": DAY_S, "down_s": 3600.0}


def scenario(*failing: dict[str, Any], **more: Any) -> dict[str, Any]:
    machines = {"name": "farm", "policy": "easy", "resource": "cluster", "machines": [{"count": 5}]}
    jobs = [{"submit_s": 600.0 * number, "run_s": 2500} for number in range(300)]
    return {
        "vos": [
            {"name": "a", "clusters": [machines], "workload": {"jobs": jobs}},
            {"name": "b", "clusters": [{"name": "pool", "policy": "easy", "cpus": 4}]},
        ],
        "faults": {"heal_s": 4 * DAY_S, "random_machine_outages": list(failing)},
        **more,
    }


def grid_of(given: dict[str, Any]) -> Grid:
    return realize(grid.load_scenario(given), "test")[0]


def outages(made: Grid, position: int) -> tuple[MachineOutage, ...]:
    vo = made.vos[position]
    return made.outages_of(vo, vo.clusters[0])


def test_outages_are_of_all_machines_or_of_the_named_ones() -> None:
    everywhere = grid_of(scenario(FAILING))
    assert {one.machine for one in outages(everywhere, 0)} == {0, 1, 2, 3, 4}
    assert {one.machine for one in outages(everywhere, 1)} == {0}
    of_a = grid_of(scenario(FAILING | {"vo": "a"}))
    assert outages(of_a, 0) == outages(everywhere, 0)
    assert outages(of_a, 1) == ()
    assert outages(grid_of(scenario(FAILING | {"cluster": "pool"})), 0) == ()


def test_outages_depend_on_the_seed_only() -> None:
    one = outages(grid_of(scenario(FAILING)), 0)
    other = scenario(FAILING, protocol={"ttl": 0})
    other["vos"][0]["clusters"][0]["policy"] = "fcfs"
    other["vos"].append({"name": "c", "clusters": [{"cpus": 1}]})
    assert outages(grid_of(other), 0) == one
    assert outages(grid_of(scenario(FAILING, seed=2)), 0) != one
    kept = scenario(FAILING, seed=2)
    kept["faults"]["seed"] = 1
    assert outages(grid_of(kept), 0) == one


@pytest.mark.parametrize("shape", [1.0, 0.5, 3.0])
def test_times_up_and_down_have_the_given_distributions(shape: float) -> None:
    given = scenario({"up_s": 300.0, "down_s": 50.0, "shape": shape})
    mine = [one for one in outages(grid_of(given), 0) if one.machine == 0]
    starts, ends = (np.array([getattr(one, name) for one in mine]) for name in
                    ("start_us", "end_us"))  # fmt: skip
    up_s, down_s = (starts[1:] - ends[:-1]) / 1e6, (ends - starts)[:-1] / 1e6
    scale = stats.weibull_min.mean(shape)
    assert stats.kstest(up_s / 300.0 * scale, stats.weibull_min(shape).cdf).pvalue > 0.001
    assert stats.kstest(down_s / 50.0, stats.expon.cdf).pvalue > 0.001
    assert not stats.kstest(up_s / 600.0 * scale, stats.weibull_min(shape).cdf).pvalue > 0.001
