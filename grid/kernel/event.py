"""What travels between entities, and the one order in which it is handled.

An envelope is the tuple (time, receiver, sender, sequence, message). Receiver and sender are
positions in the sorted list of all names of the grid; sequence counts what its sender has sent.
So the order (time, receiver, sender, sequence) is total and known to the sender alone: no
partition of the entities over processes can change it. A tuple, and not a class, because the event
queue compares millions of them.

A timer is an envelope of an entity to itself: its sender is `TIMER` or `BACKGROUND_TIMER`, its
message the timer's name. It comes after all messages of its instant, so an entity that waits for a
timer without delay has received everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grid.model.time import NEVER, Time

Envelope = tuple[Time, int, int, int, Any]
DeliveryClock = Callable[[Time, int, Any], Time]
"""The time at which an envelope is handled live, from (due, sender or kind of timer, message).

It is not before the envelope is due, nor before the time of the last one.
"""
EventKey = tuple[Time, int]
"""Time and receiver: where an envelope stands among those of other processes."""
MIN_EVENT_KEY: EventKey = (-1, -1)
MAX_EVENT_KEY: EventKey = (NEVER, 0)
TIMER = 2**31
BACKGROUND_TIMER = TIMER + 1
