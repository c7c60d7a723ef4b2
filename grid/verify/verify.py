"""Run a case, and compare what is found with what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import Any

import numpy as np

import grid
from grid.scenario.shipped import shipped_folder
from grid.verify.case import Case, Effort, Fewer
from grid.verify.cases import CASES

SCENARIOS = shipped_folder() / "verify"
STANDARD_ERRORS = 3.0
RELATIVE = 0.005
"""How far what is found may be from what is expected, in a full verification."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one case. `error` is the standard error of `found`, 0 of an exact one."""

    case: str
    name: str
    expected: float
    found: float
    error: float
    runs: int
    exact: bool

    @property
    def off(self) -> float:
        """How many standard errors `found` is from `expected`."""
        difference = self.found - self.expected
        if difference == 0.0:
            return 0.0
        return difference / self.error if self.error > 0.0 else inf

    @property
    def relative(self) -> float:
        """How far `found` is from `expected`, as a share of it."""
        return abs(self.found - self.expected) / abs(self.expected) if self.expected else 0.0

    def verdict(self, full: bool) -> str:
        """`exact`, `agrees` or `differs`; in a full one also `not precise enough`."""
        if self.exact:
            return "exact" if self.found == self.expected else "differs"
        if not isfinite(self.found) or abs(self.off) > STANDARD_ERRORS:
            return "differs"
        return "not precise enough" if full and self.relative > RELATIVE else "agrees"


Order = tuple[str, Path, tuple[str, ...]]
"""A run: its case, the file of its scenario, and settings."""


def scenario_of(name: str) -> Path:
    """The file of the scenario of case `name`."""
    return SCENARIOS / f"{name}.yaml"


def orders_of(case: Case, file: Path, settings: Sequence[str], effort: Effort) -> list[Order]:
    """The runs that `effort` asks for. What the user set comes last, and wins."""
    parameters = [f"jobs={effort.jobs}"] if case.has_jobs else []
    runs = 1 if case.exact else effort.runs
    return [
        (case.name, file, (*parameters, f"seed={seed}", *settings)) for seed in range(1, runs + 1)
    ]


def measure(order: Order) -> Mapping[str, float]:
    """What one run finds. Raises InputError and RunFailed.

    Where the limit of many VOs is expected, it is extrapolated from this run and one of half as
    many: what n VOs are off by falls as 1 / n.
    """
    name, file, settings = order
    case = CASES[name]
    run = grid.run(file, set=settings)
    found = case.found(run)
    assert run.scenario is not None
    fewer = None if case.fewer is None else case.fewer(run.scenario)
    if fewer is None:
        return found
    beside = case.found(grid.run(file, set=(*settings, *fewer.settings)))
    return extrapolated(found, beside, fewer)


def extrapolated(
    found: Mapping[str, float], beside: Mapping[str, float], sizes: Fewer
) -> dict[str, float]:
    """The limit a of a + b / n, by what was found for `many` and beside it for `few`."""
    many, few, _ = sizes
    return {
        name: (many * value - few * beside[name]) / (many - few) for name, value in found.items()
    }


def verify(
    orders: Sequence[Order],
    over: Callable[[Callable[[Order], Mapping[str, float]], Iterable[Order]], Iterable[Any]] = map,
) -> Iterator[Figure]:
    """The figures of the case that all `orders` belong to; `over` maps, perhaps in processes."""
    name, file, settings = orders[0]
    case = CASES[name]
    expected = case.expected(grid.load_scenario(file, settings))
    found = list(over(measure, orders))
    for figure, value in expected.items():
        values = np.array([one.get(figure, np.nan) for one in found])
        runs = len(values)
        error = float(values.std(ddof=1)) / sqrt(runs) if runs > 1 else 0.0
        yield Figure(name, figure, value, float(values.mean()), error, runs, case.exact)
