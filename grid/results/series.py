"""State of each cluster over time: busy CPUs, queue length, power, loss of capacity (GM Eq. 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job_results import JobResults
from grid.model.records import ClusterHistory
from grid.model.time import NEVER, SECOND_US
from grid.results.energy import extra_watts, has_watts, held_times, idle_watts
from grid.results.machines import Directory, ran, rows_that_ran

POINTS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A row for each interval of each cluster, cluster after cluster. Shapes (rows,).

    The columns are defined in `definitions.yaml`; NaN if one does not apply.
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
    """Up to `points` rows per cluster, from the first submission to the last end of a job.

    The table has only the first start and the last end of a job: a job that was preempted or
    restarted counts as running in between, on the cluster where it ended. A job that never started
    is in no queue, since the table does not say when it left. The `histories` of clusters are more
    precise.
    """
    outcome, placement = results.outcome, results.placement
    edges = edges_of(results, points)
    clusters, bins = len(directory.clusters), len(edges) - 1
    rows = rows_that_ran(results)
    cluster, starts = placement.cluster[rows], outcome.start_us[rows]
    held, waiting = StepMeans(clusters, edges), StepMeans(clusters, edges)
    processors = results.processors[rows]
    held.add(cluster, starts, processors)
    held.add(cluster, outcome.end_us[rows], processors, down=True)
    del processors
    ones = np.broadcast_to(np.int64(1), starts.shape)
    waiting.add(cluster, starts, ones, down=True)
    assigned = placement.assigned_us[rows]
    waiting.add(cluster, np.where(assigned < 0, starts, assigned), ones)
    busy, queued = held.means(), waiting.means()
    del starts, assigned
    lost, licenses = np.full(busy.shape, np.nan), np.full(busy.shape, np.nan)
    for history in histories:
        number, levels = history.cluster, history.levels
        busy[number] = _level_means(levels.time_us, levels.busy, edges)
        if levels.smallest is not None:
            lost[number] = _level_means(*lost_processors(history), edges)
        if levels.licenses is not None and levels.copies:
            used = _level_means(levels.time_us, levels.licenses, edges)
            licenses[number] = used / levels.copies
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
    cluster, watts = jobs.placement.cluster, extra_watts(jobs)
    power = StepMeans(len(known), edges, np.float64)
    power.add(cluster, jobs.outcome.start_us, watts)
    power.add(cluster, jobs.outcome.end_us, watts, down=True)
    held = held_times(histories)
    for number in np.flatnonzero(known).tolist():
        times, idle = idle_watts(directory.clusters[number], held.get(number))
        power.add(number, times, np.diff(idle, prepend=0))
        if number in draws:
            power.add(number, *draws[number])
    return np.where(known[:, None], power.means(), np.nan)


def edges_of(results: JobResults, points: int = POINTS) -> Ints:
    """Bounds of intervals of equal length, except for a shorter last one. One bound if none ran."""
    ended = results.outcome.end_us[ran(results)]
    if not len(ended):
        return np.zeros(1, np.int64)
    first, last = int(results.submit_us.min()), int(ended.max())
    width = max(1, -(-(last - first) // points))
    return np.append(np.arange(first, last, width), last)


class StepMeans:
    """Step functions, one per cluster, averaged over the intervals between `edges`.

    Steps may come in any order; those before the first edge count from there on. Sums of integers
    are exact below 2^63.
    """

    def __init__(self, clusters: int, edges: Ints, dtype: type = np.int64) -> None:
        self._edges = edges
        self._bins = len(edges) - 1
        self._area: Any = np.zeros((clusters, self._bins), dtype)
        self._steps: Any = np.zeros((clusters, self._bins), dtype)

    def add(
        self, cluster: Ints | int, times: Ints, weights: Ints | Floats, *, down: bool = False
    ) -> None:
        """The functions of the clusters step up (or `down`) by the weights at these times."""
        if not self._bins:
            return
        edges = self._edges
        times = np.clip(times, edges[0], edges[-1])
        place = np.minimum((times - edges[0]) // (edges[1] - edges[0]), self._bins - 1)
        area = (edges[1:][place] - times) * weights
        place += np.multiply(cluster, self._bins)
        add = np.subtract if down else np.add
        add.at(self._area.reshape(-1), place, area)
        add.at(self._steps.reshape(-1), place, weights)

    def means(self) -> Floats:
        """Means over each interval. Shape (clusters, intervals)."""
        lengths = np.diff(self._edges)
        levels = np.cumsum(self._steps, axis=1) - self._steps
        means: Floats = (self._area + levels * lengths) / lengths
        return means


def _level_means(times: Ints, levels: Ints, edges: Ints) -> Floats:
    """Mean over each interval of the step function that has these levels from these times on."""
    means = StepMeans(1, edges)
    means.add(0, times, np.diff(levels, prepend=0))
    first: Floats = means.means()[0]
    return first


# Loss of capacity


def loss_of_capacity(
    histories: Sequence[ClusterHistory], *, by_cluster: bool = False
) -> float | None:
    """In percent, for clusters for gangs as one system; None if there was no event.

    GM Eq. 6: the sum over the intervals between events of idle nodes * length * delta, over all
    nodes * the whole time, from the first event to the last. Delta is 1 if a gang that does not run
    has no more tasks than nodes are idle, in any clusters: that it cannot run there is what
    fragmentation means. Nodes that are reserved for a gang that migrates or was interrupted are
    idle, too, and such a gang does not run: they are a cost of gangs.

    Since a gang never spreads over clusters, the text also allows a delta for each cluster. With
    `by_cluster`, idle nodes count only if a gang waits in the same cluster that fits on them.

    A node that is down is not idle, and still a node of the system: it reduces the sum above, not
    the one below. Its failure is no event that begins or ends the whole time.
    """
    times = [one.levels.time_us for one in histories]
    instants = np.unique(np.concatenate(times)) if times else np.empty(0, np.int64)
    if len(instants) < 2:
        return None
    instants = _with_outages(histories, instants)
    idle = np.stack([_idle(one, instants) for one in histories])
    smallest = np.stack([_smallest(one, instants) for one in histories])
    if not by_cluster:
        idle, smallest = idle.sum(axis=0), smallest.min(axis=0)
    lost = np.where(smallest <= idle, idle, 0).reshape(-1, len(instants)).sum(axis=0)
    area = float((lost[:-1] * np.diff(instants).astype(np.float64)).sum())
    processors = sum(one.processors for one in histories)
    return 100.0 * area / (processors * float(instants[-1] - instants[0]))


def lost_processors(history: ClusterHistory) -> tuple[Ints, Ints]:
    """Times, and the processors that are idle from each on while a gang waits that fits on them."""
    times = history.levels.time_us
    if len(times):
        times = _with_outages([history], times)
    idle = _idle(history, times)
    return times, np.where(_smallest(history, times) <= idle, idle, 0)


def _with_outages(histories: Sequence[ClusterHistory], instants: Ints) -> Ints:
    """The instants, and those between them at which processors go down or come up."""
    for one in histories:
        if one.levels.down_us is not None:
            changes = one.levels.down_us
            within = (changes > instants[0]) & (changes < instants[-1])
            instants = np.union1d(instants, changes[within])
    return instants


def _idle(history: ClusterHistory, instants: Ints) -> Ints:
    """Processors that are up and idle from each instant on."""
    levels = history.levels
    idle = history.processors - level(levels.time_us, levels.busy, instants, 0)
    if levels.down_us is None or levels.down is None:
        return idle
    return idle - level(levels.down_us, levels.down, instants, 0)


def _smallest(history: ClusterHistory, instants: Ints) -> Ints:
    """The size of the smallest waiting gang; NEVER if none waits."""
    sizes = history.levels.smallest
    assert sizes is not None
    waiting = np.where(sizes <= history.processors, sizes, NEVER)
    return level(history.levels.time_us, waiting, instants, NEVER)


def level(times: Ints, values: Ints, instants: Ints, before: int) -> Ints:
    """The step function that has `values` from `times` on, and `before` before, at `instants`."""
    steps = np.concatenate([[before], values])
    found: Ints = steps[np.searchsorted(times, instants, side="right")]
    return found
