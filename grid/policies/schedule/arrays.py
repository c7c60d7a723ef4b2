"""The schedule of one cluster as arrays.

The schedule of a machine is the *order* of its jobs; the times follow from it. Each job starts as
early as the CPUs allow, and not before the one in front of it. So a schedule is valid by
construction, and stays so whatever ends early or late: the machine concerned is timed anew. An end
that comes early can only move starts forward, and so can a job that is taken out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.policies.interface import MachineColumns

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NOWHERE = -1
"""Machine of a job that is in no machine's schedule."""

JOBS, LATE, MAKESPAN_US, ORIGIN_US, HOMELESS, FULLEST = range(6)
"""Places in `Schedule.totals`."""
TOTALS = 6

NEXT, LENGTH, FIRST_ENTRY = 0, 1, 2
"""A tabu list is an array: where the next entry goes, how many there are, and the entries, each
the slot and the serial number of a job."""

_FIRST_POSITIONS = 16
_BY_POSITION = ("slot", "processors", "start_us", "end_us", "deadline_us")
_BY_EDGE = ("edge_us", "edge_free")
_SCRATCH = ("active_end_us", "active_processors")


class Jobs(NamedTuple):
    """The jobs of the cluster by slot, shape (slots,): copied when they arrive."""

    serial: Ints
    processors: Ints
    estimate_us: Ints
    reference_mips: Floats
    deadline_us: Ints
    licenses: Ints
    bound_machine: Ints
    machine: Ints
    """In whose schedule it is, planned or running; or `NOWHERE`."""
    tabu: Bools


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
    """Of shape (machines,), like all up to `edges`."""
    mips: Floats
    licenses: Ints
    up: Bools
    held: Ints
    """CPUs that running jobs hold."""
    planned: Ints
    """How many jobs it has."""
    running: Ints
    """How many of them run."""
    late: Ints
    """Waiting jobs that end after their deadline."""
    early: Bools
    """A job has just ended there before its planned end."""
    completion_us: Ints
    """End of the machine's last job; 0 if it has none."""
    edges: Ints
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
    totals: Ints
    """Kept as the schedule changes: jobs; late ones, running ones included; makespan, the end of
    the last job, 0 without jobs; the instant from which the makespan counts; waiting jobs that no
    machine that is up can run; the most jobs that any machine ever had."""


def no_jobs() -> Jobs:
    """No job, and no slot for one."""
    ints = {name: np.empty(0, np.int64) for name in Jobs._fields}
    columns: dict[str, Any] = {
        **ints,
        "reference_mips": np.empty(0, np.float64),
        "tabu": np.empty(0, np.bool_),
    }
    return Jobs(**columns)


def empty_schedule(machines: MachineColumns) -> Schedule:
    """Nothing planned on machines that are all up."""
    count = len(machines.cpus)
    columns: dict[str, Any] = {
        "cpus": machines.cpus.copy(),
        "mips": machines.mips.copy(),
        "licenses": machines.licenses.copy(),
        "up": np.ones(count, np.bool_),
        "early": np.zeros(count, np.bool_),
        "totals": np.zeros(TOTALS, np.int64),
    }
    per_machine = ("held", "planned", "running", "late", "completion_us", "edges")
    columns |= {name: np.zeros(count, np.int64) for name in per_machine}
    columns |= {name: np.zeros((count, 0), np.int64) for name in (*_BY_POSITION, *_BY_EDGE)}
    columns |= {name: np.zeros(0, np.int64) for name in _SCRATCH}
    return with_positions(Schedule(**columns), _FIRST_POSITIONS)


def empty_tabu_list(limit: int) -> Ints:
    """A tabu list for at most `limit` jobs."""
    return np.zeros(FIRST_ENTRY + 2 * limit, np.int64)


def with_slots(jobs: Jobs, slots: int) -> Jobs:
    """The same jobs with room for `slots`, no fewer than now."""
    old = len(jobs.machine)
    columns: dict[str, Any] = {name: _wider(getattr(jobs, name), slots) for name in Jobs._fields}
    longer = Jobs(**columns)
    longer.machine[old:] = NOWHERE
    return longer


def with_positions(schedule: Schedule, positions: int) -> Schedule:
    """The same schedule with room for `positions` jobs on each machine, no fewer than now."""
    width = dict.fromkeys(_BY_POSITION, positions)
    width |= dict.fromkeys(_BY_EDGE, 2 * positions + 2)
    width |= dict.fromkeys(_SCRATCH, positions + 2)
    columns: dict[str, Any] = {
        name: _wider(getattr(schedule, name), size) for name, size in width.items()
    }
    return schedule._replace(**columns)


def _wider(column: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """The column with zeros added at the end of its last axis."""
    added = np.zeros((*column.shape[:-1], width - column.shape[-1]), column.dtype)
    return np.concatenate((column, added), axis=-1)
