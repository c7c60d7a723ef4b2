"""The source of a part that stands in a file: it goes along with a scenario, to every process.

It is loaded from its text, under a module name made of its hash, so that a process on another
node has the same code, and a changed file is another module. Who unpickles a source can unpickle
what its classes have made, too.
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
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

PREFIX = "grid_part_"
"""What the names of modules begin with that are made of sources."""


@dataclass(frozen=True)
class Source:
    """The text of the file `path`, which messages call `shown`.

    `installed` is the name of the module, where it is one that every node has to have; `written`
    is the place of the file as the scenario has it, where it is not.
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
        """The name of the module that is made of it, or that it is."""
        if self.installed:
            return self.installed
        both = f"{self.path}\n{self.text}".encode()
        return PREFIX + hashlib.sha256(both).hexdigest()[:16]

    def load(self) -> ModuleType:
        """The module. Raises whatever its own code raises, and SyntaxError."""
        return import_module(self.module)


_sources: dict[str, Source] = {}


class _SourceFinder(MetaPathFinder, Loader):
    """Finds modules of sources that this process knows, for imports and for pickle."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname in _sources else None

    def exec_module(self, module: ModuleType) -> None:
        source = _sources[module.__name__]
        module.__file__ = source.path
        # So that tracebacks show the user's lines, also where there is no such file.
        lines = source.text.splitlines(keepends=True)
        linecache.cache[source.path] = (len(source.text), None, lines, source.path)
        exec(compile(source.text, source.path, "exec", dont_inherit=True), vars(module))


sys.meta_path.append(_SourceFinder())
