"""A lower bound of the mean slowdown over all schedules, by Lagrangian relaxation.

A CPU of speed s executes s million instructions a second. A job on p CPUs with I instructions each
needs V = I p instructions, in any pieces, on any machines, from its release r on. A job that runs
for T = I / s seconds and ends at C executes its mean instruction at M <= C - T / 2, so its slowdown
(C - r) / T is at least 1/2 + (M - r) s / I: a cost of (t - r) s / (I V) for an instruction at t.
For any prices of CPU seconds, the total cost is at least what each job pays at its cheapest
instant, minus the price of all CPU seconds. Subgradient ascent raises the prices of instants with
excess demand; the largest bound of all steps is returned.

A job that migrates has no single T: its cost is that of the slowest machine, without the half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.config.build import Grid
from grid.model.arrays import Bools, Floats
from grid.model.platform import Cluster
from grid.model.time import SECOND_US

SPEED_CLASSES = 10
INSTANTS = 40
STEPS = 1500


class _Farm(NamedTuple):
    """Machines in classes of similar speed, and instants. In a class every machine counts as slow
    as its slowest where speed costs, and as fast as its fastest where it helps."""

    slow: Floats
    fast: Floats
    cpus: Floats
    instants: Floats
    length: Floats
    """What an instant's price counts for: prices go straight from one instant to the next."""


class _Work(NamedTuple):
    """Jobs: release (s), instructions (V), cost a second for speed one, and of what speed."""

    release: Floats
    instructions: Floats
    cost: Floats
    moves: Bools


def slowdown_bound(grid: Grid, steps: int = STEPS) -> float | None:
    """The least mean slowdown that any schedule of the grid's jobs can have; None where unknown.

    Known where there is one VO with one cluster, all of whose jobs run for their whole length.
    """
    tables = [jobs for jobs in (*grid.submitted, *grid.direct) if jobs is not None]
    if len(grid.vos) != 1 or len(grid.vos[0].clusters) != 1 or len(tables) != 1:
        return None
    jobs = tables[0]
    if not len(jobs) or (jobs.run_us > jobs.estimate_us).any():
        return None
    each = jobs.run_us / SECOND_US * jobs.reference_mips
    release, moves = jobs.submit_us / SECOND_US, jobs.checkpointable
    work = _Work(release, each * jobs.processors, 1.0 / each, moves)
    farm = _farm_of(grid.vos[0].clusters[0], work)
    half = 0.5 * float((~moves).sum())
    return max(1.0, (_best_prices(work, farm, steps) + half) / len(jobs))


def _farm_of(cluster: Cluster, work: _Work) -> _Farm:
    mips = np.array([machine.mips for machine in cluster.machines])
    cpus = np.array([machine.cpus for machine in cluster.machines])
    bounds = np.unique(np.quantile(mips, np.linspace(0, 1, SPEED_CLASSES + 1)))
    of = np.clip(np.searchsorted(bounds, mips, side="right") - 1, 0, max(0, len(bounds) - 2))
    classes = np.unique(of)
    speed = float((cpus * mips).sum())
    # By then all is done even if it only starts after the last arrival.
    end = float(work.release[-1] + work.instructions.sum() / speed)
    instants = np.linspace(float(work.release[0]), end, INSTANTS)
    length = np.full(INSTANTS, instants[1] - instants[0])
    length[[0, -1]] /= 2
    return _Farm(
        np.array([mips[of == one].min() for one in classes]),
        np.array([mips[of == one].max() for one in classes]),
        np.array([cpus[of == one].sum() for one in classes], np.float64),
        instants,
        length,
    )


def _best_prices(work: _Work, farm: _Farm, steps: int) -> float:
    """The highest bound of the total cost that was found.

    Between two instants costs and prices are straight lines, so a job's cheapest instant is one of
    `instants` or its release, which is counted with the instant before it.
    """
    jobs, classes = len(work.release), len(farm.cpus)
    late = farm.instants - work.release[:, None]
    before = np.clip(
        np.searchsorted(farm.instants, work.release, side="right") - 1, 0, INSTANTS - 2
    )
    share = (work.release - farm.instants[before]) / (farm.instants[1] - farm.instants[0])
    speed = np.where(work.moves[:, None], farm.slow.min(), farm.slow)
    rate = (work.cost / work.instructions)[:, None] * speed
    # Of an instruction by job, class, and instant or release, without prices.
    cost = np.where(late[:, None] >= 0, rate[:, :, None] * late[:, None], np.inf)
    priced = np.empty((jobs, classes, INSTANTS + 1))
    prices = np.zeros((classes, INSTANTS))
    supply = farm.cpus[:, None] * farm.length
    best = -np.inf
    for step in range(steps):
        paid = prices / farm.fast[:, None]
        np.add(cost, paid, out=priced[:, :, :-1])
        priced[:, :, -1] = (paid[:, before] * (1 - share) + paid[:, before + 1] * share).T
        chosen = priced.reshape(jobs, -1).argmin(axis=1)
        least = priced.reshape(jobs, -1)[np.arange(jobs), chosen]
        at_class, at_instant = np.divmod(chosen, INSTANTS + 1)
        at_instant = np.where(at_instant == INSTANTS, before, at_instant)
        value = float((work.instructions * least).sum() - (supply * prices).sum())
        best = max(best, value)
        demand = np.zeros_like(prices)
        np.add.at(demand, (at_class, at_instant), work.instructions / farm.fast[at_class])
        excess = demand - supply
        # After the last instant prices are nothing, so they are nothing at it.
        excess[:, -1] = 0.0
        norm = float((excess**2).sum())
        if norm == 0.0:
            break
        # Polyak's step towards a bound that is a little higher than the best one.
        ambition = 0.05 if step < 0.7 * steps else 0.01
        target = best + ambition * max(abs(best), 0.1 * jobs)
        prices = np.maximum(0.0, prices + (target - value) / norm * excess)
    return best
