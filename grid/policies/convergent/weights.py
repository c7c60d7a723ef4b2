"""Which heuristics a policy has, and with which weights, as a scenario says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grid.model.errors import WrongPart, expected_name
from grid.parts.kind import Kind, function_guard
from grid.parts.registry import Parts
from grid.parts.settings import Weight
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix

Weights = dict[str, Weight]
"""Weights by the name of a heuristic: of the paper's own, or of one that another plugs in."""


def _problem(answer: Any, matrix: JobMachineMatrix, _: float) -> str | None:
    """What a heuristic gives is looked at: NaN would hide jobs for ever."""
    if answer is not None:
        return f"gave {type(answer).__name__}, expected it to give nothing"
    if np.shape(matrix.priority) != matrix.remaining_s.shape:
        return f"gave priorities of shape {np.shape(matrix.priority)}, expected that of the matrix"
    return "gave a priority that is not a number" if np.isnan(matrix.priority).any() else None


HEURISTICS = Kind(
    "heuristics",
    "heuristic",
    "adds its weight to the matrix of Convergent Scheduling",
    {},
    function_guard("its work", _problem),
    given=("matrix", "weight"),
    place="settings.weights of cs2, cs_i_p and their kin",
)
"""Heuristics beside those of the papers; see `grid.policies.convergent.cs2_heuristics`."""


def weighed(
    given: Mapping[str, float],
    default: Mapping[str, float],
    own: Mapping[str, Heuristic],
    parts: Parts,
) -> list[tuple[Heuristic, float]]:
    """Every heuristic that has a weight, given or by default. Raises WrongPart for others.

    Names are those of `own`, or of heuristics that others plug in.
    """
    chosen: list[tuple[Heuristic, float]] = []
    for name, weight in {**default, **given}.items():
        if name in own:
            heuristic = own[name]
        elif ":" in name or name in parts.names(HEURISTICS):
            heuristic = _plugged(name, parts)
        else:
            known = [*own, *parts.names(HEURISTICS)]
            expected = expected_name(name, known, "a heuristic")
            raise WrongPart(repr(name), expected, ("weights", name))
        if weight:
            chosen.append((heuristic, weight))
    return chosen


def _plugged(name: str, parts: Parts) -> Heuristic:
    try:
        made: Heuristic = parts.make(HEURISTICS, name, {})
    except WrongPart as error:
        path = ("weights", name)
        raise WrongPart(error.found, error.expected, path, error.details) from None
    return made
