"""Sources of plugins in files: found by reference, and sent along with a scenario.

A source is loaded from its text under a module name made of its hash. So a process on another node
has the same code, and a changed file is another module.
"""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from grid.model.plugins.calls import short_path

PREFIX = "grid_plugin_"
"""How names of modules begin that are made of sources."""
MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Source:
    """The text of the file `path`, which messages call `shown`.

    `installed` is the name of a module that every node has installed; `written` the path of the
    file as the scenario has it, for other files.
    """

    path: str
    shown: str
    text: str
    installed: str = ""
    written: str = ""

    def __post_init__(self) -> None:
        if not self.installed:
            _sources[self.module] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return Source, (self.path, self.shown, self.text, self.installed, self.written)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def module(self) -> str:
        if self.installed:
            return self.installed
        both = f"{self.path}\n{self.text}".encode()
        return PREFIX + hashlib.sha256(both).hexdigest()[:16]

    def load(self) -> ModuleType:
        """The module. Raises all errors of its code, and SyntaxError."""
        return import_module(self.module)


_sources: dict[str, Source] = {}


class _SourceFinder(MetaPathFinder, Loader):
    """Finds modules of the sources that this process has, for imports and for pickle."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname in _sources else None

    def exec_module(self, module: ModuleType) -> None:
        source = _sources[module.__name__]
        module.__file__ = source.path
        # Tracebacks show the user's lines also on nodes without the file.
        lines = source.text.splitlines(keepends=True)
        linecache.cache[source.path] = (len(source.text), None, lines, source.path)
        exec(compile(source.text, source.path, "exec", dont_inherit=True), vars(module))


sys.meta_path.append(_SourceFinder())


def is_reference(name: object) -> bool:
    """Whether it is `path/to/file.py:Name` or `package.module:Name`, and not a plugin's name."""
    return isinstance(name, str) and ":" in name


def resolve_reference(reference: str, folders: Sequence[Path]) -> tuple[str, Source]:
    """The reference with an absolute path, and the source of its file.

    Files, and modules that are not installed, are looked up in the `folders`, in order. Raises
    ValueError with what was expected.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise ValueError("a reference like my_policy.py:MyPolicy")
    file = place
    if not place.endswith(".py"):
        if not all(step.isidentifier() for step in place.split(".")):
            raise ValueError("a file like my_policy.py, or a module, before the colon")
        try:
            spec = find_spec(place)
        except (ImportError, ValueError):
            spec = None
        if spec is not None and spec.origin is not None:
            installed = Path(spec.origin)
            source = Source(str(installed), short_path(installed), _text(installed), place)
            return reference, source
        file = place.replace(".", "/") + ".py"
    path = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if path is None:
        kind = "a file" if place == file else "an installed module, or a file"
        where = "in the current folder or in the scenario's"
        raise ValueError(f"{kind} {file} {where}, or an absolute path")
    path = path.resolve()
    return f"{path}:{name}", Source(str(path), short_path(path), _text(path), written=file)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"a file of at most {MAX_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"UTF-8 text in {path}") from None
