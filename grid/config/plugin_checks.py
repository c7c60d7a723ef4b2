"""What a scenario plugs in: finds the files that it names, and says what is wrong with its parts.

A part of another is imported, and a policy, selection or rule of forwarding made once for a trial,
for there is no other way to know whether it can be: that runs what stands at the top of its file
and in its `__init__`, also on `grid check`. Nothing is asked of it. Parts of ours run no code of a
user.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel

from grid.config.plugin_kinds import KINDS, TAKEN, PluginUse, plugin_uses
from grid.config.schema import Scenario
from grid.config.validate import NO_SUCH_SETTING, validate
from grid.config.yaml_tree import Node, at, nearest
from grid.model.errors import ErrorLine, InvalidPlugin, Path, expected_name, shorten
from grid.model.plugins.registry import Plugin, Plugins, modules_plugged_in
from grid.model.plugins.source import Source, is_reference, resolve_reference
from grid.policies.convergent.weights import HEURISTICS


def find_plugins(
    root: Node, folders: Sequence[FilePath], given: Plugins
) -> tuple[Plugins, list[ErrorLine]]:
    """The sources of all files that the tree names, and its references with absolute paths.

    What `given` has is not read again. Returns mistakes for references that lead nowhere.
    """
    sources: dict[str, Source] = dict(given.sources)
    packages: dict[str, str] = dict(given.packages)
    problems: list[ErrorLine] = []

    def found(reference: str, node: Node, path: Path, what: str) -> str:
        if reference in sources:
            return reference
        try:
            reference, source = resolve_reference(reference, folders)
        except (OSError, ValueError) as error:
            problems.append(node.error(path, f"{what}: {error}"))
        else:
            sources[reference] = source
        return reference

    for place in plugin_uses(root):
        name = str(place.name.value)
        if is_reference(name):
            place.name.value = found(name, place.name, place.name_path, f"{place.kind.one}")
        packages |= modules_plugged_in(place.kind, name)
        weights = at(root, (*place.path, "settings", "weights"))
        if weights is not None and isinstance(weights.value, dict):
            path = (*place.path, "settings", "weights")
            for name in map(str, weights.value):
                packages |= modules_plugged_in(HEURISTICS, name)
            for name in [name for name in weights.value if is_reference(name)]:
                node = weights.value.pop(name)
                new = found(name, node, (*path, name), f"{HEURISTICS.one}")
                weights.value[new] = node
    return Plugins(sources, given.objects, packages), problems


def as_written(problems: Sequence[ErrorLine], parts: Plugins) -> list[ErrorLine]:
    """The same with references as messages call them, not with absolute paths.

    A long path is cut short, and may then be that of several.
    """
    cut = Counter(map(shorten, parts.sources))

    def written(text: str) -> str:
        for long in parts.sources:
            short = parts.shown(long)
            text = text.replace(long, short)
            if cut[shorten(long)] == 1:
                text = text.replace(shorten(long), short)
        return text

    return [replace(one, field=written(one.field), found=written(one.found)) for one in problems]


def object_errors(objects: Mapping[str, Mapping[str, Any]], source: str) -> list[ErrorLine]:
    """What is wrong with the objects that a run was given, by kind and name."""
    problems = []
    parts = Plugins({}, objects)
    for kind_name, of in objects.items():
        if kind_name not in KINDS:
            expected = expected_name(kind_name, KINDS, "a kind of parts")
            if not isinstance(of, Mapping):
                expected = "an argument of this function or a kind of parts, such as policies; "
                expected += "settings of a scenario go into `set`"
            problems.append(ErrorLine(source, None, kind_name, repr(kind_name), expected))
            continue
        if not isinstance(of, Mapping) or not all(isinstance(name, str) for name in of):
            found = f"{type(of).__name__} {shorten(of)}"
            expected = f"a mapping of names to {KINDS[kind_name].title} objects"
            problems.append(ErrorLine(source, None, kind_name, found, expected))
            continue
        for name in of:
            try:
                parts.find(KINDS[kind_name], name)
            except InvalidPlugin as error:
                problems.append(
                    _error_line(ErrorLine(source, None, f"{kind_name}.{name}", "", ""), error)
                )
    return problems


def unnamed_objects(
    objects: Mapping[str, Mapping[str, Any]], scenarios: Iterable[Scenario], source: str
) -> list[ErrorLine]:
    """A mistake for each kind of which none of the scenarios names any object: they do nothing.

    Who runs one of several after the other may give all of them each time.
    """
    if not objects:
        return []
    named = {word for one in scenarios for word in _words(one.model_dump())}
    found = "{}, of which the scenario names none"
    expected = "a name that stands in the scenario, or no objects of this kind"
    return [
        ErrorLine(source, None, kind, found.format(", ".join(map(repr, of))), expected)
        for kind, of in objects.items()
        if of and named.isdisjoint(of)
    ]


def _words(tree: Any) -> Iterator[str]:
    """All texts and keys in nested mappings and sequences."""
    match tree:
        case str():
            yield tree
        case Mapping():
            yield from map(str, tree)
            for value in tree.values():
                yield from _words(value)
        case list() | tuple():
            for value in tree:
                yield from _words(value)


def plugin_errors(root: Node, parts: Plugins) -> list[ErrorLine]:
    """What is wrong with the names and settings of the parts that the tree names."""
    problems = list(_taken_names(root, parts))
    # Many clusters have the same policy; each is looked at once.
    known: dict[tuple[str, str], Plugin | InvalidPlugin] = {}
    for place in plugin_uses(root):
        name = str(place.name.value)
        key = (place.kind.name, name)
        if key not in known:
            known[key] = _found(place, parts)
        part = known[key]
        if isinstance(part, InvalidPlugin):
            node = place.name.error(place.name_path, part.expected, part.found)
            problems.append(_error_line(node, part))
        else:
            problems += _settings_mistakes(root, place, part, parts)
    return problems


def _taken_names(root: Node, parts: Plugins) -> Iterator[ErrorLine]:
    """Metrics that are called as a column or figure of every run is, or as another metric."""
    known: dict[str, dict[str, str]] = {
        kind: dict.fromkeys(names, "every run") for kind, names in TAKEN.items()
    }
    for place in plugin_uses(root):
        if place.kind.name in known:
            names = known[place.kind.name]
            name = str(place.name.value).rpartition(":")[2]
            if name in names:
                expected = f"another name for {place.kind.one}, for {names[name]} has a {name}"
                found = repr(parts.shown(str(place.name.value)))
                yield place.name.error(place.name_path, expected, found)
            names.setdefault(name, "this scenario")


def _found(place: PluginUse, parts: Plugins) -> Plugin | InvalidPlugin:
    try:
        return parts.find(place.kind, str(place.name.value))
    except InvalidPlugin as error:
        return error


def _settings_mistakes(
    root: Node, place: PluginUse, part: Plugin, parts: Plugins
) -> Iterator[ErrorLine]:
    path = (*place.path, "settings")
    model: type[BaseModel] = part.declared.model
    settings = validate(root, model, path)
    if isinstance(settings, list):
        none = f"none, for {parts.shown(part.name)} has no settings"
        for one in settings:
            if one.expected == NO_SUCH_SETTING and not model.model_fields:
                yield replace(one, found="a setting", expected=none)
            elif one.found == "nothing" and not part.is_own:
                # It may be an argument too many of a function that has no settings.
                name, origin = one.field.rpartition(".")[2], part.origin
                stands = f"{origin.shown}:{origin.line}"
                expected = f"a value, for {name} is a parameter without a default ({stands})"
                yield replace(one, expected=expected)
            else:
                yield one
        return
    node = at(root, path)
    if part.is_own and node is None:
        return
    if place.kind.given and part.is_own:
        return
    try:
        parts.make(place.kind, part.name, {} if node is None else node.plain())
    except InvalidPlugin as error:
        where = (*path, *error.path) if error.path else place.name_path
        found = error.found
        if not error.path and not part.is_own and found != repr(part.origin.name):
            found = f"{part.origin.name!r}, {found}"
        yield _error_line(nearest(root, where).error(where, error.expected, found), error)


def _error_line(problem: ErrorLine, error: InvalidPlugin) -> ErrorLine:
    return ErrorLine(
        problem.file,
        problem.line,
        problem.field,
        problem.found or error.found,
        problem.expected or error.expected,
        error.details,
    )
