"""The page of the reference on cores of clusters, and what each takes account of."""

from __future__ import annotations

import inspect
from importlib import import_module

from key_words import MADE, markdown

from grid.cluster import engines
from grid.model.plugins.registry import Parts
from grid.policies.gang_policy import GangPolicy
from grid.policies.registry import POLICIES

KEYS = {
    "memory": "ram_mb",
    "machine outages": "faults.machine_outages",
    "machines switched off": "switch_off",
    "jobs over their estimates": "overrun: extend",
    "exact estimates": "estimates: exact",
    "predicted estimates": "estimates: average",
}
"""Of features whose field does not say it all."""


def cores_page() -> str:
    """Which core plays which cluster."""
    cores = list(engines.CAPABILITIES)
    lines = [f"{MADE}# The cores of clusters\n"]
    lines.append(
        "A cluster is played by one of these cores. You do not choose: the fastest one that can "
        "do what the scenario asks for is taken. What no core, or the policy, would take account "
        "of is a mistake, which `grid check` reports.\n"
    )
    for core in cores:
        about = inspect.getdoc(import_module(f"grid.cluster.{core}")) or ""
        lines.append(f"`{core}`\n: {markdown(about.partition(chr(10))[0])}\n")
    lines.append("| what a scenario may ask for | by the key | " + " | ".join(cores) + " |")
    lines.append("| --- | --- |" + " --- |" * len(cores))
    for feature, (field, _) in engines.FEATURES.items():
        marks = ["yes" if feature in engines.CAPABILITIES[core] else "-" for core in cores]
        lines.append(f"| {feature} | `{KEYS.get(feature, field)}` | " + " | ".join(marks) + " |")
    lines.append("\n| policy | takes no account of |\n| --- | --- |")
    for features, policies in ignored_by_policies().items():
        named = ", ".join(f"`{name}`" for name in policies)
        lines.append(f"| {named} | {', '.join(features)} |")
    return "\n".join(lines) + "\n"


def ignored_by_policies() -> dict[tuple[str, ...], list[str]]:
    """The policies of ours that take no account of something, by what that is."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in POLICIES.own:
        # A process of others that is started, with a command that it needs.
        settings = {"command": "x {endpoint}"} if name == "batsim" else {}
        policy = Parts().make(POLICIES, name, settings)
        is_gang = isinstance(policy, GangPolicy)
        of_gangs = set(engines.FEATURES) - set(engines.CAPABILITIES["gang"])
        ignores = of_gangs if is_gang else {*getattr(policy, "ignores", ())}
        if ignores:
            told = tuple(feature for feature in engines.FEATURES if feature in ignores)
            found.setdefault(told, []).append(name)
    return found
