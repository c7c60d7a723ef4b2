"""How figures are written where people read them."""

from __future__ import annotations

import math


def shown(value: float | None) -> str:
    """A figure as people read it; a dash for one that does not apply."""
    if value is None:
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.1f}"
    if 1e-9 < abs(value) < 1e-4:
        places = 3 - math.floor(math.log10(abs(value)))
        return f"{value:.{places}f}".rstrip("0")
    return f"{value:.4g}"


def counted(count: int, what: str) -> str:
    """So many of them, in words."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
