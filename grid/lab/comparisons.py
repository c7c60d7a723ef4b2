"""Sub-claims from a study: one of these functions for each kind of comparison.

All take points of a study (`Where`) and give a `Comparison`, or what is settled because there are
no runs. Pairs are by seed: the same seed means the same jobs and machines for whatever is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from grid.lab.claims import (
    Comparison,
    OverUnknown,
    Part,
    Settled,
    Together,
    Verdict,
    Where,
)
from grid.lab.report.labels import shown
from grid.lab.statistics import BELOW_ZERO, Region
from grid.lab.study import Study

Values = Mapping[int, float]
"""A value by seed."""
ABOVE_ZERO = Region(low=0.0, open=True)


def below(
    study: Study,
    metric: str,
    first: Where,
    second: Where,
    *,
    setting: str,
    unit: str = "",
    factor: float = 1.0,
    paper: str = "",
    margin: float | None = None,
    word: str = "below",
) -> Comparison | Settled:
    """Is the metric at `first` below that at `second`, pair by pair?

    With a `margin` it may be above by so much: no more than about equal. Figures are multiplied by
    `factor`; the margin is in the unit that is shown.
    """
    what = f"{name_of(first, second)} {word} {name_of(second, first)}"
    region = BELOW_ZERO if margin is None else Region(high=margin)
    return _paired(study, metric, first, second, region, what, setting, unit, factor, paper)


def above(
    study: Study,
    metric: str,
    first: Where,
    second: Where,
    *,
    setting: str,
    unit: str = "",
    factor: float = 1.0,
    paper: str = "",
) -> Comparison | Settled:
    """Is the metric at `first` above that at `second`, pair by pair?"""
    what = f"{name_of(first, second)} above {name_of(second, first)}"
    return _paired(study, metric, first, second, ABOVE_ZERO, what, setting, unit, factor, paper)


def close(
    study: Study,
    metric: str,
    first: Where,
    second: Where,
    margin: float,
    *,
    setting: str,
    unit: str = "",
    factor: float = 1.0,
    paper: str = "",
) -> Comparison | Settled:
    """Is the difference within ± `margin`, which is in the unit that is shown?"""
    what = f"{name_of(first, second)} close to {name_of(second, first)} (within {shown(margin)})"
    region = Region(-margin, margin)
    return _paired(study, metric, first, second, region, what, setting, unit, factor, paper)


def difference(
    study: Study,
    metric: str,
    first: Where,
    second: Where,
    region: Region,
    *,
    what: str,
    setting: str,
    unit: str = "",
    paper: str = "",
) -> Comparison | Settled:
    """Does first - second lie in the region?"""
    return _paired(study, metric, first, second, region, what, setting, unit, 1.0, paper)


def within(
    study: Study,
    metric: str,
    where: Where,
    region: Region,
    *,
    what: str,
    setting: str,
    unit: str = "",
    factor: float = 1.0,
    paper: str = "",
) -> Comparison | Settled:
    """Does the metric lie in the region?"""
    values = study.values(metric, where)
    if not values:
        return not_run(study, metric, [where], what, setting, paper)
    scaled = {seed: value * factor for seed, value in values.items()}
    return compared(scaled, region, what, setting, unit, paper=paper)


def ratio(
    study: Study,
    metric: str,
    first: Where,
    second: Where,
    region: Region,
    *,
    what: str,
    setting: str,
    paper: str = "",
) -> Comparison | Settled:
    """Does first / second lie in the region, repetition by repetition?"""
    ones, others = study.values(metric, first), study.values(metric, second)
    values = {seed: ones[seed] / others[seed] for seed in ones if others.get(seed)}
    if not values:
        return not_run(study, metric, [first, second], what, setting, paper)
    return compared(values, region, what, setting, "ratio", paper=paper)


def at_most_times(
    study: Study,
    metric: str,
    first: Where,
    second: Where,
    share: float,
    *,
    setting: str,
    unit: str = "",
    paper: str = "",
) -> Comparison | Settled:
    """Is the metric at `first` at most `share` times that at `second`?

    By first - share x second, which has a value where the second is nothing.
    """
    what = f"{name_of(first, second)} at most {share:g} times {name_of(second, first)}"
    ones, others = study.values(metric, first), study.values(metric, second)
    values = {seed: ones[seed] - share * others[seed] for seed in ones if seed in others}
    if not values:
        return not_run(study, metric, [first, second], what, setting, paper)
    measured = " against ".join(
        shown(_mean({seed: side[seed] for seed in values})) for side in (ones, others)
    )
    unit = f"{unit}; judged: first - {share:g} x second"
    return compared(values, Region(high=0.0), what, setting, unit, measured, paper)


def falling(
    study: Study,
    metric: str,
    where: Where,
    axis: str,
    *,
    what: str,
    margin: float,
    unit: str = "",
    paper: str = "",
) -> Iterator[Comparison | Settled]:
    """Does the metric fall along the axis?

    From each value of the axis to the next it rises by no more than `margin`, and at the last it is
    below the first.
    """
    places = sorted(study.axes[axis])
    for low, high in pairwise(places):
        yield _paired(
            study, metric, {**where, axis: high}, {**where, axis: low}, Region(high=margin),
            f"{what} does not rise (by more than {margin:g})", f"from {low:g} to {high:g}", unit,
            1.0, paper,
        )  # fmt: skip
    if len(places) > 1:
        first, last = places[0], places[-1]
        yield _paired(
            study, metric, {**where, axis: last}, {**where, axis: first}, BELOW_ZERO,
            f"{what} falls", f"from {first:g} to {last:g}", unit, 1.0, paper,
        )  # fmt: skip


def wider_gap(
    study: Study,
    metric: str,
    at: Callable[[Any], tuple[Where, Where]],
    here: Any,
    elsewhere: Any,
    *,
    what: str,
    setting: str,
    unit: str = "",
    paper: str = "",
) -> Comparison | Settled:
    """Is second - first larger `here` than `elsewhere`? `at` gives the two points of a place."""
    gaps = []
    for place in (here, elsewhere):
        first, second = at(place)
        ones, others = study.values(metric, first), study.values(metric, second)
        gaps.append({seed: others[seed] - ones[seed] for seed in ones if seed in others})
    values = {seed: gaps[1][seed] - gaps[0][seed] for seed in gaps[0] if seed in gaps[1]}
    if not values:
        return not_run(study, metric, [*at(here), *at(elsewhere)], what, setting, paper)
    means = " against ".join(shown(_mean(gap)) for gap in gaps)
    unit = f"{unit}; judged: the other gap - this gap"
    return compared(values, BELOW_ZERO, what, setting, unit, means, paper)


def growth(study: Study, metric: str, where: Where, axis: str) -> Values:
    """The power of `axis` that the metric grows with, by seed: least squares on logarithms."""
    places = sorted(study.axes[axis])
    by_place = [study.values(metric, {**where, axis: place}) for place in places]
    seeds = [seed for seed in by_place[0] if all(seed in values for values in by_place)]
    return {
        seed: float(np.polyfit(np.log(places), np.log([v[seed] for v in by_place]), 1)[0])
        for seed in seeds
        if all(values[seed] > 0 for values in by_place)
    }


def grows_less(
    first: Values, second: Values, *, what: str, setting: str, paper: str = ""
) -> Comparison | Settled:
    """Is the exponent of the first below that of the second?"""
    values = {seed: first[seed] - second[seed] for seed in first if seed in second}
    if not values:
        return Settled(what, setting, Verdict.NOT_RUN, "no seed has a run at every size")
    means = f"N^{_mean(first):.2f} against N^{_mean(second):.2f}"
    return compared(values, BELOW_ZERO, what, setting, "exponent", means, paper)


def grows_at_most(
    powers: Values, most: float, *, name: str, setting: str, paper: str = ""
) -> Comparison | Settled:
    """Is the exponent at most so much?"""
    what = f"{name} grows at most as N^{most:g}"
    if not powers:
        return Settled(what, setting, Verdict.NOT_RUN, "no seed has a run at every size")
    measured = f"N^{_mean(powers):.2f}"
    return compared(powers, Region(high=most), what, setting, "exponent", measured, paper)


def compared(
    values: Values,
    region: Region,
    what: str,
    setting: str,
    unit: str,
    ours: str | None = None,
    paper: str = "",
) -> Comparison:
    """The comparison of values that are there already."""
    measured = shown(_mean(values)) if ours is None else ours
    ordered = tuple(values[seed] for seed in sorted(values))
    return Comparison(what, setting, ordered, region, unit, measured, paper)


def over(
    what: str, setting: str, quantity: str, at: Mapping[str, Part], paper: str = ""
) -> OverUnknown | Settled:
    """The same comparison at each value of a quantity that the paper does not give."""
    known = {value: part for value, part in at.items() if isinstance(part, Comparison)}
    if not known:
        reasons = [part.because for part in at.values() if isinstance(part, Settled)]
        return Settled(what, setting, Verdict.NOT_RUN, next(iter(reasons), "no value was run"))
    return OverUnknown(what, setting, quantity, known, paper)


def together(what: str, setting: str, parts: Sequence[Part], paper: str = "") -> Part:
    """Is there one value of the quantity that the paper does not give at which all of them hold?"""
    known = tuple(part for part in parts if isinstance(part, OverUnknown))
    if len(known) < len(parts):
        return Settled(what, setting, Verdict.NOT_RUN, "not all that it joins was run", paper=paper)
    return Together(what, setting, known, paper)


def _paired(
    study: Study,
    metric: str,
    first: Where,
    second: Where,
    region: Region,
    what: str,
    setting: str,
    unit: str,
    factor: float,
    paper: str,
) -> Comparison | Settled:
    ones, others = study.values(metric, first), study.values(metric, second)
    pairs = {seed: (ones[seed], others[seed]) for seed in ones if seed in others}
    if not pairs:
        return not_run(study, metric, [first, second], what, setting, paper)
    values = {seed: (one - other) * factor for seed, (one, other) in pairs.items()}
    means = [math.fsum(pair[side] for pair in pairs.values()) / len(pairs) for side in (0, 1)]
    measured = " against ".join(shown(mean * factor) for mean in means)
    return compared(values, region, what, setting, unit, measured, paper)


def not_run(
    study: Study, metric: str, wheres: Sequence[Where], what: str, setting: str, paper: str = ""
) -> Settled:
    """Why a comparison has no values."""
    for where in wheres:
        if study.values(metric, where):
            continue
        place = ", ".join(f"{name} {value}" for name, value in where.items()) or study.name
        why = f"{metric} does not apply to {place}"
        if not study.keys(where):
            reason = study.reason_for(where)
            why = f"no run of {place}" + (f": {reason}" if reason else "")
        return Settled(what, setting, Verdict.NOT_RUN, why, paper=paper)
    return Settled(what, setting, Verdict.NOT_RUN, "no seed has both", paper=paper)


def name_of(where: Where, other: Where | None = None) -> str:
    """What tells a point from the other, or the whole point."""
    telling = [
        str(value) for name, value in where.items() if other is None or other.get(name) != value
    ]
    return " ".join(telling) or " ".join(map(str, where.values()))


def _mean(values: Values) -> float:
    return math.fsum(values.values()) / len(values) if values else math.nan
