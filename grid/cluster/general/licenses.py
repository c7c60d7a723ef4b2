"""Copies of licenses: held by machines, shared by the jobs of a machine, never more than exist."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np


class LicensePool:
    """Licenses by number, `copies[n]` of license n, over so many machines.

    `free` has shape (licenses,): copies that no machine holds. `held` counts those that one does.
    `users` has shape (machines, licenses): how many jobs use a copy there.
    """

    def __init__(self, copies: Sequence[int], machines: int) -> None:
        self.free = np.array(copies, np.int64)
        self.held = 0
        self.users = np.zeros((machines, len(copies)), np.int64)

    def acquire(self, mask: int, machine: int) -> bool:
        """A job on `machine` begins to use the licenses of `mask`; False: not enough copies."""
        wanted, users = _numbers(mask), self.users[machine]
        new = [number for number in wanted if users[number] == 0]
        if any(self.free[number] == 0 for number in new):
            return False
        for number in new:
            self.free[number] -= 1
        for number in wanted:
            users[number] += 1
        self.held += len(new)
        return True

    def release(self, mask: int, machine: int) -> None:
        """A job on `machine` stops using them; the last user gives the copy back."""
        users = self.users[machine]
        for number in _numbers(mask):
            users[number] -= 1
            if users[number] == 0:
                self.free[number] += 1
                self.held -= 1


@lru_cache(maxsize=4096)
def _numbers(mask: int) -> tuple[int, ...]:
    return tuple(number for number in range(mask.bit_length()) if mask >> number & 1)
