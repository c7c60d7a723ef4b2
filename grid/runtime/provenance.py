"""What a run hangs on beside its scenario and seed, for the manifest."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import Any

from grid import __version__
from grid.scenario.part_kinds import metric_meanings
from grid.scenario.schema import Scenario
from grid.scenario.traces import hashes_of_logs

LIBRARIES = ("numba", "numpy", "scipy")


def versions() -> dict[str, Any]:
    """That of the emulator, and those of what it stands on."""
    others = {"python": python_version()} | {name: version(name) for name in LIBRARIES}
    return {"version": __version__, "versions": others}


def made_from(scenario: Scenario) -> dict[str, Any]:
    """Hashes of the parts and logs of a scenario, and what its metrics mean. Raises OSError."""
    return {
        "parts": scenario.parts.hashes(),
        "logs": hashes_of_logs(scenario),
        "meanings": metric_meanings(scenario),
    }
