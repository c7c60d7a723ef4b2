"""After how much virtual time without a change of any job a run is stopped."""

from __future__ import annotations

from grid.config.build import Grid
from grid.config.sections import name_and_settings
from grid.model.time import Time, from_seconds, to_seconds
from grid.protocol.registry import FORWARDING, INFORMATION

WAITS = 100
"""The span is so many times the sum of all timings that a job may wait for in turn."""
LEAST_S = 60.0


def stall_span_us(grid: Grid) -> Time | None:
    """The span for a `StallDetector`; None in a grid without VOs that exchange jobs.

    By default `WAITS` times the sum of the latencies and of the settings in seconds of the
    forwarding policies and the overlay (their names end in `_s`), and the longest cut of a link.
    """
    protocol, network = grid.settings.protocol, grid.settings.network
    if protocol.stall_after_s is not None:
        return from_seconds(protocol.stall_after_s)
    if not any(table is not None for table in grid.submitted):
        return None
    policies = [name_and_settings(protocol.forwarding)]
    policies += [(vo.forwarding, vo.forwarding_settings) for vo in grid.vos if vo.forwarding]
    plugins = [(FORWARDING, *policy) for policy in policies]
    plugins.append((INFORMATION, *name_and_settings(protocol.information)))
    waits_s = to_seconds(network.longest_us) + network.local_latency_s
    for kind, name, settings in plugins:
        fields = grid.plugins.find(kind, name).declared.model.model_fields
        given = {setting: field.default for setting, field in fields.items()} | dict(settings)
        waits_s += sum(
            value
            for setting, value in given.items()
            if setting.endswith("_s") and isinstance(value, int | float)
        )
    if grid.network.faults is not None:
        waits_s += to_seconds(grid.network.faults.longest_cut_us)
    return from_seconds(min(1e12, max(LEAST_S, WAITS * waits_s)))
