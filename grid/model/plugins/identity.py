"""Whether a plugin is the same as in an earlier run: the hash of the file that defines it."""

from __future__ import annotations

import hashlib
import inspect
import pickle
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def type_of(target: Any) -> Any:
    """The class or function that an object is, or is made of."""
    while isinstance(target, partial):
        target = target.func
    return target if inspect.isclass(target) or inspect.isroutine(target) else type(target)


def identity_of(target: Any) -> str | None:
    """SHA-256 of the file that defines an object's class or function, and of the object's state.

    In a notebook, the source of the class or function takes the place of the file. None if the
    source is not available or the state cannot be pickled.
    """
    kind = type_of(target)
    try:
        file = Path(inspect.getsourcefile(kind) or "")
        source = _text(file) if file.is_file() else inspect.getsource(kind)
        state = pickle.dumps(_state(target), 5)
    except Exception:
        # Looking at or pickling a user's object may raise anything.
        return None
    return _sha256("\n".join((kind.__qualname__, source, state.hex())))


def _state(target: Any) -> Any:
    """What an object holds next to the code of its class or function."""
    if isinstance(target, partial):
        return _state(target.func), target.args, target.keywords
    is_code = inspect.isclass(target) or inspect.isroutine(target)
    return None if is_code else getattr(target, "__dict__", target)


def identity_of_package(module: str) -> str:
    """SHA-256 of the files of the package that a module belongs to, as they are now."""
    spec = find_spec(module.partition(".")[0])
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
    if not files and spec is not None and spec.origin is not None:
        files = [Path(spec.origin)]
    return _sha256("\n".join(_text(file) for file in files))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
