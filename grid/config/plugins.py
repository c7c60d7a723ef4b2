"""The plugins that a scenario names: their kinds, the fields that name them, and their checks.

A check imports the files that a scenario names and makes each plugin once, since there is no other
way to know whether it can be made. That runs code of the user, also on `grid check`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from grid.cluster.gang.processor_choices import PROCESSOR_CHOICES
from grid.config.schema import Scenario
from grid.model.errors import ErrorLine, InvalidPlugin, Path, Problem, expected_name, shorten
from grid.model.fields import PluginOf, PluginRef, entries, is_section, keys_of, sections_in
from grid.model.plugins.registry import Kind, Plugins, plugged_in
from grid.model.plugins.source import is_reference, resolve_reference
from grid.policies.convergent.heuristics import HEURISTICS
from grid.policies.registry import POLICIES
from grid.protocol.registry import (
    ADMISSION,
    CLUSTER_CHOICES,
    DISCOUNTS,
    FORWARDING,
    INFORMATION,
    SELECTIONS,
)
from grid.results.definitions import FILES, METRICS
from grid.results.metric_plugins import CLUSTER_METRICS, JOB_METRICS, VO_METRICS, declared_bounds
from grid.workload.generators import JOB_GENERATORS, MACHINE_GENERATORS

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        POLICIES, SELECTIONS, FORWARDING, ADMISSION, INFORMATION, DISCOUNTS, CLUSTER_CHOICES,
        PROCESSOR_CHOICES, JOB_GENERATORS, MACHINE_GENERATORS, JOB_METRICS, VO_METRICS,
        CLUSTER_METRICS, HEURISTICS,
    )
}  # fmt: skip

TAKEN: Mapping[str, Iterable[str]] = {
    JOB_METRICS.name: FILES["jobs"].columns,
    VO_METRICS.name: METRICS,
    CLUSTER_METRICS.name: FILES["series"].columns,
}
"""By kind, names of built-in columns and metrics, which plugins cannot have."""


class PluginUse(NamedTuple):
    """A plugin that a scenario names, with the paths of its name and of its settings."""

    kind: Kind
    name: str
    settings: Mapping[str, Any]
    name_path: Path
    settings_path: Path


def plugin_uses(section: Any, path: Path = ()) -> Iterator[PluginUse]:
    """All plugins that a section and its inner sections name, by fields with `PluginOf`."""
    for key, kind in _naming_keys(section.__class__).items():
        for where, one in entries(section, key, path):
            if kind is None:
                yield from plugin_uses(one, where) if is_section(one) else ()
            elif isinstance(one, PluginRef):
                yield PluginUse(
                    kind, one.name, one.settings, (*where, "name"), (*where, "settings")
                )
            else:
                yield PluginUse(kind, one, section.settings, where, (*path, "settings"))


@cache
def _naming_keys(section: type) -> dict[str, Kind | None]:
    """The keys that name a plugin of a kind, and those of sections with such keys."""
    if not is_section(section):
        return {}
    found: dict[str, Kind | None] = {}
    for key, field in keys_of(section).items():
        kind = plugin_kind(field)
        if kind is not None or any(map(_naming_keys, sections_in(field.annotation))):
            found[key] = kind
    return found


def plugin_kind(field: FieldInfo) -> Kind | None:
    """The kind of plugins that a field of a section names."""
    return next((KINDS[one.kind] for one in field.metadata if isinstance(one, PluginOf)), None)


def _with_heuristics(uses: Iterable[PluginUse]) -> Iterator[PluginUse]:
    """The same, and the heuristics that the weights of policies name."""
    for use in uses:
        yield use
        weights = use.settings.get("weights") if use.kind is POLICIES else None
        for name in weights if isinstance(weights, Mapping) else ():
            path = (*use.settings_path, "weights", name)
            yield PluginUse(HEURISTICS, str(name), {}, path, path)


def find_plugins(
    scenario: Scenario, folders: Sequence[FilePath], given: Plugins
) -> tuple[Plugins, list[Problem]]:
    """The sources of all files that the scenario names, which are looked up in the `folders`.

    Sources of `given` are not read again. Returns problems for files that are not found.
    """
    sources, packages = dict(given.sources), dict(given.packages)
    problems: list[Problem] = []
    for use in _with_heuristics(plugin_uses(scenario)):
        if use.name not in sources and is_reference(use.name):
            try:
                sources[use.name] = resolve_reference(use.name, folders)[1]
            except (OSError, ValueError) as error:
                problems.append((use.name_path, "", f"{use.kind.one}: {error}"))
        points = plugged_in(use.kind.group)
        packages |= {one.name: one.module for one in points if one.name == use.name}
    return Plugins(sources, given.objects, packages), problems


def plugin_problems(uses: Iterable[PluginUse], plugins: Plugins) -> Iterator[Problem]:
    """Plugins that cannot be made with their settings; each is tried once."""
    tried: dict[str, InvalidPlugin | None] = {}
    taken = {kind: list(names) for kind, names in TAKEN.items()}
    for use in uses:
        if use.kind.name in taken:
            name = use.name.rpartition(":")[2]
            if name in taken[use.kind.name]:
                expected = f"another name for {use.kind.one}: {name} already exists"
                yield use.name_path, repr(use.name), expected
            taken[use.kind.name].append(name)
        tag = f"{use.kind.name} {use.name} {use.settings!r}"
        if tag not in tried:
            tried[tag] = _invalid(use, plugins)
        error = tried[tag]
        if error is not None and error.path:
            yield (*use.settings_path, *error.path), error.found, error.expected
        elif error is not None:
            found = error.found if repr(use.name) in error.found else f"{use.name!r}, {error.found}"
            yield use.name_path, found, error.expected


def _invalid(use: PluginUse, plugins: Plugins) -> InvalidPlugin | None:
    try:
        plugin = plugins.find(use.kind, use.name)
        if plugin.is_own and (use.kind.given or not use.settings):
            plugin.declared.values(use.settings)  # making it may import much
        else:
            plugins.make(use.kind, use.name, use.settings)
    except InvalidPlugin as error:
        return error
    except (TypeError, ValueError) as error:
        return InvalidPlugin(shorten(use.settings), f"pairs of names and values ({error})")
    return None


def object_errors(objects: Mapping[str, Mapping[str, Any]], source: str) -> list[ErrorLine]:
    """Errors in the objects that a run was given, by kind and name."""
    errors = []
    plugins = Plugins({}, objects)
    for kind, of in objects.items():
        if kind not in KINDS:
            expected = f"an argument of this function, or {expected_name(kind, KINDS, 'a kind')}"
            errors.append(ErrorLine(source, None, kind, repr(kind), expected))
        elif not isinstance(of, Mapping):
            expected = f"a mapping of names to {KINDS[kind].title} objects"
            errors.append(ErrorLine(source, None, kind, shorten(of), expected))
        for name in of if kind in KINDS and isinstance(of, Mapping) else ():
            try:
                plugins.find(KINDS[kind], name)
            except InvalidPlugin as error:
                found = ErrorLine(source, None, f"{kind}.{name}", error.found, error.expected)
                errors.append(found)
    return errors


def unnamed_objects(
    objects: Mapping[str, Mapping[str, Any]], scenarios: Iterable[Scenario], source: str
) -> list[ErrorLine]:
    """An error for each kind of objects that no scenario uses: they have no effect."""
    uses = (use for one in scenarios for use in plugin_uses(one))
    named = {use.name for use in _with_heuristics(uses)} if objects else set()
    expected = "names that the scenario uses, or no objects of this kind"
    unnamed = {kind: of for kind, of in objects.items() if of and named.isdisjoint(of)}
    return [
        ErrorLine(
            source, None, kind, f"{', '.join(map(repr, of))}, which no scenario uses", expected
        )
        for kind, of in unnamed.items()
    ]


# Metrics


def metrics_of(scenario: Scenario) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The metrics of jobs, VOs and clusters that a scenario names, by their names in results."""
    job, vo, cluster = (
        {one.short_name: scenario.plugins.make(kind, one.name, one.settings) for one in named}
        for kind, named in _named_metrics(scenario)
    )
    return job, vo, cluster


def metric_meanings(scenario: Scenario) -> dict[str, str]:
    """The first paragraph of the docstrings of the same metrics, if they have one."""
    find = scenario.plugins.find
    each = [(kind, one) for kind, named in _named_metrics(scenario) for one in named]
    found = {one.short_name: find(kind, one.name).meaning for kind, one in each}
    return {called: meaning for called, meaning in sorted(found.items()) if meaning}


def metric_bounds(scenario: Scenario) -> dict[str, tuple[float | None, float | None]]:
    """The least and the largest value of metrics of VOs that declare them."""
    find, named = scenario.plugins.find, scenario.metrics.vo
    found = {one.short_name: declared_bounds(find(VO_METRICS, one.name).target) for one in named}
    return {called: bounds for called, bounds in found.items() if bounds != (None, None)}


def _named_metrics(scenario: Scenario) -> tuple[tuple[Kind, tuple[PluginRef, ...]], ...]:
    of = scenario.metrics
    return (JOB_METRICS, of.job), (VO_METRICS, of.vo), (CLUSTER_METRICS, of.cluster)
