"""Rules of the protocol drawn at random, different ones for each seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.forwarding.rules import FORWARDING
from grid.kernel.entity import random_stream
from grid.scenario.schema import ProtocolSection, Scenario
from grid.scenario.sections import PartSection

RULE_SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "above_load": {"load": (0.5, 1.0, 2.0)},
    "until_idle": {
        "hops": (0, 1, 5), "next_vo": ("random", "least_loaded"), "then": ("queue", "reject"),
    },
    "best_expected_finish": {"margin_s": (0.0, 2.0), "queued_run_s": (None, 3.0)},
}  # fmt: skip
"""What settings of rules of forwarding are drawn from; others have none, or keep their defaults."""


def with_random_decisions(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with another rule of forwarding, another TTL and so on, drawn with `seed`."""
    stream = random_stream(seed, "decisions")
    name = _one_of(tuple(FORWARDING.own), stream)
    settings = {key: _one_of(of, stream) for key, of in RULE_SETTINGS.get(name, {}).items()}
    changes: dict[str, Any] = {
        "when_busy": PartSection(name=name, settings=settings),
        "ttl": _one_of((0, 1, 2, 3, 6), stream),
        "avoid_loops": _one_of((False, True), stream),
    }
    protocol = ProtocolSection.model_validate(dict(scenario.protocol) | changes)
    return scenario.model_copy(update={"protocol": protocol})


def _one_of(values: tuple[Any, ...], stream: np.random.Generator) -> Any:
    return values[int(stream.integers(len(values)))]
