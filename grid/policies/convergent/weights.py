"""Which heuristics a policy has, and with which weights, as a scenario says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from grid.model.errors import InvalidPlugin, expected_name, kind_of
from grid.model.plugins.kind import Kind, function_guard
from grid.model.plugins.origin import Guarded
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import Weight
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix

Weights = dict[str, Weight]
"""Weights by the name of a heuristic: of the paper's own, or of one that another plugs in."""


class GuardedHeuristic(Guarded):
    """A heuristic that another plugged in: what it leaves in the matrix is looked at."""

    def __call__(self, *given: Any) -> Any:
        matrix: JobMachineMatrix = given[0]
        every = {one.name: getattr(matrix, one.name) for one in fields(matrix)}
        before = {name: one.copy() for name, one in every.items() if isinstance(one, np.ndarray)}
        super().__call__(*given)
        can_run = before.pop("priority") > -np.inf
        for name, array in before.items():
            if not np.array_equal(getattr(matrix, name), array, equal_nan=True):
                raise self.origin.failed(f"its work wrote into matrix.{name}: only priority is its")
        is_kept = np.array_equal(matrix.priority > -np.inf, can_run)
        if not is_kept or (matrix.priority == np.inf).any():
            raise self.origin.failed(
                "its work gave a priority that says which machines can run a job: -inf is for "
                "those that cannot, and stays there; all others have a finite number"
            )


def _problem(answer: Any, matrix: JobMachineMatrix, _: float) -> str | None:
    """What a heuristic gives is looked at: NaN would hide jobs for ever."""
    if answer is not None:
        return f"gave {kind_of(answer)}, expected it to give nothing"
    if np.shape(matrix.priority) != matrix.remaining_s.shape:
        return f"gave priorities of shape {np.shape(matrix.priority)}, expected that of the matrix"
    return "gave a priority that is not a number" if np.isnan(matrix.priority).any() else None


HEURISTICS = Kind(
    "heuristics",
    "heuristic",
    "adds its weight to the matrix of Convergent Scheduling",
    {},
    function_guard("its work", _problem, GuardedHeuristic),
    given=("matrix", "weight"),
    place="settings.weights of cs2, cs_i_p and their kin",
)
"""Heuristics beside those of the papers; see `grid.policies.convergent.cs2_heuristics`."""


def weighed(
    given: Mapping[str, float],
    default: Mapping[str, float],
    own: Mapping[str, Heuristic],
    parts: Plugins,
) -> list[tuple[Heuristic, float]]:
    """Every heuristic that has a weight, given or by default. Raises InvalidPlugin for others.

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
            raise InvalidPlugin(repr(name), expected, ("weights", name))
        if weight:
            chosen.append((heuristic, weight))
    return chosen


def _plugged(name: str, parts: Plugins) -> Heuristic:
    try:
        made: Heuristic = parts.make(HEURISTICS, name, {})
    except InvalidPlugin as error:
        path = ("weights", name)
        raise InvalidPlugin(error.found, error.expected, path, error.details) from None
    return made
