"""Memory that a large table gave back is kept for the next one, instead of asked for again."""

from __future__ import annotations

import ctypes
from contextlib import suppress

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Parameters of `mallopt`, as the GNU C library numbers them."""
MEBIBYTE = 1 << 20


def keep_freed_memory() -> None:
    """Have the GNU C library keep up to 256 MiB of freed memory; nothing where there is another.

    A column of ten million jobs has 80 MB, and many live for one step. Each would otherwise be new
    memory of the system, which has to write zeros to it first: a fifth of the time of such a run.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, 128 * MEBIBYTE)
        mallopt(M_TRIM_THRESHOLD, 256 * MEBIBYTE)
        mallopt(M_TOP_PAD, 64 * MEBIBYTE)
