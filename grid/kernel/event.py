"""Envelopes, which travel between entities, and the total order in which they are handled.

An envelope is the tuple (time, receiver, sender, sequence, message). Receiver and sender are
positions in the sorted list of all names of the grid; sequence counts what its sender has sent.
The order (time, receiver, sender, sequence) is total and assigned by the sender, so it does not
depend on the partition of entities over processes. A tuple, since the event queue compares
millions of them.

A timer is an envelope of an entity to itself: its sender is `TIMER` or `BACKGROUND_TIMER`, its
message the timer's name. It comes after all messages of its instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from grid.model.arrays import Floats
from grid.model.time import NEVER, Time

Rows = Floats
Envelope = tuple[Time, int, int, int, Any]
Post = tuple[int, Time, Rows]
"""(publisher's position on the board, time of posting, its rows)."""
DeliveryClock = Callable[[Time, int, Any], Time]
"""The time at which an envelope is handled live, from (due, sender or kind of timer, message).

It is neither before the envelope is due nor before the time of the last one.
"""
EventKey = tuple[Time, int]
"""Time and receiver: the position of an envelope among those of other processes."""
MIN_EVENT_KEY: EventKey = (-1, -1)
MAX_EVENT_KEY: EventKey = (NEVER, 0)
TIMER = 2**31
BACKGROUND_TIMER = TIMER + 1


@dataclass(slots=True)
class Outbox:
    """What a logical process sends to others: envelopes by receiver, and posts for all."""

    envelopes: list[Envelope] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)


class Order(NamedTuple):
    """An intervention in a live run, by its number in the run, from 1.

    An entity receives it again after each of its crashes, and obeys once.
    """

    number: int
    content: Any


class Observation(NamedTuple):
    """What the runtime of a live run observed outside of the grid, for one entity.

    It is lost if the entity is down: the runtime observes again.
    """

    content: Any


@dataclass(frozen=True, slots=True)
class Stop:
    """The entity is down until `Resume`."""


@dataclass(frozen=True, slots=True)
class Resume:
    """The entity is up again."""
