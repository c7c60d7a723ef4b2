"""Jobs of a cluster in the orders in which its policy sees them, as arrays of slots."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection

import numpy as np

from grid.model.arrays import Ints
from grid.model.time import Time

Slots = Ints
MANY = 16


class Queue:
    """Waiting jobs in order of arrival."""

    def __init__(self) -> None:
        self._array = np.empty(64, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def slots(self) -> Slots:
        return self._array[: self._count]

    def append(self, slot: int) -> None:
        if self._count == len(self._array):
            self._array = np.concatenate((self._array, np.empty_like(self._array)))
        self._array[self._count] = slot
        self._count += 1

    def put_back(self, slot: int, serial: Ints) -> None:
        """A job that has waited before goes to where its serial number belongs."""
        place = int(np.searchsorted(serial[self.slots], serial[slot]))
        self.append(slot)
        slots = self.slots
        slots[place + 1 :] = slots[place:-1].copy()
        slots[place] = slot

    def remove(self, leaving: Collection[int]) -> None:
        slots = self.slots
        if len(leaving) > MANY:
            left = slots[~np.isin(slots, np.fromiter(leaving, np.int64, len(leaving)))]
            slots[: len(left)] = left
            self._count = len(left)
            return
        for slot in leaving:
            slots = self.slots
            place = int((slots == slot).argmax())
            slots[place:-1] = slots[place + 1 :]
            self._count -= 1


class ByExpectedEnd:
    """Running jobs by (expected end, serial)."""

    def __init__(self) -> None:
        self._array = np.empty(64, np.int64)
        self._keys: list[tuple[Time, int]] = []

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def slots(self) -> Slots:
        return self._array[: len(self._keys)]

    def first(self) -> Time:
        """The earliest expected end. There must be a job."""
        return self._keys[0][0]

    def add(self, expected_end: Time, serial: int, slot: int) -> None:
        count = len(self._keys)
        if count == len(self._array):
            self._array = np.concatenate((self._array, np.empty_like(self._array)))
        key = (expected_end, serial)
        place = bisect_left(self._keys, key)
        insort(self._keys, key)
        if place < count:
            self._array[place + 1 : count + 1] = self._array[place:count]
        self._array[place] = slot

    def remove(self, expected_end: Time, serial: int) -> int:
        """The slot of the job, which is taken out."""
        place = bisect_left(self._keys, (expected_end, serial))
        slot = int(self._array[place])
        del self._keys[place]
        count = len(self._keys)
        if place < count:
            self._array[place:count] = self._array[place + 1 : count + 1]
        return slot
