"""Copies of licenses: held by machines, shared by the jobs of a machine, never more than exist."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class LicensePool:
    """Licenses by number, `copies[n]` of license n, over so many machines.

    `free` has shape (licenses,): copies that no machine holds.
    """

    def __init__(self, copies: Sequence[int], machines: int) -> None:
        self.free = np.array(copies, np.int64)
        self._users = np.zeros((machines, len(copies)), np.int64)

    def acquire(self, mask: int, machine: int) -> bool:
        """A job on `machine` begins to use the licenses of `mask`; False: not enough copies."""
        wanted = _numbers(mask)
        new = [number for number in wanted if self._users[machine, number] == 0]
        if any(self.free[number] == 0 for number in new):
            return False
        for number in new:
            self.free[number] -= 1
        for number in wanted:
            self._users[machine, number] += 1
        return True

    def release(self, mask: int, machine: int) -> None:
        """A job on `machine` stops using them; the last user gives the copy back."""
        for number in _numbers(mask):
            self._users[machine, number] -= 1
            if self._users[machine, number] == 0:
                self.free[number] += 1


def _numbers(mask: int) -> list[int]:
    return [number for number in range(mask.bit_length()) if mask >> number & 1]
