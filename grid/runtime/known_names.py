"""The classes and functions that a journal may name: a table made before anything is read.

Nothing is looked up, or imported, because a text says so. The table holds what is defined at the
top of the modules of our pure packages, and of packages that a run has registered for its
plugged-in parts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

OWN = (
    "grid.cluster", "grid.protocol", "grid.protocol.forwarding", "grid.protocol.information",
    "grid.kernel", "grid.model", "grid.model.plugins", "grid.policies", "grid.protocol.selection",
)  # fmt: skip


LOADERS = (
    "grid.model.plugins.registry",
    "grid.model.plugins.source",
)
"""Modules among them that find and load code. No state of an entity holds anything of them."""


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
