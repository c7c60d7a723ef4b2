"""Differences between schedules of pybatsim and ours, and their reasons: scripts/compare-pybatsim.

The messages of the protocol are replayed. After each event, our policy decides in the same state,
with the same waiting and running jobs. A difference is explained by the first job in queue order
that only one of both starts; each reason is checked against the free processors.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from grid.config.load import load_scenario, source_of
from grid.config.workload import realize
from grid.model.job_table import JobTable
from grid.model.time import NEVER, SECOND_US
from grid.policies.batsim.messages import mask_of
from grid.policies.batsim.policy import CLOCK_US, Batsim, Scheduler
from grid.policies.queue import easy, fcfs
from grid.runtime.schedulers import Conversation, SchedulerTime
from tests.policies.batsim.asked_functions import CPUS, schedule

Event = tuple[str, int]
"""`end` or `submit`, and the row of the job."""
SCATTERED = "enough processors are free, but not consecutive ones"
RESERVED = "consecutive free processors are reserved for the first job"
LATER = "the first job waits longer, for consecutive processors"
FORGOTTEN = "the reservation of the first job is ignored between running jobs"
UNEXPLAINED = "no reason known"


class Exchange(NamedTuple):
    """The events of one instant, and the jobs started after them, with the masks of processors."""

    time_us: int
    events: list[Event]
    started: list[tuple[int, int]]


@dataclass
class State:
    """The state of the scheduler; `running` has the expected end and the mask by row."""

    jobs: JobTable
    processors: int
    now: int = 0
    waiting: list[int] = field(default_factory=list)
    running: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """The mask of the free processors."""
        taken = (1 << self.processors) - 1
        for _, mask in self.running.values():
            taken &= ~mask
        return taken

    def copy(self) -> State:
        return replace(self, waiting=list(self.waiting), running=dict(self.running))

    def width(self, row: int) -> int:
        return int(self.jobs.processors[row])

    def expected_end(self, row: int) -> int:
        return self.now + int(self.jobs.estimate_us[row])

    def apply(self, event: Event) -> None:
        kind, row = event
        if kind == "submit":
            self.waiting.append(row)
        else:
            del self.running[row]

    def start(self, row: int, mask: int) -> None:
        self.waiting.remove(row)
        self.running[row] = (self.expected_end(row), mask)


def fcfs_starts(state: State) -> list[int]:
    """The jobs that FCFS starts."""
    started, free = [], state.free.bit_count()
    for row in state.waiting:
        if state.width(row) > free:
            break
        free -= state.width(row)
        started.append(row)
    return started


def easy_starts(state: State) -> list[int]:
    """The jobs that EASY starts."""
    started = fcfs_starts(state)
    blocked = state.waiting[len(started) :]
    if not blocked:
        return started
    ends = [(end, mask.bit_count()) for end, mask in state.running.values()]
    ends += [(state.expected_end(row), state.width(row)) for row in started]
    free = state.free.bit_count() - sum(map(state.width, started))
    extra, shadow = free - state.width(blocked[0]), state.now
    for end, width in sorted(ends):
        if extra >= 0 and end > shadow:
            break
        extra, shadow = extra + width, end
    for row in blocked[1:]:
        if state.width(row) > free:
            continue
        if state.expected_end(row) > shadow:
            if state.width(row) > extra:
                continue
            extra -= state.width(row)
        free -= state.width(row)
        started.append(row)
    return started


def differences(
    jobs: JobTable, processors: int, exchanges: list[Exchange], decide: Callable[[State], list[int]]
) -> Iterator[tuple[int, int, str]]:
    """(time, row, reason) of each decision that differs from that of `decide` in the same state."""
    state = State(jobs, processors)
    for time_us, events, started in exchanges:
        state.now = time_us
        left, is_same = list(started), True
        moments: list[Moment] = []
        for place, event in enumerate(events):
            state.apply(event)
            if not is_same:
                continue
            ours, count = decide(state), len(left)
            is_last = place == len(events) - 1
            moments.append(Moment(state.copy(), ours, list(left), is_last))
            if not is_last:
                count = min(count, len(ours))
            is_same = ours == [row for row, _ in left[:count]]
            if not is_same:
                yield (time_us, *_known_reason(moments))
                continue
            for row, mask in left[:count]:
                state.start(row, mask)
            del left[:count]
        for row, mask in left:
            state.start(row, mask)


class Moment(NamedTuple):
    """After an event: the jobs that our policy starts, and those started then or later."""

    state: State
    ours: list[int]
    left: list[tuple[int, int]]
    is_last: bool


def _known_reason(moments: list[Moment]) -> tuple[int, str]:
    """The reason of a different decision after the last of these events of one instant.

    An answer lists started jobs in order, without their events: the first n that fit on free
    processors may belong to an event.
    """
    found = (-1, UNEXPLAINED)
    for state, ours, left, is_last in reversed(moments):
        possible = [left] if is_last else _beginnings(state, left)
        for theirs in possible:
            if ours != [row for row, _ in theirs]:
                reason = _reason(state, ours, theirs)
                if reason[1] != UNEXPLAINED:
                    return reason
                found = reason if found[0] < 0 else found
    return found


def _beginnings(state: State, left: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Prefixes of `left` that fit on the processors that are free in this state."""
    free = state.free
    for count in range(len(left) + 1):
        yield left[:count]
        row, mask = left[count] if count < len(left) else (-1, 0)
        if row not in state.waiting or mask & ~free:
            return
        free &= ~mask


def _reason(state: State, ours: list[int], theirs: list[tuple[int, int]]) -> tuple[int, str]:
    """The first job in queue order that only one of both starts, and the reason."""
    masks = dict(theirs)
    row = next((row for row in state.waiting if (row in ours) != (row in masks)), -1)
    if row < 0:
        return row, UNEXPLAINED
    head = next(one for one in state.waiting if one not in masks or one not in ours)
    before = [one for one in state.waiting[: state.waiting.index(row)] if one in masks]
    free = state.free
    for one in before:
        free &= ~masks[one]
    if row in ours and longest_run(free) < state.width(row):
        return row, SCATTERED
    if row == head:
        return row, UNEXPLAINED
    reserved_us, rectangles = _reservation(state, head, masks)
    in_time = state.expected_end(row) <= reserved_us
    if row in ours:
        kept = any(longest_run(free & ~one) < state.width(row) for one in rectangles)
        return row, RESERVED if kept and not in_time else UNEXPLAINED
    outside = in_time or any(masks[row] & one == 0 for one in rectangles)
    if outside and reserved_us > _shadow(state, head, masks):
        return row, LATER
    around = _run_around(masks[row], free)
    forgotten = any(_is_inside(around, one) for one in rectangles)
    return row, FORGOTTEN if forgotten else UNEXPLAINED


def _ends(state: State, head: int, masks: dict[int, int]) -> list[tuple[int, int]]:
    """(expected end, mask) of jobs running when the first job's reservation is made, in order.

    Jobs with the same end are in the order of their starts, as in pybatsim's list.
    """
    turn = state.waiting[: state.waiting.index(head)]
    ends = [(state.expected_end(row), masks[row]) for row in turn if row in masks]
    return sorted([*state.running.values(), *ends], key=itemgetter(0))


def _shadow(state: State, head: int, masks: dict[int, int]) -> int:
    """The expected time when enough processors are free for the first job."""
    ends = _ends(state, head, masks)
    free = state.processors - sum(mask.bit_count() for _, mask in ends)
    for end, mask in ends:
        free += mask.bit_count()
        if free >= state.width(head):
            return end
    return NEVER


def _reservation(state: State, head: int, masks: dict[int, int]) -> tuple[int, list[int]]:
    """The expected time when enough consecutive processors are free, and possible masks of them."""
    ends, width = _ends(state, head, masks), state.width(head)
    free = (1 << state.processors) - 1
    for _, mask in ends:
        free &= ~mask
    for end, mask in ends:
        free |= mask
        if longest_run(free) >= width:
            around = _run_around(mask, free)
            low, high = _lowest(around), around.bit_length()
            block = (1 << width) - 1
            return end, [block << low, block << high - width]
    return NEVER, []


def longest_run(free: int) -> int:
    """The largest number of consecutive processors in `free`."""
    length = 0
    while free:
        free &= free << 1
        length += 1
    return length


def _run_around(mask: int, free: int) -> int:
    """The consecutive processors around the mask that are free or in it."""
    free |= mask
    around = mask
    while (wider := (around | around << 1 | around >> 1) & free) != around:
        around = wider
    return around


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _is_inside(mask: int, block: int) -> bool:
    """Whether the mask is within the block and touches neither end of it."""
    inside = mask & ~block == 0
    return inside and _lowest(mask) > _lowest(block) and mask.bit_length() < block.bit_length()


def count_reasons(found: Iterator[tuple[int, int, str]]) -> Counter[str]:
    """The number of differences by reason."""
    return Counter(reason for _, _, reason in found)


PYBATSIM = shlex.quote(str(Path(sys.executable).with_name("pybatsim")))
KINDS = {"JOB_SUBMITTED": "submit", "JOB_COMPLETED": "end"}


class Schedule(NamedTuple):
    """Starts by row, messages, masks of processors by row, and the time of the scheduler."""

    starts: list[int]
    exchanges: list[Exchange]
    allocations: dict[int, int]
    time: SchedulerTime


def run_pybatsim(scheduler: str, jobs: JobTable, processors: int = CPUS) -> Schedule:
    """The schedule of a scheduler of pybatsim, by name or file."""
    command = f"{PYBATSIM} {scheduler} -s {{endpoint}} -t 0 -v error"
    reached = Scheduler(command, "", 600.0)
    conversation, policy = Conversation("tests/pool", reached), Batsim(reached)
    exchanges: list[Exchange] = []

    def exchange_messages(message: dict[str, Any]) -> Any:
        answer = conversation.ask(message)
        now = round(message["now"] * SECOND_US) - CLOCK_US
        events = [
            (KINDS[one["type"]], _row(one)) for one in message["events"] if one["type"] in KINDS
        ]
        started = [
            (_row(one), mask_of(one["data"]["alloc"], processors))
            for one in answer["events"]
            if one["type"] == "EXECUTE_JOB"
        ]
        exchanges.append(Exchange(now, events, started))
        return answer

    policy.connect(exchange_messages)
    try:
        starts, _, _ = schedule(policy, jobs, processors)
        conversation.end()
    finally:
        conversation.close()
    allocations = dict(one for exchange in exchanges for one in exchange.started)
    return Schedule(starts, exchanges, allocations, conversation.time)


def _row(event: dict[str, Any]) -> int:
    return int(event["data"]["job_id"].partition("!")[2])


def main() -> None:
    """Print the differences of a scheduler."""
    parser = argparse.ArgumentParser(prog="scripts/compare-pybatsim")
    parser.add_argument("scheduler", help="a scheduler of pybatsim, by its name or file")
    parser.add_argument("ours", choices=("fcfs", "easy"))
    parser.add_argument("scenario", help="one VO with one pool, whose jobs enter it")
    parser.add_argument("--jobs", type=int, default=10_000, help="only the first N")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    given = parser.parse_args()
    jobs, processors = _jobs_of(given.scenario, given.settings, given.jobs)
    policy, decide = {"fcfs": (fcfs, fcfs_starts), "easy": (easy, easy_starts)}[given.ours]
    own, _, _ = schedule(policy(), jobs, processors)
    scheduler = given.scheduler
    if Path(scheduler).exists():
        scheduler = str(Path(scheduler).resolve())
    began = process_time()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # pybatsim writes a log to the current folder.
        result = run_pybatsim(scheduler, jobs, processors)
        os.chdir("/")
    spent, used = process_time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    starts = np.array(result.starts)
    differ = int((starts != own).sum())
    submit = jobs.submit_us
    waits = [float((one - submit).mean() / 1e6) for one in (starts, np.array(own))]
    print(f"{Path(scheduler).stem}: {len(jobs)} jobs on {processors} processors")
    print(f"  {result.time.messages} messages; {used.ru_utime + used.ru_stime:.1f} s of CPU there, "
          f"{spent:.1f} s here")  # fmt: skip
    print(f"  {differ} jobs start at other times than under {given.ours}; mean wait "
          f"{waits[0]:.1f} s, here {waits[1]:.1f} s")  # fmt: skip
    found = list(differences(jobs, processors, result.exchanges, decide))
    print(f"  {len(found)} decisions differ from ours in the same state:")
    for reason, count in count_reasons(iter(found)).most_common():
        print(f"    {count:6d}  {reason}")


def _jobs_of(file: str, settings: list[str], count: int) -> tuple[JobTable, int]:
    """The first jobs of the scenario's only VO, and the processors of its pool."""
    scenario = load_scenario(file, tuple(settings))
    grid = realize(scenario, source_of(file))[0]
    (vo,) = grid.vos
    (table,) = grid.direct
    if table is None:
        raise SystemExit(
            f"{file}: its jobs do not enter the cluster directly (entry_point: cluster)"
        )
    return table.take(slice(count)), vo.clusters[0].machines[0].cpus


if __name__ == "__main__":
    main()
