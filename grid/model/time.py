"""Time is an integer number of microseconds; floats hold times in status rows only.

There they are exact below 2**53 microseconds, which are 285 years.
"""

from __future__ import annotations

import math

Time = int

SECOND_US = 1_000_000
NEVER: Time = 2**62
"""Later than every instant of every scenario, and still safe to add a duration to."""
LONGEST_US: Time = 10**17
"""The longest time of a log, and the upper limit of scaled times."""


def from_seconds(seconds: float) -> Time:
    """Microseconds nearest to `seconds`. Raises ValueError if it is not finite or too large."""
    if not math.isfinite(seconds) or abs(seconds) * SECOND_US >= NEVER:
        raise ValueError(f"not a time in seconds: {seconds!r}")
    return round(seconds * SECOND_US)


def to_seconds(time_us: Time) -> float:
    return time_us / SECOND_US
