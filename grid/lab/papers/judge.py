"""Judge the sentences of a paper by runs: cells, their verdicts, and one verdict a sentence.

A check of a sentence becomes *cells*: one comparison at one point each, with a value per
repetition. A cell is decided by the confidence interval of its mean; the levels of all cells of a
claim are corrected by Holm's method. A sentence has one verdict, from its cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

import numpy as np

from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.lab.papers.bound import slowdown_bound
from grid.lab.papers.paper import Check, Claim, Other, Paper, Reading, Sentence, View
from grid.lab.statistics import (
    BELOW_ZERO,
    Interval,
    Region,
    deciding_alpha,
    holm_levels,
    mean_interval,
    repetitions_to_decide,
)
from grid.lab.study import Study
from grid.model.fields import PluginRef

Where = Mapping[str, Any]
BySeed = Mapping[int, float]
Studies = Mapping[str, Study]
"""By the name of their experiment."""

BOUNDED = 2
"""A bound is the mean over this many repetitions: each takes seconds."""
NAMED = 3
"""At most this many values of an axis are named."""


class Verdict(StrEnum):
    """The verdict on a cell, a sentence or a claim."""

    HOLDS = "holds"
    EXCEPT = "holds except"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    IMPOSSIBLE = "cannot hold"
    DEPENDS = "depends"
    NOT_RUN = "not run"


AGAINST = (Verdict.CONTRADICTED, Verdict.IMPOSSIBLE)


@dataclass(frozen=True, slots=True)
class Cell:
    """A comparison at one point: `values` (one per repetition) are claimed to be in `region`."""

    what: str
    place: Mapping[str, str]
    """The point, by axis; `first` and `second` are what is compared."""
    values: tuple[float, ...]
    region: Region
    unit: str
    means: tuple[float, ...]
    """The means that are compared, in `unit`."""
    metric: str
    over: str = ""
    """The value of a quantity that the paper does not give."""
    verdict: Verdict = Verdict.NOT_RUN
    interval: Interval | None = None
    because: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        return (self.what, self.metric, *self.place.values())


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict on a sentence, with its exceptions in words."""

    verdict: Verdict
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    """A sentence, its cells, and what other readings make of it."""

    claim: str
    sentence: Sentence
    cells: tuple[Cell, ...]
    headline: Headline
    turned: tuple[tuple[Other, Headline], ...] = ()
    """Other readings under which the verdict is another one."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of another reading: verdicts that change, and the largest change of a mean."""

    reading: Reading
    other: Other
    turned: Mapping[tuple[str, str], Headline]
    """Verdicts that change, by claim and label of the sentence."""
    cells: tuple[tuple[str, str, Cell], ...]
    """All cells under the other reading, with claim and label."""
    change: float = 0.0
    """Relative to the larger of the two means."""
    cell: Cell | None = None
    mean: float = math.nan
    """The mean of `cell` under the other reading."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A paper with its judged sentences, and the effects of readings, largest first."""

    paper: Paper
    sentences: tuple[JudgedSentence, ...]
    effects: tuple[Effect, ...]
    studies: Studies = field(default_factory=dict)

    def of(self, claim: str) -> list[JudgedSentence]:
        return [one for one in self.sentences if one.claim == claim]

    @property
    def claims(self) -> dict[str, Headline]:
        names = dict.fromkeys(one.claim for one in self.sentences)
        return {name: claim_headline(self.of(name)) for name in names}


def judge(paper: Paper, claims: Sequence[str], found: Studies) -> Judgement:
    """Judge these claims under the main readings and under each of the others that has runs."""
    main = {name: _main_of(paper, found, name) for name in paper.experiments(tuple(claims))}
    studies = {name: study for name, study in main.items() if study is not None}
    effects = [
        effect
        for reading in paper.readings
        for other in reading.others
        if (effect := _effect(paper, reading, other, claims, found, studies)) is not None
    ]
    sentences = tuple(
        replace(one, turned=tuple(
            (effect.other, effect.turned[one.claim, one.sentence.label])
            for effect in effects if (one.claim, one.sentence.label) in effect.turned
        ))
        for name in claims
        for one in _judged(name, paper.claims[name], studies)
    )  # fmt: skip
    effects.sort(key=lambda one: (-len(one.turned), -one.change))
    return Judgement(paper, sentences, tuple(effects), studies)


def claim_headline(sentences: Sequence[JudgedSentence]) -> Headline:
    """That of the first sentence, unless it holds and another one of the claim does not."""
    first = sentences[0].headline
    failing = [one for one in sentences[1:] if one.headline.verdict not in (Verdict.HOLDS,)]
    if first.verdict is not Verdict.HOLDS or not failing:
        return first
    words = (f"{one.sentence.label} ({one.headline.verdict})" for one in failing)
    return Headline(Verdict.EXCEPT, ", ".join(words))


# Studies of readings


def _main_of(paper: Paper, found: Studies, name: str) -> Study | None:
    if name in found:
        return found[name].seen(paper.main.get(name, {}), {})
    view = paper.without_log.get(name)
    return None if view is None else _seen(paper, view, name, found)


def _seen(paper: Paper, view: View, name: str, found: Studies) -> Study | None:
    """The runs of the view that replaces the experiment `name`."""
    experiment = view.experiment or name
    if experiment not in found:
        return None
    is_same = not view.where and experiment == name
    where = paper.main.get(name, {}) if is_same else view.where
    study = found[experiment].seen(where, view.metrics).renamed(view.rename)
    main = _against(paper, view, name, found) if view.rest else None
    return study if main is None else study.filled_from(main, view.rest)


def _against(paper: Paper, view: View, name: str, found: Studies) -> Study | None:
    if view.against is not None:
        return _seen(paper, view.against, name, found)
    return _main_of(paper, found, name)


def _effect(
    paper: Paper,
    reading: Reading,
    other: Other,
    claims: Sequence[str],
    found: Studies,
    main: Studies,
) -> Effect | None:
    """The effect of another reading on the claims, at the points and repetitions of both."""
    before, after = dict(main), {}
    for name, view in other.views.items():
        seen, against = _seen(paper, view, name, found), _against(paper, view, name, found)
        if seen is not None and against is not None and seen.runs:
            after[name] = seen
            same = set(seen.axes) == set(against.axes)
            limited = against.limited_to(seen) if same else against
            before[name] = limited if limited.runs else against
    turned: dict[tuple[str, str], Headline] = {}
    cells: list[tuple[str, str, Cell]] = []
    changes: list[tuple[float, Cell, float]] = []
    for claim in (name for name in claims if name in reading.claims):
        section = paper.claims[claim]
        pairs = zip(
            _judged(claim, section, before), _judged(claim, section, {**before, **after}),
            strict=True,
        )  # fmt: skip
        for one, new in pairs:
            if one.sentence.experiment not in after:
                continue
            key = claim, one.sentence.label
            cells += [(*key, cell) for cell in new.cells]
            sides = [SIDES.get(it.headline.verdict) for it in (one, new)]
            if new.cells and section.kind == "verdict" and sides[1] not in (None, sides[0]):
                turned[key] = new.headline
            changes += _changes(one.cells, new.cells)
    if not cells:
        return None
    largest = max(changes, key=lambda one: one[0], default=(0.0,))
    return Effect(reading, other, turned, tuple(cells), *(largest if largest[0] else ()))


SIDES = {
    Verdict.HOLDS: "for", Verdict.EXCEPT: "for", Verdict.CONTRADICTED: "against",
    Verdict.IMPOSSIBLE: "against", Verdict.DEPENDS: "depends",
}  # fmt: skip
"""Verdicts that decide; a loss of decision alone does not turn a verdict."""


def _changes(ones: Sequence[Cell], others: Sequence[Cell]) -> Iterator[tuple[float, Cell, float]]:
    """The relative change of each cell's first mean, the cell, and its mean after it."""
    known = {cell.key: cell for cell in ones if cell.means}
    for cell in others:
        before = known.get(cell.key)
        if before is not None and cell.means:
            scale = max(abs(before.means[0]), abs(cell.means[0]))
            change = abs(cell.means[0] - before.means[0]) / scale if scale else 0.0
            yield change, before, cell.means[0]


# Verdicts


def _judged(name: str, claim: Claim, studies: Studies) -> list[JudgedSentence]:
    """The sentences of a claim; the chance that any cell is decided wrongly is corrected (Holm)."""
    cells = [_cells(one, studies[one.experiment]) if one.experiment in studies else []
             for one in claim.sentences]  # fmt: skip
    levels = {studies[one.experiment].level for one in claim.sentences if one.experiment in studies}
    flat = [cell for of_one in cells for cell in of_one]
    open_ones = [n for n, cell in enumerate(flat) if not cell.because]
    alphas = [deciding_alpha(flat[n].values, flat[n].region) for n in open_ones]
    corrected = holm_levels(alphas, 1.0 - min(levels, default=0.95))
    for n, level in zip(open_ones, corrected, strict=True):
        flat[n] = _with_verdict(flat[n], level)
    found, taken = [], 0
    for sentence, of_one in zip(claim.sentences, cells, strict=True):
        own = tuple(flat[taken : taken + len(of_one)])
        taken += len(of_one)
        found.append(JudgedSentence(name, sentence, own, headline(own, sentence.unknown)))
    return found


def _with_verdict(cell: Cell, level: float) -> Cell:
    interval = mean_interval(cell.values, level)
    if interval.is_inside(cell.region):
        return replace(cell, verdict=Verdict.HOLDS, interval=interval)
    if interval.is_outside(cell.region):
        return replace(cell, verdict=Verdict.CONTRADICTED, interval=interval)
    enough = repetitions_to_decide(cell.values, cell.region, level)
    because = "no practical number of repetitions would decide it"
    if enough is not None:
        because = f"about {max(enough, len(cell.values) + 1)} repetitions would decide it"
    return replace(cell, verdict=Verdict.UNDECIDED, interval=interval, because=because)


def headline(cells: Sequence[Cell], unknown: str = "") -> Headline:
    """The verdict on a sentence by its cells.

    The verdict of most cells decides, with the others as exceptions; with a quantity that the
    paper does not give, the verdicts at its values are compared.
    """
    cells = [cell for cell in cells if cell.verdict is not Verdict.NOT_RUN]
    if not cells:
        return Headline(Verdict.NOT_RUN)
    values = list(dict.fromkeys(cell.over for cell in cells))
    if len(values) < 2:
        return _of_cells(cells)
    at = {value: _of_cells([one for one in cells if one.over == value]) for value in values}
    return _over_values(cells, at, unknown)


def _over_values(cells: Sequence[Cell], at: Mapping[str, Headline], unknown: str) -> Headline:
    """The verdict by the verdicts at the values of a quantity that the paper does not give."""
    holding = [value for value, one in at.items() if one.verdict in (Verdict.HOLDS, Verdict.EXCEPT)]
    against = [value for value, one in at.items() if one.verdict in AGAINST]
    if len({one.verdict for one in at.values()}) == 1:
        return _of_cells(cells)
    if holding and against:
        where = f"holds at {', '.join(holding)}, contradicted at {', '.join(against)}"
        return Headline(Verdict.DEPENDS, f"on {unknown}: {where}")
    if 2 * len(holding) > len(at):
        rest = [value for value in at if value not in holding]
        return Headline(Verdict.EXCEPT, f"at {', '.join(rest)} (undecided)" if rest else "")
    if 2 * len(against) > len(at):
        return Headline(Verdict.CONTRADICTED, f"at {', '.join(against)}")
    return Headline(Verdict.UNDECIDED)


def _of_cells(cells: Sequence[Cell]) -> Headline:
    holding = [cell for cell in cells if cell.verdict is Verdict.HOLDS]
    against = [cell for cell in cells if cell.verdict in AGAINST]
    rest = [cell for cell in cells if cell not in holding]
    if not rest:
        return Headline(Verdict.HOLDS)
    if len(against) == len(cells):
        bounded = all(cell.verdict is Verdict.IMPOSSIBLE for cell in cells)
        return Headline(Verdict.IMPOSSIBLE if bounded else Verdict.CONTRADICTED)
    if 2 * len(holding) > len(cells):
        words = _exceptions(rest, cells) + ("" if against else " (undecided)")
        return Headline(Verdict.EXCEPT, words)
    if 2 * len(against) >= len(cells):
        return Headline(Verdict.CONTRADICTED, _exceptions(against, cells))
    undecided = f"at {len(cells) - len(holding)} of {len(cells)} points" if len(cells) > 1 else ""
    return Headline(Verdict.UNDECIDED, undecided)


def _exceptions(chosen: Sequence[Cell], cells: Sequence[Cell]) -> str:
    """What sets the chosen cells apart: the values of an axis that not all cells have."""
    words = []
    for axis in dict.fromkeys(axis for cell in cells for axis in cell.place):
        every = {cell.place.get(axis, "") for cell in cells}
        own = list(dict.fromkeys(cell.place.get(axis, "") for cell in chosen))
        if len(own) < len(every) and len(own) <= NAMED:
            words.append(f"{PREPOSITIONS.get(axis, f'at {axis}')} {', '.join(own)}")
    return " ".join(words) or f"at {len(chosen)} of {len(cells)} points"


PREPOSITIONS = {
    "interarrival": "at Ta",
    "first": "for",
    "second": "against",
    "from": "from Ta",
    "to": "to Ta",
    "than at": "than at",
}
"""How an exception begins, by axis."""


# Cells


def _cells(sentence: Sentence, study: Study) -> list[Cell]:
    found = []
    for check in sentence.checks:
        along = {**check.along, check.over: "all"} if check.over else check.along
        for at in _points(along, study):
            for first in _points(check.first, study):
                for second in _points(check.second, study) if check.second else [None]:
                    if first == second:
                        continue
                    comparison = _Comparison(check, study, first, second, at)
                    for cell in KINDS[check.kind](comparison):
                        over = str(at[check.over]) if check.over else ""
                        verdict = cell.verdict if cell.because else Verdict.UNDECIDED
                        found.append(replace(cell, over=over, verdict=verdict))
    return found


def _points(values: Where, study: Study) -> list[dict[str, Any]]:
    """Every combination of the values that the study has."""
    lists = []
    for axis, given in values.items():
        known = study.axes.get(axis, [])
        chosen = known if given == "all" else given if isinstance(given, list) else [given]
        lists.append([(axis, value) for value in chosen if value in known])
    return [dict(one) for one in itertools.product(*lists)]


def _name(where: Where | None, other: Where | None) -> str:
    own = where or {}
    telling = [str(v) for axis, v in own.items() if other is None or other.get(axis) != v]
    return " ".join(telling) or " ".join(map(str, own.values()))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _minus(a: float, b: float) -> float:
    return a - b


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A check at the points `first` and, maybe, `second`, both with the values `at`."""

    check: Check
    study: Study
    first: Where
    second: Where | None
    at: Where

    @property
    def names(self) -> tuple[str, str]:
        return _name(self.first, self.second), _name(self.second, self.first)

    @property
    def region(self) -> Region:
        check = self.check
        low = -math.inf if check.low is None else check.low
        return Region(low, math.inf if check.high is None else check.high)

    @property
    def up_to_margin(self) -> Region:
        return Region(high=self.check.margin) if self.check.margin else BELOW_ZERO

    def values(self, side: Where | None, place: Any = None) -> BySeed:
        """The metric by seed at a side, maybe at this place of the axis.

        It may be a mean over an axis, for seeds that have every value.
        """
        check, study = self.check, self.study
        where = {**(self.first if side is None else side), **self.at}
        where |= {} if place is None else {check.axis: place}
        if not check.averaged:
            return study.values(check.metric, where)
        axis = check.averaged
        each = [study.values(check.metric, {**where, axis: one}) for one in study.axes[axis]]
        seeds = [seed for seed in each[0] if all(seed in one for one in each)]
        return {seed: sum(one[seed] for one in each) / len(each) for seed in seeds}

    def cell(
        self,
        what: str,
        sides: Sequence[BySeed],
        region: Region,
        compared: Callable[..., float],
        place: Mapping[str, Any] | None = None,
    ) -> Iterator[Cell]:
        """A cell of the seeds that all sides have; none if no seed has."""
        check, (first, second) = self.check, self.names
        seeds = [seed for seed in sides[0] if all(seed in side for side in sides)]
        scaled = [[side[seed] * check.factor for seed in seeds] for side in sides]
        values = tuple(compared(*one) for one in zip(*scaled, strict=True))
        if values and all(map(math.isfinite, values)):
            where: dict[str, Any] = {"first": first} if self.first else {}
            where |= {} if self.second is None else {"second": second}
            where |= {**self.at, **(place or {})}
            named = {axis: str(value) for axis, value in where.items()}
            means = tuple(_mean(side) for side in scaled)
            yield Cell(what, named, values, region, check.unit, means, check.metric)


def _pair(at: _Comparison) -> Iterator[Cell]:
    check, (first, second) = at.check, at.names
    region, compared, word = {
        "below": (at.up_to_margin, _minus, "below"),
        "above": (at.up_to_margin, lambda a, b: b - a, "above"),
        "close": (Region(-check.margin, check.margin), _minus, "close to"),
        "difference": (at.region, _minus, "less"),
        "ratio": (at.region, lambda a, b: a / b if b else math.nan, "by"),
        "at_most_times": (Region(high=0.0), lambda a, b: a - check.times * b,
                          f"at most {check.times:g} times"),
    }[check.kind]  # fmt: skip
    sides = [at.values(at.first), at.values(at.second)]
    yield from at.cell(f"{first} {word} {second}".strip(), sides, region, compared)


def _within(at: _Comparison) -> Iterator[Cell]:
    check = at.check
    limits = (("at least", check.low), ("at most", check.high))
    bounds = [f"{word} {limit:g}" for word, limit in limits if limit is not None]
    what = f"{_name(at.first, None)} {' and '.join(bounds)}"
    for cell in at.cell(what, [at.values(at.first)], at.region, float):
        if check.kind == "always":
            held = all(value == check.low for value in cell.values)
            verdict = Verdict.HOLDS if held else Verdict.CONTRADICTED
            because = f"counted: the worst is {min(cell.values):g}"
            yield replace(cell, verdict=verdict, because=because)
        elif check.bound and check.high is not None and cell.means[0] > check.high:
            least = _least_slowdown(at.study, check.metric, {**at.first, **at.at})
            bounded = least > check.high
            because = f"no schedule has a mean slowdown below {least:.2f}" if bounded else ""
            verdict = Verdict.IMPOSSIBLE if bounded else Verdict.NOT_RUN
            yield replace(cell, verdict=verdict, because=because)
        else:
            yield cell


def _trend(at: _Comparison) -> Iterator[Cell]:
    """Steps along an axis, and its ends."""
    places = sorted(at.study.axes[at.check.axis])
    sign = 1.0 if at.check.kind == "falls" else -1.0
    pairs = [(*pair, at.up_to_margin) for pair in itertools.pairwise(places)]
    if len(places) > 2:
        pairs.append((places[0], places[-1], BELOW_ZERO))
    what = f"{_name(at.first, None)} {at.check.kind}"
    for low, high, region in pairs:
        sides = [at.values(at.first, place) for place in (low, high)]
        place = {"from": low, "to": high}
        yield from at.cell(what, sides, region, lambda a, b: sign * (b - a), place)


def _wider_gap(at: _Comparison) -> Iterator[Cell]:
    """The gap between two points at some values of an axis against those at others."""
    check, known = at.check, at.study.axes[at.check.axis]
    what = "gap of {} to {} wider".format(*at.names)
    pairs = itertools.product(check.here, check.elsewhere or known)
    for here, there in pairs:
        if here not in known or there not in known or there in check.here:
            continue
        sides = [at.values(side or {}, place)
                 for place in (here, there) for side in (at.first, at.second)]  # fmt: skip
        place = {check.axis: here, "than at": there}
        for cell in at.cell(what, sides, BELOW_ZERO, lambda a, b, c, d: (d - c) - (b - a), place):
            a, b, c, d = cell.means
            yield replace(cell, means=(b - a, d - c))


def _growth(at: _Comparison) -> Iterator[Cell]:
    """Exponents of a metric along an axis, by least squares on logarithms."""

    def exponents(side: Where) -> BySeed:
        places = sorted(at.study.axes[at.check.axis])
        each = [at.values(side, place) for place in places]
        seeds = [seed for seed in each[0] if all(one.get(seed, 0.0) > 0.0 for one in each)]
        logs = np.log(places)
        return {s: float(np.polyfit(logs, np.log([one[s] for one in each]), 1)[0]) for s in seeds}

    if at.second is None:
        what = f"{_name(at.first, None)} grows at most as N^{at.check.high:g}"
        yield from at.cell(what, [exponents(at.first)], at.region, float)
    else:
        what = "{} grows less than {}".format(*at.names)
        yield from at.cell(what, [exponents(at.first), exponents(at.second)], BELOW_ZERO, _minus)


KINDS: dict[str, Callable[[_Comparison], Iterator[Cell]]] = {
    **dict.fromkeys(("below", "above", "close", "difference", "ratio", "at_most_times"), _pair),
    **dict.fromkeys(("within", "always"), _within),
    **dict.fromkeys(("falls", "rises"), _trend),
    "wider_gap": _wider_gap,
    "growth": _growth,
}


def _least_slowdown(study: Study, metric: str, where: Where) -> float:
    """What no schedule can beat, mean over some repetitions; 1 for a metric without a bound."""
    if study.names.get(metric, metric) != "slowdown_mean":
        return 1.0
    bounds = []
    for scenario in study.scenarios(where)[:BOUNDED]:
        vo = (scenario.vos or ())[0]
        # The bound is one for all policies.
        cluster = replace(vo.clusters[0], policy=PluginRef("easy"))
        alone = scenario.model_copy(update={"vos": (replace(vo, clusters=(cluster,)),)})
        bounds.append(_bound_of(alone.model_dump_json()))
    return _mean(bounds)


@cache
def _bound_of(scenario: str) -> float:
    return slowdown_bound(realize(Scenario.model_validate_json(scenario), "bound")[0]) or 1.0
