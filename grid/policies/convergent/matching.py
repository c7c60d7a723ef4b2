"""Matchings of jobs and machines over the job-machine matrix, shape (jobs, machines).

-inf is where a job cannot run; results are the machine of each job, -1 for none.

CS 2.0 matches greedily (CS2 IV.B): the pair of highest priority that still fits, repeatedly. A pair
fits while its machine has the CPUs, and for each of the job's licenses either holds a copy already
or can take one. Plans only take CPUs and copies, so a pair that does not fit once never fits again.
So nothing is sorted: each job has its best pair, a heap has the best of those, and only a job whose
pair does not fit looks for its best one that does. The plan is that of a sorted list of all pairs,
equal priorities in the order of the matrix. Priorities are floats, or classes of 1 to 1024 in a
matrix of small integers (`classify`); the value `nothing` marks a pair that cannot be.

C07 5 matches one job per machine: MIS, MFS and IMFS.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined, inner, kernel
from grid.policies.fitting import most_of, resources_fit, take_resources

Priorities = npt.NDArray[Any]
"""Shape (jobs, machines)."""

CLASSES = 1024
NO_CLASS = 0
ALL = 1 << 62
"""As many paths as gain something."""
GAIN = 1e-9
"""Relative to the largest priority: an exchange that gains less is not made."""


class Limits(NamedTuple):
    """What jobs request, by row of the matrix, and what is left to them, which a matching uses up.

    `resources` has the shape (resources, jobs) and `amounts` (resources, machines); all machines
    share the last `shared` resources.
    """

    processors: Ints
    licenses: Ints
    resources: Floats
    shared: int
    capacity: Ints
    copies: Ints
    amounts: Floats


@kernel()
def match_greedily(priority: Priorities, nothing: float, limits: Limits) -> Ints:
    """The machine of each job, -1 for none."""
    jobs, machines = priority.shape
    processors, licenses, resources, _, capacity, copies, amounts = limits
    held, available = np.zeros(machines, np.int64), _available(copies)
    widest, fewest_asked = most_of(capacity), min(processors) if jobs > 0 else 0
    fitting = np.empty(machines, priority.dtype)
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
        if _fits(job, m, held, available, limits):
            machine_of[job] = m
            is_widest = capacity[m] == widest
            available = _take(job, m, held, limits)
            if is_widest:
                widest = most_of(capacity)
            m = -1
        elif processors[job] > widest:
            m = -1
        else:
            missing = licenses[job] & ~available
            for other in range(machines):
                fits = (capacity[other] >= processors[job]) & (missing & ~held[other] == 0)
                if len(amounts):
                    fits &= resources_fit(job, other, resources, amounts, 0, len(amounts))
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
def match_in_order(order: Ints, limits: Limits) -> Ints:
    """The same from a list of pairs (job * machines + machine), as the paper has it."""
    machines = len(limits.capacity)
    held, available = np.zeros(machines, np.int64), _available(limits.copies)
    machine_of = np.full(len(limits.processors), -1)
    for pair in order:
        job, m = pair // machines, pair % machines
        if machine_of[job] < 0 and _fits(job, m, held, available, limits):
            machine_of[job] = m
            available = _take(job, m, held, limits)
    return machine_of


@inlined
def _fits(job: int, m: int, held: Ints, available: int, limits: Limits) -> bool:
    """Whether the pair fits, with the licenses that the machine has `held` or are `available`."""
    resources, amounts = limits.resources, limits.amounts
    return bool(
        limits.capacity[m] >= limits.processors[job]
        and limits.licenses[job] & ~(held[m] | available) == 0
        and resources_fit(job, m, resources, amounts, 0, len(amounts))
    )


@inlined
def _take(job: int, m: int, held: Ints, limits: Limits) -> int:
    """The job goes to the machine; the licenses that have a free copy afterwards."""
    copies = limits.copies
    limits.capacity[m] -= limits.processors[job]
    take_resources(job, m, 1, limits.resources, limits.amounts, limits.shared)
    new = limits.licenses[job] & ~held[m]
    for license_ in range(len(copies)):
        copies[license_] -= new >> license_ & 1
    held[m] |= new
    return _available(copies)


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


def in_order(priority: Priorities, nothing: float) -> Ints:
    """Possible pairs by falling priority or class, then in the order of the matrix.

    For classes, which NumPy sorts by radix, this is the paper's counting sort.
    """
    order: Ints = np.argsort(-priority.ravel(), kind="stable")
    return order[: np.count_nonzero(priority > nothing)]


@kernel()
def quicksort(priority: Floats) -> Ints:
    """Eligible pairs by falling priority, equal ones in any order: the paper's Quicksort."""
    values = priority.ravel()
    eligible = np.flatnonzero(values > -np.inf)
    # In compiled code argsort is a quicksort.
    order: Ints = eligible[np.argsort(-values[eligible])]
    return order


@inner(allocates=False)
def _available(copies: Ints) -> int:
    """Bit mask of the licenses that have a free copy."""
    mask = 0
    for license_ in range(len(copies)):
        if copies[license_] > 0:
            mask |= 1 << license_
    return mask


@inner(allocates=False)
def _best_of(priorities: Priorities, nothing: float) -> int:
    """The first of the machines of highest priority, -1 if all are ineligible.

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


@inner(allocates=False)
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


@inner(allocates=False)
def _before(job: int, other: int, key: Priorities) -> bool:
    if key[job] != key[other]:
        return bool(key[job] > key[other])
    return job < other


# One job a machine (C07 5)


def iterative_search(priority: Floats) -> Ints:
    """MIS: the highest priority whose job and machine are both free, repeatedly."""
    jobs, machines = priority.shape
    one, none = np.ones(jobs, np.int64), np.zeros(jobs, np.int64)
    places, copies = np.ones(machines, np.int64), np.zeros(0, np.int64)
    resources, amounts = np.zeros((0, jobs)), np.zeros((0, machines))
    limits = Limits(one, none, resources, 0, places, copies, amounts)
    machine_of: Ints = match_greedily(priority, -np.inf, limits)
    return machine_of


def flow_search(priority: Floats) -> Ints:
    """MFS: the most pairs, and among such matchings one with the largest sum of priorities.

    The paper grows the matching along longest paths, in O(N^4), see `path_flow_search`. The engine
    here is scipy's assignment, in O(N^3): a pair is worth its priority above the lowest plus more
    than all others together could differ by, so that a pair more always wins.
    """
    from scipy.optimize import linear_sum_assignment

    machine_of, able = np.full(len(priority), -1), priority > -np.inf
    if not able.any():
        return machine_of
    lowest, highest = priority[able].min(), priority[able].max()
    pair = (highest - lowest) * min(priority.shape) + 1.0
    jobs, machines = linear_sum_assignment(np.where(able, -(priority - lowest + pair), 0.0))
    real = priority[jobs, machines] > -np.inf
    machine_of[jobs[real]] = machines[real]
    return machine_of


def path_flow_search(priority: Floats) -> Ints:
    """MFS by the paper's own way: from no pair, the longest path to one more pair each time.

    A matching that is a heaviest one of its size has no cycle of positive weight, so that the
    longest path is found, and the next matching is a heaviest one of its size again.
    """
    nothing = np.full(len(priority), -1)
    machine_of: Ints = incremental_flow_search(priority, nothing, 0)
    return machine_of


@kernel()
def incremental_flow_search(
    priority: Floats, machine_of: Ints, exchanges: int, paths: int = ALL
) -> Ints:
    """IMFS: the matching `machine_of`, what of it is possible still, made better path by path.

    A path begins at a job without a machine, takes a machine, whose job takes another one, and so
    on. An odd path ends at a machine without a job: one more pair. They come first, the one of
    largest gain each time, until there is none; the matching then has as many pairs as any. An
    even path ends with a job that loses its machine: at most `exchanges` of them are made, again
    the best each time, as long as they raise the sum of priorities.

    Paths come from a longest path tree whose labels are corrected until nothing changes, but
    never so that a path would meet itself: unlike for MFS, where the matching is a heaviest one of
    its size at any time, there may be cycles of positive weight. So IMFS only comes close to MFS.
    """
    jobs, machines = priority.shape
    machine_of = machine_of.copy()
    job_on = np.full(machines, -1)
    least = 0.0
    for job in range(jobs):
        m = machine_of[job]
        if m >= 0 and priority[job, m] > -np.inf:
            job_on[m] = job
            least = max(least, abs(priority[job, m]))
        else:
            machine_of[job] = -1
    while paths > 0:
        paths -= 1
        label, parent = _longest_paths(priority, machine_of, job_on)
        end, odd, best = -1, False, -np.inf
        for m in range(machines):
            if label[m] == -np.inf:
                continue
            free = job_on[m] < 0
            gain = label[m] if free else label[m] - priority[job_on[m], m]
            if (free and not odd) or (free == odd and gain > best):
                end, odd, best = m, free, gain
        if end < 0 or (not odd and (best <= GAIN * max(least, 1.0) or exchanges == 0)):
            return machine_of
        if not odd:
            exchanges -= 1
            machine_of[job_on[end]] = -1
        _shift(end, parent, machine_of, job_on)
    return machine_of


@inner()
def _longest_paths(priority: Floats, machine_of: Ints, job_on: Ints) -> tuple[Floats, Ints]:
    """By machine: the gain of the best path found that ends there, -inf if none does, and the job
    that takes the machine on it.
    """
    jobs, machines = priority.shape
    label = np.full(machines, -np.inf)
    parent = np.full(machines, -1)
    for job in range(jobs):
        if machine_of[job] < 0:
            for m in range(machines):
                if priority[job, m] > label[m]:
                    label[m], parent[m] = priority[job, m], job
    changed = label > -np.inf
    # A path has at most as many machines as there are: more rounds would follow cycles.
    for _ in range(machines):
        again = np.zeros(machines, np.bool_)
        for m in range(machines):
            job = job_on[m]
            if not changed[m] or job < 0:
                continue
            base = label[m] - priority[job, m]
            for other in range(machines):
                gain = base + priority[job, other]
                if gain > label[other] and not _leads_over(m, other, parent, machine_of):
                    label[other], parent[other] = gain, job
                    again[other] = True
        changed = again
        if not changed.any():
            break
    return label, parent


@inner(allocates=False)
def _leads_over(m: int, other: int, parent: Ints, machine_of: Ints) -> bool:
    """Whether the path that ends at machine `m` has machine `other` on it."""
    while m >= 0:
        if m == other:
            return True
        m = machine_of[parent[m]]
    return False


@inner(allocates=False)
def _shift(end: int, parent: Ints, machine_of: Ints, job_on: Ints) -> None:
    """Every job on the path that ends at machine `end` takes the machine it leads to."""
    m = end
    while m >= 0:
        job = parent[m]
        before = machine_of[job]
        machine_of[job], job_on[m] = m, job
        m = before
