"""Gang policies: AFCFS and LGFS over processors with a queue each, with and without migration.

GM (Pinto et al., ICNS 2014), sections III to V; what the names mean is Karatza's (Simulation
Modelling Practice and Theory 17, 2009). All decisions are here, as pure functions of the columns
of `gang_view`; the cluster carries them out.

- AFCFS starts, in order of arrival, every gang whose processors are all idle: small ones behind a
  large one that is blocked, too. LGFS does the same in order of falling size.
- What migrates is chosen by GM's four steps (V-A). Aging is not defined there: here, a gang at
  the head of a queue is passed by at most `aging` migrated tasks, and then its processor takes no
  more of them until it has started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from grid.model.time import SECOND_US, Time, from_seconds
from grid.policies.gang_view import NONE, Flags, Gangs, Ints, Processors, Tasks

LARGEST_GANG = 2**22
_SERIALS = 2**40


def afcfs_rank(size: int, serial: int) -> int:
    """Adapted first come first served: in order of arrival."""
    del size
    return serial


def lgfs_rank(size: int, serial: int) -> int:
    """Largest gang first served: by falling size, then in order of arrival."""
    return (LARGEST_GANG - size) * _SERIALS + serial


RANKS: dict[str, Callable[[int, int], int]] = {"afcfs": afcfs_rank, "lgfs": lgfs_rank}
"""By name of the policy: (size, serial) to the gang's place in the policy's order."""


@dataclass(frozen=True, slots=True)
class GangPolicy:
    """A gang policy with its settings; one serves any number of clusters, it remembers nothing.

    `adaptive` is GM's aLD: queues are compared with the running task counted (Eq. 3). The two
    overheads are how long the tasks of a gang that migrates are under way. `priority_jobs` makes
    every job of one task a priority job, of which at most `priority_limit` start in any second
    (GM's time unit) of one cluster. A dispatcher asks others to take a gang over at most every
    `ask_every_us`; an answer that is not there within `answer_within_us` is taken for lost.
    """

    name: str
    adaptive: bool = False
    local_migration: bool = False
    external_migration: bool = False
    local_overhead_us: Time = SECOND_US
    external_overhead_us: Time = 10 * SECOND_US
    aging: int = 8
    priority_jobs: bool = True
    priority_limit: int = 64
    ask_every_us: Time = 60 * SECOND_US
    answer_within_us: Time = 60 * SECOND_US

    def rank(self, size: int, serial: int) -> int:
        """The place of a gang in the policy's order; lower is earlier."""
        return RANKS[self.name](size, serial)


def gang_policy(name: str, settings: Mapping[str, Any]) -> GangPolicy:
    """The policy `name` with the settings of a scenario. Raises ValueError for a wrong one.

    Settings: `dispatch` (ld, ald), `migration` (none, local, full), `local_migration_s`,
    `external_migration_s`, `aging`, `priority_jobs`, `priority_limit`, `ask_every_s`,
    `answer_within_s`.
    """
    left = dict(settings)
    migration = _one_of(left, "migration", ("none", "local", "full"))
    policy = GangPolicy(
        name,
        adaptive=_one_of(left, "dispatch", ("ld", "ald")) == "ald",
        local_migration=migration != "none",
        external_migration=migration == "full",
        local_overhead_us=_seconds(left, "local_migration_s", 1.0, 0.0),
        external_overhead_us=_seconds(left, "external_migration_s", 10.0, 0.0),
        aging=_whole(left, "aging", 8, 0),
        priority_jobs=_truth(left, "priority_jobs"),
        priority_limit=_whole(left, "priority_limit", 64, 1),
        ask_every_us=_seconds(left, "ask_every_s", 60.0, 1e-6),
        answer_within_us=_seconds(left, "answer_within_s", 60.0, 1e-6),
    )
    if left:
        raise ValueError(f"no such setting of {name}: {sorted(left)[0]}")
    return policy


def _one_of(settings: dict[str, Any], name: str, values: tuple[str, ...]) -> str:
    found = settings.pop(name, values[0])
    if found not in values:
        raise ValueError(f"{name}: found {found!r}, expected one of {', '.join(values)}")
    return str(found)


def _truth(settings: dict[str, Any], name: str) -> bool:
    found = settings.pop(name, True)
    if not isinstance(found, bool):
        raise ValueError(f"{name}: found {found!r}, expected true or false")
    return found


def _whole(settings: dict[str, Any], name: str, default: int, least: int) -> int:
    found = settings.pop(name, default)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= 2**31:
        raise ValueError(f"{name}: found {found!r}, expected a whole number of {least} or more")
    return found


def _seconds(settings: dict[str, Any], name: str, default: float, least: float) -> Time:
    found = settings.pop(name, default)
    if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= 1e9:
        raise ValueError(f"{name}: found {found!r}, expected seconds, {least:g} or more")
    return from_seconds(found)


@njit(cache=True)
def shortest_queues(load: Ints, eligible: Flags, first: int, wanted: int) -> Ints:
    """Join the shortest queue: the `wanted` eligible processors of least load, or all there are.

    Among equals, the first ones from `first` on, around the end. A paper's JSQ breaks ties at
    random; a `first` that goes round is the same without chance. `load` and `eligible` have shape
    (processors,); the result has shape (up to `wanted`,).
    """
    count = len(load)
    longest = 0
    for p in range(count):
        if eligible[p] and load[p] > longest:
            longest = load[p]
    of_load = np.zeros(longest + 1, np.int64)
    for p in range(count):
        if eligible[p]:
            of_load[load[p]] += 1
    # All queues shorter than `limit` are taken, and `left` of those that are as long.
    left, limit = wanted, 0
    while limit <= longest and of_load[limit] <= left:
        left -= of_load[limit]
        limit += 1
    chosen = np.empty(min(wanted, count), np.int64)
    taken = 0
    for step in range(count):
        p = first + step
        if p >= count:
            p -= count
        if not eligible[p] or load[p] > limit or (load[p] == limit and left == 0):
            continue
        if load[p] == limit:
            left -= 1
        chosen[taken] = p
        taken += 1
        if taken == wanted:
            break
    return chosen[:taken]


@njit(cache=True)
def queue_loads(processors: Processors, adaptive: bool) -> Ints:
    """What JSQ compares: the queue of each processor (LD), with `adaptive` Eq. 3 (aLD)."""
    load = processors.waiting.copy()
    if adaptive:
        for p in range(len(load)):
            if processors.task[p] != NONE:
                load[p] += 1
    return load


@njit(cache=True)
def processor_not_idle(processors: Processors, gangs: Gangs, tasks: Tasks, gang: int) -> int:
    """A processor for which a queued gang has to wait; NONE if all of its processors are idle."""
    task = gangs.first_task[gang]
    while task != NONE:
        p: int = tasks.processor[task]
        if processors.idle_place[p] == NONE:
            return p
        task = tasks.sibling[task]
    return NONE


@njit(cache=True)
def processor_for_priority(processors: Processors, gangs: Gangs, tasks: Tasks, first: int) -> int:
    """Where a priority job runs at once; NONE where every processor runs one already.

    Disruption only where all processors are busy (GM III): an idle one first, then one that is
    kept for a gang and runs nothing, then one whose gang is interrupted. Within each kind JSQ, and
    among equals the first from `first` on.
    """
    count = len(processors.task)
    best, best_kind, best_load = NONE, 3, np.int64(0)
    for step in range(count):
        p = first + step
        if p >= count:
            p -= count
        task = processors.task[p]
        if task == NONE:
            kind = 0 if processors.keeper[p] == NONE else 1
        elif gangs.priority[tasks.gang[task]]:
            continue
        else:
            kind = 2
        load = processors.waiting[p]
        if kind < best_kind or (kind == best_kind and load < best_load):
            best, best_kind, best_load = p, kind, load
    return best


@njit(cache=True)
def takes_migrated(processors: Processors, gangs: Gangs, tasks: Tasks, p: int, aging: int) -> bool:
    """Whether an idle processor takes a migrated task: the head of its queue was not passed by
    too many."""
    head = processors.head[p]
    return bool(head == NONE or gangs.overtaken[tasks.gang[head]] < aging)


@njit(cache=True)
def gang_to_migrate(
    processors: Processors, gangs: Gangs, tasks: Tasks, idle: int, aging: int, search: int
) -> int:
    """The gang that local migration starts next; NONE.

    GM V-A: of the gangs with a task at the head of the queue of an idle processor (step 2) and no
    more tasks than there are idle processors (3), the one with fewest tasks to move (4), then the
    first in the policy's order. `idle` is how many processors are idle, `search` a number that no
    earlier search had.
    """
    takers = 0
    for place in range(idle):
        takers += takes_migrated(processors, gangs, tasks, processors.idle[place], aging)
    best, fewest = NONE, np.int64(0)
    for place in range(idle):
        head = processors.head[processors.idle[place]]
        if head == NONE:
            continue
        gang = tasks.gang[head]
        if gangs.seen[gang] == search or gangs.size[gang] > idle:
            continue
        gangs.seen[gang] = search
        moving, own_takers = np.int64(0), np.int64(0)
        task = gangs.first_task[gang]
        while task != NONE:
            p = tasks.processor[task]
            if processors.idle_place[p] == NONE:
                moving += 1
            elif takes_migrated(processors, gangs, tasks, p, aging):
                own_takers += 1
            task = tasks.sibling[task]
        if moving > takers - own_takers:
            continue
        earlier = best == NONE or moving < fewest
        if earlier or (moving == fewest and gangs.rank[gang] < gangs.rank[best]):
            best, fewest = gang, moving
    return best


@njit(cache=True)
def destinations(
    processors: Processors,
    gangs: Gangs,
    tasks: Tasks,
    gang: int,
    wanted: int,
    first: int,
    aging: int,
) -> Ints:
    """Idle processors for `wanted` migrated tasks of `gang` (NONE: of another cluster's), fewer
    if there are not so many: none that has a task of the gang, JSQ among the others."""
    eligible = processors.idle_place != NONE
    for p in range(len(eligible)):
        if eligible[p] and not takes_migrated(processors, gangs, tasks, p, aging):
            eligible[p] = False
    task = gangs.first_task[gang] if gang != NONE else NONE
    while task != NONE:
        eligible[tasks.processor[task]] = False
        task = tasks.sibling[task]
    return shortest_queues(processors.waiting, eligible, first, wanted)


@njit(cache=True)
def gang_to_send(processors: Processors, gangs: Gangs, tasks: Tasks, largest: int) -> int:
    """The gang that external migration tries to send away next; NONE.

    Of the gangs at the head of a queue, of at most `largest` tasks, the one with fewest tasks,
    since all of them move (GM V-A, step 4), then the first in the policy's order. The paper looks
    at the queues of idle processors alone; here a cluster that is all busy may send gangs to one
    that has idle processors, which is what external migration is for.
    """
    best = NONE
    for p in range(len(processors.head)):
        head = processors.head[p]
        if head == NONE:
            continue
        gang = tasks.gang[head]
        size = gangs.size[gang]
        if size > largest or gang == best:
            continue
        fewer = best == NONE or size < gangs.size[best]
        if fewer or (size == gangs.size[best] and gangs.rank[gang] < gangs.rank[best]):
            best = gang
    return best
