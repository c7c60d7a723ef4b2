"""Jobs of textbook distributions: their moments, and that streams do not disturb one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.workload.stochastic import StochasticJobs, stochastic_jobs

ONE: dict[str, Any] = {"distribution": "exponential", "mean_s": 1.0}
COUNT = 400_000


def jobs(names: tuple[str, ...] = ("a",), **settings: Any) -> dict[str, JobTable]:
    given = {"jobs": COUNT, "arrivals": ONE, "work": ONE} | settings
    rng = np.random.Generator(np.random.PCG64(7))
    vo = VirtualOrganization("a", (Cluster("c", (Machine("m", 4, 500.0),)),))
    return stochastic_jobs(names, [vo] * len(names), rng, StochasticJobs.model_validate(given))


@pytest.mark.parametrize(
    ("distribution", "variation"),
    [
        (ONE, 1.0),
        ({"distribution": "fixed", "mean_s": 1.0}, 0.0),
        # Weibull of shape 2: cv² = Γ(2) / Γ(1.5)² - 1 = 4 / π - 1.
        ({"distribution": "weibull", "mean_s": 1.0, "shape": 2.0}, (4 / np.pi - 1) ** 0.5),
        ({"distribution": "lognormal", "mean_s": 1.0, "cv": 1.5}, 1.5),
        ({"distribution": "hyperexponential", "mean_s": 1.0, "cv": 2.0}, 2.0),
    ],
)
def test_work_has_the_mean_and_the_variation_of_its_distribution(
    distribution: dict[str, Any], variation: float
) -> None:
    run_s = jobs(work=distribution | {"mean_s": 3.0})["a"].run_us / 1e6
    assert run_s.mean() == pytest.approx(3.0, rel=0.02)
    assert run_s.std() / 3.0 == pytest.approx(variation, rel=0.05, abs=1e-9)


def test_bursts_keep_the_mean_rate_and_the_share_of_jobs_in_bursts() -> None:
    law = {
        "distribution": "bursts",
        "mean_s": 2.0,
        "rate_ratio": 9.0,
        "burst_share": 0.1,
        "burst_s": 50.0,
    }
    submit_s = jobs(arrivals=law)["a"].submit_us / 1e6
    assert submit_s[-1] / COUNT == pytest.approx(2.0, rel=0.03)
    # Counts over windows: variance / mean → 1 + 2 (r1 - r0)² p (1 - p)² b / mean rate, for windows
    # much longer than a burst; a Poisson process has 1.
    rate, quiet = 0.5, 0.5 / 1.8
    counts = np.histogram(submit_s, np.arange(0.0, submit_s[-1], 10_000.0))[0]
    expected = 1 + 2 * (8 * quiet) ** 2 * 0.1 * 0.9**2 * 50.0 / rate
    assert counts.var() / counts.mean() == pytest.approx(expected, rel=0.3)


def test_sizes_come_in_their_shares() -> None:
    sizes = [{"cpus": 1, "share": 3}, {"cpus": 8, "share": 1}]
    assert (jobs(sizes=sizes)["a"].processors == 8).mean() == pytest.approx(0.25, abs=0.005)


def test_streams_do_not_disturb_one_another() -> None:
    alone = jobs()["a"]
    longer = jobs(work={"distribution": "fixed", "mean_s": 9.0})["a"]
    assert (alone.submit_us == longer.submit_us).all()
    two = jobs(("a", "b"))
    assert (two["a"].submit_us == alone.submit_us).all()
    assert (two["a"].run_us == alone.run_us).all()
    assert (two["a"].run_us != two["b"].run_us).any()


def test_load_is_the_share_of_the_vos_cpu_time() -> None:
    """4 CPUs of half the reference speed; jobs of 2 CPUs x 3 s: at load 0.5 one every 6 s."""
    sizes = [{"cpus": 2, "share": 1}]
    fixed = {"distribution": "fixed"}
    table = jobs(arrivals=fixed, load=0.5, work=fixed | {"mean_s": 3.0}, sizes=sizes)["a"]
    assert (np.diff(table.submit_us) == 6_000_000).all()


@pytest.mark.parametrize("more", [{"load": 0.5}, {"arrivals": {"distribution": "exponential"}}])
def test_two_rates_or_none_are_an_error(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either `load` or `mean_s`"):
        jobs(**more)


def test_a_duration_has_the_jobs_that_are_submitted_within_it() -> None:
    """One job per second: as many as of 1024 and 2048 jobs begin within 1500 s."""
    within = jobs(("a", "b"), jobs=None, duration_s=1500.0)
    for name, table in jobs(("a", "b"), jobs=2048).items():
        count = int((table.submit_us < 1_500_000_000).sum())
        assert 1300 < count == len(within[name])
        assert within[name].submit_us.tolist() == table.submit_us[:count].tolist()
        assert within[name].run_us.tolist() == table.run_us[:count].tolist()


@pytest.mark.parametrize("more", [{"duration_s": 5.0}, {"jobs": None}])
def test_two_ends_or_none_are_an_error(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either `jobs` or `duration_s`"):
        jobs(**more)
