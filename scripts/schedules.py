"""How schedules of pybatsim differ from ours, and why; see scripts/schedules.

A schedule is replayed from the messages of the protocol. After each event, one of our policies is
asked for what it would start in the same state: the same jobs wait, the same ones run. If the
first job in the order of the queue that only one of both starts has no known reason, the decision
is reported as unexplained; each reason is checked against the free processors.
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
SCATTERED = "enough processors are free, but not so many in a row"
RESERVED = "those that are free in a row are kept for the first job"
LATER = "the first job has to wait longer, for processors in a row"
FORGOTTEN = "the reservation of the first job is forgotten between jobs that run"
UNEXPLAINED = "no reason known"


class Heard(NamedTuple):
    """What was said at one instant, and what was then started, with the mask of its processors."""

    time_us: int
    events: list[Event]
    started: list[tuple[int, int]]


@dataclass
class State:
    """What the scheduler knows at one time; `running` has the expected end and the mask by row."""

    jobs: JobTable
    processors: int
    now: int = 0
    waiting: list[int] = field(default_factory=list)
    running: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """The mask of the processors that are free."""
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

    def hear(self, event: Event) -> None:
        kind, row = event
        if kind == "submit":
            self.waiting.append(row)
        else:
            del self.running[row]

    def start(self, row: int, mask: int) -> None:
        self.waiting.remove(row)
        self.running[row] = (self.expected_end(row), mask)


def in_turn(state: State) -> list[int]:
    """What FCFS starts."""
    started, free = [], state.free.bit_count()
    for row in state.waiting:
        if state.width(row) > free:
            break
        free -= state.width(row)
        started.append(row)
    return started


def backfilling(state: State) -> list[int]:
    """What EASY starts."""
    started = in_turn(state)
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


def reasons(
    jobs: JobTable, processors: int, said: list[Heard], decide: Callable[[State], list[int]]
) -> Iterator[tuple[int, int, str]]:
    """(time, row, reason) of each decision that is not that of `decide` in the same state."""
    state = State(jobs, processors)
    for time_us, events, started in said:
        state.now = time_us
        left, is_alike = list(started), True
        moments: list[Moment] = []
        for place, event in enumerate(events):
            state.hear(event)
            if not is_alike:
                continue
            ours, count = decide(state), len(left)
            is_last = place == len(events) - 1
            moments.append(Moment(state.copy(), ours, list(left), is_last))
            if not is_last:
                count = min(count, len(ours))
            is_alike = ours == [row for row, _ in left[:count]]
            if not is_alike:
                yield (time_us, *_known_reason(moments))
                continue
            for row, mask in left[:count]:
                state.start(row, mask)
            del left[:count]
        for row, mask in left:
            state.start(row, mask)


class Moment(NamedTuple):
    """After an event: what ours starts, and what is started then or after those that follow."""

    state: State
    ours: list[int]
    left: list[tuple[int, int]]
    is_last: bool


def _known_reason(moments: list[Moment]) -> tuple[int, str]:
    """Why it decides otherwise after the last of these events of one instant, or after an earlier.

    An answer does not say after which event a job was started, but it has them in that order: the
    first of them, so many as are free, may be those of this event.
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
    """What may have been started in this state: the first of them, on processors free in it."""
    free = state.free
    for count in range(len(left) + 1):
        yield left[:count]
        row, mask = left[count] if count < len(left) else (-1, 0)
        if row not in state.waiting or mask & ~free:
            return
        free &= ~mask


def _reason(state: State, ours: list[int], theirs: list[tuple[int, int]]) -> tuple[int, str]:
    """The first job in the order of the queue that only one starts, and why."""
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
    beside = in_time or any(masks[row] & one == 0 for one in rectangles)
    if beside and reserved_us > _shadow(state, head, masks):
        return row, LATER
    around = _run_around(masks[row], free)
    forgotten = any(_is_inside(around, one) for one in rectangles)
    return row, FORGOTTEN if forgotten else UNEXPLAINED


def _ends(state: State, head: int, masks: dict[int, int]) -> list[tuple[int, int]]:
    """(expected end, mask) of what runs when the first job's reservation is made, in order.

    Those that end together are in the order of their starts, as in pybatsim's list.
    """
    turn = state.waiting[: state.waiting.index(head)]
    ends = [(state.expected_end(row), masks[row]) for row in turn if row in masks]
    return sorted([*state.running.values(), *ends], key=itemgetter(0))


def _shadow(state: State, head: int, masks: dict[int, int]) -> int:
    """When the estimates free enough processors for the first job, wherever they are."""
    ends = _ends(state, head, masks)
    free = state.processors - sum(mask.bit_count() for _, mask in ends)
    for end, mask in ends:
        free += mask.bit_count()
        if free >= state.width(head):
            return end
    return NEVER


def _reservation(state: State, head: int, masks: dict[int, int]) -> tuple[int, list[int]]:
    """When they free enough in a row, and which these may be: the first or last of those free."""
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
    """How many consecutive processors of `free` there are at most."""
    length = 0
    while free:
        free &= free << 1
        length += 1
    return length


def _run_around(mask: int, free: int) -> int:
    """The consecutive processors, free or of the mask, in which those of the mask are."""
    free |= mask
    around = mask
    while (wider := (around | around << 1 | around >> 1) & free) != around:
        around = wider
    return around


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _is_inside(mask: int, block: int) -> bool:
    """Whether it lies in the block and touches neither end of it."""
    inside = mask & ~block == 0
    return inside and _lowest(mask) > _lowest(block) and mask.bit_length() < block.bit_length()


def count_reasons(found: Iterator[tuple[int, int, str]]) -> Counter[str]:
    """How often there is each reason."""
    return Counter(reason for _, _, reason in found)


PYBATSIM = shlex.quote(str(Path(sys.executable).with_name("pybatsim")))
KINDS = {"JOB_SUBMITTED": "submit", "JOB_COMPLETED": "end"}


class Asked(NamedTuple):
    """The starts of the jobs, by row; what was said; what each job ran on, as a mask; the cost."""

    starts: list[int]
    said: list[Heard]
    allocations: dict[int, int]
    time: SchedulerTime


def of_pybatsim(scheduler: str, jobs: JobTable, processors: int = CPUS) -> Asked:
    """What a scheduler of pybatsim's, by name or file, does with the jobs on so many processors."""
    command = f"{PYBATSIM} {scheduler} -s {{endpoint}} -t 0 -v error"
    reached = Scheduler(command, "", 600.0)
    conversation, policy = Conversation("tests/pool", reached), Batsim(reached)
    said: list[Heard] = []

    def converse(message: dict[str, Any]) -> Any:
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
        said.append(Heard(now, events, started))
        return answer

    policy.connect(converse)
    try:
        starts, _, _ = schedule(policy, jobs, processors)
        conversation.end()
    finally:
        conversation.close()
    allocations = dict(one for heard in said for one in heard.started)
    return Asked(starts, said, allocations, conversation.time)


def _row(event: dict[str, Any]) -> int:
    return int(event["data"]["job_id"].partition("!")[2])


def main() -> None:
    """Print a few lines for the scheduler."""
    parser = argparse.ArgumentParser(prog="scripts/schedules")
    parser.add_argument("scheduler", help="a scheduler of pybatsim, by its name or file")
    parser.add_argument("ours", choices=("fcfs", "easy"))
    parser.add_argument("scenario", help="one VO with one pool, whose jobs enter it")
    parser.add_argument("--jobs", type=int, default=10_000, help="only the first so many")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    given = parser.parse_args()
    jobs, processors = _asked_for(given.scenario, given.settings, given.jobs)
    policy, decide = {"fcfs": (fcfs, in_turn), "easy": (easy, backfilling)}[given.ours]
    own, _, _ = schedule(policy(), jobs, processors)
    scheduler = given.scheduler
    if Path(scheduler).exists():
        scheduler = str(Path(scheduler).resolve())
    began = process_time()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # It writes a log where it is started.
        asked = of_pybatsim(scheduler, jobs, processors)
        os.chdir("/")
    spent, used = process_time() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = np.array(asked.starts)
    differ = int((theirs != own).sum())
    submit = jobs.submit_us
    waits = [float((starts - submit).mean() / 1e6) for starts in (theirs, np.array(own))]
    print(f"{Path(scheduler).stem}: {len(jobs)} jobs on {processors} processors")
    print(f"  {asked.time.messages} messages; {used.ru_utime + used.ru_stime:.1f} s of CPU there, "
          f"{spent:.1f} s here")  # fmt: skip
    print(f"  {differ} jobs start at other times than under {given.ours}; mean wait "
          f"{waits[0]:.1f} s, here {waits[1]:.1f} s")  # fmt: skip
    found = list(reasons(jobs, processors, asked.said, decide))
    print(f"  {len(found)} decisions differ from ours in the same state, all others do not:")
    for reason, count in count_reasons(iter(found)).most_common():
        print(f"    {count:6d}  {reason}")


def _asked_for(file: str, settings: list[str], count: int) -> tuple[JobTable, int]:
    """The first jobs of the scenario's only VO, and the processors of its pool."""
    scenario = load_scenario(file, tuple(settings))
    grid = realize(scenario, source_of(file))[0]
    (vo,) = grid.vos
    (table,) = grid.direct
    if table is None:
        raise SystemExit(f"{file}: its jobs do not enter the cluster itself (entry_point: cluster)")
    return table.take(slice(count)), vo.clusters[0].machines[0].cpus


if __name__ == "__main__":
    main()
