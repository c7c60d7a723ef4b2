"""Jobs of a cluster in the orders in which its policy sees them, as arrays of slots."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import Any

import numpy as np

from grid.model.arrays import Ints

FIRST_ROOM = 64
MANY = 16


class InOrder:
    """Slots in the order of their keys, which are all different: numbers, or tuples of them.

    Most jobs leave near the front. So the slots need not begin where their array does, and those
    before one that leaves are moved. A memoryview is written and moved in half the time.
    """

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self._first = 0
        self._set_room(FIRST_ROOM)

    def __len__(self) -> int:
        return len(self.keys)

    def __getstate__(self) -> dict[str, Any]:
        return {"keys": self.keys, "slots": self.slots}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.keys, self._first = state["keys"], 0
        self._set_room(FIRST_ROOM + 2 * len(self.keys))
        self._array[: len(self.keys)] = state["slots"]

    @property
    def slots(self) -> Ints:
        return self._array[self._first : self._first + len(self.keys)]

    def add(self, key: Any, slot: int) -> None:
        keys, items = self.keys, self._items
        end = self._first + len(keys)
        if end == len(items):
            self._make_room()
            items, end = self._items, len(keys)
        if keys and key < keys[-1]:
            number = bisect_left(keys, key)
            keys.insert(number, key)
            place = self._first + number
            items[place + 1 : end + 1] = items[place:end]
            items[place] = slot
        else:
            keys.append(key)
            items[end] = slot

    def remove(self, key: Any) -> None:
        keys, items, first = self.keys, self._items, self._first
        number = bisect_left(keys, key)
        del keys[number]
        if number:
            items[first + 1 : first + number + 1] = items[first : first + number]
        self._first = first + 1

    def remove_all(self, leaving: Collection[Any]) -> None:
        if len(leaving) <= MANY:
            for key in leaving:
                self.remove(key)
            return
        slots, gone = self.slots, set(leaving)
        stays = [key not in gone for key in self.keys]
        left = slots[stays]
        slots[: len(left)] = left
        self.keys = [key for key in self.keys if key not in gone]

    def _make_room(self) -> None:
        slots = self.slots
        self._first = 0
        self._set_room(FIRST_ROOM + 2 * len(slots))
        self._array[: len(slots)] = slots

    def _set_room(self, room: int) -> None:
        self._array = np.empty(room, np.int64)
        self._items = memoryview(self._array)  # type: ignore[arg-type]
