"""CPU numbers of jobs, from the machine of each job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grid.model.arrays import Bools, SomeInts
from grid.model.compiled import kernel
from grid.model.job_results import JobResults
from grid.results.machines import (
    Directory,
    machine_cpus,
    machine_numbers,
    of_clusters,
    ran,
    starts_and_ends,
)

_BLOCK = 64
"""CPUs that are skipped together if none of them is free."""


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
    """CPU numbers for every job that was not interrupted, from the machine of each job.

    The CPUs of a machine are equivalent, so any numbering without conflicts is valid: each job
    takes the lowest free ones. A gang counts as running on all its CPUs until its last task ends.
    None for a job that was preempted or restarted (the table does not say when it held CPUs), if a
    machine has fewer free CPUs than the table requires, and in clusters with an external scheduler.
    """
    outcome = results.outcome
    external = (one.external_scheduler for one in directory.clusters)
    numbered = ran(results) & (outcome.preemptions == 0) & (outcome.restarts == 0)
    numbered &= ~of_clusters(external, results.placement.cluster)
    events = starts_and_ends(results, numbered & (outcome.end_us > outcome.start_us))
    machines = machine_numbers(results, directory).astype(events.dtype)
    processors, cpus = results.processors.astype(events.dtype), machine_cpus(directory)
    first_cpu = np.concatenate([[0], np.cumsum(cpus)]).astype(np.int64)
    first_block = np.concatenate([[0], np.cumsum(-(-cpus // _BLOCK))]).astype(np.int64)
    is_free = np.ones(first_cpu[-1], np.bool_)
    free = np.full(first_block[-1], _BLOCK, np.int64)
    rest = cpus % _BLOCK
    free[first_block[1:][rest > 0] - 1] = rest[rest > 0]
    begin, count = np.zeros(len(machines), np.int64), np.zeros(len(machines), np.int32)
    first, last = _number_cpus(
        events, machines, processors, first_cpu, first_block, is_free, free, begin, count
    )
    return CpuIntervals(begin, count, first, last)


@kernel()
def _number_cpus(
    events: SomeInts,
    machines: SomeInts,
    processors: SomeInts,
    first_cpu: SomeInts,
    first_block: SomeInts,
    is_free: Bools,
    free: SomeInts,
    begin: SomeInts,
    count: SomeInts,
) -> tuple[SomeInts, SomeInts]:
    """`first` and `last` of `CpuIntervals`; fills `begin` and `count`. `free` is by block."""
    first = np.empty(max(len(events) // 2, 16), np.int32)
    last = np.empty(max(len(events) // 2, 16), np.int32)
    used = 0
    for event in events:
        row = event if event >= 0 else ~event
        machine = machines[row]
        base, block = first_cpu[machine], first_block[machine]
        if event < 0:
            for interval in range(begin[row], begin[row] + count[row]):
                for cpu in range(first[interval], last[interval] + 1):
                    is_free[cpu] = True
                    free[block + (cpu - base) // _BLOCK] += 1
            continue
        wanted, begin[row] = processors[row], used
        if free[block : first_block[machine + 1]].sum() < wanted:
            continue
        if used + wanted > len(first):
            first = np.concatenate((first, np.empty(len(first) + wanted, np.int32)))
            last = np.concatenate((last, np.empty(len(last) + wanted, np.int32)))
        while wanted > 0:
            if free[block] > 0:
                start = base + (block - first_block[machine]) * _BLOCK
                for cpu in range(start, min(start + _BLOCK, first_cpu[machine + 1])):
                    if is_free[cpu] and wanted > 0:
                        is_free[cpu] = False
                        free[block] -= 1
                        wanted -= 1
                        if used > begin[row] and last[used - 1] == cpu - 1:
                            last[used - 1] = cpu
                        else:
                            first[used] = last[used] = cpu
                            used += 1
            block += 1
        count[row] = used - begin[row]
    return first[:used], last[:used]
