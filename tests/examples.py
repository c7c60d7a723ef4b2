"""How many examples of a kind a test takes."""

from __future__ import annotations

import os


def examples(thorough: int) -> int:
    """So many in the thorough tests, which continuous integration runs; else a third of them."""
    return thorough if os.environ.get("GRID_THOROUGH") else max(1, thorough // 3)
