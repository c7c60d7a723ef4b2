"""Greedy matching (CS2 IV.B): the pair of highest priority that still fits, again and again.

A pair fits while its machine has the CPUs, and for each of the job's licenses either holds a copy
already or can take one. Plans only take CPUs and copies, so a pair that once does not fit never
fits again. That is why nothing need be sorted: each job knows its best pair, a heap knows the best
of those, and only a job whose pair turns out not to fit looks for its best one that does. The
plan is the one that a sorted list of all pairs gives, equal priorities in the order of the matrix.

Priorities are floats, or classes of 1 to 1024 in a matrix of small integers (`classify`); the
value `nothing`, below all others, marks a pair that is out of the question.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel

Priorities = npt.NDArray[Any]
"""Shape (jobs, machines)."""

CLASSES = 1024
NO_CLASS = 0


@kernel()
def match_greedily(
    priority: Priorities,
    nothing: float,
    processors: Ints,
    licenses: Ints,
    capacity: Ints,
    copies: Ints,
) -> Ints:
    """The machine of each job, -1 for none. The two last arguments are used up."""
    jobs = len(priority)
    held = np.zeros(len(capacity), np.int64)
    available = _available(copies)
    widest, fewest_asked = _most(capacity), min(processors) if jobs > 0 else 0
    fitting = np.empty(len(capacity), priority.dtype)
    best, key = np.empty(jobs, np.int64), np.empty(jobs, priority.dtype)
    machine_of = np.full(jobs, -1)
    heap, size = np.empty(jobs, np.int64), 0
    for job in range(jobs):
        found = _best_of(priority[job], nothing)
        if found >= 0:
            best[job], key[job] = found, priority[job, found]
            heap[size] = job
            size += 1
    for position in range(size // 2 - 1, -1, -1):
        sift_down(heap, size, position, key)
    while size > 0 and widest >= fewest_asked:
        job = heap[0]
        m = best[job]
        if capacity[m] >= processors[job] and licenses[job] & ~(held[m] | available) == 0:
            machine_of[job] = m
            is_widest = capacity[m] == widest
            capacity[m] -= processors[job]
            if is_widest:
                widest = _most(capacity)
            _take_copies(licenses[job] & ~held[m], copies)
            available = _available(copies)
            held[m] |= licenses[job]
            m = -1
        elif processors[job] > widest:
            m = -1
        else:
            missing = licenses[job] & ~available
            for other in range(len(capacity)):
                fits = (capacity[other] >= processors[job]) & (missing & ~held[other] == 0)
                fitting[other] = priority[job, other] if fits else nothing
            m = _best_of(fitting, nothing)
        if m >= 0:
            best[job], key[job] = m, priority[job, m]
        else:
            size -= 1
            heap[0] = heap[size]
        sift_down(heap, size, 0, key)
    return machine_of


@kernel()
def match_in_order(
    order: Ints,
    processors: Ints,
    licenses: Ints,
    capacity: Ints,
    copies: Ints,
) -> Ints:
    """The same from a list of pairs (job * machines + machine), as the paper has it."""
    machines = len(capacity)
    held = np.zeros(machines, np.int64)
    machine_of = np.full(len(processors), -1)
    available = _available(copies)
    for pair in order:
        job, m = pair // machines, pair % machines
        if machine_of[job] >= 0 or capacity[m] < processors[job]:
            continue
        if licenses[job] & ~(held[m] | available) != 0:
            continue
        machine_of[job] = m
        capacity[m] -= processors[job]
        _take_copies(licenses[job] & ~held[m], copies)
        available = _available(copies)
        held[m] |= licenses[job]
    return machine_of


@kernel()
def classify(priority: Floats) -> npt.NDArray[np.int16]:
    """Priorities as classes: 1 for the lowest of the matrix, 1024 for the highest, 0 for -inf.

    The paper says only that priorities become "integers in the range [1, 1024]". They are spread
    over the range that occurs, which tells more of them apart than the range that could occur.
    """
    jobs, machines = priority.shape
    lowest, highest = np.inf, -np.inf
    for row in range(jobs):
        for m in range(machines):
            value = priority[row, m]
            lowest = min(lowest, value if value > -np.inf else np.inf)
            highest = max(highest, value)
    scale = (CLASSES - 1) / (highest - lowest) if highest > lowest else 1.0
    classes = np.empty((jobs, machines), np.int16)
    for row in range(jobs):
        for m in range(machines):
            step = max((priority[row, m] - lowest) * scale, -1.0)
            classes[row, m] = NO_CLASS if step < 0.0 else np.int16(step + 1.5)
    return classes


@kernel()
def counting_sort(classes: npt.NDArray[np.int16]) -> Ints:
    """Pairs by falling class, then in the order of the matrix; those without a class left out."""
    values = classes.ravel()
    position = np.zeros(CLASSES + 1, np.int64)
    for value in values:
        position[value] += 1
    total = 0
    for level in range(CLASSES, NO_CLASS, -1):
        count = position[level]
        position[level] = total
        total += count
    order = np.empty(total, np.int64)
    for pair, value in enumerate(values):
        if value != NO_CLASS:
            order[position[value]] = pair
            position[value] += 1
    return order


@kernel()
def quicksort(priority: Floats) -> Ints:
    """Eligible pairs by falling priority, equal ones in any order: the paper's Quicksort."""
    values = priority.ravel()
    eligible = np.flatnonzero(values > -np.inf)
    # In compiled code argsort is a quicksort.
    order: Ints = eligible[np.argsort(-values[eligible])]
    return order


@inner()
def _available(copies: Ints) -> int:
    """Bit mask of the licenses of which a copy is left."""
    mask = 0
    for license_ in range(len(copies)):
        if copies[license_] > 0:
            mask |= 1 << license_
    return mask


@inner()
def _take_copies(licenses: int, copies: Ints) -> None:
    for license_ in range(len(copies)):
        copies[license_] -= licenses >> license_ & 1


@inner()
def _most(capacity: Ints) -> int:
    most = 0
    for cpus in capacity:
        most = max(most, cpus)
    return most


@inner()
def _best_of(priorities: Priorities, nothing: float) -> int:
    """The first of the machines of highest priority, -1 if all are out of the question.

    Four maxima at a time are what the processor has vector instructions for.
    """
    machines = len(priorities)
    whole = machines - machines % 4
    if machines == 0:
        return -1
    a = b = c = d = priorities[0]
    for m in range(0, whole, 4):
        a = priorities[m] if priorities[m] > a else a
        b = priorities[m + 1] if priorities[m + 1] > b else b
        c = priorities[m + 2] if priorities[m + 2] > c else c
        d = priorities[m + 3] if priorities[m + 3] > d else d
    for m in range(whole, machines):
        a = priorities[m] if priorities[m] > a else a
    best = max(a, b, c, d)
    if best > nothing:
        for m in range(machines):
            if priorities[m] == best:
                return m
    return -1


@inner()
def sift_down(heap: Ints, size: int, position: int, key: Priorities) -> None:
    """Make `heap` a heap again below `position`: highest key first, then lowest job."""
    if position >= size:
        return
    item = heap[position]
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[child + 1], heap[child], key):
            child += 1
        if not _before(heap[child], item, key):
            break
        heap[position] = heap[child]
        position = child
    heap[position] = item


@inner()
def _before(job: int, other: int, key: Priorities) -> bool:
    if key[job] != key[other]:
        return bool(key[job] > key[other])
    return job < other
