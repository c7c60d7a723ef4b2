"""Chance taken out of what runs find: control variates (Lavenberg and Welch 1981).

What a run finds hangs on the jobs that it happened to get. Of the jobs alone, whatever the grid
does with them, theory knows as much: their mean work, the mean time between them, and how long they
would wait for one pool of all servers. Where a run's jobs were heavier than they should be on
average, the run has found too much, in proportion; how much in proportion, the runs themselves say.
"""

from __future__ import annotations

import heapq
from math import sqrt
from typing import NamedTuple

import numpy as np

from grid.lab.verify.theory import mmc_wait
from grid.model.arrays import Floats, Ints
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US

FEWEST_RUNS = 8
"""With fewer runs than these nothing can be said of proportions."""


class Jobs(NamedTuple):
    """What is known of the jobs of a run. Times in seconds.

    All jobs together come `gap_s` apart and have exponential work of `work_s`; `servers` is the
    number of equal servers that could take any of them, 0 where they offer more than those can do.
    """

    work_s: float
    gap_s: float
    servers: int

    def expected(self) -> Floats:
        """The controls as they should be. Shape (controls,)."""
        pool = self.servers and self.work_s * mmc_wait(
            self.servers, self.work_s / (self.gap_s * self.servers)
        )
        return np.array([self.work_s, self.gap_s, pool][: 3 if self.servers else 2])

    def found(self, results: JobResults, steady: Ints) -> Floats:
        """The controls of the jobs of a run, by what their users gave. Shape (controls,)."""
        vos = np.unique(results.vo)
        gaps_us = [_mean_gap_us(results.submit_us[results.vo == vo]) for vo in vos]
        work_us = results.estimate_us
        found = [work_us.mean(), np.mean(gaps_us) / len(vos)]
        if self.servers:
            order = np.argsort(results.submit_us, kind="stable")
            waits_us = np.empty(len(results))
            waits_us[order] = pool_waits(results.submit_us[order], work_us[order], self.servers)
            found.append(waits_us[steady].mean())
        return np.array(found) / SECOND_US


def _mean_gap_us(submit_us: Ints) -> float:
    return float(submit_us.max() - submit_us.min()) / max(1, len(submit_us) - 1)


def pool_waits(submit_us: Ints, work_us: Ints, servers: int) -> list[int]:
    """The wait of every job, in order of submission, first come first served at one pool."""
    free, waits = [0] * servers, []
    for submit, work in zip(submit_us.tolist(), work_us.tolist(), strict=True):
        start = max(submit, free[0])
        heapq.heapreplace(free, start + work)
        waits.append(start - submit)
    return waits


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float


def estimate(found: Floats, controls: Floats, expected: Floats) -> Estimate:
    """The mean of `found`, shape (runs,), as it would be if all controls were as `expected`.

    `controls` has the shape (runs, controls). Linear regression; the error is that of its value at
    `expected`. With few runs or without controls: the mean as it is.
    """
    runs, count = controls.shape
    mean = float(found.mean())
    if runs < 2:
        return Estimate(mean, 0.0)
    if runs < FEWEST_RUNS or not count:
        return Estimate(mean, float(found.std(ddof=1)) / sqrt(runs))
    off = controls - controls.mean(axis=0)
    scale = np.where(off.any(axis=0), off.std(axis=0), 1.0)
    off, shift = off / scale, (expected - controls.mean(axis=0)) / scale
    inverse = np.linalg.pinv(off.T @ off)
    slopes = inverse @ (off.T @ (found - mean))
    left = found - mean - off @ slopes
    variance = float(left @ left) / (runs - 1 - count)
    share = 1.0 / runs + float(shift @ inverse @ shift)
    return Estimate(mean + float(shift @ slopes), sqrt(variance * share))


def worst(controls: Floats, expected: Floats) -> float:
    """The most standard errors that a control is off, of shape (runs, controls)."""
    runs = len(controls)
    if runs < 2 or not controls.size:
        return 0.0
    errors = controls.std(axis=0, ddof=1) / sqrt(runs)
    off = np.abs(controls.mean(axis=0) - expected)
    return float(np.max(off / np.where(errors > 0.0, errors, np.inf)))
