"""Kinds of plugins, and plugins by name or reference.

A scenario has its `Plugins`: the sources of the files that it names, and the objects that it was
given. They are sent along to other processes and nodes.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any

from grid.model.errors import InvalidPlugin, PluginFailed, expected_name, shorten
from grid.model.plugins.calls import (
    Call,
    Check,
    Origin,
    WithSettings,
    frames_in,
    in_one_line,
    origin_of,
    with_checks,
)
from grid.model.plugins.settings import Declared, declared
from grid.model.plugins.source import Source

Settings = Mapping[str, Any]
Calls = Callable[[Any], Mapping[str, Call]]

RENAMED_PLUGINS = {"everyone": "all", "nobody": "none", "as_told": "no_correction"}
"""The new names of plugins that have been renamed."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of plugins: its name is the end of the entry point group `grid.NAME`.

    `own` maps names of built-in plugins to `module:attribute`. A plugin is a class, or a function
    that makes an object, of the settings alone. With `given` it is a function of these arguments,
    and its settings are keywords. `calls` gives the calls of a third-party plugin and raises
    InvalidPlugin if it lacks an attribute; `adapt` completes it.
    """

    name: str
    title: str
    task: str
    """The task of a plugin of this kind, in one sentence."""
    own: Mapping[str, str]
    calls: Calls
    given: tuple[str, ...] = ()
    place: str = ""
    """The key of a scenario that names one."""
    adapt: Callable[[Any], Any] | None = None

    @property
    def one(self) -> str:
        return f"{'an' if self.title[0] in 'aeiou' else 'a'} {self.title}"

    @property
    def group(self) -> str:
        return f"grid.{self.name}"


def function_kind(
    name: str,
    title: str,
    task: str,
    own: Mapping[str, str],
    given: tuple[str, ...],
    check: Check,
    place: str = "",
    what: str = "",
    before: Callable[..., tuple[Any, ...]] | None = None,
) -> Kind:
    """A kind whose plugins are functions of the arguments `given`; see `Call` for the rest."""
    call = Call(what or f"its {title.split(maxsplit=1)[0]}", given, check, before)
    return Kind(name, title, task, own, lambda _: {"__call__": call}, given, place)


@dataclass(frozen=True)
class Plugin:
    """A class or function that plugs in, before it is made with settings."""

    kind: Kind
    name: str
    target: Any
    origin: Origin
    is_own: bool
    declared: Declared

    @property
    def description(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.target) or "").partition("\n")[0].strip()

    @property
    def meaning(self) -> str:
        """The first paragraph of its docstring, in one line."""
        return " ".join((inspect.getdoc(self.target) or "").partition("\n\n")[0].split())


@dataclass(frozen=True)
class Plugins:
    """The plugins of a scenario next to built-in ones and those of installed packages.

    `sources` are by reference, as the scenario has it; `objects` by kind and name. `packages` are
    the modules of the plugins of installed packages that the scenario names, by their names.
    """

    sources: Mapping[str, Source] = field(default_factory=dict)
    objects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)

    def with_objects(self, objects: Mapping[str, Mapping[str, Any]]) -> Plugins:
        kinds = {**self.objects, **objects}
        merged = {kind: {**self.objects.get(kind, {}), **objects.get(kind, {})} for kind in kinds}
        return Plugins(self.sources, merged, self.packages)

    def names(self, kind: Kind) -> tuple[str, ...]:
        """All names of that kind, built-in ones first. Raises InvalidPlugin for a repeated one."""
        owners = dict.fromkeys(kind.own, "a built-in one")
        points = [(one.name, f"the entry point {one.value}") for one in plugged_in(kind.group)]
        objects = [(name, "an object") for name in self.objects.get(kind.name, ())]
        for name, what in [*points, *objects]:
            if name in owners:
                raise InvalidPlugin(
                    f"{what} with the name {name!r}",
                    f"another name for {kind.one}, since {owners[name]} has it",
                )
            owners[name] = what
        return tuple(owners)

    def find(self, kind: Kind, name: str) -> Plugin:
        """The plugin of that name. Raises InvalidPlugin if there is none."""
        known = self.names(kind)
        if ":" in name:
            return _plugin(kind, name, *self._at(kind, name))
        if name not in known:
            expected = expected_name(name.lower(), known, kind.one)
            if RENAMED_PLUGINS.get(name) in known:
                expected = f"the new name, {RENAMED_PLUGINS[name]}"
            elif not known or name.endswith(".py"):
                expected = f"{kind.one} by file and name, as in my_plugins.py:NAME"
            raise InvalidPlugin(repr(name), expected)
        if name in kind.own:
            return _own_plugin(kind, name)
        objects = self.objects.get(kind.name, {})
        if name in objects:
            publish(objects[name])
            return _plugin(kind, name, objects[name])
        (point,) = (point for point in plugged_in(kind.group) if point.name == name)
        return _plugin(kind, name, _loaded(kind, name, point.value))

    def make(self, kind: Kind, name: str, settings: Settings) -> Any:
        """The plugin of that name with its settings. Raises InvalidPlugin."""
        plugin = self.find(kind, name)
        values = plugin.declared.values(settings)
        if plugin.declared.injects is not None:
            values[plugin.declared.injects] = self
        if kind.given and not inspect.isclass(plugin.target):
            made = WithSettings(plugin.target, values) if values else plugin.target
        else:
            made = _made(plugin, values)
        if plugin.is_own:
            return made
        if kind.given and not callable(made):
            found = f"a {type(made).__name__}, which is not callable ({plugin.origin.place})"
            raise InvalidPlugin(found, f"{kind.one}: a function, or a class with __call__")
        checked = with_checks(plugin.origin, made, kind.calls(made))
        return checked if kind.adapt is None else kind.adapt(checked)

    def absolute(self) -> dict[str, str]:
        """The references to files with absolute paths, by reference."""
        return {
            name: f"{source.path}:{name.rpartition(':')[2]}"
            for name, source in self.sources.items()
            if not source.installed
        }

    def shown(self, name: str) -> str:
        """A reference as messages and tables show it."""
        source = self.sources.get(name)
        return name if source is None else f"{source.shown}:{name.rpartition(':')[2]}"

    def hashes(self) -> dict[str, str | None]:
        """SHA-256 of each plugin that is not built in (of its file and state), None if unknown."""
        found: dict[str, str | None] = {
            self.shown(reference): source.sha256 for reference, source in self.sources.items()
        }
        for objects in self.objects.values():
            found |= {name: identity_of(target) for name, target in objects.items()}
        for name, module in self.packages.items():
            spec = find_spec(module)
            file = None if spec is None else spec.origin
            found[name] = file and hashlib.sha256(Path(file).read_bytes()).hexdigest()
        return dict(sorted(found.items()))

    def _at(self, kind: Kind, reference: str) -> tuple[Any, str]:
        """The object that a reference such as `file.py:Name` names, and its file in messages."""
        name = reference.rpartition(":")[2]
        source = self.sources.get(reference)
        if source is None:
            raise InvalidPlugin(repr(reference), f"{kind.one} of a file that the scenario names")
        try:
            module = source.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _not_loaded(kind, self.shown(reference), error, source) from None
        if not hasattr(module, name):
            there = vars(module).items()
            own = [key for key, one in there if getattr(one, "__module__", "") == source.module]
            expected = expected_name(name, own, f"a class or function of {source.shown}")
            raise InvalidPlugin(repr(reference), expected)
        return getattr(module, name), source.shown


def plugged_in(*groups: str) -> tuple[EntryPoint, ...]:
    """Entry points of packages in these groups, by name; in all groups `grid.*` without any."""
    return tuple(point for point in _entry_points() if not groups or point.group in groups)


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    found = {
        (point.group, point.name, point.value): point
        for distribution in distributions()
        for point in distribution.entry_points
        if point.group.startswith("grid.")
    }
    return tuple(found[key] for key in sorted(found))


def _loaded(kind: Kind, name: str, value: str) -> Any:
    module, _, attribute = value.partition(":")
    try:
        return attrgetter(attribute)(import_module(module))
    except AttributeError:
        expected = f"{kind.one}, and {module} has no {attribute}"
        raise InvalidPlugin(repr(name), expected) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _not_loaded(kind, name if name == value else f"{name} ({value})", error) from None


def _not_loaded(
    kind: Kind, name: str, error: BaseException, source: Source | None = None
) -> InvalidPlugin:
    where, details = "", ""
    if source is not None:
        line, details = frames_in(source.path, error)
        line = getattr(error, "lineno", None) or line or 1
        where = f" ({source.shown}:{line})"
    expected = f"{kind.one} that can be loaded: {in_one_line(error)}{where}"
    return InvalidPlugin(repr(name), expected, details=details)


@cache
def _own_plugin(kind: Kind, name: str) -> Plugin:
    return _plugin(kind, name, _loaded(kind, name, kind.own[name]), is_own=True)


def _plugin(kind: Kind, name: str, target: Any, shown: str = "", *, is_own: bool = False) -> Plugin:
    label = f"{shown}:{name.rpartition(':')[2]}" if shown else name
    if not callable(target):
        found = f"{label}, which is {shorten(target)}"
        raise InvalidPlugin(found, f"{kind.one}: a class or function")
    origin = origin_of(kind.title, label, target, shown)
    try:
        settings = declared(target, len(kind.given), Plugins)
    except Exception as error:
        expected = f"settings as keyword parameters of {label} ({origin.place})"
        found = f"a signature that cannot be read: {in_one_line(error)}"
        raise InvalidPlugin(found, expected) from None
    return Plugin(kind, name, target, origin, is_own, settings)


def _made(plugin: Plugin, values: dict[str, Any]) -> Any:
    try:
        return plugin.target(**values)
    except (PluginFailed, KeyboardInterrupt):
        raise
    except BaseException as error:
        if plugin.is_own:
            raise
        failed = plugin.origin.failed("creating it", error)
        expected = f"{plugin.kind.one} that can be created: {failed}"
        raise InvalidPlugin(repr(plugin.origin.name), expected, (), failed.details) from None


# Objects


def identity_of(target: Any) -> str | None:
    """SHA-256 of the file of a class or function; None for other objects and in notebooks."""
    if not (inspect.isclass(target) or inspect.isfunction(target)):
        return None
    try:
        source = Path(inspect.getsourcefile(target) or "").read_bytes()
    except (OSError, TypeError):
        return None
    return hashlib.sha256(target.__qualname__.encode() + source).hexdigest()


def publish(target: Any) -> None:
    """Make an object's class, and the names in its code, importable in a process that received it.

    A class of a notebook is sent by value; pickle and journals look it up in its module.
    """
    while isinstance(target, partial):
        target = target.func
    if not inspect.isclass(target) and not inspect.isroutine(target):
        target = type(target)
    functions = [target, *vars(target).values()] if inspect.isclass(target) else [target]
    used = [one for function in functions for one in getattr(function, "__globals__", {}).items()]
    for name, value in [(target.__qualname__, target), *used]:
        module = sys.modules.get(getattr(value, "__module__", None) or "")
        is_code = inspect.isclass(value) or inspect.isfunction(value)
        if is_code and module is not None and name == value.__qualname__:
            vars(module).setdefault(name, value)
