"""Claims of papers as data, and what a study says to them.

A claim has a judge: a function of the studies of its paper that gives a finding. A judge computes
everything from the runs; the sentences it may add say only how.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from grid.experiment.statistics import Interval
from grid.experiment.study import Study
from grid.report.labels import shown
from grid.report.style import Picture

FAILING_SHOWN = 3

Where = Mapping[str, Any]


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    IMPOSSIBLE = "cannot hold"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on a claim, our figures, and a sentence where the verdict needs one."""

    verdict: Verdict
    ours: str
    reason: str = ""


class NotThere(Exception):
    """A claim cannot be judged: what it is about was not run. Says what is missing."""


@dataclass(frozen=True, slots=True)
class Studies:
    """The studies of a paper by the name of their experiment; why others are not there."""

    found: Mapping[str, Study]
    absent: Mapping[str, str]

    def of(self, name: str) -> Study:
        """The study of that name. Raises NotThere."""
        if name not in self.found:
            raise NotThere(self.absent.get(name, f"the experiment {name} was not run"))
        return self.found[name]


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison that a claim consists of: what was found, and whether it is as claimed.

    If it is not, `unsure` tells that the runs do not say the contrary either.
    """

    found: str
    holds: bool
    unsure: bool = False


Judge = Callable[..., Finding]
"""Takes the studies of the claim's experiments, in their order. May raise NotThere."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, what the paper gives for it, and the experiments whose studies its judge takes."""

    name: str
    text: str
    paper: str
    experiments: tuple[str, ...]
    judge: Judge


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: its claims, and its figures with our data, as far as studies are there."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    figures: Callable[[Studies], Iterator[Picture]]

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments behind its claims."""
        named = (name for claim in self.claims for name in claim.experiments)
        return tuple(dict.fromkeys(named))


def judged(claim: Claim, studies: Studies) -> Finding:
    """What the studies say to the claim; that they say nothing, where runs are missing."""
    try:
        return claim.judge(*(studies.of(name) for name in claim.experiments))
    except NotThere as missing:
        return Finding(Verdict.NOT_RUN, "–", str(missing))


def all_hold(checks: Sequence[Check], reason: str = "", ours: str | None = None) -> Finding:
    """The finding that a claim holds if every check does; else the reason says what does not.

    `ours` stands for the checks' own words, where these would be too many.
    """
    # What the runs contradict is told first.
    against = sorted((check for check in checks if not check.holds), key=lambda one: one.unsure)
    failing = [check.found for check in against]
    figures = "; ".join(check.found for check in checks) if ours is None else ours
    if not failing:
        return Finding(Verdict.HOLDS, figures, reason)
    told = "; ".join(failing[:FAILING_SHOWN])
    if len(failing) > FAILING_SHOWN:
        told += f"; and {len(failing) - FAILING_SHOWN} more"
    unsure = sum(check.unsure for check in against)
    words = f"{len(failing)} of {len(checks)} comparisons are not as claimed"
    if unsure:
        words += f", {unsure} of them because their intervals leave it open"
    if len(failing) < len(checks) or ours is not None:
        words += f": {told}"
    return Finding(Verdict.FAILS, figures, f"{words}. {reason}" if reason else words)


def along(
    study: Study,
    metric: str,
    axis: str,
    values: Sequence[Any],
    wheres: Sequence[Where],
    factor: float = 1.0,
) -> str:
    """The metric at each of `wheres` for each value of `axis`, in one line."""
    lines = []
    for where in wheres:
        figures = [_pm(mean(study, metric, {**where, axis: value}), factor) for value in values]
        lines.append(f"{_name(where)} {', '.join(figures)}")
    return f"at {axis} {', '.join(map(str, values))}: {'; '.join(lines)}"


def mean(study: Study, metric: str, where: Where) -> Interval:
    """The metric's interval at a point. Raises NotThere where there is no run or no value."""
    interval = study.interval(metric, where)
    if interval is None:
        raise NotThere(_missing(study, metric, where))
    return interval


def difference(study: Study, metric: str, first: Where, second: Where) -> Interval:
    """The paired difference first - second. Raises NotThere where there is none."""
    found = study.difference(metric, first, second)
    if found is None:
        empty = first if study.interval(metric, first) is None else second
        raise NotThere(_missing(study, metric, empty))
    return found


def below(study: Study, metric: str, first: Where, second: Where, factor: float = 1.0) -> Check:
    """Is the metric at `first` below that at `second`, beyond doubt, pair by pair?

    Figures are shown multiplied by `factor`, 100 for shares in per cent.
    """
    found = difference(study, metric, first, second)
    unsure = found.low < 0 < found.high
    return Check(_two(study, metric, first, second, factor), found.below_zero, unsure)


def not_above(study: Study, metric: str, first: Where, second: Where, factor: float = 1.0) -> Check:
    """Is the metric at `first` not above that at `second`, as far as one can tell?"""
    found = difference(study, metric, first, second)
    return Check(_two(study, metric, first, second, factor), not found.above_zero)


def _two(study: Study, metric: str, first: Where, second: Where, factor: float) -> str:
    """Both means and their paired difference, whatever is claimed of them."""
    one, other = _name(first, second), _name(second, first)
    found = difference(study, metric, first, second)
    ones, others = mean(study, metric, first), mean(study, metric, second)
    shared = [f"{name} {value}" for name, value in first.items() if second.get(name) == value]
    place = f"at {' '.join(shared)} " if shared else ""
    means = f"{place}{one} {_pm(ones, factor)}, {other} {_pm(others, factor)}"
    return f"{means}, {one} - {other} = {_pm(found, factor)}"


def close(
    study: Study, metric: str, first: Where, second: Where, margin: float, factor: float = 1.0
) -> Check:
    """Is the whole interval of the paired difference within ± `margin`?"""
    found = difference(study, metric, first, second)
    text = f"{_name(first, second)} - {_name(second, first)} = {_pm(found, factor)}"
    text += f" (close: within ± {shown(margin * factor)})"
    unsure = found.low <= margin and found.high >= -margin
    return Check(text, -margin <= found.low and found.high <= margin, unsure)


def within(
    study: Study, metric: str, where: Where, low: float, high: float, factor: float = 1.0
) -> Check:
    """Does the mean lie in [low, high]?"""
    found = mean(study, metric, where)
    return Check(f"{_name(where)} {_pm(found, factor)}", low <= found.mean <= high)


def ordered(study: Study, metric: str, rising: Sequence[Where], factor: float = 1.0) -> list[Check]:
    """Is each below the next, beyond doubt?"""
    return [
        below(study, metric, first, second, factor) for first, second in itertools.pairwise(rising)
    ]


def _name(where: Where, other: Where | None = None) -> str:
    """What tells a point from the other, or the whole point."""
    telling = [
        str(value) for name, value in where.items() if other is None or other.get(name) != value
    ]
    return " ".join(telling) or " ".join(map(str, where.values()))


def _pm(interval: Interval, factor: float = 1.0) -> str:
    half = interval.half_width * factor
    value = interval.mean * factor
    if not math.isfinite(half):
        return shown(value)
    if half == 0.0:
        return f"{shown(value)} ± 0"
    places = min(9, max(0, 1 - math.floor(math.log10(half))))
    return f"{value:,.{places}f} ± {half:,.{places}f}"


def _missing(study: Study, metric: str, where: Where) -> str:
    text = ", ".join(f"{name} {value}" for name, value in where.items())
    if not study.keys(where):
        told = study.reason_for(where)
        return f"no run of {text or study.name}" + (f": {told}" if told else "")
    return f"{metric} does not apply to {text or study.name}"
