"""Waiting jobs by the priority of CS 2.0's heuristics, row by row without a matrix. Compiled.

Where only the first of many jobs matters, rows that cannot be the first are not worked out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.policies.columns import PackedView
from grid.policies.convergent.cs2_kernels import (
    add_aging,
    add_deadline,
    add_overhead,
    add_to_all,
    add_wait,
    mean_pressure,
)
from grid.policies.convergent.cs2007_kernels import largest_of, mean_of
from grid.policies.convergent.matrix_kernels import (
    MatrixJobs,
    MatrixMachines,
    capacity_and_copies,
    describe_jobs,
    fill_able,
    fill_remaining,
    longest_remaining,
)
from grid.policies.fitting import unpacked

MARGIN = 1e-9
"""For what sums in another order may differ by."""


class Weights(NamedTuple):
    """Of CS2 Eq. 7, 8, 11, 12 and 13, none below 0; and how a row becomes one number."""

    deadline: float
    overhead: float
    licenses: float
    wait: float
    anti_aging: float
    of_mean: bool
    """By its mean over the machines that can run the job, else by the largest."""


class Cluster(NamedTuple):
    """What heuristics know of a cluster's jobs and machines."""

    jobs: MatrixJobs
    machines: MatrixMachines
    per_mips: Floats
    pressure: Floats
    longest_s: float


class Row(NamedTuple):
    """Room for one row of the matrix, by machine."""

    priority: Floats
    remaining_s: Floats
    late: Floats
    counted: Floats


@kernel(error_model="numpy")
def priority_by_cs2(packed: PackedView, weights: Weights) -> Floats:
    """The priority of CS 2.0's heuristics by place in the queue, where `backfill_by_priority` reads
    it; minus infinity elsewhere.

    They add up in the order of `Weights`, as they do in a matrix, to the last bit.
    """
    view = unpacked(packed)
    running, queue = len(view.running), view.queue
    cluster = _described(packed)
    machines = len(cluster.per_mips)
    row = Row(np.empty(machines), np.empty(machines), np.empty(machines), np.empty(machines))
    priority = np.full(len(queue), -np.inf)
    most = _highest_possible(cluster, running, weights)
    places, matter = _likely_first(most, packed)
    highest = -np.inf
    for number in range(len(places)):
        place = places[number]
        if number >= matter and most[place] < highest:
            continue
        priority[place] = _priority_of(running + place, cluster, weights, row)
        if number >= matter:
            highest = max(highest, priority[place])
    return priority


@inner()
def _likely_first(most: Floats, packed: PackedView) -> tuple[Ints, int]:
    """All places in the queue: so many that matter, the most likely first of the others, these."""
    view = unpacked(packed)
    queue, processors, bound = view.queue, view.jobs.processors, view.jobs.bound_machine
    free, count, others, likely = view.free.max(), 0, len(queue), -1
    places = np.empty(len(queue), np.int64)
    for place in range(len(queue)):
        if processors[queue[place]] <= free or bound[queue[place]] >= 0:
            places[count] = place
            count += 1
            continue
        others -= 1
        places[others] = place
        if likely < 0 or most[place] > most[places[likely]]:
            likely = others
    if likely >= 0:
        places[count], places[likely] = places[likely], places[count]
    return places, count


@inner()
def _described(packed: PackedView) -> Cluster:
    view = unpacked(packed)
    jobs, requests = describe_jobs(packed, np.concatenate((view.running, view.queue)))
    _, copies = capacity_and_copies(packed)
    there = 0
    for license_ in range(len(copies)):
        there |= (copies[license_] > 0) << license_
    of_view = view.machines
    machines = MatrixMachines(
        of_view.cpus, of_view.licenses & there, of_view.mips, of_view.speed_order
    )
    pressure = requests / np.maximum(copies, 1)
    longest_s = longest_remaining(jobs, machines)
    return Cluster(jobs, machines, 1.0 / of_view.mips, pressure, longest_s)


@inner(allocates=False, error_model="numpy", forceinline=True)
def _priority_of(job: int, cluster: Cluster, weights: Weights, row: Row) -> float:
    """The priority of one job, from its row of the matrix."""
    processors, licenses, bound, machine, work, on_own_s, elapsed_s, age_s, slack_s = cluster.jobs
    to, remaining, own = row.priority, row.remaining_s, machine[job]
    needs = processors[job], licenses[job], bound[job]
    eligible = fill_able(to, needs, cluster.machines.cpus, cluster.machines.usable_licenses)
    fill_remaining(remaining, work[job], (own, on_own_s[job]), cluster.per_mips)
    if weights.deadline:
        add_deadline(to, remaining, slack_s[job], eligible, weights.deadline, row.late, row.counted)
    if weights.overhead and own >= 0:
        add_overhead(to, remaining, own, elapsed_s[job], weights.overhead)
    if weights.licenses and licenses[job]:
        add_to_all(to, weights.licenses * mean_pressure(licenses[job], cluster.pressure))
    if weights.wait and cluster.longest_s > 0.0:
        add_wait(to, remaining, weights.wait, 1.0 / cluster.longest_s)
    if weights.anti_aging:
        add_aging(to, remaining, age_s[job], weights.anti_aging)
    return mean_of(to, eligible, row.counted) if weights.of_mean else largest_of(to, eligible)


@inner()
def _highest_possible(cluster: Cluster, first: int, weights: Weights) -> Floats:
    """What the priority of each job from `first` on does not pass; inf where nothing is known.

    Of jobs that have run, or are bound to a machine, nothing is known.
    """
    processors, licenses, bound, machine, work, _, _, age_s, slack_s = cluster.jobs
    most = np.full(len(work) - first, np.inf)
    known = np.full((cluster.machines.cpus.max() + 1, 4), -1.0)
    own = np.empty(4)
    for job in range(first, len(work)):
        if machine[job] >= 0 or bound[job] >= 0:
            continue
        wanted = licenses[job]
        if processors[job] >= len(known):
            most[job - first] = 0.0
            continue
        able = own if wanted else known[processors[job]]
        if wanted or able[0] < 0.0:
            _describe(able, processors[job], wanted, cluster)
        pressure = mean_pressure(wanted, cluster.pressure)
        most[job - first] = _bound(
            able, work[job], age_s[job], slack_s[job], pressure, cluster.longest_s, weights
        )
    return most


@inner(allocates=False)
def _describe(able: Floats, processors: int, licenses: int, cluster: Cluster) -> None:
    """Of the machines that can run such jobs: number, least, most and mean seconds for 1 MI."""
    cpus, usable = cluster.machines.cpus, cluster.machines.usable_licenses
    count, least, most, total = 0, np.inf, 0.0, 0.0
    for m in range(len(cpus)):
        if cpus[m] >= processors and usable[m] & licenses == licenses:
            inverse = cluster.per_mips[m]
            count += 1
            least, most, total = min(least, inverse), max(most, inverse), total + inverse
    able[0], able[1], able[2], able[3] = count, least, most, total / max(count, 1)


@inner(allocates=False, error_model="numpy")
def _bound(
    able: Floats,
    work: float,
    age_s: float,
    slack_s: float,
    pressure: float,
    longest_s: float,
    weights: Weights,
) -> float:
    """What the priority of a job does not pass; `pressure` is that of its licenses."""
    if able[0] == 0.0:
        return 0.0
    shortest_s, slowest_s = work * able[1], work * able[2]
    middle_s = work * able[3] if weights.of_mean else shortest_s
    total = weights.deadline * _urgency(slack_s, shortest_s, slowest_s, weights.of_mean)
    total += weights.licenses * pressure
    if longest_s > 0.0:
        total += weights.wait * (1.0 - middle_s / longest_s)
    # The mean of 1 / (age + remaining), which is convex, lies below the line between its ends.
    inverse = 1.0 / (age_s + shortest_s)
    if shortest_s < middle_s and shortest_s < slowest_s:
        share = min((middle_s - shortest_s) / (slowest_s - shortest_s), 1.0)
        inverse += share * (1.0 / (age_s + slowest_s) - inverse)
    total += weights.anti_aging * age_s * inverse
    return float(total + MARGIN * (1.0 + abs(total)))


@inner(allocates=False, error_model="numpy")
def _urgency(slack_s: float, shortest_s: float, slowest_s: float, of_mean: bool) -> float:
    """The most that CS2 Eq. 7 gives, of weight 1: the mean lateness L times 1 - L of a machine."""
    if slack_s == np.inf or slack_s <= 0.0:
        return 0.0
    least = min(max(2.0 - slack_s / shortest_s, 0.0), 1.0)
    most = min(max(2.0 - slack_s / slowest_s, 0.0), 1.0)
    if not of_mean:
        return most * (1.0 - least)
    nearest = min(max(0.5, least), most)
    return nearest * (1.0 - nearest)
