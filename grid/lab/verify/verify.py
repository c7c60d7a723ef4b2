"""Run cases of verification, compare with theory, and write the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from grid.config.load import load_scenario
from grid.config.parameters import written_override
from grid.lab.markdown import markdown
from grid.lab.verify.cases import CASES, RELAXATIONS, SHUT_DOWN, WARM_UP, Case, Effort, Jobs, steady
from grid.model.arrays import Floats
from grid.model.errors import input_error, shorten
from grid.runtime.run import execute

STANDARD_ERRORS = 3.0
OTHER_JOBS = 4.5
"""Jobs whose controls are more standard errors off are not those of the theory."""
RELATIVE = 0.005
"""The relative error that a full verification allows."""
MOST_TIMES = 8
"""A full verification runs a case at most this many times its effort."""
FEWEST_RUNS = 8
"""The least number of runs for a regression on controls."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One value of one case. `error` is the standard error of `found`, 0 if exact."""

    case: str
    name: str
    expected: float
    found: float
    error: float
    runs: int
    exact: bool
    jobs_off: float = 0.0
    """How many standard errors the controls are from their expected values."""

    @property
    def off(self) -> float:
        """`found` - `expected` in standard errors."""
        difference = self.found - self.expected
        if difference == 0.0:
            return 0.0
        return difference / self.error if self.error > 0.0 else inf

    @property
    def relative(self) -> float:
        return abs(self.found - self.expected) / abs(self.expected) if self.expected else 0.0

    @property
    def runs_missing(self) -> int:
        """The additional runs until three standard errors are within RELATIVE."""
        if self.exact or not self.expected or not isfinite(self.found):
            return 0
        wanted = RELATIVE * abs(self.expected) / STANDARD_ERRORS
        return ceil(self.runs * ((self.error / wanted) ** 2 - 1.0))

    def verdict(self, full: bool) -> str:
        """`exact`, `agrees` or `differs`; if `full` also `not precise enough`."""
        if self.exact:
            return "exact" if self.found == self.expected else "differs"
        if not isfinite(self.found) or abs(self.off) > STANDARD_ERRORS:
            return "differs"
        if self.jobs_off > OTHER_JOBS:
            return "differs"
        return "not precise enough" if full and self.relative > RELATIVE else "agrees"


Order = tuple[str, tuple[str, ...]]
"""A run: its case, and settings."""


class Found(NamedTuple):
    """Values of one run by name, and the controls of its jobs."""

    figures: Mapping[str, float]
    controls: Floats


Over = Callable[[Callable[[Order], Found], Iterable[Order]], Iterable[Found]]


def measure(order: Order) -> Found:
    """The values of one run. Raises InputError and RunFailed."""
    name, settings = order
    case = CASES[name]
    scenario = load_scenario(case.file, settings)
    run = execute(scenario, str(case.file), in_process=True, events=case.events)
    jobs = _controls(case, settings)
    controls = np.empty(0) if jobs is None else jobs.found(run.results, steady(run))
    return Found(case.found(run), controls)


def _controls(case: Case, settings: Sequence[str]) -> Jobs | None:
    if case.jobs is None or not case.controlled:
        return None
    return case.jobs(case.parameters(settings))


def refuse_others(case: Case, settings: Sequence[str]) -> None:
    """Raises InputError for a setting of something else than parameters, which theory has not."""
    known = [*case.parameters(), "seed"]
    for name, _ in map(written_override, settings):
        if name not in known:
            expected = f"a parameter of {case.name}: {', '.join(known)}"
            raise input_error("--set", shorten(name), expected)


def verify(
    case: Case, settings: Sequence[str], effort: Effort, *, full: bool = False, over: Over = map
) -> list[Figure]:
    """The values of `case` with settings of the user; `over` maps, possibly in processes.

    The seed of the scenario is that of the first run. If `full`, runs are added until three
    standard errors are precise enough. Raises InputError, also if the theory does not hold.
    """
    chosen = dict(one.split("=", 1) for one in (*case.settings, *settings))
    settings = [f"{name}={value}" for name, value in chosen.items()]
    seed, given = load_scenario(case.file, settings).seed, case.parameters(settings)
    jobs = None if case.jobs is None else case.jobs(given)
    if jobs is not None and jobs.servers:
        if jobs.load >= 1.0:
            expected = f"one below 1, for the steady state of {case.name}"
            raise input_error("--set", f"a load of {jobs.load:.6g}", expected)
        effort = effort.for_steady(jobs.for_steady)
    try:
        expected_values = case.expected(given)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise input_error("--set", str(error), f"other values for {case.name}") from error
    parameters = [f"jobs={effort.jobs}"] if "jobs" in given else []
    most = 1 if case.exact else effort.runs * MOST_TIMES
    orders: list[Order] = [
        (case.name, (*parameters, *settings, f"seed={seed + number}")) for number in range(most)
    ]
    known = _controls(case, settings)
    controls = np.empty(0) if known is None else known.expected()
    found: list[Found] = []
    wanted = min(most, effort.runs)
    while True:
        found += over(measure, orders[len(found) : wanted])
        figures = [
            _figure(case, name, value, found, controls) for name, value in expected_values.items()
        ]
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


# Control variates (Lavenberg and Welch 1981)


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float


def estimate(found: Floats, controls: Floats, expected: Floats) -> Estimate:
    """The mean of `found`, shape (runs,), at the `expected` values of the controls.

    By linear regression on `controls`, shape (runs, controls), with the standard error of the
    regression there. For few runs or without controls, the plain mean.
    """
    runs, count = controls.shape
    mean = float(found.mean())
    if runs < 2:
        return Estimate(mean, 0.0)
    if runs < FEWEST_RUNS or not count:
        return Estimate(mean, float(found.std(ddof=1)) / sqrt(runs))
    off = controls - controls.mean(axis=0)
    scale = np.where(off.any(axis=0), off.std(axis=0), 1.0)
    off, shift = off / scale, (expected - controls.mean(axis=0)) / scale
    inverse = np.linalg.pinv(off.T @ off)
    slopes = inverse @ (off.T @ (found - mean))
    left = found - mean - off @ slopes
    variance = float(left @ left) / (runs - 1 - count)
    share = 1.0 / runs + float(shift @ inverse @ shift)
    return Estimate(mean + float(shift @ slopes), sqrt(variance * share))


def worst(controls: Floats, expected: Floats) -> float:
    """The largest deviation of a control in standard errors, of shape (runs, controls)."""
    runs = len(controls)
    if runs < 2 or not controls.size:
        return 0.0
    errors = controls.std(axis=0, ddof=1) / sqrt(runs)
    off = np.abs(controls.mean(axis=0) - expected)
    return float(np.max(off / np.where(errors > 0.0, errors, np.inf)))


# The table

COLUMNS = ("case", "metric", "expected", "measured", "± 95 %", "standard errors", "runs", "verdict")
WIDTHS = (16, 36, 11, 11, 10, 15, 5, 0)
NORMAL_95 = 1.96


def header() -> str:
    return _aligned(COLUMNS)


def line(figure: Figure, full: bool) -> str:
    return _aligned(_cells(figure, full))


def _cells(figure: Figure, full: bool) -> tuple[str, ...]:
    numbers: tuple[str, ...] = (f"{figure.expected:.0f}", f"{figure.found:.0f}", "", "")
    if not figure.exact:
        numbers = (
            f"{figure.expected:.6f}",
            f"{figure.found:.6f}",
            f"{NORMAL_95 * figure.error:.6f}",
            f"{figure.off:+.2f}",
        )
    return (figure.case, figure.name, *numbers, str(figure.runs), figure.verdict(full))


def _aligned(texts: Sequence[str]) -> str:
    padded = (
        text.ljust(width) if n < 2 or not width else text.rjust(width)
        for n, (text, width) in enumerate(zip(texts, WIDTHS, strict=True))
    )
    return "  ".join(padded).rstrip()


def page(figures: Sequence[Figure], full: bool, missing: Sequence[str] = ()) -> str:
    """The page: the table, the cases, and the rules of the verdicts.

    `missing` are cases that were not run, or not yet.
    """
    return markdown(
        "verify",
        command="grid verify --page scenarios/verify/README.md" + ("" if full else " --quick"),
        not_run=f" Not run: {', '.join(missing)}." if missing else "",
        columns=COLUMNS,
        rows=[_cells(figure, full) for figure in figures],
        cases=[CASES[name] for name in dict.fromkeys(figure.case for figure in figures)],
        errors=f"{STANDARD_ERRORS:g}",
        relative=f"{RELATIVE:.1%}",
        times=MOST_TIMES,
        warm_up=f"{WARM_UP:.0%}",
        shut_down=f"{1 - SHUT_DOWN:.0%}",
        relaxations=f"{RELAXATIONS:g}",
        controlled=", ".join(f"`{one.name}`" for one in CASES.values() if one.controlled),
        other_jobs=f"{OTHER_JOBS:g}",
    )
