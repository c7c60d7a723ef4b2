"""What must be true of every table of jobs, whatever ran it. Asked after every run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grid.model.arrays import Bools
from grid.model.job import FINAL_STATES, JobState
from grid.model.job_results import NO_TIME, NOWHERE, JobResults
from grid.model.time import SECOND_US
from grid.results.directory import Directory
from grid.results.occupancy import first_machines, machine_cpus, machine_numbers, ran, ran_once
from grid.results.starts_and_ends import first_overbooked, starts_and_ends

Broken = tuple[str, Bools]
"""A rule, as what its breakers do, and which jobs break it."""

_MACHINES_NAMED = 3


def check(results: JobResults, directory: Directory, submitted: int | None = None) -> list[str]:
    """One line for each rule that the table breaks; none for a table that can be true.

    Of `submitted` jobs (where given) each ends in one final state and stands here once. Positions
    and counts are in range. A job that ran was submitted, assigned, started and ended in that
    order, and at home if it was never forwarded; one that did not run has no times and no place.
    No machine has more CPUs busy than it has. (Jobs that were preempted or restarted do not count
    in that: the table does not say when they held CPUs.)
    """
    mistakes = []
    if submitted is not None and submitted != len(results):
        mistakes.append(f"{submitted} jobs were submitted, and {len(results)} have ended")
    # One after the other, since of long tables each takes much memory.
    for rules in (_identities(results), _times(results)):
        mistakes += [_sentence(results, directory, *one) for one in rules if one[1].any()]
    places = _places(results, directory)
    misplaced = [_sentence(results, directory, *one) for one in places if one[1].any()]
    return mistakes + (misplaced or _overbooked(results, directory))


def _identities(results: JobResults) -> Iterator[Broken]:
    """Who the jobs are, how they ended, and what was counted."""
    yield "stand in the table more than once", _again(results)
    submit = results.submit_us
    late = np.zeros(len(results), np.bool_)
    same_vo = results.vo[:-1] == results.vo[1:]
    lower = np.where(
        same_vo, results.number[:-1] > results.number[1:], results.vo[:-1] > results.vo[1:]
    )
    late[1:] = (submit[:-1] > submit[1:]) | ((submit[:-1] == submit[1:]) & lower)
    yield "are not in the order (submission, VO, number)", late
    yield (
        "have no final state",
        ~np.isin(results.outcome.state, [int(state) for state in FINAL_STATES]),
    )
    yield "ask for no processor", results.processors < 1
    yield (
        "have a utility outside [0, 1]",
        ~((results.placement.utility >= 0) & (results.placement.utility <= 1)),
    )
    counts = (
        results.placement.hops,
        results.outcome.preemptions,
        results.outcome.restarts,
        results.outcome.lost_us,
        results.outcome.held_us,
    )
    yield "have a negative count", np.logical_or.reduce([count < 0 for count in counts])


def _again(results: JobResults) -> Bools:
    """Which jobs have the number of an earlier one of their VO."""
    vo, number = results.vo, results.number
    again = np.zeros(len(results), np.bool_)
    if (vo[1:] == vo[:-1]).all() and (number[1:] > number[:-1]).all():
        return again
    order = np.lexsort((number, vo))
    vo, number = vo[order], number[order]
    again[order[1:]] = (vo[1:] == vo[:-1]) & (number[1:] == number[:-1])
    return again


def _times(results: JobResults) -> Iterator[Broken]:
    outcome, placement = results.outcome, results.placement
    submit, assigned = results.submit_us, placement.assigned_us
    start, end = outcome.start_us, outcome.end_us
    times = (assigned, start, end)
    negative = np.logical_or.reduce([(time < 0) & (time != NO_TIME) for time in times])
    yield "have a negative time", negative | (submit < 0)
    started, ended = start >= 0, end >= 0
    yield "have a start without an end, or an end without a start", started != ended
    yield "are completed and never ran", (outcome.state == JobState.COMPLETED) & ~started
    yield "are rejected and have run", (outcome.state == JobState.REJECTED) & started
    yield "ran and were never assigned", started & (assigned < 0)
    yield "did not run and were assigned", ~started & (assigned >= 0)
    yield "were assigned before they were submitted", (assigned >= 0) & (assigned < submit)
    yield "started before they were assigned", started & (start < assigned)
    yield "ended before they started", started & ended & (end < start)
    held = outcome.held_us
    yield "held CPUs for longer than they were there", started & (held > end - start)
    yield "lost more time than they held CPUs", outcome.lost_us > held


def _places(results: JobResults, directory: Directory) -> Iterator[Broken]:
    outcome, placement = results.outcome, results.placement
    once = ran(results)
    yield "belong to no VO", (results.vo < 0) | (results.vo >= len(directory.vos))
    clusters = len(directory.clusters)
    outside = (placement.cluster < 0) | (placement.cluster >= clusters)
    yield "ran in no cluster", once & outside
    known = np.where(outside, -1, placement.cluster)
    # The last entry of each stands for no cluster.
    vo_of_cluster = np.array([*(cluster.vo for cluster in directory.clusters), NOWHERE])
    machines = np.append(np.diff(first_machines(directory)), 0)
    elsewhere = (outcome.machine < 0) | (outcome.machine >= machines[known])
    yield "ran on no machine of their cluster", once & ~outside & elsewhere
    other = placement.executed_vo != vo_of_cluster[known]
    yield "ran in a cluster of another VO than they say", once & ~outside & other
    away = once & (placement.hops == 0) & (placement.executed_vo != results.vo)
    yield "ran in another VO and were never forwarded", away
    places = (placement.executed_vo, placement.cluster, outcome.machine)
    somewhere = np.logical_or.reduce([place != NOWHERE for place in places])
    yield "did not run and have a place", ~once & somewhere


def _overbooked(results: JobResults, directory: Directory) -> list[str]:
    """A sweep over the starts and ends of each machine, an end before a start at one instant."""
    events = starts_and_ends(results, ran_once(results, directory))
    small = events.dtype
    machine = machine_numbers(results, directory).astype(small)
    cpus = machine_cpus(directory)
    first, most = first_overbooked(events, machine, results.processors.astype(small), cpus)
    numbers = np.flatnonzero(first >= 0)
    lines = []
    for number in numbers[:_MACHINES_NAMED].tolist():
        event = events[first[number]]
        time_us = results.outcome.start_us[event] if event >= 0 else results.outcome.end_us[~event]
        cluster = int(np.searchsorted(first_machines(directory), number, side="right")) - 1
        entry = directory.clusters[cluster]
        name = f"machine {number - first_machines(directory)[cluster]} of {entry.name}"
        lines.append(
            f"{name} of {directory.vos[entry.vo]} has {cpus[number]} CPUs, and {most[number]} were "
            f"busy at {time_us / SECOND_US:.6f} s"
        )
    if len(numbers) > _MACHINES_NAMED:
        lines.append(f"{len(numbers) - _MACHINES_NAMED} more machines had too many CPUs busy")
    return lines


def _sentence(results: JobResults, directory: Directory, text: str, breakers: Bools) -> str:
    first = int(np.flatnonzero(breakers)[0])
    vo, number = int(results.vo[first]), results.number[first]
    name = directory.vos[vo] if 0 <= vo < len(directory.vos) else f"VO {vo}"
    count = np.count_nonzero(breakers)
    return f"jobs that {text}: {count}, the first is job {number} of {name}"
