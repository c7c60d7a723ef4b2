"""The number of random examples of a property."""

from __future__ import annotations

import os


def examples(thorough: int) -> int:
    """`thorough` in thorough tests, which continuous integration runs; else a third, at most 20."""
    return thorough if os.environ.get("GRID_THOROUGH") else max(1, min(20, thorough // 3))
