"""The weights of heuristics, as a scenario gives them to a policy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


def weights_of(
    settings: Mapping[str, Any], known: Iterable[str], default: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, Any]]:
    """The weight of every heuristic that has one, and the other settings.

    `weights` maps names among those `known` to numbers; what it leaves out has its default.
    Raises ValueError.
    """
    others = dict(settings)
    given = others.pop("weights", {})
    names = list(known)
    if not isinstance(given, Mapping):
        raise ValueError(f"weights: found {given!r}, expected a number for each heuristic")
    for name, weight in given.items():
        if name not in names:
            raise ValueError(f"weights: found {name!r}, expected some of {', '.join(names)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ValueError(f"weights: found {weight!r} for {name}, expected a number")
        if not math.isfinite(weight):
            raise ValueError(f"weights: found {weight!r} for {name}, expected a finite number")
    chosen = {**default, **given}
    return {name: float(weight) for name, weight in chosen.items() if weight}, others
