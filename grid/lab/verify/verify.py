"""Run a case, and compare what is found with what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import grid
from grid.config.schema import Scenario
from grid.config.shipped import shipped_folder
from grid.lab.verify.case import (
    Case,
    Effort,
    Fewer,
    check_theory,
    generator_of,
    jobs_for_steady,
    steady,
)
from grid.lab.verify.cases import CASES
from grid.lab.verify.controls import Jobs, estimate, worst
from grid.model.arrays import Floats
from grid.model.errors import one_mistake
from grid.runtime.run import Run, execute

SCENARIOS = shipped_folder() / "verify"
STANDARD_ERRORS = 3.0
OTHER_JOBS = 4.5
"""Jobs that are so many standard errors from what they should be are other ones."""
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
    jobs_off: float = 0.0
    """How many standard errors the jobs of the runs are from those that the theory speaks of."""

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

    @property
    def runs_missing(self) -> int:
        """About how many runs more it takes until three standard errors are precise enough."""
        if self.exact or not self.expected or not isfinite(self.found):
            return 0
        asked = RELATIVE * abs(self.expected) / STANDARD_ERRORS
        return ceil(self.runs * ((self.error / asked) ** 2 - 1.0))

    def verdict(self, full: bool) -> str:
        """`exact`, `agrees` or `differs`; in a full one also `not precise enough`."""
        if self.exact:
            return "exact" if self.found == self.expected else "differs"
        if not isfinite(self.found) or abs(self.off) > STANDARD_ERRORS:
            return "differs"
        if self.jobs_off > OTHER_JOBS:
            return "differs"
        return "not precise enough" if full and self.relative > RELATIVE else "agrees"


Order = tuple[str, Path, tuple[str, ...]]
"""A run: its case, the file of its scenario, and settings."""

MOST_TIMES = 8
"""In a full verification, a case may take so many times the runs of its effort to be precise."""


class Found(NamedTuple):
    """Metrics of one run by name, and controls of its jobs (`grid.lab.verify.controls`)."""

    figures: Mapping[str, float]
    controls: Floats


Over = Callable[[Callable[[Order], Found], Iterable[Order]], Iterable[Found]]


def scenario_of(name: str) -> Path:
    """The file of the scenario of case `name`."""
    return SCENARIOS / f"{name}.yaml"


def orders_of(
    case: Case, file: Path, settings: Sequence[str], effort: Effort, first_seed: int = 1
) -> list[Order]:
    """The runs that `effort` asks for, each with the next seed. All else that the user set wins."""
    parameters = [f"jobs={effort.jobs}"] if case.has_jobs else []
    runs = 1 if case.exact else effort.runs
    seeds = range(first_seed, first_seed + runs)
    return [(case.name, file, (*parameters, *settings, f"seed={seed}")) for seed in seeds]


def measure(order: Order) -> Found:
    """What one run finds. Raises InputError and RunFailed.

    Where the limit of many VOs is expected, it is extrapolated from this run and one of half as
    many: what n VOs are off by falls as 1 / n.
    """
    name, file, settings = order
    case = CASES[name]
    run = _run(case, file, settings)
    assert run.scenario is not None
    with _of_its_form(case):
        found = _found(case, run)
        fewer = None if case.fewer is None else case.fewer(run.scenario)
    if fewer is None:
        return found
    beside = _found(case, _run(case, file, (*settings, *fewer.settings)))
    return extrapolated(found, beside, fewer)


NOT_OF_ITS_FORM = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError)
"""What comes of it where theory looks at what a scenario does not have."""


@contextmanager
def _of_its_form(case: Case) -> Iterator[None]:
    """Raises InputError where the scenario is not one that the theory of `case` can look at."""
    try:
        yield
    except NOT_OF_ITS_FORM as error:
        expected = f"that of scenarios/verify/{case.name}.yaml, with other values"
        raise one_mistake("--set", "a scenario of another form", expected) from error


def _run(case: Case, file: Path, settings: Sequence[str]) -> Run:
    scenario = grid.load_scenario(file, settings)
    return execute(scenario, str(file), in_process=True, events=case.events)


def _found(case: Case, run: Run) -> Found:
    known = _known(case, run.scenario)
    controls = np.empty(0) if known is None else known.found(run.results, steady(run))
    return Found(case.found(run), controls)


def _known(case: Case, scenario: Scenario | None) -> Jobs | None:
    """What is known of the jobs, if they are those that the theory speaks of."""
    if case.controls is None or scenario is None or generator_of(scenario) != "stochastic":
        return None
    return case.controls(scenario)


def extrapolated(found: Found, beside: Found, sizes: Fewer) -> Found:
    """The limit a of a + b / n, by what was found for `many` and beside it for `few`."""
    many, few, _ = sizes

    def limit(one: Any, other: Any) -> Any:
        return (many * one - few * other) / (many - few)

    figures = {name: limit(value, beside.figures[name]) for name, value in found.figures.items()}
    return Found(figures, limit(found.controls, beside.controls))


def _controls_expected(case: Case, file: Path, settings: Sequence[str]) -> Floats:
    scenario = grid.load_scenario(file, settings)
    known = _known(case, scenario)
    fewer = None if case.fewer is None else case.fewer(scenario)
    expected = np.empty(0) if known is None else known.expected()
    if fewer is None or known is None:
        return expected
    beside = _known(case, grid.load_scenario(file, (*settings, *fewer.settings)))
    assert beside is not None
    whole, half = Found({}, expected), Found({}, beside.expected())
    return extrapolated(whole, half, fewer).controls


def verify(
    case: Case,
    settings: Sequence[str],
    effort: Effort,
    *,
    file: Path | None = None,
    full: bool = False,
    over: Over = map,
) -> list[Figure]:
    """The figures of `case` with what the user set; `over` maps, perhaps in processes.

    The seed of the scenario is that of the first run.
    In a `full` one, runs are added until three standard errors are within what is asked for. Raises
    InputError, also where the theory does not hold for the settings.
    """
    file = file or scenario_of(case.name)
    scenario = grid.load_scenario(file, settings)
    with _of_its_form(case):
        check_theory(case, scenario)
        effort = effort.for_steady(jobs_for_steady(case, scenario))
        expected = case.expected(scenario)
    most = effort._replace(runs=effort.runs * MOST_TIMES)
    orders = orders_of(case, file, settings, most, scenario.seed)
    controls = _controls_expected(case, file, orders[0][2])
    found: list[Found] = []
    wanted = 1 if case.exact else effort.runs
    while True:
        found += over(measure, orders[len(found) : wanted])
        figures = [_figure(case, name, value, found, controls) for name, value in expected.items()]
        missing = max(one.runs_missing for one in figures)
        if not full or missing <= 0 or wanted == len(orders):
            return figures
        wanted = min(len(orders), wanted + max(missing, effort.runs // 4))


def _figure(
    case: Case, name: str, value: float, found: Sequence[Found], expected: Floats
) -> Figure:
    values = np.array([one.figures.get(name, np.nan) for one in found])
    controls = np.array([one.controls for one in found])
    mean, error = estimate(values, controls, expected)
    off = worst(controls, expected)
    return Figure(case.name, name, value, mean, error, len(values), case.exact, off)
