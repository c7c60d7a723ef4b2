"""Claims of papers as lists of sub-claims, and what a study says to each.

A sub-claim is one comparison at one setting. A judge (see `grid.lab.papers`) is a function
of studies that gives the parts of a claim: comparisons, whose values come from the runs, and what
is settled without statistics. `decided` gives each of them its verdict; a claim has no verdict of
its own, only a count of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from grid.lab.statistics import (
    Interval,
    Region,
    deciding_alpha,
    holm_levels,
    mean_interval,
    repetitions_to_decide,
)
from grid.lab.study import Study

if TYPE_CHECKING:
    from grid.lab.readings import Reading
    from grid.lab.report.style import Picture

Where = Mapping[str, Any]

MANY = 1000
"""So many repetitions are not counted out."""


class Verdict(StrEnum):
    """What became of a sub-claim."""

    HOLDS = "holds"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    IMPOSSIBLE = "cannot hold"
    DEPENDS = "depends"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is claimed to lie in `region`: a value a repetition, for most a paired difference.

    `ours` are the figures that are compared, `paper` what the paper has for them, both in `unit`.
    """

    what: str
    setting: str
    values: tuple[float, ...]
    region: Region
    unit: str = ""
    ours: str = ""
    paper: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """A sub-claim that is decided without statistics: by a bound, by counting, or not at all."""

    what: str
    setting: str
    verdict: Verdict
    because: str
    unit: str = ""
    ours: str = ""
    paper: str = ""


@dataclass(frozen=True, slots=True)
class OverUnknown:
    """A sub-claim that is looked at over a quantity which the paper does not give.

    `at` has a comparison for each value of the quantity.
    """

    what: str
    setting: str
    quantity: str
    at: Mapping[str, Comparison]
    """In the order of the quantity: what lies between neighbours was not run."""
    paper: str = ""


@dataclass(frozen=True, slots=True)
class Together:
    """Is there one value of the quantity at which all of these hold? Each alone may at another.

    `parts` are sub-claims of the same claim, which are judged there.
    """

    what: str
    setting: str
    parts: tuple[OverUnknown, ...]
    paper: str = ""


Part = Comparison | Settled | OverUnknown | Together


@dataclass(frozen=True, slots=True)
class SubClaim:
    """One comparison at one setting, decided.

    `interval` is that of the comparison's mean, at its corrected level; None where nothing was
    tested. `because` says what would decide it, which bound forbids it, or why it was not run.
    `rows` is the table over a quantity that the paper does not give: the sub-claim by its value.
    `otherwise` is what other readings make of it.
    """

    what: str
    setting: str
    verdict: Verdict
    unit: str = ""
    ours: str = ""
    paper: str = ""
    interval: Interval | None = None
    because: str = ""
    rows: tuple[tuple[str, SubClaim], ...] = ()
    otherwise: tuple[tuple[str, Verdict], ...] = ()

    @property
    def turns(self) -> bool:
        """Does another reading decide it the other way?"""
        against = {Verdict.CONTRADICTED, Verdict.IMPOSSIBLE}
        others = {other for _, other in self.otherwise}
        if self.verdict is Verdict.HOLDS:
            return bool(others & against)
        return self.verdict in against and Verdict.HOLDS in others

    @property
    def loosens(self) -> bool:
        """Does it depend under another reading, where it is decided under the main one?"""
        decided_ones = {Verdict.HOLDS, Verdict.CONTRADICTED, Verdict.IMPOSSIBLE}
        others = {other for _, other in self.otherwise}
        return self.verdict in decided_ones and Verdict.DEPENDS in others

    @property
    def key(self) -> tuple[str, str]:
        """What it is about; no two sub-claims of a claim have the same."""
        return self.what, self.setting


@dataclass(frozen=True, slots=True)
class Studies:
    """The studies of a paper by the name of their experiment; why others are not there."""

    found: Mapping[str, Study]
    absent: Mapping[str, str] = field(default_factory=dict)


Judge = Callable[..., Iterator[Part]]
"""Takes the studies of the claim's experiments, in their order."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, what the paper gives for it, and the experiments whose studies its judge takes.

    `criterion` says how words such as "close" or "much" are taken, with the margins by number.
    `beside` are metrics of the first experiment that the page shows beside the verdicts, in words.
    """

    name: str
    text: str
    paper: str
    experiments: tuple[str, ...]
    judge: Judge
    criterion: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """What a paper is called, as its text gives it; nothing for what the text does not give."""

    title: str = ""
    authors: str = ""
    year: int | None = None
    doi: str = ""
    published: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper: its claims, and its figures with our data, as far as studies are there.

    `short` is what this project calls it.
    `why` are the sentences on why verdicts came out so, by claim: on what contradicts the paper, or
    else on what a reader must know of them; `left_out` what its text does not give and this
    reproduction had to choose, and what of it is not reproduced.
    `gives_confidence`: the level of the experiments is the paper's own.
    """

    name: str
    short: str
    source: Source
    summary: str
    claims: tuple[Claim, ...]
    figures: Callable[[Studies], Iterator[Picture]]
    readings: tuple[Reading, ...] = ()
    why: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    gives_confidence: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a claim: its sub-claims, each with its verdict."""

    sub_claims: tuple[SubClaim, ...]

    @property
    def counts(self) -> Counter[Verdict]:
        """How many sub-claims have which verdict."""
        return Counter(one.verdict for one in self.sub_claims)

    @property
    def in_words(self) -> str:
        """The counts, such as "84 hold, 28 contradicted; 12 the opposite under another reading"."""
        turned = sum(1 for one in self.sub_claims if one.turns)
        loose = sum(1 for one in self.sub_claims if one.loosens and not one.turns)
        more = [f"{turned} the opposite"] if turned else []
        more += [in_words({Verdict.DEPENDS: loose})] if loose else []
        return in_words(self.counts) + (
            f"; {', '.join(more)} under another reading" if more else ""
        )

    @property
    def by_kind(self) -> dict[str, Counter[Verdict]]:
        """The counts by what the paper says: its words, without the figures after a colon."""
        counts: dict[str, Counter[Verdict]] = {}
        for one in self.sub_claims:
            counts.setdefault(one.paper.partition(":")[0], Counter())[one.verdict] += 1
        return counts


def in_words(counts: Mapping[Verdict, int]) -> str:
    """How many of each verdict, in the order of `Verdict`."""
    phrases = []
    for verdict in Verdict:
        if count := counts.get(verdict, 0):
            word = verdict.value
            if count > 1:
                word = {"holds": "hold", "depends": "depend"}.get(word, word)
            phrases.append(f"{count} {word}")
    return ", ".join(phrases) or "nothing to compare"


def judged(claim: Claim, studies: Studies) -> Finding:
    """What the studies say to the claim. What cannot be judged is `NOT_RUN`, with the reason."""
    missing = [name for name in claim.experiments if name not in studies.found]
    if missing:
        why = "; ".join(studies.absent.get(name, f"{name} was not run") for name in missing)
        settled = Settled(claim.text, "", Verdict.NOT_RUN, why)
        return Finding((_of_settled(settled),))
    given = [studies.found[name] for name in claim.experiments]
    return Finding(decided(list(claim.judge(*given)), 1.0 - given[0].level))


def decided(parts: Sequence[Part], alpha: float) -> tuple[SubClaim, ...]:
    """Each part with its verdict; the chance that any is wrong is at most `alpha` (Holm)."""
    tested = [comparison for part in parts for comparison in _comparisons(part)]
    levels = holm_levels([deciding_alpha(one.values, one.region) for one in tested], alpha)
    level_of = {id(one): level for one, level in zip(tested, levels, strict=True)}

    def sub_claim(comparison: Comparison) -> SubClaim:
        return _of_comparison(comparison, level_of[id(comparison)])

    def over_unknown(part: OverUnknown) -> SubClaim:
        return _of_unknown(part, {at: sub_claim(one) for at, one in part.at.items()})

    found = []
    for part in parts:
        if isinstance(part, Comparison):
            found.append(sub_claim(part))
        elif isinstance(part, OverUnknown):
            found.append(over_unknown(part))
        elif isinstance(part, Together):
            found.append(_of_together(part, [over_unknown(one) for one in part.parts]))
        else:
            found.append(_of_settled(part))
    return tuple(found)


def _comparisons(part: Part) -> list[Comparison]:
    if isinstance(part, Comparison):
        return [part]
    return list(part.at.values()) if isinstance(part, OverUnknown) else []


def _of_comparison(one: Comparison, level: float) -> SubClaim:
    interval = mean_interval(one.values, level)
    verdict, because = Verdict.UNDECIDED, ""
    if interval.is_inside(one.region):
        verdict = Verdict.HOLDS
    elif interval.is_outside(one.region):
        verdict = Verdict.CONTRADICTED
    else:
        enough = repetitions_to_decide(one.values, one.region, level)
        because = "if further repetitions are like these, no practical number would decide it"
        if enough is not None:
            count = max(enough, len(one.values) + 1)
            about = f"about {count:,}" if count <= MANY else f"more than {MANY:,}"
            because = f"{about} repetitions would decide it"
        if len(one.values) < 2:
            because = "one repetition decides nothing"
    return SubClaim(
        one.what, one.setting, verdict, one.unit, one.ours, one.paper, interval, because
    )


def _of_settled(one: Settled) -> SubClaim:
    return SubClaim(
        one.what, one.setting, one.verdict, one.unit, one.ours, one.paper, None, one.because
    )


def _of_unknown(part: OverUnknown, at: Mapping[str, SubClaim]) -> SubClaim:
    """It depends where it holds at some values and is contradicted at others.

    Contradicted from below at one value and from above at the next, it may hold between them.
    """
    counts = Counter(one.verdict for one in at.values())
    verdict = Verdict.UNDECIDED
    because = f"{in_words(counts)}, at {len(at)} values of {part.quantity}; the paper gives none"
    if len(counts) == 1:
        (verdict,) = counts
        which = f"each of the {len(at)} values" if len(at) > 1 else "one value"
        because = f"at {which} of {part.quantity}; the paper gives none"
    elif counts[Verdict.HOLDS] and counts[Verdict.CONTRADICTED]:
        verdict = Verdict.DEPENDS
        because = f"on {part.quantity}, which the paper does not give: {in_words(counts)}"
    if verdict is Verdict.CONTRADICTED and (between := _passed(part, at)):
        verdict = Verdict.UNDECIDED
        because = f"contradicted {because}; but it is passed between {between}: not run there"
    return SubClaim(
        part.what,
        part.setting,
        verdict,
        next(iter(at.values())).unit,
        paper=part.paper,
        because=because,
        rows=tuple(at.items()),
    )


def _passed(part: OverUnknown, at: Mapping[str, SubClaim]) -> str:
    """Between which neighbours what is claimed is passed, such as "load 0.3 and load 0.45"."""
    for low, high in pairwise(part.at):
        if _side(part.at[low], at[low]) * _side(part.at[high], at[high]) < 0:
            return f"{low} and {high}"
    return ""


def _side(comparison: Comparison, found: SubClaim) -> int:
    """-1 where it is contradicted from below what is claimed, 1 from above, and else 0."""
    if found.verdict is not Verdict.CONTRADICTED or found.interval is None:
        return 0
    return -1 if found.interval.mean <= comparison.region.low else 1


def _of_together(part: Together, parts: Sequence[SubClaim]) -> SubClaim:
    """It holds if all do at one value, and is contradicted if one of them is at every value.

    And between any two neighbours: from the same side at both, so that it is not passed there.
    """
    at: dict[str, Counter[Verdict]] = {}
    for one in parts:
        for value, row in one.rows:
            at.setdefault(value, Counter())[row.verdict] += 1
    verdict = Verdict.UNDECIDED
    if any(counts[Verdict.HOLDS] == len(parts) for counts in at.values()):
        verdict = Verdict.HOLDS
    elif all(counts[Verdict.CONTRADICTED] for counts in at.values()) and all(
        _is_closed(low, high, part, parts) for low, high in pairwise(at)
    ):
        verdict = Verdict.CONTRADICTED
    because = "; ".join(f"{value}: {in_words(counts)}" for value, counts in at.items())
    return SubClaim(part.what, part.setting, verdict, paper=part.paper, because=because)


def _is_closed(low: str, high: str, part: Together, parts: Sequence[SubClaim]) -> bool:
    """Is one of the parts contradicted from the same side at both neighbours?"""
    for unknown, found in zip(part.parts, parts, strict=True):
        rows = dict(found.rows)
        if low in rows and high in rows:
            sides = (_side(unknown.at[value], rows[value]) for value in (low, high))
            if next(sides) * next(sides) > 0:
                return True
    return False
