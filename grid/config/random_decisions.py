"""Rules of the protocol drawn at random, different ones for each seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.config.grid_sections import ProtocolSection
from grid.config.schema import Scenario, VoSection
from grid.config.sections import PartSection
from grid.kernel.entity import random_stream
from grid.model.plugins.kind import Kind
from grid.protocol.registry import ADMISSION, DISCOUNTS, FORWARDING, INFORMATION, SELECTIONS

TIES = ("own_vo", "first", "random")
SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "above_load": {"load": (0.5, 1.0, 2.0)},
    "until_idle": {
        "hops": (0, 1, 5), "next_vo": ("random", "least_loaded"), "then": ("queue", "reject"),
    },
    "best_expected_finish": {"margin_s": (0.0, 2.0), "queued_run_s": (None, 3.0)},
    "reserve": {
        "lease_s": (0.1, 5.0, 60.0), "wait_s": (0.1, 5.0), "tries": (1, 3), "at_once": (1, 2),
    },
    "auction": {
        "wait_s": (0.1, 5.0), "bidders": (None, 1), "lease_s": (0.0, 0.1, 5.0),
        "when": ("busy", "always"),
    },
    "redundant": {
        "copies": (2, 4), "wave": (None, 1), "wave_s": (0.5, 5.0), "others": ("best", "random"),
        "lease_s": (0.1, 5.0, 60.0),
    },
    "delegated": {"children": (2, 4), "wait_s": (0.1, 5.0), "lease_s": (0.1, 60.0)},
    "pull": {
        "from_vo": ("random", "most_loaded"), "tries": (1, 3), "every_s": (None, 1.0, 10.0),
    },
    "partial": {"ties": (*TIES, "less_loaded")},
    "random": {"by_utility": (False, True)},
    "least_loaded": {"ties": TIES, "by_utility": (False, True)},
    "earliest_completion": {"ties": TIES, "by_utility": (False, True)},
    "power_of_d": {"d": (1, 2, 3), "ties": TIES, "by_utility": (False, True)},
    "ring": {"reach": (1, 2)},
    "random_regular": {"degree": (1, 2, 3)},
    "small_world": {"reach": (1, 2), "rewired": (0.1, 1.0)},
    "tree": {"children": (1, 2)},
    "edges": {"edges": (((0, 1),), ((0, 1), (1, 2)))},
    "gossip": {
        "mode": ("push", "pull", "push_pull"), "fan_out": (1, 2), "period_s": (1.0, 5.0),
        "view_size": (None, 1), "times": ("periodic", "shuffled", "poisson"),
    },
    "index": {"children": (1, 2), "period_s": (1.0, 5.0)},
    "probes": {"count": (1, 2), "timeout_s": (0.1, 5.0), "keep": (False, True)},
    "by_age": {"horizon_s": (1.0, 60.0)},
    "limited": {
        "jobs": (None, 0, 1, 3), "processors": (None, 1, 4), "load": (None, 0.5, 1.0, 2.0),
    },
}  # fmt: skip
"""What settings of parts are drawn from; others have none, or keep their defaults."""


def with_random_decisions(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with another rule of forwarding, another TTL and so on, drawn with `seed`."""
    stream = random_stream(seed, "decisions")
    changes: dict[str, Any] = {
        "when_busy": _part(FORWARDING, stream),
        "information": _one_of(("all", _part(INFORMATION, stream)), stream),
        "discount": _one_of(("as_told", _part(DISCOUNTS, stream)), stream),
        "ttl": _one_of((0, 1, 2, 3, 6), stream),
        "avoid_loops": _one_of((False, True), stream),
        "when_refused": _one_of(("next", "home", "reject"), stream),
    }
    if isinstance(changes["information"], PartSection) and changes["information"].name == "edges":
        changes["information"] = _between(changes["information"], scenario)
    protocol = ProtocolSection.model_validate(dict(scenario.protocol) | changes)
    vos = [_drawn(vo, stream) for vo in scenario.vos or ()]
    return scenario.model_copy(update={"protocol": protocol, "vos": tuple(vos) or None})


def _between(overlay: PartSection, scenario: Scenario) -> PartSection:
    """The overlay without the edges to VOs that the scenario does not have."""
    vos = sum(vo.count or 1 for vo in scenario.vos or ())
    there = tuple(edge for edge in overlay.settings["edges"] if max(edge) < vos)
    return overlay.model_copy(update={"settings": {"edges": there}})


def _drawn(vo: VoSection, stream: np.random.Generator) -> VoSection:
    changes: dict[str, Any] = {
        "when_busy": _one_of((None, None, _part(FORWARDING, stream)), stream),
        "selection": _part(SELECTIONS, stream),
        "admission": _one_of(("everyone", _part(ADMISSION, stream)), stream),
        "priority": _one_of(("none", "home", "afar"), stream),
    }
    return vo.model_copy(update=changes)


def _part(kind: Kind, stream: np.random.Generator) -> PartSection:
    name = _one_of(tuple(kind.own), stream)
    settings = {key: _one_of(of, stream) for key, of in SETTINGS.get(name, {}).items()}
    return PartSection(name=name, settings=settings)


def _one_of(values: tuple[Any, ...], stream: np.random.Generator) -> Any:
    return values[int(stream.integers(len(values)))]
