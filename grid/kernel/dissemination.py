"""How many processes tell each other something, in few steps and with few messages.

In the first step each tells those one, two and three further on what it has to tell; in the second
those four, eight and twelve further on all that it knows by then; and so on. Up to four processes
tell each other directly. After the last step everybody knows everything (J. Bruck and others,
"Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997).
"""

from __future__ import annotations

RADIX = 4


def steps(count: int) -> list[list[int]]:
    """For each step, how much further on those are whom a process tells, among `count`."""
    found: list[list[int]] = []
    span = 1
    while span < count:
        found.append([far for far in range(span, RADIX * span, span) if far < count])
        span *= RADIX
    return found
