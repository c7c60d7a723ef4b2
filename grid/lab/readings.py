"""Readings: what a paper leaves open, how it is taken, and what other readings make of claims.

A reading is data. Its main choice is what the scenarios and experiments of the paper have; each
other choice names the runs, or the metric of the same runs, that it is judged by.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grid.lab.claims import Claim, Finding, Studies, SubClaim, Verdict, judged


@dataclass(frozen=True, slots=True)
class View:
    """The runs that a claim is judged by under another reading, in place of its own experiment's.

    Of `experiment` those at the values `where`; `metrics` names, by the metric that the judge asks
    for, the one that it is given. With `rest`, an axis, the values of this axis that it lacks are
    those of the experiment that it replaces.
    """

    experiment: str
    where: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Other:
    """Another reading: what it is, and its views by the name of the experiment they replace.

    Without views it was not run; `lacking` says why.
    """

    text: str
    views: Mapping[str, View] = field(default_factory=dict)
    lacking: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text leaves open (`where`), the main reading and why it is that, and the others.

    `claims` are those that it touches, `settings` what realises the main reading; `history` says
    what was chosen before, where that has changed.
    """

    where: str
    main: str
    why: str
    others: tuple[Other, ...]
    claims: tuple[str, ...]
    settings: str
    history: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """What another reading makes of a claim: its finding, and the sub-claims that change.

    They are compared with the main reading at the same points and with the same repetitions: where
    a reading has fewer of them, that alone changes nothing.
    """

    reading: Reading
    other: Other
    claim: Claim
    finding: Finding
    changed: tuple[tuple[SubClaim, SubClaim], ...]
    """Pairs: under the main reading, under the other one."""
    undecided: int = 0
    """How many sub-claims are undecided under both."""
    only_at: str = ""
    """Where it was run, if not at all points of the main reading, such as "load 0.55"."""


def experiments_of(claims: Sequence[Claim], readings: Sequence[Reading]) -> list[str]:
    """The experiments that these claims need, other readings included, each once."""
    names = [name for claim in claims for name in claim.experiments]
    for claim in claims:
        names += [
            view.experiment
            for reading in readings
            if claim.name in reading.claims
            for other in reading.others
            for name, view in other.views.items()
            if name in claim.experiments
        ]
    return list(dict.fromkeys(names))


def under(
    reading: Reading, other: Other, claim: Claim, studies: Studies
) -> tuple[Finding, Finding] | None:
    """The claim under the main reading and the other, by runs of both at the same points and seeds.

    None where the other reading says nothing on the claim.
    """
    views = {name: view for name, view in other.views.items() if name in claim.experiments}
    if claim.name not in reading.claims or not views:
        return None
    found, main = dict(studies.found), dict(studies.found)
    absent = dict(studies.absent)
    for name, view in views.items():
        found.pop(name, None)
        if view.experiment not in studies.found:
            absent[name] = studies.absent.get(view.experiment, f"{view.experiment} was not run")
            continue
        seen = studies.found[view.experiment].seen(view.where, view.metrics)
        if view.rest and name in studies.found:
            seen = seen.filled_from(studies.found[name], view.rest)
        found[name] = seen
        if view.experiment != name and name in main:
            main[name] = main[name].limited_to(seen)
    return judged(claim, Studies(main, studies.absent)), judged(claim, Studies(found, absent))


def only_at(other: Other, claim: Claim, studies: Studies) -> str:
    """The values of axes of numbers that the other reading has, where the main one has more."""
    found: dict[str, str] = {}
    for name, view in other.views.items():
        ran, main = studies.found.get(view.experiment), studies.found.get(name)
        if name not in claim.experiments or ran is None or main is None or view.rest:
            continue
        for axis, values in main.axes.items():
            chosen = [value for value in values if value in ran.axes.get(axis, values)]
            is_number = all(isinstance(value, int | float) for value in values)
            if is_number and 0 < len(chosen) < len(values):
                found[axis] = f"{axis} {', '.join(map(str, chosen))}"
    return "; ".join(found.values())


def compared(claim: Claim, readings: Sequence[Reading], studies: Studies) -> list[Compared]:
    """What every other reading that touches the claim makes of it."""
    results = []
    for reading in readings:
        for other in reading.others:
            findings = under(reading, other, claim, studies)
            if findings is None:
                continue
            main, finding = findings
            before = {one.key: one for one in main.sub_claims}
            changed = tuple(
                (before[one.key], one)
                for one in finding.sub_claims
                if one.key in before and before[one.key].verdict is not one.verdict
            )
            undecided = sum(
                one.verdict is Verdict.UNDECIDED is before[one.key].verdict
                for one in finding.sub_claims
                if one.key in before
            )
            where = only_at(other, claim, studies)
            results.append(Compared(reading, other, claim, finding, changed, undecided, where))
    return results


def with_readings(main: Finding, others: Sequence[Compared]) -> Finding:
    """The finding, with what other readings make of each sub-claim where it changes."""
    otherwise: dict[tuple[str, str], list[Any]] = {}
    for one in others:
        text = one.other.text + (f"; at {one.only_at} alone" if one.only_at else "")
        for before, after in one.changed:
            otherwise.setdefault(before.key, []).append((text, after.verdict))

    def others_of(sub: SubClaim) -> tuple[tuple[str, Verdict], ...]:
        # With fewer repetitions the main reading may leave open what it decides with all.
        found = otherwise.get(sub.key, ())
        return tuple((text, other) for text, other in found if other is not sub.verdict)

    return Finding(
        tuple(dataclasses.replace(sub, otherwise=others_of(sub)) for sub in main.sub_claims)
    )
