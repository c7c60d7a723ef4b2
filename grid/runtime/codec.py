"""Plain text for messages and states of entities, as JSON: what a journal holds.

A scalar is itself; everything else is a list that begins with its kind. A second occurrence of an
object is a reference to the first. Only objects of classes in a table are ever made: nothing is
imported because a text names it.
"""

from __future__ import annotations

import json
import sys
from array import array
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

OWN = (
    "grid.cluster", "grid.protocol", "grid.protocol.forwarding", "grid.protocol.information",
    "grid.kernel", "grid.model", "grid.model.plugins", "grid.policies", "grid.protocol.selection",
)  # fmt: skip


LOADERS = (
    "grid.model.plugins.registry",
    "grid.model.plugins.source",
)
"""Modules among them that load code."""


class KnownNames:
    """What `packages` define, by `module:name`. Our own modules are imported if need be, all of
    them; those of others are known once their part is loaded.
    """

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages
        self._known: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        """Raises ValueError for what the table does not have."""
        if name not in self._known:
            _import_own_modules()
            for module in _loaded(self._packages):
                self._known.update(_defined(module))
        if name not in self._known:
            raise ValueError(f"{name} is not defined by any of {', '.join(self._packages)}")
        return self._known[name]


known_names = cache(KnownNames)


def name_of(known: Any) -> str:
    """The name of a class or function. Raises TypeError for one that no module has by its name."""
    if "." in known.__qualname__:
        raise TypeError(f"{known.__qualname__} of {known.__module__} cannot be found by its name")
    return f"{known.__module__}:{known.__qualname__}"


def is_function(value: Any) -> bool:
    """Whether it is a function; one that numba compiled goes by the name of the original."""
    compiled = type(value).__name__ == "CPUDispatcher"
    return compiled or isinstance(value, FunctionType | BuiltinFunctionType)


@cache
def _import_own_modules() -> None:
    for package in OWN:
        for found in walk_packages(import_module(package).__path__, package + "."):
            import_module(found.name)


def _loaded(packages: tuple[str, ...]) -> list[ModuleType]:
    """The modules of `packages` that are loaded."""
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name not in LOADERS
        and any(name == package or name.startswith(package + ".") for package in packages)
    ]


def _defined(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The classes and functions that a module itself defines, at its top."""
    for value in list(vars(module).values()):
        named = isinstance(value, type) or is_function(value)
        if named and value.__module__ == module.__name__ and "." not in value.__qualname__:
            yield name_of(value), value


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
        raise ValueError(f"not a valid text ({type(error).__name__}: {error})") from None


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
        raise ValueError(f"{dtype} is not a type of plain numbers, flags or text")
    return found
