"""Which heuristics a policy has, and with which weights, as a scenario says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from grid.model.arrays import Bools
from grid.model.errors import InvalidPlugin, expected_name, kind_of
from grid.model.plugins.calls import Call
from grid.model.plugins.registry import Kind, Plugins
from grid.model.plugins.settings import Weight
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix

Weights = dict[str, Weight]
"""Weights by the name of a heuristic: built-in or a plugin."""


class CheckedHeuristic:
    """A third-party heuristic: it may write to the priority of the matrix and nothing else."""

    def __init__(self, heuristic: Any) -> None:
        self.origin = heuristic.origin
        self._heuristic = heuristic

    def __call__(self, matrix: JobMachineMatrix, weight: float) -> None:
        can_run = matrix.priority > -np.inf
        arrays: dict[str, Any] = {}
        for one in fields(matrix):
            value = getattr(matrix, one.name)
            if isinstance(value, np.ndarray) and one.name != "priority":
                arrays[one.name] = value.view()
                arrays[one.name].flags.writeable = False
        given = replace(matrix, **arrays)
        self._heuristic(given, weight)
        problem = _problem(given.priority, can_run)
        if problem:
            raise self.origin.failed(f"it gave {problem}")
        matrix.priority = given.priority


def _problem(priority: Any, can_run: Bools) -> str:
    if np.shape(priority) != can_run.shape:
        return f"priorities of shape {np.shape(priority)}, expected {can_run.shape}"
    if np.isnan(priority).any():
        return "a priority that is not a number"
    if not np.array_equal(priority > -np.inf, can_run) or (priority == np.inf).any():
        return (
            "a priority that changes which machines can run a job: -inf stays for those that "
            "cannot, and all others have a finite number"
        )
    return ""


def _answer_problem(answer: Any, *_: object) -> str | None:
    return None if answer is None else f"gave {kind_of(answer)}, expected it to give nothing"


def _calls(_: object) -> dict[str, Call]:
    return {"__call__": Call("it", ("matrix", "weight"), _answer_problem)}


HEURISTICS = Kind(
    "heuristics",
    "heuristic",
    "adds its weight to the matrix of Convergent Scheduling",
    {},
    _calls,
    given=("matrix", "weight"),
    place="settings.weights of cs2, cs_i_p and their variants",
    adapt=CheckedHeuristic,
)
"""Heuristics beside those of the papers; see `grid.policies.convergent.cs2_heuristics`."""


def weighed(
    given: Mapping[str, float],
    default: Mapping[str, float],
    own: Mapping[str, Heuristic],
    parts: Plugins,
) -> list[tuple[Heuristic, float]]:
    """Every heuristic that has a weight, given or by default. Raises InvalidPlugin for others.

    Names are those of `own`, or of plugins.
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
