"""All kinds of parts that plug in, and where a scenario names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from grid.cluster.gang.processor_choices import PROCESSOR_CHOICES
from grid.config.schema import Scenario
from grid.config.sections import name_and_settings
from grid.config.yaml_tree import Node, child
from grid.model.errors import Path
from grid.model.plugins.registry import Kind
from grid.policies.convergent.weights import HEURISTICS
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
from grid.results.metric_plugins import (
    CLUSTER_METRICS,
    JOB_METRICS,
    VO_METRICS,
    declared_bounds,
)
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
"""By kind, columns and figures of every run: metrics stand beside them under other names."""

_PLACES: tuple[tuple[Kind, tuple[str, ...], str], ...] = (
    (POLICIES, ("vos", "*", "clusters", "*", "policy"), "name"),
    (POLICIES, ("vos_from_trace", "policy"), "name"),
    (SELECTIONS, ("vos", "*", "selection"), "name"),
    (SELECTIONS, ("vos_from_trace", "selection"), "name"),
    (CLUSTER_CHOICES, ("vos", "*", "cluster_choice"), "name"),
    (PROCESSOR_CHOICES, ("vos", "*", "clusters", "*", "processor_choice"), "name"),
    (FORWARDING, ("protocol", "forwarding"), "name"),
    (FORWARDING, ("vos", "*", "forwarding"), "name"),
    (ADMISSION, ("vos", "*", "admission"), "name"),
    (ADMISSION, ("vos_from_trace", "admission"), "name"),
    (INFORMATION, ("protocol", "information"), "name"),
    (DISCOUNTS, ("protocol", "discount"), "name"),
    (MACHINE_GENERATORS, ("vos", "*", "clusters", "*", "machines"), "generator"),
    (JOB_GENERATORS, ("workload",), "generator"),
    (JOB_GENERATORS, ("vos", "*", "workload"), "generator"),
    (JOB_METRICS, ("metrics", "job", "*"), "name"),
    (VO_METRICS, ("metrics", "vo", "*"), "name"),
    (CLUSTER_METRICS, ("metrics", "cluster", "*"), "name"),
)
"""Kinds, paths with `*` for any place of a list, and the key of the name beside settings."""


class PluginUse(NamedTuple):
    """Where the tree of a scenario names a part: the path and node of its name."""

    kind: Kind
    path: Path
    name_path: Path
    name: Node


def plugin_uses(root: Node) -> Iterator[PluginUse]:
    """All places of the tree that name a part, as far as they have the right shape."""
    for kind, pattern, key in _PLACES:
        for path, node in _matching(root, pattern, ()):
            if isinstance(node.value, str) and key == "name":
                yield PluginUse(kind, path, path, node)
            named = child(node, key) if isinstance(node.value, dict) else None
            if named is not None and isinstance(named.value, str):
                yield PluginUse(kind, path, (*path, key), named)


def _matching(node: Node, pattern: tuple[str, ...], path: Path) -> Iterator[tuple[Path, Node]]:
    if not pattern:
        yield path, node
        return
    step, rest = pattern[0], pattern[1:]
    if step == "*":
        for index, inner in enumerate(node.value if isinstance(node.value, list) else ()):
            yield from _matching(inner, rest, (*path, index))
        return
    inner_node = child(node, step)
    if inner_node is not None:
        yield from _matching(inner_node, rest, (*path, step))


def metrics_of(scenario: Scenario) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The metrics that a scenario names, of jobs, VOs and clusters, by what they are called.

    A metric of a file is called by its name there.
    """
    job, vo, cluster = (
        {
            called: scenario.plugins.make(kind, name, settings)
            for called, name, settings in _metrics_of_kind(sections)
        }
        for kind, sections in _metric_sections(scenario)
    )
    return job, vo, cluster


def metric_meanings(scenario: Scenario) -> dict[str, str]:
    """What the same metrics mean, as far as their docstrings say: the first paragraph of each."""
    found = {
        called: scenario.plugins.find(kind, name).meaning
        for kind, sections in _metric_sections(scenario)
        for called, name, _ in _metrics_of_kind(sections)
    }
    return {called: meaning for called, meaning in sorted(found.items()) if meaning}


def metric_bounds(scenario: Scenario) -> dict[str, tuple[float | None, float | None]]:
    """The least and the largest figure of the metrics of VOs that say so."""
    found = {
        called: declared_bounds(scenario.plugins.find(VO_METRICS, name).target)
        for called, name, _ in _metrics_of_kind(scenario.metrics.vo)
    }
    return {called: bounds for called, bounds in found.items() if bounds != (None, None)}


def _metric_sections(scenario: Scenario) -> Iterator[tuple[Kind, Any]]:
    named = scenario.metrics
    yield JOB_METRICS, named.job
    yield VO_METRICS, named.vo
    yield CLUSTER_METRICS, named.cluster


def _metrics_of_kind(sections: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What each is called, the name of its part, and its settings."""
    for section in sections:
        name, settings = name_and_settings(section)
        yield name.rpartition(":")[2], name, dict(settings)
