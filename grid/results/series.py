"""How busy each cluster was over time, and how long its queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job_results import JobResults
from grid.model.records import ClusterHistory
from grid.model.time import SECOND_US
from grid.results.energy import extra_watts, has_watts, held_times, idle_watts
from grid.results.loss import lost_processors
from grid.results.machines import Directory, ran, rows_that_ran

POINTS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A row for each interval of each cluster, cluster after cluster. Shapes (rows,).

    The columns are defined in `grid.results.definitions`; NaN where one does not apply.
    """

    time_s: Floats
    cluster: Ints
    busy_cpus: Floats
    utilization: Floats
    queued: Floats
    lost_cpus: Floats
    license_use: Floats
    power_w: Floats


def series(
    results: JobResults,
    directory: Directory,
    points: int = POINTS,
    histories: Sequence[ClusterHistory] = (),
) -> Series:
    """Up to `points` rows a cluster, from the first submission to the last end of a job.

    The table has only the first start and the last end of a job: one that was preempted or
    restarted counts as running in between, on the cluster where it ended. A job that never started
    is in no queue, since the table does not say when it left. Clusters that tell their `histories`
    know better when their CPUs were in use.
    """
    outcome, placement = results.outcome, results.placement
    edges = edges_of(results, points)
    clusters, bins = len(directory.clusters), len(edges) - 1
    rows = rows_that_ran(results)
    cluster, starts = placement.cluster[rows], outcome.start_us[rows]
    processors = results.processors[rows]
    held, waits = _Areas(clusters, edges), _Areas(clusters, edges)
    held.step(cluster, starts, processors)
    held.step(cluster, outcome.end_us[rows], processors, up=False)
    del processors
    ones = np.broadcast_to(np.int64(1), starts.shape)
    waits.step(cluster, starts, ones, up=False)
    assigned = placement.assigned_us[rows]
    waits.step(cluster, np.where(assigned < 0, starts, assigned), ones)
    busy, queued = held.means(), waits.means()
    del starts, assigned
    lost, licenses = np.full(busy.shape, np.nan), np.full(busy.shape, np.nan)
    for history in histories if bins else ():
        number, levels = history.cluster, history.levels
        times = levels.time_us
        busy[number] = _level_means(times, levels.busy, edges)
        if levels.smallest is not None:
            lost[number] = _level_means(*lost_processors(history), edges)
        if levels.licenses is not None and levels.copies:
            licenses[number] = _level_means(times, levels.licenses, edges) / levels.copies
    cpus = np.array([sum(entry.cpus) for entry in directory.clusters], np.int64)
    return Series(
        time_s=np.tile(edges[:-1] / SECOND_US, clusters),
        cluster=np.repeat(np.arange(clusters), bins),
        busy_cpus=busy.ravel(),
        utilization=(busy / cpus[:, None]).ravel(),
        queued=queued.ravel(),
        lost_cpus=lost.ravel(),
        license_use=licenses.ravel(),
        power_w=_power(results, directory, edges, histories).ravel(),
    )


def _power(
    results: JobResults, directory: Directory, edges: Ints, histories: Sequence[ClusterHistory]
) -> Floats:
    """Watts of each cluster, means over each interval. Shape (clusters, intervals)."""
    known = has_watts(directory)
    if not known.any():
        return np.full((len(known), len(edges) - 1), np.nan)
    draws = {one.cluster: one.levels.draw for one in histories if one.levels.draw is not None}
    from_table = ran(results)
    from_table[np.isin(results.placement.cluster, list(draws))] = False
    jobs = results.take(from_table)
    outcome, cluster = jobs.outcome, jobs.placement.cluster
    watts = extra_watts(jobs)
    power = _means(cluster, outcome.start_us, outcome.end_us, watts, edges, len(known))
    held = held_times(histories)
    for number, entry in enumerate(directory.clusters):
        times, idle = idle_watts(entry, held.get(number))
        power[number] += _level_means(times, idle, edges) if known[number] else np.nan
        if number in draws:
            order = np.argsort(draws[number].time_us, kind="stable")
            steps = draws[number].watts[order]
            power[number] += _interval_means(draws[number].time_us[order], steps, edges)
    return power


def edges_of(results: JobResults, points: int = POINTS) -> Ints:
    """Bounds of intervals of one length, but for a shorter last one. One bound if none ran."""
    outcome = results.outcome
    ended = outcome.end_us[ran(results)]
    if not len(ended):
        return np.zeros(1, np.int64)
    first, last = int(results.submit_us.min()), int(ended.max())
    width = max(1, -(-(last - first) // points))
    return np.append(np.arange(first, last, width), last)


class _Areas:
    """Step functions of whole numbers, one a cluster, summed over each interval between `edges`.

    Steps may come in any order. Sums are exact where they stay below 2^63, whatever they pass
    through on the way.
    """

    def __init__(self, clusters: int, edges: Ints) -> None:
        self._edges = edges
        self._bins = len(edges) - 1
        self._area = np.zeros((clusters, self._bins), np.int64)
        self._steps = np.zeros((clusters, self._bins), np.int64)

    def step(self, cluster: Ints, times: Ints, weights: Ints, *, up: bool = True) -> None:
        """At these times, from the first edge to the last, the functions step by the weights."""
        if not self._bins:
            return
        edges = self._edges
        place = np.minimum((times - edges[0]) // (edges[1] - edges[0]), self._bins - 1)
        area = (edges[1:][place] - times) * weights
        place += cluster * self._bins
        add = np.add if up else np.subtract
        add.at(self._area.reshape(-1), place, area)
        add.at(self._steps.reshape(-1), place, weights)

    def means(self) -> Floats:
        """Means over each interval. Shape (clusters, intervals)."""
        lengths = np.diff(self._edges)
        levels = np.cumsum(self._steps, axis=1) - self._steps
        means: Floats = (self._area + levels * lengths) / lengths
        return means


def _means(
    cluster: Ints,
    begin_us: Ints,
    end_us: Ints,
    weight: Floats,
    edges: Ints,
    clusters: int,
) -> Floats:
    """Mean over each interval of the summed weights of what is between its begin and end.

    Shape (clusters, intervals).
    """
    means = np.zeros((clusters, len(edges) - 1))
    times = np.concatenate([begin_us, end_us])
    steps = np.concatenate([weight, -weight])
    both = np.concatenate([cluster, cluster])
    order = np.lexsort((times, both))
    bounds = np.searchsorted(both[order], np.arange(clusters + 1))
    for number in range(clusters):
        mine = order[bounds[number] : bounds[number + 1]]
        if len(mine) and len(edges) > 1:
            means[number] = _interval_means(times[mine], steps[mine], edges)
    return means


def _level_means(times: Ints, levels: Ints | Floats, edges: Ints) -> Floats:
    """Mean over each interval of the step function that has these levels from these times on."""
    return _interval_means(times, np.diff(levels, prepend=0), edges)


def _interval_means(times: Ints, steps: Ints | Floats, edges: Ints) -> Floats:
    """Mean over each interval of the step function that changes by `steps` at sorted `times`.

    Steps may come after the last edge, as of jobs that had not ended when a live run was stopped.
    """
    times = np.minimum(times, edges[-1])
    levels = np.concatenate([[0], np.cumsum(steps)])
    points = np.sort(np.concatenate([times, edges]))
    level = levels[np.searchsorted(times, points[:-1], side="right")]
    area = level * np.diff(points).astype(np.float64)
    sums = np.add.reduceat(area, np.searchsorted(points, edges[:-1]))
    means: Floats = sums / np.diff(edges)
    return means
