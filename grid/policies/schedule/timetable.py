"""The schedule of one cluster as arrays: its jobs timed, inserted, started and removed.

The schedule of a machine is the *order* of its jobs; the times follow from it. Each job starts as
early as the CPUs allow, and not before the one in front of it. So a schedule is valid by
construction, and stays so if jobs end early or late. An end that comes early can only move starts
forward, and so can a job that is removed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.fitting import duration, may_run
from grid.policies.interface import Jobs, MachineColumns, Machines

UNPLANNED = -1
"""Machine of a job that is in no machine's schedule."""

CPUS, UP, RUNNING, PLANNED, LATE, COMPLETION, EDGES = range(7)
"""Rows of `Schedule.machines`. UP: 0 while the machine is down. Of its PLANNED jobs the first
RUNNING run. LATE of them end after their deadlines, the last one at COMPLETION; 0 without jobs.
EDGES: how many the profile has."""

SLOT, PROCESSORS, START, END, DEADLINE = range(5)
"""Rows of `Schedule.jobs`, by machine and position; waiting jobs are in order of their starts."""

TIME, FREE = range(2)
"""Rows of `Schedule.edges`: FREE CPUs are idle from TIME to the next edge; after the last edge, at
which the machine's last job ends, all are idle."""

MACHINE_OF, BARRED, KEPT_OUT = range(3)
"""Rows of `Schedule.slots`: in whose schedule a job is, or UNPLANNED, its last entry in the tabu
list, 0 for none, and a bit mask of the resources of windows that it may not use, see
`MachineColumns`."""

_FIRST_POSITIONS = 16


class Schedule(NamedTuple):
    """Which job runs where and when. Times in microseconds.

    A *gap* is idle CPU time in front of a waiting job: it ends when the machine's last job starts,
    or before. EG 3.2 has gaps appear because a job must wait for CPUs, and EG 4.1 has jobs started
    at once on an available machine while the schedule is almost empty; so CPUs next to and behind
    the last job, which no job waits for, are not a gap. (If they were, a job would be put next to
    a running one although a better machine is idle, for a gap always takes precedence.) With wide
    gaps they are: a gap ends when the machine's last job ends, or before.
    """

    machines: Ints
    jobs: Ints
    """Of shape (5, machines, positions)."""
    edges: Ints
    """Of shape (2, machines, 2 * positions + 2)."""
    slots: Ints
    active: Ints
    """Scratch, shape (3, positions + 2): ends, CPUs and KEPT_OUT of jobs active at a time."""
    windows: Ints
    """See `MachineColumns`."""
    origin_us: int
    """The instant from which the makespan counts."""
    wide_gaps: bool


def empty_schedule(machines: MachineColumns, origin_us: int, wide_gaps: bool) -> Schedule:
    """Nothing planned on machines that are all up."""
    count = len(machines.cpus)
    schedule = Schedule(
        machines=np.zeros((EDGES + 1, count), np.int64),
        jobs=np.zeros((DEADLINE + 1, count, 0), np.int64),
        edges=np.zeros((FREE + 1, count, 0), np.int64),
        slots=np.zeros((KEPT_OUT + 1, 0), np.int64),
        active=np.zeros((3, 0), np.int64),
        windows=machines.windows,
        origin_us=origin_us,
        wide_gaps=wide_gaps,
    )
    schedule.machines[CPUS], schedule.machines[UP] = machines.cpus, 1
    return schedule


def with_room(schedule: Schedule, slots: int, jobs: int) -> Schedule:
    """The same with room for jobs in `slots` slots, and for `jobs` on each machine."""
    before, positions = schedule.slots.shape[1], schedule.jobs.shape[2]
    if slots > before:
        wider = _wider(schedule.slots, slots)
        wider[MACHINE_OF, before:] = UNPLANNED
        schedule = schedule._replace(slots=wider)
    if jobs > positions:
        positions = max(jobs, 2 * positions, _FIRST_POSITIONS)
        schedule = schedule._replace(
            jobs=_wider(schedule.jobs, positions),
            edges=_wider(schedule.edges, 2 * positions + 2),
            active=_wider(schedule.active, positions + 2),
        )
    return schedule


def _wider(column: Ints, width: int) -> Ints:
    """The column with zeros added at the end of its last axis."""
    added = np.zeros((*column.shape[:-1], width - column.shape[-1]), np.int64)
    return np.concatenate((column, added), axis=-1)


# Times


@inner(allocates=False)
def timed(
    schedule: Schedule,
    machine: int,
    now: int,
    position: int,
    skips: bool,
    slot: int,
    processors: int,
    length_us: int,
    writes: bool,
) -> tuple[int, int, int]:
    """Time the waiting jobs of a machine, each as early as the order and reservations allow.

    It is as if the job of `slot`, with `processors` and `length_us`, came before `position`, unless
    `processors` is 0, and as if, with `skips`, the job at `position` were not there. Returns how
    many of the machine's own jobs are late, the last end, and the end of the job that came. Only
    with `writes` are times and profile changed.
    """
    wanted, start_us = schedule.jobs[PROCESSORS, machine], schedule.jobs[START, machine]
    end_us, deadline_us = schedule.jobs[END, machine], schedule.jobs[DEADLINE, machine]
    edge_us, edge_free = schedule.edges[TIME, machine], schedule.edges[FREE, machine]
    active_end, active_cpus, slots = schedule.active[0], schedule.active[1], schedule.slots
    is_reserved, mask = len(schedule.windows) > 0, 0
    active_kept_out = schedule.active[2, : schedule.active.shape[1] * is_reserved]
    running, planned = schedule.machines[RUNNING, machine], schedule.machines[PLANNED, machine]
    time, head, own_end, edges = now, 0, 0, 0
    late, completion, free, tail = _begin(schedule, machine, active_kept_out)
    if writes:
        edges = _edge(edge_us, edge_free, edges, time, free)
    place, comes = running, processors > 0
    while place < planned or comes:
        is_new = comes and place == position
        if skips and place == position:
            place += 1
            continue
        needed = processors if is_new else wanted[place]
        length = length_us if is_new else end_us[place] - start_us[place]
        while free < needed:
            time = max(time, active_end[head])
            free += active_cpus[head]
            head += 1
            if writes:
                edges = _edge(edge_us, edge_free, edges, time, free)
        if is_reserved:
            mask = slots[KEPT_OUT, slot if is_new else schedule.jobs[SLOT, machine, place]]
            job = mask, needed, length
            found = _next_clear(schedule, machine, job, time, free, head, tail, edges, writes)
            time, free, head, edges = found
        end = time + length
        completion = max(completion, end)
        tail = _hold(active_end, active_cpus, active_kept_out, head, tail, end, needed, mask)
        free -= needed
        if is_new:
            own_end, comes = end, False
            continue
        late += end > deadline_us[place]
        if writes:
            start_us[place], end_us[place] = time, end
            edges = _edge(edge_us, edge_free, edges, time, free)
        place += 1
    if writes:
        while head < tail:
            free += active_cpus[head]
            edges = _edge(edge_us, edge_free, edges, active_end[head], free)
            head += 1
        schedule.machines[EDGES, machine] = edges
    return late, completion, own_end


@inner(allocates=False, forceinline=True)
def _begin(schedule: Schedule, machine: int, active_kept_out: Ints) -> tuple[int, int, int, int]:
    """Make the running jobs the active ones: how many are late, the last end, free CPUs, tail."""
    planned, free = schedule.jobs[:, machine], schedule.machines[CPUS, machine]
    late = completion = tail = mask = 0
    for place in range(schedule.machines[RUNNING, machine]):
        end, cpus = planned[END, place], planned[PROCESSORS, place]
        late += end > planned[DEADLINE, place]
        completion = max(completion, end)
        if len(active_kept_out):
            mask = schedule.slots[KEPT_OUT, planned[SLOT, place]]
        active_end, active_cpus = schedule.active[0], schedule.active[1]
        tail = _hold(active_end, active_cpus, active_kept_out, 0, tail, end, cpus, mask)
        free -= cpus
    return late, completion, free, tail


@inner(allocates=False)
def _next_clear(
    schedule: Schedule,
    machine: int,
    job: tuple[int, int, int],
    time: int,
    free: int,
    head: int,
    tail: int,
    edges: int,
    writes: bool,
) -> tuple[int, int, int, int]:
    """`time`, `free`, `head` and `edges` when the job can start and keeps clear of windows.

    `job` is its KEPT_OUT, its CPUs and its length.
    """
    active_end, active_cpus = schedule.active[0], schedule.active[1]
    edge_us, edge_free = schedule.edges[TIME, machine], schedule.edges[FREE, machine]
    while True:
        while head < tail and (free < job[1] or active_end[head] <= time):
            time = max(time, active_end[head])
            free += active_cpus[head]
            if writes:
                edges = _edge(edge_us, edge_free, edges, active_end[head], free)
            head += 1
        later = _next_try(schedule, machine, job, time, head, tail)
        if later == time:
            return time, free, head, edges
        time = later


@inner(allocates=False)
def retime(schedule: Schedule, machine: int, now: int) -> None:
    """Time the waiting jobs of a machine again after a change of its order or of an end."""
    late, completion, _ = timed(schedule, machine, now, 0, False, 0, 0, 0, True)
    schedule.machines[LATE, machine] = late
    schedule.machines[COMPLETION, machine] = completion


@inner(allocates=False)
def _hold(
    active_end: Ints,
    active_cpus: Ints,
    active_kept_out: Ints,
    head: int,
    tail: int,
    end: int,
    processors: int,
    mask: int,
) -> int:
    """Sort one more job into the active ones, which are at `head` to `tail` - 1; the new tail."""
    place = tail
    while place > head and active_end[place - 1] > end:
        active_end[place], active_cpus[place] = active_end[place - 1], active_cpus[place - 1]
        place -= 1
    active_end[place], active_cpus[place] = end, processors
    if len(active_kept_out):
        for later in range(tail, place, -1):
            active_kept_out[later] = active_kept_out[later - 1]
        active_kept_out[place] = mask
    return tail + 1


@inner(allocates=False)
def _next_try(
    schedule: Schedule, machine: int, job: tuple[int, int, int], start: int, head: int, tail: int
) -> int:
    """`start` if a job that starts then keeps clear of windows next to the active ones.

    Else when the first of them, or the window that it runs into, has ended.
    """
    active, (mask, processors, length) = schedule.active, job
    for window in schedule.windows:
        if window[0] != machine or window[1] >= start + length or window[2] <= start:
            continue
        needed, later = _kept_out(processors, mask, window), window[2]
        left = schedule.machines[CPUS, machine] - window[3] - needed
        for place in range(head, tail):
            if active[0, place] > start:
                later = min(later, active[0, place])
            if active[0, place] > max(start, window[1]):
                left -= _kept_out(active[1, place], active[2, place], window)
        if needed and left < 0:
            return int(later)
    return start


@inner(allocates=False, forceinline=True)
def _kept_out(processors: int, mask: int, window: Ints) -> int:
    """As `grid.policies.fitting.kept_out`."""
    return processors if window[4] < 0 or mask >> window[4] & 1 else 0


@inner(allocates=False)
def clear_from(
    schedule: Schedule, machine: int, slot: int, processors: int, start: int, length: int
) -> int:
    """`start` if a job that starts then keeps clear of windows next to the others planned there.

    Else when the first of them, or the window that it runs into, has ended.
    """
    planned, slots = schedule.jobs[:, machine], schedule.slots
    count, cpus = schedule.machines[PLANNED, machine], schedule.machines[CPUS, machine]
    for window in schedule.windows:
        needed = _kept_out(processors, slots[KEPT_OUT, slot], window)
        first, end = max(start, window[1]), min(start + length, window[2])
        if window[0] != machine or first >= end or needed == 0:
            continue
        for begin in range(-1, count):
            time = first if begin < 0 else planned[START, begin]
            left, later = cpus - window[3] - needed, window[2]
            for place in range(count if first <= time < end else 0):
                other = planned[SLOT, place]
                if planned[END, place] > start:
                    later = min(later, planned[END, place])
                if other != slot and planned[START, place] <= time < planned[END, place]:
                    held = planned[PROCESSORS, place]
                    left -= _kept_out(held, slots[KEPT_OUT, other], window)
            if first <= time < end and left < 0:
                return int(later)
    return start


@inner(allocates=False)
def _edge(edge_us: Ints, edge_free: Ints, edges: int, time: int, free: int) -> int:
    """Note that `free` CPUs are idle from `time` on; the number of edges that there are then."""
    if edges and edge_us[edges - 1] == time:
        edges -= 1
    edge_us[edges], edge_free[edges] = time, free
    return edges + 1


@inner(allocates=False)
def earliest_gap(
    schedule: Schedule,
    machine: int,
    slot: int,
    processors: int,
    length_us: int,
    now: int,
    latest_end_us: int,
) -> int:
    """Start of the machine's earliest gap, see `Schedule`, that ends by `latest_end_us`; NEVER."""
    later = now
    while True:
        start = _earliest_idle(schedule, machine, processors, length_us, later, latest_end_us)
        if start == NEVER or len(schedule.windows) == 0:
            return start
        later = clear_from(schedule, machine, slot, processors, start, length_us)
        if later == start:
            return start


@inner(allocates=False, forceinline=True)
def _earliest_idle(
    schedule: Schedule, machine: int, processors: int, length_us: int, now: int, latest_end_us: int
) -> int:
    """The same without reservations."""
    running, planned = schedule.machines[RUNNING, machine], schedule.machines[PLANNED, machine]
    limit = 0
    if schedule.wide_gaps:
        limit = schedule.machines[COMPLETION, machine]
    elif running < planned:
        limit = schedule.jobs[START, machine, planned - 1]
    limit = min(limit, latest_end_us)
    if now + length_us > limit:
        return NEVER
    edge_us, edge_free = schedule.edges[TIME, machine], schedule.edges[FREE, machine]
    since = NEVER
    for edge in range(schedule.machines[EDGES, machine] - 1):
        until = edge_us[edge + 1]
        if until <= now:
            continue
        if edge_free[edge] < processors:
            since = NEVER
            continue
        if since == NEVER:
            since = max(edge_us[edge], now)
            if since + length_us > limit:
                return NEVER
        if until - since >= length_us:
            return int(since)
    return NEVER


# Jobs


@inner(allocates=False, forceinline=True)
def length_us(slot: int, machine: int, jobs: Jobs, machines: Machines) -> int:
    """The run time of the job on the machine; 0 if it can never run there."""
    if not may_run(slot, machine, jobs, machines):
        return 0
    return duration(jobs.estimate_us[slot], jobs.reference_mips[slot], machines.mips[machine])


@inner()
def lengths_us(slot: int, jobs: Jobs, machines: Machines) -> Ints:
    """The run time of the job on each machine, shape (machines,); see `length_us`."""
    lengths = np.empty(len(machines.cpus), np.int64)
    for machine in range(len(lengths)):
        lengths[machine] = length_us(slot, machine, jobs, machines)
    return lengths


@inner(allocates=False)
def insert(
    schedule: Schedule, jobs: Jobs, slot: int, machine: int, position: int, length: int, now: int
) -> None:
    """Insert the job at `position` of the machine; those from there on move one back."""
    end, planned = schedule.machines[PLANNED, machine], schedule.jobs[:, machine]
    for column in range(len(planned)):
        for place in range(end, position, -1):
            planned[column, place] = planned[column, place - 1]
    planned[SLOT, position], planned[PROCESSORS, position] = slot, jobs.processors[slot]
    # The start is arbitrary: `retime` sets it.
    planned[START, position], planned[END, position] = now, now + length
    planned[DEADLINE, position] = jobs.deadline_us[slot]
    schedule.machines[PLANNED, machine] += 1
    schedule.slots[MACHINE_OF, slot] = machine
    retime(schedule, machine, now)


@inner(allocates=False)
def insert_in_gap(
    schedule: Schedule, jobs: Jobs, slot: int, machine: int, start: int, length: int, now: int
) -> None:
    """The job runs in the gap at `start`; no other job moves."""
    position = schedule.machines[PLANNED, machine]
    while position > 0 and schedule.jobs[START, machine, position - 1] > start:
        position -= 1
    insert(schedule, jobs, slot, machine, position, length, now)


@inner(allocates=False)
def deadline_position(schedule: Schedule, machine: int, deadline_us: int) -> int:
    """The position of a job by earliest deadline first: before the first waiting job with a later
    one."""
    position = schedule.machines[RUNNING, machine]
    planned = schedule.machines[PLANNED, machine]
    while position < planned and schedule.jobs[DEADLINE, machine, position] <= deadline_us:
        position += 1
    return int(position)


@inner(allocates=False)
def position_of(schedule: Schedule, slot: int) -> int:
    """The position of a job on its machine."""
    planned, position = schedule.jobs[SLOT, schedule.slots[MACHINE_OF, slot]], 0
    while planned[position] != slot:
        position += 1
    return position


@inner(allocates=False)
def take_out(schedule: Schedule, slot: int, now: int) -> int:
    """The job leaves the schedule: it is moved, or it ended. Those behind it move up.

    Returns when it should have ended.
    """
    machine, position = schedule.slots[MACHINE_OF, slot], position_of(schedule, slot)
    planned = schedule.jobs[:, machine]
    end = planned[END, position]
    schedule.machines[PLANNED, machine] -= 1
    schedule.machines[RUNNING, machine] -= position < schedule.machines[RUNNING, machine]
    for column in range(len(planned)):
        for place in range(position, schedule.machines[PLANNED, machine]):
            planned[column, place] = planned[column, place + 1]
    schedule.slots[MACHINE_OF, slot] = UNPLANNED
    retime(schedule, machine, now)
    return int(end)


@inner(allocates=False)
def first_not_due(schedule: Schedule, machine: int, now: int) -> int:
    """The position behind the running jobs and those that are due."""
    position = schedule.machines[RUNNING, machine]
    planned = schedule.machines[PLANNED, machine]
    while position < planned and schedule.jobs[START, machine, position] <= now:
        position += 1
    return int(position)


@inner(allocates=False)
def move_up(schedule: Schedule, machine: int, position: int, to: int) -> None:
    """Move the job at `position` to position `to`; those from there on move one back."""
    planned = schedule.jobs[:, machine]
    for column in range(len(planned)):
        moved = planned[column, position]
        for place in range(position, to, -1):
            planned[column, place] = planned[column, place - 1]
        planned[column, to] = moved


@inner(allocates=False)
def start(schedule: Schedule, machine: int, position: int) -> None:
    """The waiting job at `position`, which is due, starts now.

    Those in front of it are due as well but cannot start; which of them comes first in the order
    changes no time.
    """
    planned, first = schedule.jobs[:, machine], schedule.machines[RUNNING, machine]
    for column in range(len(planned)):
        other = planned[column, first]
        planned[column, first], planned[column, position] = planned[column, position], other
    schedule.machines[RUNNING, machine] += 1
