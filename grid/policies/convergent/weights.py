"""Which heuristics a policy has, and with which weights, as a scenario says it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix
from grid.policies.registry import HEURISTICS, load, plugged_in


def weights_of(
    settings: Mapping[str, Any], known: Iterable[str], default: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, Any]]:
    """The weight of every heuristic that has one, and the other settings.

    `weights` maps names to numbers, names of those `known` or of heuristics that other packages
    plug in. What it leaves out has its default, or none. Raises ValueError.
    """
    others = dict(settings)
    given = others.pop("weights", {})
    if not isinstance(given, Mapping):
        raise ValueError(f"weights: found {given!r}, expected a number for each heuristic")
    names = list(known)
    if not set(given) <= set(names):
        names += [point.name for point in plugged_in(HEURISTICS)]
    for name, weight in given.items():
        if name not in names:
            raise ValueError(f"weights: found {name!r}, expected some of {', '.join(names)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ValueError(f"weights: found {weight!r} for {name}, expected a number")
        if not math.isfinite(weight):
            raise ValueError(f"weights: found {weight!r} for {name}, expected a finite number")
    chosen = {**default, **given}
    return {name: float(weight) for name, weight in chosen.items() if weight}, others


@dataclass(frozen=True, slots=True)
class _Plugged:
    """A heuristic of another package, whose work is looked at: NaN would hide jobs for ever."""

    value: str
    heuristic: Heuristic

    def __call__(self, matrix: JobMachineMatrix, weight: float) -> None:
        self.heuristic(matrix, weight)
        if np.isnan(matrix.priority).any():
            raise ValueError(f"heuristic {self.value} gives a priority that is not a number")


def weighed(
    weights: Mapping[str, float], own: Mapping[str, Heuristic]
) -> list[tuple[Heuristic, float]]:
    """The heuristics to `weights`, from `own` or plugged in. Raises ValueError."""

    def named(name: str) -> Heuristic:
        if name in own:
            return own[name]
        (point,) = (point for point in plugged_in(HEURISTICS) if point.name == name)
        return _Plugged(point.value, load(point))

    return [(named(name), weight) for name, weight in weights.items()]
