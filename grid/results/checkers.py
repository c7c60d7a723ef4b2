"""Invariants of the table of jobs, checked after every run, and the digest that identifies it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from grid.model.arrays import Bools
from grid.model.job import FINAL_STATES, JobState
from grid.model.job_results import NO_TIME, JobResults
from grid.model.time import SECOND_US
from grid.results.machines import (
    Directory,
    first_machines,
    first_overbooked,
    machine_cpus,
    machine_numbers,
    ran,
    ran_once,
    starts_and_ends,
)

Rule = tuple[str, Bools]
"""An invariant, as what the jobs do that violate it, and which jobs do. Shape (jobs,)."""

DIGEST_COLUMNS = (
    "vo", "number", "user", "submit_us", "processors", "estimate_us", "deadline_us", "state",
    "assigned_us", "start_us", "end_us", "executed_vo", "cluster", "machine", "hops", "utility",
    "preemptions", "restarts", "lost_us", "held_us",
)  # fmt: skip
"""Fixed, in this order: a new column of the table must not change existing digests."""

_MACHINES_NAMED = 3


def digest(results: JobResults) -> str:
    """SHA-256 of the table in hexadecimal, over each column's name, dtype, length and bytes.

    Columns in the order of `DIGEST_COLUMNS`, rows in their order, numbers as little endian on every
    machine. Floats count by their bits, so 0.0 and -0.0 differ.
    """
    state = hashlib.sha256()
    for name in DIGEST_COLUMNS:
        values = results.column(name)
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        state.update(f"{name} {values.dtype.str} {len(values)}\n".encode())
        state.update(values.data)
    return state.hexdigest()


def check(results: JobResults, directory: Directory, submitted: int | None = None) -> list[str]:
    """One line for each violated invariant.

    Each of the `submitted` jobs (if given) has one row and one final state. Positions and counts
    are in range. A job that ran was submitted, assigned, started and ended in that order, in its
    own VO if it was never forwarded; a job that did not run has no times and no resource. No
    machine has more busy CPUs than it has. (Jobs that were preempted or restarted do not count in
    that: the table does not say when they held CPUs.)
    """
    lines = []
    if submitted is not None and submitted != len(results):
        lines.append(f"{submitted} jobs were submitted, and {len(results)} have ended")
    # One after the other, since each takes much memory for long tables.
    for rules in (_identities(results), _times(results)):
        lines += [_sentence(results, directory, *one) for one in rules if one[1].any()]
    rules = _resources(results, directory)
    wrong = [_sentence(results, directory, *one) for one in rules if one[1].any()]
    return lines + (wrong or _overbooked(results, directory))


def _identities(results: JobResults) -> Iterator[Rule]:
    """Identity and final state of the jobs, and counts."""
    yield "have more than one row", _repeated(results)
    vo, number, submit = results.vo, results.number, results.submit_us
    lower = np.where(vo[:-1] == vo[1:], number[:-1] > number[1:], vo[:-1] > vo[1:])
    late = np.zeros(len(results), np.bool_)
    late[1:] = (submit[:-1] > submit[1:]) | ((submit[:-1] == submit[1:]) & lower)
    yield "are not in the order (submission, VO, number)", late
    outcome, placement = results.outcome, results.placement
    yield "have no final state", ~np.isin(outcome.state, [int(state) for state in FINAL_STATES])
    yield "request no processors", results.processors < 1
    utility = placement.utility
    yield "have a utility outside [0, 1]", ~((utility >= 0) & (utility <= 1))
    counts = (
        placement.hops, outcome.preemptions, outcome.restarts, outcome.lost_us, outcome.held_us,
    )  # fmt: skip
    yield "have a negative count", np.logical_or.reduce([count < 0 for count in counts])


def _repeated(results: JobResults) -> Bools:
    """Which jobs have the number of an earlier one of their VO."""
    vo, number = results.vo, results.number
    repeated = np.zeros(len(results), np.bool_)
    if (vo[1:] == vo[:-1]).all() and (number[1:] > number[:-1]).all():
        return repeated
    order = np.lexsort((number, vo))
    vo, number = vo[order], number[order]
    repeated[order[1:]] = (vo[1:] == vo[:-1]) & (number[1:] == number[:-1])
    return repeated


def _times(results: JobResults) -> Iterator[Rule]:
    outcome, placement = results.outcome, results.placement
    submit, assigned = results.submit_us, placement.assigned_us
    start, end = outcome.start_us, outcome.end_us
    times = (assigned, start, end)
    negative = np.logical_or.reduce([(time < 0) & (time != NO_TIME) for time in times])
    yield "have a negative time", negative | (submit < 0)
    started, ended = start >= 0, end >= 0
    yield "have a start without an end, or an end without a start", started != ended
    yield "are completed but never ran", (outcome.state == JobState.COMPLETED) & ~started
    never = (JobState.REJECTED, JobState.CANCELLED)
    yield "are rejected or cancelled but have run", np.isin(outcome.state, never) & started
    yield "ran but were never assigned", started & (assigned < 0)
    yield "did not run but were assigned", ~started & (assigned >= 0)
    yield "were assigned before they were submitted", (assigned >= 0) & (assigned < submit)
    yield "started before they were assigned", started & (start < assigned)
    yield "ended before they started", started & ended & (end < start)
    held = outcome.held_us
    yield "held CPUs for longer than from start to end", started & (held > end - start)
    yield "lost more time than they held CPUs", outcome.lost_us > held


def _resources(results: JobResults, directory: Directory) -> Iterator[Rule]:
    outcome, placement = results.outcome, results.placement
    did_run = ran(results)
    yield "belong to no VO", (results.vo < 0) | (results.vo >= len(directory.vos))
    outside = (placement.cluster < 0) | (placement.cluster >= len(directory.clusters))
    yield "ran in no cluster", did_run & outside
    # The last entries are for jobs without a cluster.
    known = np.where(outside, -1, placement.cluster)
    vo_of_cluster = np.array([*(cluster.vo for cluster in directory.clusters), -1])
    machines = np.append(np.diff(first_machines(directory)), 0)
    other_machine = (outcome.machine < 0) | (outcome.machine >= machines[known])
    yield "ran on no machine of their cluster", did_run & ~outside & other_machine
    other_vo = placement.executed_vo != vo_of_cluster[known]
    yield "ran in a VO other than that in their row", did_run & ~outside & other_vo
    remote = did_run & (placement.hops == 0) & (placement.executed_vo != results.vo)
    yield "ran in another VO but were never forwarded", remote
    positions = (placement.executed_vo, placement.cluster, outcome.machine)
    anywhere = np.logical_or.reduce([position != -1 for position in positions])
    yield "did not run but have a resource", ~did_run & anywhere


def _overbooked(results: JobResults, directory: Directory) -> list[str]:
    events = starts_and_ends(results, ran_once(results, directory))
    machines = machine_numbers(results, directory).astype(events.dtype)
    cpus, first = machine_cpus(directory), first_machines(directory)
    found = first_overbooked(events, machines, results.processors.astype(events.dtype), cpus)
    lines = []
    for number, (place, busy) in list(found.items())[:_MACHINES_NAMED]:
        event = events[place]
        time_us = results.outcome.start_us[event] if event >= 0 else results.outcome.end_us[~event]
        cluster = int(np.searchsorted(first, number, side="right")) - 1
        entry = directory.clusters[cluster]
        lines.append(
            f"machine {number - first[cluster]} of {entry.name} of {directory.vos[entry.vo]} has "
            f"{cpus[number]} CPUs, and {busy} were busy at {time_us / SECOND_US:.6f} s"
        )
    if len(found) > _MACHINES_NAMED:
        lines.append(f"{len(found) - _MACHINES_NAMED} more machines had too many CPUs busy")
    return lines


def _sentence(results: JobResults, directory: Directory, text: str, violators: Bools) -> str:
    first = int(np.flatnonzero(violators)[0])
    vo, number = int(results.vo[first]), results.number[first]
    name = directory.vos[vo] if 0 <= vo < len(directory.vos) else f"VO {vo}"
    count = np.count_nonzero(violators)
    return f"jobs that {text}: {count}, the first is job {number} of {name}"
