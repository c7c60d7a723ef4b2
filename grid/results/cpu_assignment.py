"""CPU numbers for jobs of which the table only knows the machine.

The CPUs of a machine are alike, so any numbering that gives no CPU to two jobs at once is
true. This one gives each job, at its start, the lowest CPUs of its machine that are free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grid.model.arrays import Bools, SomeInts
from grid.model.compiled import inner, kernel
from grid.model.job_results import JobResults
from grid.results.directory import Directory
from grid.results.occupancy import machine_cpus, machine_numbers, ran_once
from grid.results.starts_and_ends import starts_and_ends

_BLOCK = 64
"""CPUs that are looked at together: a block without a free CPU is passed over at once."""


@dataclass(frozen=True, slots=True, eq=False)
class CpuIntervals:
    """The intervals [first, last] of CPU numbers of each job, `count[job]` of them from `begin`.

    CPUs are numbered through the grid, in the order of its clusters and their machines.
    """

    begin: SomeInts
    count: SomeInts
    first: SomeInts
    last: SomeInts


def assign_cpus(results: JobResults, directory: Directory) -> CpuIntervals:
    """CPUs of every job that ran once and for some time.

    None for a job that did not run, nor for one that was preempted or restarted or ran in a cluster
    of gangs (the table does not say when it held CPUs), nor where a machine has fewer free CPUs
    than the table claims, nor in a cluster whose external scheduler allocates CPUs by number.
    """
    outcome = results.outcome
    # The last entry is for jobs that ran in no cluster.
    external = np.array([*(one.external_scheduler for one in directory.clusters), False])
    numbered = ran_once(results, directory) & ~external[results.placement.cluster]
    events = starts_and_ends(results, numbered & (outcome.end_us > outcome.start_us))
    cpus = machine_cpus(directory)
    first_cpu = np.concatenate([[0], np.cumsum(cpus)]).astype(np.int64)
    first_block = np.concatenate([[0], np.cumsum(-(-cpus // _BLOCK))]).astype(np.int64)
    small = events.dtype
    machines = machine_numbers(results, directory).astype(small)
    processors = results.processors.astype(small)
    return CpuIntervals(*number_cpus(events, machines, processors, first_cpu, first_block))


def number_cpus(
    events: SomeInts,
    machines: SomeInts,
    processors: SomeInts,
    first_cpu: SomeInts,
    first_block: SomeInts,
) -> tuple[SomeInts, SomeInts, SomeInts, SomeInts]:
    """`begin`, `count`, `first` and `last` of `CpuIntervals`, jobs starting and ending in turn.

    An end is written ~row in `events`. By row: `machines`, numbered through the grid, and
    `processors`; `first_cpu` and `first_block` are where those of each machine begin.
    """
    # Made here, for in compiled code they would cost more to compile than all the rest.
    free, free_in_block = np.ones(first_cpu[-1], np.bool_), np.zeros(first_block[-1], np.int64)
    begin, count = np.zeros(len(machines), np.int64), np.zeros(len(machines), np.int32)
    first, last = _number_cpus(
        events, machines, processors, first_cpu, first_block, free, free_in_block, begin, count
    )
    return begin, count, first, last


@kernel()
def _number_cpus(
    events: SomeInts,
    machines: SomeInts,
    processors: SomeInts,
    first_cpu: SomeInts,
    first_block: SomeInts,
    free: Bools,
    free_in_block: SomeInts,
    begin: SomeInts,
    count: SomeInts,
) -> tuple[SomeInts, SomeInts]:
    """`first` and `last`, with `begin` and `count` written where they were zeros."""
    for machine in range(len(first_cpu) - 1):
        for cpu in range(first_cpu[machine + 1] - first_cpu[machine]):
            free_in_block[first_block[machine] + cpu // _BLOCK] += 1
    first = np.empty(max(len(events) // 2, 16), np.int32)
    last = np.empty(max(len(events) // 2, 16), np.int32)
    used = 0
    for event in events:
        row = event if event >= 0 else ~event
        machine = machines[row]
        blocks = free_in_block[first_block[machine] : first_block[machine + 1]]
        flags, base = free[first_cpu[machine] : first_cpu[machine + 1]], first_cpu[machine]
        if event < 0:
            for interval in range(begin[row], begin[row] + count[row]):
                _release(flags, blocks, first[interval] - base, last[interval] - base)
        elif _has_free(blocks, processors[row]):
            if used + processors[row] > len(first):
                room = len(first) + len(first) // 2 + processors[row]
                first, last = _longer(first, room), _longer(last, room)
            begin[row] = used
            used = _take(flags, blocks, processors[row], base, first, last, used)
            count[row] = used - begin[row]
    return first[:used], last[:used]


@inner(allocates=False)
def _has_free(free_in_block: SomeInts, wanted: int) -> bool:
    """Whether so many CPUs are free."""
    total = 0
    for block in range(len(free_in_block)):
        total += free_in_block[block]
    return total >= wanted


@inner()
def _longer(column: SomeInts, room: int) -> SomeInts:
    longer = np.empty(room, column.dtype)
    for place in range(len(column)):
        longer[place] = column[place]
    return longer


@inner()
def _take(
    free: Bools,
    free_in_block: SomeInts,
    wanted: int,
    base: int,
    first: SomeInts,
    last: SomeInts,
    used: int,
) -> int:
    """Takes the `wanted` lowest free CPUs, writes their intervals from `used` on; the new end.

    CPUs are written as numbers of the grid, in which the machine's begin with `base`.
    """
    begin = used
    for block in range(len(free_in_block)):
        if free_in_block[block] == 0:
            continue
        for cpu in range(block * _BLOCK, min((block + 1) * _BLOCK, len(free))):
            if not free[cpu]:
                continue
            free[cpu] = False
            free_in_block[block] -= 1
            if used > begin and last[used - 1] == base + cpu - 1:
                last[used - 1] = base + cpu
            else:
                first[used] = base + cpu
                last[used] = base + cpu
                used += 1
            wanted -= 1
            if wanted == 0:
                return used
    return used


@inner()
def _release(free: Bools, free_in_block: SomeInts, first: int, last: int) -> None:
    for cpu in range(first, last + 1):
        free[cpu] = True
        free_in_block[cpu // _BLOCK] += 1
