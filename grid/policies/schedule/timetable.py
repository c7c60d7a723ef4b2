"""The schedule of one cluster as arrays: its jobs timed, inserted, started and removed.

The schedule of a machine is the *order* of its jobs; the times follow from it. Each job starts as
early as the CPUs allow, and not before the one in front of it. So a schedule is valid by
construction, and stays so if jobs end early or late: the machine concerned is timed again. An end
that comes early can only move starts forward, and so can a job that is removed.

Functions that run for every machine at every arrival take the few columns that they need: a
compiled call counts the references of every array passed to it, and a `Schedule` has twenty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.fitting import duration
from grid.policies.interface import Jobs, MachineColumns, Machines

UNPLANNED = -1
"""Machine of a job that is in no machine's schedule."""

JOBS, LATE, MAKESPAN_US, ORIGIN_US, WIDE_GAPS, TOTALS = range(6)
"""Places in `Schedule.totals`, and their number."""

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
    at once on an available machine while the schedule is almost empty; so CPUs next to and behind
    the last job, which no job waits for, are not a gap. (If they were, a job would be put next to
    a running one although a better machine is idle, for a gap always takes precedence.) With wide
    gaps they are: a gap ends when the machine's last job ends, or before.
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
    """Of shape (slots,), like the next: in whose schedule a job is, or `UNPLANNED`."""
    tabu: Ints
    """1 for a job in the tabu list."""
    totals: Ints
    """Kept as the schedule changes: jobs; late ones, running ones included; makespan, the end of
    the last job, 0 without jobs; the instant from which the makespan counts; 1 for wide
    gaps."""


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
        machines[0], machines[1], machines[2], machines[3], machines[4], machines[5], machines[6],
        machines[7], machines[8], machines[9], positions[0], positions[1], positions[2],
        positions[3], positions[4], edges[0], edges[1], storage.scratch[0], storage.scratch[1],
        storage.slots[0], storage.slots[1], storage.totals,
    )  # fmt: skip


def empty_storage(machines: MachineColumns) -> Storage:
    """Nothing planned on machines that are all up."""
    count = len(machines.cpus)
    shapes = ((10, count), (5, count, 0), (2, count, 0), (2, 0), (2, 0), (TOTALS,))
    empty = Storage(*(np.zeros(shape, np.int64) for shape in shapes))
    schedule = schedule_of(empty)
    schedule.cpus[:], schedule.up[:], schedule.fastest[:] = machines.cpus, 1, machines.speed_order
    return empty


def with_room(storage: Storage, slots: int, jobs: int) -> Storage:
    """The same schedule with room for jobs in `slots` slots, and for `jobs` on each machine."""
    before, positions = storage.slots.shape[1], storage.positions.shape[2]
    if slots > before:
        wider = _wider(storage.slots, slots)
        wider[0, before:] = UNPLANNED
        storage = storage._replace(slots=wider)
    if jobs > positions:
        positions = max(jobs, 2 * positions, _FIRST_POSITIONS)
        storage = storage._replace(
            positions=_wider(storage.positions, positions),
            edges=_wider(storage.edges, 2 * positions + 2),
            scratch=_wider(storage.scratch, positions + 2),
        )
    return storage


def empty_tabu_list(limit: int) -> Ints:
    """A tabu list for at most `limit` jobs."""
    return np.zeros(FIRST_ENTRY + 2 * limit, np.int64)


def _wider(column: Ints, width: int) -> Ints:
    """The column with zeros added at the end of its last axis."""
    added = np.zeros((*column.shape[:-1], width - column.shape[-1]), np.int64)
    return np.concatenate((column, added), axis=-1)


# Times


class MachineRow(NamedTuple):
    """One machine's rows of the schedule, and the scratch."""

    processors: Ints
    start_us: Ints
    end_us: Ints
    deadline_us: Ints
    active_end_us: Ints
    active_processors: Ints
    cpus: int
    planned: int


@inner(forceinline=True)
def row_of(schedule: Schedule, machine: int) -> MachineRow:
    return MachineRow(
        schedule.processors[machine], schedule.start_us[machine], schedule.end_us[machine],
        schedule.deadline_us[machine], schedule.active_end_us, schedule.active_processors,
        schedule.cpus[machine], schedule.planned[machine],
    )  # fmt: skip


@inner()
def earliest_gap(
    edge_us: Ints,
    edge_free: Ints,
    edges: int,
    processors: int,
    length_us: int,
    now: int,
    latest_end_us: int,
) -> int:
    """Start of the earliest gap from `now` on that ends by `latest_end_us`, NEVER if there is none.

    A gap is a time of `length_us` in which `processors` CPUs are idle; the first three describe
    the profile of one machine.
    """
    since = NEVER
    for edge in range(edges - 1):
        until = edge_us[edge + 1]
        if until <= now:
            continue
        if edge_free[edge] < processors:
            since = NEVER
            continue
        if since == NEVER:
            since = max(edge_us[edge], now)
            if since + length_us > latest_end_us:
                return NEVER
        if until - since >= length_us:
            return since
    return NEVER


@inner(forceinline=True)
def gap_on(
    schedule: Schedule, machine: int, processors: int, length_us: int, now: int, latest_end_us: int
) -> int:
    """Start of the machine's earliest gap, see `Schedule`, that ends by `latest_end_us`; NEVER."""
    running, planned = schedule.running[machine], schedule.planned[machine]
    limit = 0
    if schedule.totals[WIDE_GAPS]:
        limit = schedule.completion_us[machine]
    elif running < planned:
        limit = schedule.start_us[machine, planned - 1]
    limit = min(limit, latest_end_us)
    if now + length_us > limit:
        return NEVER
    edge_us, edge_free = schedule.edge_us[machine], schedule.edge_free[machine]
    edges = schedule.edges[machine]
    return int(earliest_gap(edge_us, edge_free, edges, processors, length_us, now, limit))


@inner()
def tried(
    row: MachineRow,
    position: int,
    without: bool,
    new_processors: int,
    length_us: int,
    now: int,
    late_limit: int,
) -> tuple[int, int, int]:
    """What would be if a job came to `position`, or, `without`, the one there were taken out.

    The result is (by how many more the jobs behind it are late, the machine's completion, the end
    of the job that came). Without a job that comes, `new_processors` is 0. With more than
    `late_limit` late ones it gives up, and the completion is only a lower bound.
    """
    processors, start_us, end_us, deadline_us = row[:4]
    active_end_us, active_processors, cpus, planned = row[4:]
    time = max(now, start_us[position - 1]) if position else now
    tail, free = _active(processors, end_us, active_end_us, active_processors, cpus, position, time)
    head = 0
    completion = active_end_us[tail - 1] if tail else 0
    own_end = 0
    if new_processors:
        while free < new_processors:
            time = active_end_us[head]
            free += active_processors[head]
            head += 1
        own_end = time + length_us
        _hold(active_end_us, active_processors, head, tail, own_end, new_processors)
        tail += 1
        free -= new_processors
        completion = max(completion, own_end)
    late = 0
    for behind in range(position + without, planned):
        wanted = processors[behind]
        while free < wanted:
            time = active_end_us[head]
            free += active_processors[head]
            head += 1
        end = time + end_us[behind] - start_us[behind]
        late += int(end > deadline_us[behind]) - int(end_us[behind] > deadline_us[behind])
        _hold(active_end_us, active_processors, head, tail, end, wanted)
        tail += 1
        free -= wanted
        completion = max(completion, end)
        if late > late_limit:
            break
    return late, completion, own_end


@inner()
def start_behind(
    start_us: Ints,
    planned: int,
    edge_us: Ints,
    edge_free: Ints,
    edges: int,
    processors: int,
    now: int,
) -> int:
    """When a job would start as the last one of a machine."""
    if planned == 0:
        return now
    # From the start of its last job on, ever more CPUs of a machine are idle.
    last_start = max(now, start_us[planned - 1])
    edge = edges - 1
    while edge_us[edge] > last_start and edge_free[edge - 1] >= processors:
        edge -= 1
    return int(max(last_start, edge_us[edge]))


@inner()
def retime(schedule: Schedule, machine: int, first: int, now: int) -> None:
    """Time the waiting jobs from position `first` on as early as their order allows.

    What is before `first` stays. Late jobs, completion and makespan are brought up to date.
    """
    processors = schedule.processors[machine]
    start_us, end_us = schedule.start_us[machine], schedule.end_us[machine]
    deadline_us = schedule.deadline_us[machine]
    edge_us, edge_free = schedule.edge_us[machine], schedule.edge_free[machine]
    active_end_us, active_processors = schedule.active_end_us, schedule.active_processors
    edges, time = 0, now
    if first > schedule.running[machine]:
        time = max(now, start_us[first - 1])
        while edges < schedule.edges[machine] and edge_us[edges] < time:
            edges += 1
    tail, free = _active(
        processors, end_us, active_end_us, active_processors, schedule.cpus[machine], first, time
    )
    head, late = 0, 0
    completion = active_end_us[tail - 1] if tail else 0
    edges = _edge(edge_us, edge_free, edges, time, free)
    for position in range(first, schedule.planned[machine]):
        while free < processors[position]:
            time = active_end_us[head]
            free += active_processors[head]
            head += 1
            edges = _edge(edge_us, edge_free, edges, time, free)
        end = time + end_us[position] - start_us[position]
        late += int(end > deadline_us[position]) - int(end_us[position] > deadline_us[position])
        start_us[position], end_us[position] = time, end
        _hold(active_end_us, active_processors, head, tail, end, processors[position])
        tail += 1
        free -= processors[position]
        edges = _edge(edge_us, edge_free, edges, time, free)
        completion = max(completion, end)
    while head < tail:
        free += active_processors[head]
        edges = _edge(edge_us, edge_free, edges, active_end_us[head], free)
        head += 1
    schedule.edges[machine] = edges
    schedule.late[machine] += late
    schedule.totals[LATE] += late
    set_completion(schedule, machine, completion)


@inner()
def set_completion(schedule: Schedule, machine: int, completion: int) -> None:
    """The end of the machine's last job is now `completion`; the makespan follows."""
    before = schedule.completion_us[machine]
    schedule.completion_us[machine] = completion
    makespan = schedule.totals[MAKESPAN_US]
    if completion >= makespan:
        schedule.totals[MAKESPAN_US] = completion
    elif before == makespan:
        schedule.totals[MAKESPAN_US] = schedule.completion_us.max()


@inner()
def forget_past(schedule: Schedule, machine: int, now: int) -> None:
    """Drop the part of the machine's profile that is over."""
    edge_us, edge_free = schedule.edge_us[machine], schedule.edge_free[machine]
    over = 0
    while over + 1 < schedule.edges[machine] and edge_us[over + 1] <= now:
        over += 1
    if over:
        left = schedule.edges[machine] - over
        for edge in range(left):
            edge_us[edge], edge_free[edge] = edge_us[edge + over], edge_free[edge + over]
        schedule.edges[machine] = left


@inner()
def take_from_profile(
    schedule: Schedule, machine: int, start: int, end: int, processors: int
) -> None:
    """The CPUs are no longer idle from `start` to `end`, a gap of the machine."""
    first = _split(schedule, machine, start)
    last = _split(schedule, machine, end)
    for edge in range(first, last):
        schedule.edge_free[machine, edge] -= processors


@inner()
def _split(schedule: Schedule, machine: int, time: int) -> int:
    """The place of the edge at `time`, which is made if it is not there."""
    edge_us, edge_free = schedule.edge_us[machine], schedule.edge_free[machine]
    place = schedule.edges[machine]
    while place > 0 and edge_us[place - 1] >= time:
        place -= 1
    if place < schedule.edges[machine] and edge_us[place] == time:
        return int(place)
    for edge in range(schedule.edges[machine], place, -1):
        edge_us[edge], edge_free[edge] = edge_us[edge - 1], edge_free[edge - 1]
    edge_us[place], edge_free[place] = time, edge_free[place - 1]
    schedule.edges[machine] += 1
    return int(place)


@inner()
def _active(
    processors: Ints,
    end_us: Ints,
    active_end_us: Ints,
    active_processors: Ints,
    cpus: int,
    first: int,
    time: int,
) -> tuple[int, int]:
    """Sort those before `first` that hold CPUs after `time` into the scratch, by their ends.

    The result is (how many there are, CPUs that none of them holds).
    """
    tail, free = 0, cpus
    for position in range(first):
        if end_us[position] > time:
            _hold(active_end_us, active_processors, 0, tail, end_us[position], processors[position])
            tail += 1
            free -= processors[position]
    return tail, free


@inner()
def _hold(
    active_end_us: Ints, active_processors: Ints, head: int, tail: int, end: int, processors: int
) -> None:
    """Sort one more job into the scratch of active ones, which are at head to tail - 1."""
    place = tail
    while place > head and active_end_us[place - 1] > end:
        active_end_us[place] = active_end_us[place - 1]
        active_processors[place] = active_processors[place - 1]
        place -= 1
    active_end_us[place], active_processors[place] = end, processors


@inner()
def _edge(edge_us: Ints, edge_free: Ints, edges: int, time: int, free: int) -> int:
    """Note that `free` CPUs are idle from `time` on; the number of edges that there are then."""
    if edges and edge_us[edges - 1] == time:
        edges -= 1
    edge_us[edges], edge_free[edges] = time, free
    return edges + 1


# Jobs


@inner(forceinline=True)
def length_us(slot: int, machine: int, jobs: Jobs, machines: Machines) -> int:
    """The run time of the job on the machine; 0 if it can never run there."""
    if jobs.bound_machine[slot] not in (UNPLANNED, machine):
        return 0
    if jobs.processors[slot] > machines.cpus[machine]:
        return 0
    if jobs.licenses[slot] & ~machines.licenses[machine]:
        return 0
    mips = machines.mips[machine]
    return duration(jobs.estimate_us[slot], jobs.reference_mips[slot], mips)


@inner()
def lengths_us(slot: int, jobs: Jobs, machines: Machines) -> Ints:
    """The run time of the job on each machine, shape (machines,); see `length_us`."""
    lengths = np.empty(len(machines.cpus), np.int64)
    for machine in range(len(lengths)):
        lengths[machine] = length_us(slot, machine, jobs, machines)
    return lengths


@inner()
def put(
    schedule: Schedule, jobs: Jobs, slot: int, machine: int, position: int, start: int, end: int
) -> None:
    """The job comes to `position` of the machine, those from there on one further back."""
    for column in _columns(schedule):
        row = column[machine]
        for place in range(schedule.planned[machine], position, -1):
            row[place] = row[place - 1]
    deadline = jobs.deadline_us[slot]
    schedule.slot[machine, position] = slot
    schedule.processors[machine, position] = jobs.processors[slot]
    schedule.start_us[machine, position] = start
    schedule.end_us[machine, position] = end
    schedule.deadline_us[machine, position] = deadline
    schedule.planned[machine] += 1
    schedule.late[machine] += end > deadline
    schedule.totals[LATE] += end > deadline
    schedule.totals[JOBS] += 1
    schedule.machine_of[slot] = machine


@inner()
def insert_in_gap(
    schedule: Schedule, jobs: Jobs, slot: int, machine: int, start: int, length_us: int
) -> None:
    """The job runs in the gap at `start`; no other job moves."""
    end = start + length_us
    position = schedule.planned[machine]
    while position > 0 and schedule.start_us[machine, position - 1] > start:
        position -= 1
    put(schedule, jobs, slot, machine, position, start, end)
    take_from_profile(schedule, machine, start, end, jobs.processors[slot])


@inner()
def deadline_position(planned_us: Ints, running: int, count: int, deadline_us: int) -> int:
    """Where a job comes by earliest deadline first: before the first that has a later one.

    `planned_us` are the deadlines of the machine's jobs; the running ones stay in front.
    """
    position = running
    while position < count and planned_us[position] <= deadline_us:
        position += 1
    return position


@inner()
def insert_by_deadline(
    schedule: Schedule, jobs: Jobs, slot: int, machine: int, length_us: int, now: int
) -> None:
    """The job comes to its position by deadline; those behind it are timed again."""
    position = deadline_position(
        schedule.deadline_us[machine],
        schedule.running[machine],
        schedule.planned[machine],
        jobs.deadline_us[slot],
    )
    # The start is arbitrary: `retime` sets it.
    put(schedule, jobs, slot, machine, position, now, now + length_us)
    retime(schedule, machine, position, now)


@inner()
def position_of(schedule: Schedule, slot: int) -> int:
    """The position of a job on its machine."""
    planned = schedule.slot[schedule.machine_of[slot]]
    position = 0
    while planned[position] != slot:
        position += 1
    return position


@inner()
def take_out(schedule: Schedule, slot: int, now: int) -> int:
    """The job leaves the schedule: it is moved, or it ended. Those behind it move up.

    One that ends exactly as planned moves no job. The result is when it should have ended.
    """
    machine = schedule.machine_of[slot]
    position = position_of(schedule, slot)
    end = schedule.end_us[machine, position]
    was_running = position < schedule.running[machine]
    late = end > schedule.deadline_us[machine, position]
    schedule.totals[LATE] -= late
    schedule.totals[JOBS] -= 1
    if was_running:
        schedule.running[machine] -= 1
        schedule.held[machine] -= schedule.processors[machine, position]
    else:
        schedule.late[machine] -= late
    schedule.planned[machine] -= 1
    for column in _columns(schedule):
        row = column[machine]
        for place in range(position, schedule.planned[machine]):
            row[place] = row[place + 1]
    schedule.machine_of[slot] = UNPLANNED
    if not (was_running and end == now):
        retime(schedule, machine, schedule.running[machine] if was_running else position, now)
        return int(end)
    forget_past(schedule, machine, now)
    if schedule.planned[machine] == 0:
        set_completion(schedule, machine, 0)
    return int(end)


@inner()
def first_not_due(schedule: Schedule, machine: int, now: int) -> int:
    """The position behind the running jobs and those that are due."""
    position = schedule.running[machine]
    while position < schedule.planned[machine] and schedule.start_us[machine, position] <= now:
        position += 1
    return int(position)


@inner()
def move_up(schedule: Schedule, machine: int, position: int, now: int) -> None:
    """The waiting job at `position`, for which there are idle CPUs, is due at once.

    Those that were in front of it keep their times or move up as well.
    """
    first = first_not_due(schedule, machine, now)
    for column in _columns(schedule):
        row = column[machine]
        moved = row[position]
        for place in range(position, first, -1):
            row[place] = row[place - 1]
        row[first] = moved
    retime(schedule, machine, first, now)


@inner()
def start(schedule: Schedule, machine: int, position: int) -> None:
    """The waiting job at `position`, which is due, runs from now on."""
    first = schedule.running[machine]
    if position > first:
        # Those in front of it are due as well but cannot start. Which of them comes first in the
        # order changes no time.
        for column in _columns(schedule):
            row = column[machine]
            row[first], row[position] = row[position], row[first]
    schedule.running[machine] += 1
    schedule.held[machine] += schedule.processors[machine, first]
    schedule.late[machine] -= schedule.end_us[machine, first] > schedule.deadline_us[machine, first]


@inner()
def expect_end(schedule: Schedule, machine: int, position: int, end: int) -> None:
    """The running job at `position` is now expected to end at `end`; `retime` must follow."""
    deadline = schedule.deadline_us[machine, position]
    was_late = schedule.end_us[machine, position] > deadline
    schedule.totals[LATE] += int(end > deadline) - int(was_late)
    schedule.end_us[machine, position] = end


@inner()
def _columns(schedule: Schedule) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """What is kept of each position."""
    return (
        schedule.slot,
        schedule.processors,
        schedule.start_us,
        schedule.end_us,
        schedule.deadline_us,
    )
