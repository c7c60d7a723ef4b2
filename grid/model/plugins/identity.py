"""What a part of Python is made of: whether it is the same as one of an earlier run.

A function is its code, its defaults, and the values of all names that the code uses; a class is all
that stands in it. So a constant of a notebook counts as well as the text of a cell. What comes with
Python or with an installed library counts by its name.
"""

from __future__ import annotations

import hashlib
import pickle
import site
import sys
import sysconfig
from collections.abc import Iterator
from enum import Enum
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import grid

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_OF_EVERY_CLASS = {
    "__abstractmethods__", "__annotations__", "__dataclass_fields__", "__dataclass_params__",
    "__dict__", "__doc__", "__module__", "__qualname__", "__weakref__", "_abc_impl",
}  # fmt: skip
"""What classes have that does not say what they do."""


def identity_of(target: Any) -> str | None:
    """SHA-256 of what an object is made of; two objects with the same one do the same.

    None where that cannot be told: it holds something open, or what cannot be pickled.
    """
    teller = _Teller()
    try:
        teller.tell(target)
    except Exception:
        # Whatever an object of a user raises when it is looked at or pickled.
        return None
    return _sha256("\n".join(teller.words))


def identity_of_package(module: str) -> str:
    """SHA-256 of the files of the package that a module belongs to, as they are now."""
    spec = find_spec(module.partition(".")[0])
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
    if not files and spec is not None and spec.origin is not None:
        files = [Path(spec.origin)]
    return _sha256("\n".join(_text(file) for file in files))


class _Teller:
    """Tells in `words` what values are made of. What it comes back to it names by its number."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def tell(self, value: Any) -> None:
        if type(value) in _PLAIN:
            self.words.append(repr(value))
        elif id(value) in self._numbers:
            self.words.append(f"again {self._numbers[id(value)]}")
        else:
            self._numbers[id(value)] = len(self._kept)
            # Kept, so that its identity is not given to another meanwhile.
            self._kept.append(value)
            self._tell_new(value)

    def _tell_new(self, value: Any) -> None:
        kind = type(value)
        self.words.append(kind.__name__)
        if kind in (list, tuple):
            self._tell_all(value)
        elif kind is dict:
            self._tell_all(value.items())
        elif kind in (set, frozenset) and all(type(one) in _PLAIN for one in value):
            self._tell_all(sorted(map(repr, value)))
        elif kind is ModuleType:
            self._tell_module(value)
        elif kind is FunctionType:
            self._tell_function(value)
        elif isinstance(value, type):
            self._tell_class(value)
        else:
            self._tell_object(value)

    def _tell_all(self, values: Any) -> None:
        for value in values:
            self.tell(value)

    def _tell_function(self, function: FunctionType) -> None:
        self._tell_all((function.__defaults__, function.__kwdefaults__, function.__dict__))
        self._tell_all(_content(cell) for cell in function.__closure__ or ())
        if _is_of_library(function.__module__):
            self.words.append(f"{function.__module__}.{function.__qualname__}")
            return
        self.tell(function.__code__)
        for name in sorted(set(_names(function.__code__)) & function.__globals__.keys()):
            self._tell_all((name, function.__globals__[name]))

    def _tell_class(self, kind: type) -> None:
        self.words.append(f"{kind.__module__}.{kind.__qualname__}")
        if _is_of_library(kind.__module__):
            return
        self._tell_all(kind.__bases__)
        for name, value in vars(kind).items():
            if name not in _OF_EVERY_CLASS:
                self._tell_all((name, value))

    def _tell_module(self, module: ModuleType) -> None:
        """Its file, its constants, and the modules that it imports from."""
        self.words.append(module.__name__)
        if _is_of_library(module.__name__):
            return
        if module.__file__ is not None:
            self.words.append(_text(Path(module.__file__)))
        for name, value in vars(module).items():
            is_named = isinstance(value, type | FunctionType)
            if isinstance(value, ModuleType) or (is_named and value.__module__ != module.__name__):
                self.tell(value)
            elif type(value) in _PLAIN and not name.startswith("__"):
                self._tell_all((name, value))

    def _tell_object(self, value: Any) -> None:
        match value:
            case CodeType():
                self._tell_all((value.co_code, value.co_names, value.co_varnames, value.co_consts))
            case MethodType():
                self._tell_all((value.__self__, value.__func__))
            case staticmethod() | classmethod():
                self.tell(value.__func__)
            case property():
                self._tell_all((value.fget, value.fset, value.fdel))
            case partial():
                self._tell_all((value.func, value.args, value.keywords))
            case Enum():
                self._tell_all((type(value), value.name))
            case _ if isinstance(wrapped := getattr(value, "__wrapped__", None), FunctionType):
                # What numba has compiled, say, is what it was compiled from.
                self.tell(wrapped)
            case _ if not _is_of_library(type(value).__module__):
                self._tell_all((type(value), vars(value)))
            case _ if hasattr(value, "__objclass__"):
                # A slot of a class, and what else is found by its name there.
                self.words.append(value.__name__)
            case _:
                self.words.append(hashlib.sha256(pickle.dumps(value, 5)).hexdigest())


def _names(code: CodeType) -> Iterator[str]:
    """All names that code uses, in the functions that it makes, too; attributes among them."""
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _names(value)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ...


@cache
def _is_of_library(module: str | None) -> bool:
    """Whether that module is ours, or comes with Python or an installed package."""
    loaded = sys.modules.get(module or "")
    if loaded is None or module == "__main__":
        return False
    file = getattr(loaded, "__file__", None)
    if file is None:
        spec = getattr(loaded, "__spec__", None)
        return spec is not None and spec.origin in ("built-in", "frozen", None)
    return any(Path(file).is_relative_to(folder) for folder in _library_folders())


@cache
def _library_folders() -> tuple[str, ...]:
    named = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    own = str(Path(grid.__file__).parent)
    return (*dict.fromkeys([*named, *site.getsitepackages(), site.getusersitepackages(), own]),)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
