"""What a rule of forwarding is asked, and what it answers."""

from __future__ import annotations

from typing import NamedTuple

from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.selection.interface import Choice


class Question(NamedTuple):
    """A job at the Local Scheduler of VO number `vo`; it was submitted in VO number `origin`.

    `choice` are rows of `table`. The job may be forwarded `ttl` more times, and was `hops` times.
    With `own_only` it has to stay in this VO.
    """

    job: Job
    choice: Choice
    table: ResourceTable
    vo: int
    origin: int
    ttl: int
    hops: int
    own_only: bool


class Destination(NamedTuple):
    """The row of the table that gets the job, -1: none, and it ends here.

    With `wait` it queues there where the resource is busy; without, it is looked at anew there.
    """

    row: int
    wait: bool
