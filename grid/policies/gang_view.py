"""What gang policies see of a cluster whose processors have a queue each, as columns.

Tuples of arrays, so that compiled functions take them as they are. Policies read and never write.
A *gang* is a parallel job; a priority job (`f` in GM) is a gang of one task and stands here too.
"""

from __future__ import annotations

from typing import NamedTuple

from grid.model.arrays import Bools, Floats, Ints

Flags = Bools

NONE = -1

# States of a gang.
FREE = 0
"""The slot holds no gang."""
ARRIVED = 1
"""Not yet assigned to queues, or not again since an outage."""
QUEUED = 2
"""Each task waits in the queue of its own processor."""
KEPT = 3
"""Its processors are kept for it: it migrates, or was interrupted."""
RUNNING = 4
RESERVED = 5
"""No gang yet: processors kept for one that another cluster may send."""
ENDED = 6


class Processors(NamedTuple):
    """The processors of one cluster, every column of shape (processors,)."""

    mips: Floats
    down: Flags
    """It runs nothing, is kept for nobody, has no queue, and is not idle either."""
    task: Ints
    """The task that runs there; NONE."""
    end_us: Ints
    """When that task ends; NEVER."""
    keeper: Ints
    """The gang that it is kept for, even while a priority job runs there; NONE."""
    waiting: Ints
    """Tasks that wait for it, those of its keeper included."""
    head: Ints
    """The first task of its queue; NONE. A task of its keeper is in no queue."""
    tail: Ints
    watcher: Ints
    """The first of the gangs that look at nothing until this processor is idle; NONE."""
    idle: Ints
    """The idle processors, that is, those that are up, run nothing and are kept for nobody: the
    first `number[IDLE]` places, in no particular order."""
    idle_place: Ints
    """Its place in `idle`; NONE."""


class Gangs(NamedTuple):
    """The gangs of one cluster by slot. A slot is used again after its gang has ended."""

    state: Ints
    priority: Flags
    checkpointable: Flags
    serial: Ints
    """Its order of arrival."""
    rank: Ints
    """Its place in the policy's order: lower is earlier. No two gangs have the same."""
    size: Ints
    first_task: Ints
    unfinished: Ints
    """How many of its tasks have not ended."""
    run_us: Floats
    """How long a task takes on a processor of one MIPS, at most as long as its estimate; of a gang
    that went on after an outage, what was left then."""
    start_us: Ints
    end_us: Ints
    held_us: Ints
    """The mean time that its tasks ran, up to the last outage that it met; when it has ended, of
    all."""
    lost_us: Ints
    """The part of it whose work outages have undone."""
    restarts: Ints
    ready_us: Ints
    """Of a kept gang: when its migration is over."""
    blocked: Ints
    """On how many of the processors that are kept for it a priority job runs."""
    overtaken: Ints
    """How many gangs that migrated have passed it at the head of a queue."""
    interruptions: Ints
    """By priority jobs and by outages."""
    watches: Ints
    """The processor that it watches; NONE. A queued gang always watches one that is not idle."""
    next_watcher: Ints
    last_watcher: Ints
    seen: Ints
    """The last search that came by."""


class Tasks(NamedTuple):
    """The tasks of all gangs here."""

    gang: Ints
    processor: Ints
    sibling: Ints
    """The next task of the same gang; NONE."""
    remaining_us: Ints
    """How long it still has to run on its processor; 0: it has ended."""
    ahead: Ints
    """The task before it in the queue of its processor; NONE."""
    behind: Ints
