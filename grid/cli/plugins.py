"""`grid plugins`, `grid policies`, `grid metrics` and `grid batsim-server`."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import typer

from grid.cli.endings import endings, naming_options, wrong

if TYPE_CHECKING:
    from grid.model.plugins.registry import Kind

POLICY_GROUPS = {
    "grid.policies.convergent": "Convergent Scheduling: priorities in a matrix of jobs and "
    "machines",
    "grid.policies.schedule": "schedules: all jobs are planned ahead",
    "grid.policies.gang_policy": "gangs: all tasks of a job start together",
    "grid.policies.batsim": "external: another process makes the decisions",
    "grid.policies": "queues: jobs start in order, with or without backfilling",
}
"""Titles of built-in policies by the prefix of their module; the first that matches counts."""
PLUGINS = "plugins"


def plugins(kind: str | None = None, name: str | None = None) -> None:
    """List the plugins of all kinds, or show one with its settings. Plugin files are imported."""
    from grid.config.plugins import KINDS
    from grid.model.errors import expected_name

    if kind is not None and kind not in KINDS:
        wrong([f"kind: found {kind!r}, expected {expected_name(kind, KINDS, 'a kind')}"])
    with endings():
        if kind is not None and name is not None:
            _show(KINDS[kind], name)
            return
        for one in KINDS.values() if kind is None else (KINDS[kind],):
            _list(one)


def policies() -> None:
    """List the local scheduling policies, grouped by kind."""
    from grid.model.plugins.registry import Plugins
    from grid.policies.registry import POLICIES

    known = Plugins()
    titles = [*reversed(POLICY_GROUPS.values()), PLUGINS]
    groups: dict[str, list[str]] = {title: [] for title in titles}
    for name in known.names(POLICIES):
        module = POLICIES.own.get(name, "")
        fitting = [title for prefix, title in POLICY_GROUPS.items() if module.startswith(prefix)]
        about = known.find(POLICIES, name).description
        groups[[*fitting, PLUGINS][0]].append(f"  {name:16} {about}")
    for title, lines in groups.items():
        if lines:
            typer.echo(f"{title}\n" + "\n".join(lines))
    typer.echo("Details: grid plugins policies NAME")


def metrics(names: list[str] | None = None, as_json: bool = False) -> None:
    """Print the definitions of metrics, with their units, ranges and sources."""
    from grid.results.definitions import METRICS

    unknown = [name for name in names or () if name not in METRICS]
    if unknown:
        from grid.lab.experiment import metric_like

        first = unknown[0]
        wrong([f"name: found {first!r}, expected {metric_like(first, list(METRICS))}"])
    chosen = [METRICS[name] for name in names or METRICS]
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in chosen], indent=2))
        return
    for one in chosen:
        typer.echo(f"{one.name}: {one.label}")
        facts = {"aggregation": one.over, "range": one.values, "better": one.better,
                 "source": one.source}  # fmt: skip
        said = "; ".join(f"{name}: {text}" for name, text in facts.items() if text)
        for text in (one.meaning, said):
            typer.echo(fill(text, 96, initial_indent="    ", subsequent_indent="    "))


def _list(kind: Kind) -> None:
    from grid.model.plugins.registry import Plugins

    typer.echo(f"{kind.name}: {kind.task}")
    typer.echo(f"  in a scenario: {kind.place}; entry points: {kind.group}")
    known = Plugins()
    width = max(map(len, known.names(kind)), default=0)
    for name in known.names(kind):
        typer.echo(f"  {name:{width}}  {known.find(kind, name).description}")


def _show(kind: Kind, name: str) -> None:
    from grid.model.errors import InvalidPlugin
    from grid.model.plugins.registry import Plugins
    from grid.model.plugins.settings import setting_lines
    from grid.model.plugins.source import is_reference, resolve_reference

    known = Plugins()
    if is_reference(name):
        try:
            name, source = resolve_reference(name, (Path(),))
        except (OSError, ValueError) as error:
            raise InvalidPlugin(repr(name), f"{kind.one}: {error}") from None
        known = Plugins({name: source})
    plugin = known.find(kind, name)
    typer.echo(f"{plugin.origin.name}, {kind.one}: {kind.task}")
    typer.echo(inspect.getdoc(plugin.target) or "It has no docstring.")
    settings = list(setting_lines(plugin.declared.model))
    typer.echo("settings:" if settings else "It has no settings.")
    for line in settings:
        typer.echo(f"  {line}")


def batsim_server(
    policy: str, endpoint: str = "tcp://127.0.0.1:28000", overrides: list[str] | None = None
) -> None:
    """Serve a policy as a scheduler for Batsim, using version 4 of its protocol.

    The server stops after one simulation. A job is allocated the free resources
    with the lowest numbers.
    """
    with endings():
        import yaml  # type: ignore[import-untyped]

        from grid.integrations.batsim import Server, serve
        from grid.model.errors import input_error, need
        from grid.policies.registry import make_policy

        need("grid batsim-server", "batsim", "zmq")
        settings = {}
        for one in overrides or ():
            key, is_set, text = one.partition("=")
            if not is_set:
                raise input_error("--set", repr(one), "KEY=VALUE")
            try:
                settings[key] = yaml.safe_load(text)
            except yaml.YAMLError:
                raise input_error("--set", repr(one), "a value in YAML") from None
        with naming_options("endpoint"):
            serve(Server(make_policy(policy, settings), policy), endpoint)
