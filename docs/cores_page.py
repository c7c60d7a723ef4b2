"""The reference page on what clusters support."""

from __future__ import annotations

from key_words import MADE

from grid.model.plugins.registry import Plugins
from grid.policies import features
from grid.policies.registry import POLICIES

KEYS = {
    "resources": "resources",
    "machine outages": "faults.machine_outages",
    "switching machines off": "switch_off",
    "overrunning jobs": "overrun: extend",
    "exact estimates": "estimates: exact",
    "predicted estimates": "estimates: average",
}
"""Of features whose field does not say it all."""


def cores_page() -> str:
    """What clusters support, and which policies do not."""
    modes = ("queue and schedule policies", "gang policies")
    lines = [f"{MADE}# What clusters support\n"]
    lines.append(
        "One engine simulates the clusters of all policies; gang policies have their own mode. "
        "`grid check` refuses features that the mode or the policy does not support.\n"
    )
    lines.append("| feature | key | " + " | ".join(modes) + " |")
    lines.append("| --- | --- |" + " --- |" * len(modes))
    for feature, (field, _, gangs, _) in features.FEATURES.items():
        able = [feature != "processor placement", gangs]
        marks = " | ".join("yes" if one else "-" for one in able)
        lines.append(f"| {feature} | `{KEYS.get(feature, field)}` | {marks} |")
    lines.append("\n| policy | does not support |\n| --- | --- |")
    for unsupported, policies in ignored_by_policies().items():
        named = ", ".join(f"`{name}`" for name in policies)
        lines.append(f"| {named} | {', '.join(unsupported)} |")
    return "\n".join(lines) + "\n"


def ignored_by_policies() -> dict[tuple[str, ...], list[str]]:
    """The shipped policies that do not support something, by what that is."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in POLICIES.own:
        # `batsim` needs the command of its external process.
        settings = {"command": "x {endpoint}"} if name == "batsim" else {}
        policy = Plugins().make(POLICIES, name, settings)
        ignores = [one for one in features.unsupported(policy) if one != "processor placement"]
        if ignores:
            found.setdefault(tuple(ignores), []).append(name)
    return found
