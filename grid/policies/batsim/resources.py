"""Sets of resources as Batsim writes them, `"0-3 7"`, and as bit masks."""

from __future__ import annotations

import re

_INTERVALS = re.compile(r"\d{1,9}(-\d{1,9})?([ ,]\d{1,9}(-\d{1,9})?)*")


def mask_of(text: str, most: int) -> int:
    """The bit mask of the numbers that `text` has. Raises ValueError unless all are below `most`.

    Numbers and intervals stand apart by a space or a comma.
    """
    if not _INTERVALS.fullmatch(text):
        raise ValueError(f"resources {text[:40]!r}, expected numbers such as 0-3 7")
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
