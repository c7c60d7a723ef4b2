"""Plain text for messages and for the states of entities: what a journal holds, and no pickle.

JSON. A scalar stands for itself; everything else is a list that begins with its kind. What is met
again is written as a reference to where it was first, so that two names for one thing stay so. Only
objects of classes in a table are ever made of what is read (`grid.runtime.known_names`).
"""

from __future__ import annotations

import json
from array import array
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Collection
from enum import Enum
from typing import Any

import numpy as np

from grid.runtime.known_names import OWN, is_function, known_names, name_of

SCALARS = (type(None), bool, int, float, str)

# Kinds.
TUPLE, LIST, DEQUE, SET, FROZEN_SET, DICT = "tuple", "list", "deque", "set", "frozenset", "dict"
NAMED, OBJECT, AGAIN = "named", "object", "again"
BYTES, ARRAY, NUMBERS, NUMBER, SLICE, ENUM, CALLED = (
    "bytes", "array", "numbers", "number", "slice", "enum", "called",
)  # fmt: skip
_SEQUENCES: dict[type, str] = {
    tuple: TUPLE, list: LIST, deque: DEQUE, set: SET, frozenset: FROZEN_SET,
}  # fmt: skip


def encode(value: Any) -> str:
    """`value` as text. Raises TypeError for what cannot be written so."""
    return json.dumps(_Encoder().tree(value), separators=(",", ":"), check_circular=False)


def decode(text: str, packages: Collection[str] = OWN) -> Any:
    """What `encode` was given. Raises ValueError for other text, or what is not of `packages`."""
    try:
        return _Decoder(packages).value(json.loads(text))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        raise ValueError(f"no text of ours ({type(error).__name__}: {error})") from None


class _Encoder:
    """Numbers what it writes, so that it can refer to it. What is frozen is numbered when it is
    complete, everything else when it begins, for it may hold itself."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def tree(self, value: Any) -> Any:
        # A bool is an int, and an IntEnum too, which must not pass for one.
        if type(value) in SCALARS:
            return value
        if id(value) in self._numbers:
            return [AGAIN, self._numbers[id(value)]]
        kind = type(value)
        if kind in (tuple, frozenset):
            tree = [_SEQUENCES[kind], [self.tree(item) for item in value]]
            self._number(value)
            return tree
        if isinstance(value, tuple):
            tree = [NAMED, name_of(kind), [self.tree(item) for item in value]]
            self._number(value)
            return tree
        self._number(value)
        return self._mutable(value, kind)

    def _mutable(self, value: Any, kind: type) -> Any:
        if kind in _SEQUENCES:
            return [_SEQUENCES[kind], [self.tree(item) for item in value]]
        if kind is dict:
            return [DICT, [[self.tree(key), self.tree(item)] for key, item in value.items()]]
        leaf = _leaf(value, kind)
        return leaf or [OBJECT, name_of(kind), self.tree(value.__getstate__())]

    def _number(self, value: Any) -> None:
        self._numbers[id(value)] = len(self._kept)
        # Kept, so that its identity is not given to another while this goes on.
        self._kept.append(value)


def _leaf(value: Any, kind: type) -> list[Any] | None:
    """The tree of what holds nothing else; None for other things."""
    leaf: list[Any] | None = None
    match value:
        case np.ndarray():
            data = b64encode(np.ascontiguousarray(value).tobytes()).decode()
            leaf = [ARRAY, value.dtype.str, list(value.shape), data]
        case array():
            leaf = [NUMBERS, value.typecode, b64encode(value.tobytes()).decode()]
        case np.generic():
            leaf = [NUMBER, value.dtype.str, value.item()]
        case bytes():
            leaf = [BYTES, b64encode(value).decode()]
        case slice():
            leaf = [SLICE, value.start, value.stop, value.step]
        case Enum():
            leaf = [ENUM, name_of(kind), value.value]
        case type():
            leaf = [CALLED, name_of(value)]
        case _ if is_function(value):
            leaf = [CALLED, name_of(value)]
    return leaf


class _Decoder:
    def __init__(self, packages: Collection[str]) -> None:
        self._names = known_names(tuple(packages))
        self._made: list[Any] = []
        self._readers: dict[str, Callable[[list[Any]], Any]] = {
            AGAIN: lambda tree: self._made[tree[1]],
            TUPLE: lambda tree: self._keep(tuple(map(self.value, tree[1]))),
            FROZEN_SET: lambda tree: self._keep(frozenset(map(self.value, tree[1]))),
            NAMED: self._named,
            LIST: lambda tree: self._sequence([], tree[1]),
            DEQUE: lambda tree: self._sequence(deque(), tree[1]),
            NUMBERS: lambda tree: self._keep(array(tree[1], b64decode(tree[2]))),
            SET: self._set,
            DICT: self._dict,
            OBJECT: self._object,
        }

    def value(self, tree: Any) -> Any:
        if type(tree) is not list:
            return tree
        read = self._readers.get(tree[0])
        return read(tree) if read is not None else self._keep(self._leaf(tree))

    def _sequence(self, made: Any, items: list[Any]) -> Any:
        self._keep(made)
        made.extend(map(self.value, items))
        return made

    def _set(self, tree: list[Any]) -> Any:
        made: set[Any] = self._keep(set())
        made.update(map(self.value, tree[1]))
        return made

    def _dict(self, tree: list[Any]) -> Any:
        made: dict[Any, Any] = self._keep({})
        for key, item in tree[1]:
            name = self.value(key)
            made[name] = self.value(item)
        return made

    def _leaf(self, tree: list[Any]) -> Any:
        match tree:
            case ["array", str(dtype), list(shape), str(data)]:
                return np.frombuffer(b64decode(data), _plain(dtype)).reshape(shape).copy()
            case ["number", str(dtype), number]:
                return _plain(dtype).type(number)
            case ["bytes", str(data)]:
                return b64decode(data)
            case ["slice", start, stop, step]:
                return slice(start, stop, step)
            case ["enum", str(name), value]:
                return self._class(name, Enum)(value)
            case ["called", str(name)]:
                return self._names.find(name)
        raise ValueError(f"cannot be read: {tree[0]!r}")

    def _named(self, tree: list[Any]) -> Any:
        kind = self._class(tree[1], tuple)
        return self._keep(tuple.__new__(kind, map(self.value, tree[2])))

    def _object(self, tree: list[Any]) -> Any:
        kind = self._class(tree[1], object)
        made = self._keep(object.__new__(kind))
        state = self.value(tree[2])
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
            return made
        parts = state if isinstance(state, tuple) else (state, None)
        for part in parts:
            for name, item in (part or {}).items():
                if name.startswith("__"):
                    raise ValueError(f"{tree[1]}: no attribute {name!r} is ever set")
                object.__setattr__(made, name, item)
        return made

    def _class(self, name: str, above: type) -> Any:
        found = self._names.find(name)
        if not isinstance(found, type) or not issubclass(found, above):
            raise ValueError(f"{name} is not a class of this kind")
        return found

    def _keep(self, made: Any) -> Any:
        self._made.append(made)
        return made


def _plain(dtype: str) -> np.dtype[Any]:
    """A type of plain numbers, flags or text. Others hold anything, or so much as a number says."""
    found = np.dtype(dtype)
    if found.kind not in "biufU":
        raise ValueError(f"{dtype} is no type of plain numbers, flags or text")
    return found
