"""The model of Lublin and Feitelson, against its laws as scipy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.workload.lublin import (
    KINDS,
    LONGEST_GAP,
    LONGEST_RUN,
    LublinJobs,
    day_rates,
    draw_processors,
    draw_run_s,
    lublin_jobs,
)

COUNT = 40_000
UNLIKELY = 1e-4
"""A law is wrong where what was drawn is so unlikely under it."""


def stream() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(11))


def vo(processors: int = 128) -> VirtualOrganization:
    return VirtualOrganization("a", (Cluster("c", (Machine("m", processors, 1000.0),)),))


def jobs(names: tuple[str, ...] = ("a",), **settings: object) -> dict[str, JobTable]:
    given = {"jobs": COUNT} | settings
    return lublin_jobs(names, [vo()] * len(names), stream(), LublinJobs.model_validate(given))


def mixture(short: Any, long: Any, share: float) -> Any:
    """The distribution of logarithms of run times, none of which is above the longest."""

    def law(log_s: Any) -> Any:
        first, second = (one.cdf(log_s) / one.cdf(LONGEST_RUN) for one in (short, long))
        return share * first + (1 - share) * second

    return law


@pytest.mark.parametrize("name", KINDS)
def test_run_times_are_of_two_gamma_laws_whose_share_falls_with_the_size(name: str) -> None:
    kind = KINDS[name]
    for processors in (1, 32):
        run_s = draw_run_s(kind, np.full(COUNT, processors), stream())
        share = min(1.0, kind.short_by_size[0] * processors + kind.short_by_size[1])
        short, long = (stats.gamma(shape, scale=scale) for shape, scale in (kind.short, kind.long))

        log_s = np.log(run_s)
        assert stats.kstest(log_s, mixture(short, long, share)).pvalue > UNLIKELY
        # With another share it would be seen.
        assert stats.kstest(log_s, mixture(short, long, share - 0.04)).pvalue < UNLIKELY


@pytest.mark.parametrize("name", KINDS)
def test_sizes_are_serial_powers_of_two_or_of_two_stages(name: str) -> None:
    kind = KINDS[name]
    processors = draw_processors(kind, COUNT, 128, stream())
    assert (processors == 1).mean() == pytest.approx(kind.serial, abs=0.01)
    assert processors.max() <= 128
    powers = np.isin(processors, 2 ** np.arange(8))
    assert powers.mean() > kind.serial + kind.power_of_two
    # Parallel jobs that are not rounded: their logarithm is uniform in each of two stages.
    high = min(kind.hi, 7.0)
    small = (processors > 1) & (np.log2(processors) <= high - kind.below_hi)
    assert small.sum() / (processors > 1).sum() == pytest.approx(kind.first_stage, abs=0.06)


def test_submissions_follow_the_hours_of_the_day() -> None:
    submit_s = jobs()["a"].submit_us / 1e6
    whole = submit_s[submit_s < submit_s[-1] // 86_400 * 86_400]
    found = np.histogram(whole % 86_400, 48, (0, 86_400))[0]
    expected = day_rates(KINDS["all"].day)
    assert np.corrcoef(found, expected)[0, 1] > 0.95
    # The night's rate is least before half past five, the day's most in the afternoon.
    assert expected.argmin() in (9, 10)
    assert 24 <= expected.argmax() <= 36


def test_gaps_are_lognormal_like_by_their_gamma_law_once_days_are_taken_out() -> None:
    submit_s = jobs()["a"].submit_us / 1e6
    rates = day_rates(KINDS["all"].day)
    reached = np.append(0.0, np.cumsum(rates / rates.mean()) * 1800.0)
    days, rest = np.divmod(submit_s, 86_400.0)
    steady_s = days * 86_400.0 + np.interp(rest, np.linspace(0, 86_400, 49), reached)
    gaps = np.log(np.diff(steady_s))
    shape, scale = KINDS["all"].gap
    law = stats.gamma(shape, scale=scale)
    assert stats.kstest(gaps, lambda x: law.cdf(x) / law.cdf(LONGEST_GAP)).pvalue > UNLIKELY


def test_load_is_that_of_the_own_vo_and_zones_shift_the_day() -> None:
    tables = jobs(("a", "b"), load=0.7, hours_between_vos=6, jobs=20_000)
    for table in tables.values():
        work = float(table.run_us @ table.processors)
        assert work / (128 * table.submit_us[-1]) == pytest.approx(0.7, rel=0.02)
    hours = [
        np.histogram(table.submit_us / 3.6e9 % 24, 24, (0, 24))[0] for table in tables.values()
    ]
    shifted = [np.corrcoef(hours[0], np.roll(hours[1], shift))[0, 1] for shift in range(24)]
    assert int(np.argmax(shifted)) in (5, 6, 7)
