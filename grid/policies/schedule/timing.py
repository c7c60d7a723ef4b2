"""When the jobs of one machine run: timed from their order, tried out, and their gaps searched.

What runs for every machine at every arrival is given the few columns that it needs: a compiled
call counts the references of every array that it is given, a whole `Schedule` is twenty.
"""

from __future__ import annotations

from typing import NamedTuple

from grid.model.arrays import Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.schedule.arrays import LATE, MAKESPAN_US, Schedule


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
