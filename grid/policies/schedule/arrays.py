"""The schedule of one cluster as arrays.

The schedule of a machine is the *order* of its jobs; the times follow from it. Each job starts as
early as the CPUs allow, and not before the one in front of it. So a schedule is valid by
construction, and stays so whatever ends early or late: the machine concerned is timed anew. An end
that comes early can only move starts forward, and so can a job that is taken out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import inner
from grid.policies.interface import MachineColumns

NOWHERE = -1
"""Machine of a job that is in no machine's schedule."""

JOBS, LATE, MAKESPAN_US, ORIGIN_US, UNPLACED, FULLEST = range(6)
"""Places in `Schedule.totals`."""
TOTALS = 6

NEXT, LENGTH, FIRST_ENTRY = 0, 1, 2
"""A tabu list is an array: where the next entry goes, how many there are, and the entries, each
the slot and the serial number of a job."""

_FIRST_POSITIONS = 16


class Schedule(NamedTuple):
    """Who runs where and when. Times in microseconds.

    On machine m, positions 0 to running[m] - 1 hold the running jobs, the rest up to count[m] - 1
    the waiting ones, all in order of their starts. Its profile says how many CPUs are idle:
    edge_free[m, e] from edge_us[m, e] on, until the next edge, and from the last edge, where its
    last job ends, on for ever.

    A *gap* is idle CPU time in front of a waiting job: it ends when the machine's last job starts,
    or before. EG 3.2 has gaps appear because a job must wait for CPUs, and EG 4.1 has jobs started
    at once on an available machine while the schedule is almost empty; so CPUs beside and behind
    the last job, which nothing waits for, are not a gap. (If they were, a job would be put beside
    a running one although a better machine is idle, for a gap always takes precedence.)
    """

    cpus: Ints
    """Of shape (machines,), like all up to `fastest`."""
    up: Ints
    """1, or 0 while the machine is down."""
    held: Ints
    """CPUs that running jobs hold."""
    planned: Ints
    """How many jobs it has."""
    running: Ints
    """How many of them run."""
    late: Ints
    """Waiting jobs that end after their deadline."""
    early: Ints
    """1 where a job has just ended before its planned end."""
    completion_us: Ints
    """End of the machine's last job; 0 if it has none."""
    edges: Ints
    fastest: Ints
    """The machines by falling MIPS; those of equal MIPS in any order."""
    slot: Ints
    """Of shape (machines, positions), like the four that follow."""
    processors: Ints
    start_us: Ints
    end_us: Ints
    deadline_us: Ints
    edge_us: Ints
    """Of shape (machines, 2 * positions + 2), like the next."""
    edge_free: Ints
    active_end_us: Ints
    """Scratch of shape (positions + 2,), like the next."""
    active_processors: Ints
    machine_of: Ints
    """Of shape (slots,), like the next: in whose schedule a job is, or `NOWHERE`."""
    tabu: Ints
    """1 for a job in the tabu list."""
    totals: Ints
    """Kept as the schedule changes: jobs; late ones, running ones included; makespan, the end of
    the last job, 0 without jobs; the instant from which the makespan counts; waiting jobs that no
    machine that is up can run; the most jobs that any machine ever had."""


class Storage(NamedTuple):
    """The arrays that a `Schedule` is made of.

    A compiled call looks at every array that it is given, and with all of a schedule's that takes
    longer than most instants do. So it is given these few, and takes them apart itself.
    """

    machines: Ints
    """What is kept of each machine, shape (10, machines)."""
    positions: Ints
    """What is kept of each job, shape (5, machines, positions)."""
    edges: Ints
    """The profiles, shape (2, machines, 2 * positions + 2)."""
    scratch: Ints
    """Shape (2, positions + 2)."""
    slots: Ints
    """What is kept by slot, shape (2, slots)."""
    totals: Ints


@inner()
def schedule_of(storage: Storage) -> Schedule:
    """The schedule that is kept in `storage`: a change of one is a change of the other."""
    machines, positions, edges = storage.machines, storage.positions, storage.edges
    return Schedule(
        machines[0],
        machines[1],
        machines[2],
        machines[3],
        machines[4],
        machines[5],
        machines[6],
        machines[7],
        machines[8],
        machines[9],
        positions[0],
        positions[1],
        positions[2],
        positions[3],
        positions[4],
        edges[0],
        edges[1],
        storage.scratch[0],
        storage.scratch[1],
        storage.slots[0],
        storage.slots[1],
        storage.totals,
    )


def empty_storage(machines: MachineColumns) -> Storage:
    """Nothing planned on machines that are all up."""
    count = len(machines.cpus)
    shapes = ((10, count), (5, count, 0), (2, count, 0), (2, 0), (2, 0), (TOTALS,))
    empty = Storage(*(np.zeros(shape, np.int64) for shape in shapes))
    schedule = schedule_of(empty)
    schedule.cpus[:], schedule.up[:], schedule.fastest[:] = machines.cpus, 1, machines.speed_order
    return with_positions(empty, _FIRST_POSITIONS)


def with_slots(storage: Storage, slots: int) -> Storage:
    """The same schedule with room for jobs in so many slots, no fewer than now."""
    before = storage.slots.shape[1]
    wider = _wider(storage.slots, slots)
    wider[0, before:] = NOWHERE
    return storage._replace(slots=wider)


def with_positions(storage: Storage, positions: int) -> Storage:
    """The same schedule with room for `positions` jobs on each machine, no fewer than now."""
    return storage._replace(
        positions=_wider(storage.positions, positions),
        edges=_wider(storage.edges, 2 * positions + 2),
        scratch=_wider(storage.scratch, positions + 2),
    )


def empty_tabu_list(limit: int) -> Ints:
    """A tabu list for at most `limit` jobs."""
    return np.zeros(FIRST_ENTRY + 2 * limit, np.int64)


def _wider(column: Ints, width: int) -> Ints:
    """The column with zeros added at the end of its last axis."""
    added = np.zeros((*column.shape[:-1], width - column.shape[-1]), np.int64)
    return np.concatenate((column, added), axis=-1)
