"""Parts by name or by where they stand, and what is made of them.

A scenario carries its `Parts`: the sources of the files that it names, and the objects that it was
given. So they go along to other processes and nodes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from typing import Any

from grid.model.errors import InvalidPlugin, PluginFailed, expected_name, shorten
from grid.model.plugins.identity import identity_of, identity_of_package, type_of
from grid.model.plugins.kind import Kind, refuse_other_arguments
from grid.model.plugins.origin import (
    Origin,
    WithSettings,
    origin_of,
    own_frames,
    said,
    shown_frames,
)
from grid.model.plugins.settings import Declared, declared
from grid.model.plugins.source import Source

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Plugin:
    """A class or function that plugs in, not yet made with settings."""

    kind: Kind
    name: str
    target: Any
    origin: Origin
    is_own: bool
    declared: Declared

    @property
    def description(self) -> str:
        """The first line of its docstring."""
        text = inspect.getdoc(self.target) or ""
        return text.partition("\n")[0].strip()

    @property
    def meaning(self) -> str:
        """The first paragraph of its docstring, in one line."""
        text = inspect.getdoc(self.target) or ""
        return " ".join(text.partition("\n\n")[0].split())


@dataclass(frozen=True)
class Plugins:
    """What a scenario plugs in beside our own parts and those of installed packages.

    `sources` are by reference, as the scenario has it; `objects` by kind and name. `packages` are
    the modules of the parts that the scenario has of installed packages, by the parts' names.
    """

    sources: Mapping[str, Source] = field(default_factory=dict)
    objects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)

    def with_objects(self, objects: Mapping[str, Mapping[str, Any]]) -> Plugins:
        """These, and more objects by kind and name."""
        merged = {kind: dict(of) for kind, of in self.objects.items()}
        for kind, of in objects.items():
            merged.setdefault(kind, {}).update(of)
        return Plugins(self.sources, merged, self.packages)

    def names(self, kind: Kind) -> tuple[str, ...]:
        """All names of that kind, our own first. Raises InvalidPlugin where two parts have one."""
        owners = dict.fromkeys(kind.own, "the emulator's own")
        for point in plugged_in(kind.group):
            if point.name in owners:
                raise _taken(kind, point.name, f"the entry point {point.value}", owners)
            owners[point.name] = f"the entry point {point.value}"
        for name in self.objects.get(kind.name, {}):
            if name in owners:
                raise _taken(kind, name, "an object", owners)
        return (*owners, *self.objects.get(kind.name, {}))

    def find(self, kind: Kind, name: str) -> Plugin:
        """The part of that name. Raises InvalidPlugin where it is not to be had."""
        known = self.names(kind)
        objects = self.objects.get(kind.name, {})
        if ":" in name:
            return _part(kind, name, *self._at(kind, name))
        if name not in known:
            file = name if name.endswith(".py") else "my_parts.py"
            # People write EASY for easy.
            meant = name.lower() if name.lower() in known else name
            expected = expected_name(meant, known, kind.one)
            if not known or file == name:
                expected = f"{kind.one} with the name that it has in its file, such as {file}:NAME"
            raise InvalidPlugin(repr(name), expected)
        if name in kind.own:
            return _own_part(kind, name)
        if name in objects:
            publish(objects[name])
            return _part(kind, name, objects[name])
        (point,) = (point for point in plugged_in(kind.group) if point.name == name)
        return _part(kind, name, _loaded(kind, name, point.value))

    def make(self, kind: Kind, name: str, settings: Settings) -> Any:
        """The part of that name with its settings, ready to be asked. Raises InvalidPlugin."""
        part = self.find(kind, name)
        values = part.declared.values(settings)
        if part.declared.wants is not None:
            values[part.declared.wants] = self
        if kind.given and not inspect.isclass(part.target):
            made = WithSettings(part.target, values) if values else part.target
        else:
            made = _made(part, values)
            if kind.given and not part.is_own and callable(made):
                refuse_other_arguments(part.origin, made, "__call__", kind.given)
        return made if part.is_own else kind.guard(part.origin, made)

    def shown(self, name: str) -> str:
        """A reference as messages and tables call it."""
        source = self.sources.get(name)
        return name if source is None else f"{source.shown}:{name.rpartition(':')[2]}"

    def hashes(self) -> dict[str, str | None]:
        """SHA-256 of each plugin that is not built in: of its file or package, and of an object's
        state. None if that is not available.
        """
        found: dict[str, str | None] = {
            self.shown(reference): source.sha256 for reference, source in self.sources.items()
        }
        for objects in self.objects.values():
            found |= {name: identity_of(target) for name, target in objects.items()}
        for name, module in self.packages.items():
            found[name] = identity_of_package(module)
        return dict(sorted(found.items()))

    @property
    def modules(self) -> tuple[str, ...]:
        """The packages in which their classes are."""
        own = [source.module for source in self.sources.values()]
        objects = [type_of(one).__module__ for of in self.objects.values() for one in of.values()]
        return tuple(dict.fromkeys([*own, *(name.partition(".")[0] for name in objects if name)]))

    def _at(self, kind: Kind, reference: str) -> tuple[Any, str]:
        """What a reference such as `file.py:Name` stands for, and how messages call its file."""
        name = reference.rpartition(":")[2]
        source = self.sources.get(reference)
        if source is None:
            expected = f"{kind.one} of a file that the scenario names"
            raise InvalidPlugin(repr(reference), expected)
        try:
            module = source.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _not_loaded(kind, self.shown(reference), error, source) from None
        if not hasattr(module, name):
            known = [key for key, value in vars(module).items() if callable(value)]
            own = [key for key in known if getattr(module, key).__module__ == source.module]
            expected = expected_name(name, own, f"a class or function of {source.shown}")
            raise InvalidPlugin(repr(name), expected)
        return getattr(module, name), source.shown


def plugged_in(*groups: str) -> tuple[EntryPoint, ...]:
    """What packages plug in to the groups, by name; of all our groups if none is named."""
    return tuple(point for point in _all_plugged_in() if not groups or point.group in groups)


def modules_plugged_in(kind: Kind, name: str) -> dict[str, str]:
    """The module of the part of that name that a package plugs in, by that name; if one does."""
    return {point.name: point.module for point in plugged_in(kind.group) if point.name == name}


@cache
def _all_plugged_in() -> tuple[EntryPoint, ...]:
    found = {
        (point.group, point.name, point.value): point
        for distribution in distributions()
        for point in distribution.entry_points
        if point.group.startswith("grid.")
    }
    return tuple(found[key] for key in sorted(found))


def _taken(kind: Kind, name: str, what: str, owners: Mapping[str, str]) -> InvalidPlugin:
    return InvalidPlugin(
        f"{what} that is called {name!r}",
        f"another name for {kind.one}, for that is taken by {owners[name]}",
    )


def _loaded(kind: Kind, name: str, value: str) -> Any:
    """What stands at `module:attribute`."""
    module, _, attribute = value.partition(":")
    try:
        found: Any = import_module(module)
        for step in attribute.split("."):
            found = getattr(found, step)
    except AttributeError:
        expected = f"{kind.one}, and {module} has no {attribute}"
        raise InvalidPlugin(repr(name), expected) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _not_loaded(kind, name if name == value else f"{name} ({value})", error) from None
    return found


def _not_loaded(
    kind: Kind, name: str, error: BaseException, source: Source | None = None
) -> InvalidPlugin:
    """That its file cannot be imported: where, and why."""
    file, line = (source.path, 1) if source is not None else ("", None)
    own = own_frames(error, file)
    if isinstance(error, SyntaxError) and error.lineno is not None:
        line = error.lineno
    elif own is not None:
        line = own.tb_lineno
    where = f" ({source.shown}:{line})" if source is not None else ""
    expected = f"{kind.one} that can be loaded: {said(error)}{where}"
    return InvalidPlugin(repr(name), expected, details=shown_frames(error, own) if own else "")


@cache
def _own_part(kind: Kind, name: str) -> Plugin:
    """A part of ours. A grid asks for the same ones once a VO, and declarations take a while."""
    return _part(kind, name, _loaded(kind, name, kind.own[name]), is_own=True)


def _part(kind: Kind, name: str, target: Any, shown: str = "", *, is_own: bool = False) -> Plugin:
    label = f"{shown}:{name.rpartition(':')[2]}" if shown else name
    if not callable(target):
        raise InvalidPlugin(
            f"{label}, which is {shorten(target)}", f"{kind.one}: a class or function"
        )
    origin = origin_of(kind.title, label, target, shown)
    try:
        settings = declared(target, len(kind.given), Plugins)
    except Exception as error:
        expected = f"settings as keyword parameters of {label} ({origin.shown}:{origin.line})"
        raise InvalidPlugin(f"a signature that cannot be read: {said(error)}", expected) from None
    if not is_own and not inspect.isclass(target):
        _refuse_fewer_arguments(kind, target, label, origin)
    return Plugin(kind, name, target, origin, is_own, settings)


def _refuse_fewer_arguments(kind: Kind, target: Any, label: str, origin: Origin) -> None:
    """A function that cannot take what it will be given fails at the end of a run otherwise."""
    try:
        inspect.signature(target).bind_partial(*kind.given)
    except TypeError:
        found = f"{label}, which takes fewer arguments ({origin.shown}:{origin.line})"
        raise InvalidPlugin(found, f"{kind.one} that takes {', '.join(kind.given)}") from None


def _made(part: Plugin, values: dict[str, Any]) -> Any:
    try:
        return part.target(**values)
    except PluginFailed:
        raise
    except BaseException as error:
        if part.is_own or part.origin.is_interrupted(error):
            raise
        failed = part.origin.failed("making it", error)
        expected = f"{part.kind.one} that can be made: {failed}"
        raise InvalidPlugin(repr(part.origin.name), expected, (), failed.details) from None


# Objects


def publish(target: Any) -> None:
    """Let what an object's classes make be found by name, in a process it was sent to.

    A class of a notebook comes along by value; pickle and journals look for it in its module.
    """
    target = type_of(target)
    for name, value in [(target.__qualname__, target), *_globals(target)]:
        module = sys.modules.get(getattr(value, "__module__", None) or "")
        if module is not None and name == value.__qualname__ and not hasattr(module, name):
            setattr(module, name, value)


def _globals(target: Any) -> Iterator[tuple[str, Any]]:
    """Classes and functions that its code names."""
    functions = [target, *vars(target).values()] if inspect.isclass(target) else [target]
    for function in functions:
        for name, value in getattr(function, "__globals__", {}).items():
            if inspect.isclass(value) or inspect.isfunction(value):
                yield name, value
