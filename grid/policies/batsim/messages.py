"""Validated replies of a scheduler in Batsim's protocol, and sets of resources as `"0-3 7"`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from grid.model.errors import shorten
from grid.model.time import NEVER, SECOND_US, Time

EXECUTE, REJECT, KILL, CALL = "EXECUTE_JOB", "REJECT_JOB", "KILL_JOB", "CALL_ME_LATER"
NOTIFY = "NOTIFY"
ROUNDING_US = 1000
"""Some schedulers write times with few digits: an answer this much too early counts as of now."""
KNOWN = (EXECUTE, REJECT, KILL, CALL, NOTIFY)


class Decision(NamedTuple):
    """One decision: when it takes effect, what it is, and its data."""

    time_us: Time
    kind: str
    data: Mapping[str, Any]


class Answer(NamedTuple):
    """The decisions of a scheduler in order of time, and when it can be called again."""

    decisions: list[Decision]
    ready_us: Time


def read_answer(answer: Any, now: Time) -> Answer:
    """The answer to a message of time `now`. Raises ValueError with what is wrong with it."""
    if not isinstance(answer, Mapping):
        raise ValueError(f"replied {shorten(answer)}, expected an object with now and events")
    events = answer.get("events")
    if not isinstance(events, list):
        raise ValueError(f"replied with events {shorten(events)}, expected a list")
    ready_us = microseconds(answer.get("now"), "now")
    if ready_us < now - ROUNDING_US:
        raise ValueError(f"replied with now {shorten(answer.get('now'))}, which is in the past")
    decisions = sorted((_decision(event, now) for event in events), key=lambda one: one.time_us)
    # A decision of a later time than `now` keeps the scheduler busy until then.
    return Answer(decisions, max([now, ready_us, *(one.time_us for one in decisions)]))


def _decision(event: Any, now: Time) -> Decision:
    if not isinstance(event, Mapping):
        raise ValueError(f"replied with the event {shorten(event)}, expected an object")
    kind, data = event.get("type"), event.get("data")
    if kind not in KNOWN:
        raise ValueError(f"replied with {shorten(kind)}, expected one of {', '.join(KNOWN)}")
    if not isinstance(data, Mapping):
        raise ValueError(f"replied with {kind} and data {shorten(data)}, expected an object")
    time_us = microseconds(event.get("timestamp"), "timestamp")
    if time_us < now - ROUNDING_US:
        raise ValueError(
            f"replied with {kind} for {shorten(event.get('timestamp'))}, which is in the past"
        )
    if kind == NOTIFY and data.get("type") != "registration_finished":
        raise ValueError(
            f"sent NOTIFY of {shorten(data.get('type'))}, expected registration_finished"
        )
    return Decision(max(now, time_us), kind, data)


def microseconds(seconds: Any, what: str) -> Time:
    """A time of a message. Raises ValueError."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not math.isfinite(seconds) or not 0 <= seconds < NEVER / SECOND_US:
        raise ValueError(
            f"replied with {what} {shorten(seconds)}, expected seconds of virtual time"
        )
    time_us: Time = round(seconds * SECOND_US)
    return time_us


def job_of(data: Mapping[str, Any]) -> str:
    """The job that a decision is about. Raises ValueError."""
    name = data.get("job_id")
    if not isinstance(name, str):
        raise ValueError(f"names the job {shorten(name)}, expected text")
    return name


def jobs_of(data: Mapping[str, Any]) -> list[str]:
    """The jobs to kill. Raises ValueError."""
    names = data.get("job_ids")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names the jobs {shorten(names)}, expected a list of strings")
    return names


_INTERVALS = re.compile(r"\d{1,9}(-\d{1,9})?([ ,]\d{1,9}(-\d{1,9})?)*")


def mask_of(text: str, most: int) -> int:
    """The bit mask of the numbers that `text` has. Raises ValueError unless all are below `most`.

    Numbers and intervals are separated by a space or a comma.
    """
    if not _INTERVALS.fullmatch(text):
        raise ValueError(f"resources {text[:40]!r}, expected numbers like 0-3 7")
    mask = 0
    for interval in re.split("[ ,]", text):
        first, _, last = interval.partition("-")
        low, high = int(first), int(last or first)
        if not low <= high < most:
            raise ValueError(f"resources {text[:40]!r}, expected numbers from 0 to {most - 1}")
        mask |= ((1 << (high - low + 1)) - 1) << low
    return mask


def text_of(mask: int) -> str:
    """The numbers of a mask as intervals, in rising order."""
    intervals = []
    low = 0
    while mask >> low:
        low += ((mask >> low) & -(mask >> low)).bit_length() - 1
        length = (~(mask >> low) & ((mask >> low) + 1)).bit_length() - 1
        intervals.append(f"{low}-{low + length - 1}" if length > 1 else str(low))
        low += length
    return " ".join(intervals)


def lowest(free: int, count: int) -> int:
    """The lowest `count` numbers of `free`, which has as many."""
    taken = 0
    for _ in range(count):
        lowest_bit = free & -free
        taken |= lowest_bit
        free ^= lowest_bit
    return taken
