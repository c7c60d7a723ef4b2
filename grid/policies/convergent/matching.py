"""Matching of jobs and machines, one job a machine (C07 5): MIS, MFS and IMFS.

All of them take the job-machine matrix, shape (jobs, machines), -inf where a job cannot run, and
give the machine of each job, -1 for none.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.policies.convergent.greedy import match_greedily

ALL = 1 << 62
"""As many paths as gain something."""
GAIN = 1e-9
"""Relative to the largest priority: an exchange that gains less is not made."""


def iterative_search(priority: Floats) -> Ints:
    """MIS: the highest priority whose job and machine are both still free, again and again."""
    jobs, machines = priority.shape
    one, none = np.ones(jobs, np.int64), np.zeros(jobs, np.int64)
    machine_of: Ints = match_greedily(
        priority, -np.inf, one, none, np.ones(machines, np.int64), np.zeros(0, np.int64)
    )
    return machine_of


def flow_search(priority: Floats) -> Ints:
    """MFS: as many pairs as can be, and among such matchings one of the largest sum of priorities.

    The paper grows the matching along longest paths, in O(N^4), see `path_flow_search`. The engine
    here is scipy's assignment, in O(N^3): a pair is worth its priority above the lowest plus more
    than all others together could differ by, so that a pair more always wins.
    """
    from scipy.optimize import linear_sum_assignment

    machine_of = np.full(len(priority), -1)
    jobs, machines = linear_sum_assignment(_costs(priority))
    real = priority[jobs, machines] > -np.inf
    machine_of[jobs[real]] = machines[real]
    return machine_of


@kernel()
def _costs(priority: Floats) -> Floats:
    """What `flow_search` has pairs be worth, negative; nothing where a job cannot run."""
    jobs, machines = priority.shape
    lowest, highest = np.inf, -np.inf
    for job in range(jobs):
        for m in range(machines):
            value = priority[job, m]
            lowest = min(lowest, value if value > -np.inf else np.inf)
            highest = max(highest, value)
    pair = (highest - lowest) * min(jobs, machines) + 1.0
    costs = np.zeros((jobs, machines))
    for job in range(jobs):
        for m in range(machines):
            if priority[job, m] > -np.inf:
                costs[job, m] = -(priority[job, m] - lowest + pair)
    return costs


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


@inner()
def _leads_over(m: int, other: int, parent: Ints, machine_of: Ints) -> bool:
    """Whether the path that ends at machine `m` has machine `other` on it."""
    while m >= 0:
        if m == other:
            return True
        m = machine_of[parent[m]]
    return False


@inner()
def _shift(end: int, parent: Ints, machine_of: Ints, job_on: Ints) -> None:
    """Every job on the path that ends at machine `end` takes the machine it leads to."""
    m = end
    while m >= 0:
        job = parent[m]
        before = machine_of[job]
        machine_of[job], job_on[m] = m, job
        m = before
