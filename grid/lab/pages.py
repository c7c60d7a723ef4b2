"""The page of a paper, for people: what it claims, what our runs say to it, on what that depends.

A page is a list of sections, which HTML and Markdown are both made from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grid.lab.claims import Claim, Finding, Paper, SubClaim, Verdict, in_words
from grid.lab.readings import Compared
from grid.lab.report.labels import counted, shown
from grid.lab.report.page import Block, Section, Table
from grid.lab.report.style import Picture
from grid.lab.statistics import Interval
from grid.lab.study import Study

SHORT = ("claim", "what the paper says", "what it gives for it", "sub-claims")
LONG = ("sub-claim", "at", "the paper", "ours", "difference or value, interval", "verdict")
READING = ("what is open", "main reading, and why", "where it is set", "other readings", "history")
FEW = 8
"""The figures of so many sub-claims stand beside another reading."""
MOST_KINDS = 8
"""Sub-claims are counted by what the paper says if it says no more things."""
FOLDED_FROM = 16
"""A table of so many rows is folded away in Markdown."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim, what was found, and what other readings make of it."""

    claim: Claim
    finding: Finding
    others: tuple[Compared, ...] = ()

    def __str__(self) -> str:
        line = f"{self.claim.name}: {self.finding.in_words}. {self.claim.text}."
        changes = [one for one in self.others if one.changed]
        if changes:
            described = "; ".join(f"{one.other.text}: {changes_of(one)}" for one in changes)
            line += f" Other readings change it: {described}."
        return line


@dataclass(frozen=True, slots=True)
class Judgement:
    """A paper with all that was judged of it, its pictures and its studies."""

    paper: Paper
    judged: tuple[Judged, ...]
    pictures: tuple[Picture, ...]
    studies: Mapping[str, Study]

    @property
    def is_whole(self) -> bool:
        """Is every claim of the paper among them?"""
        return len(self.judged) == len(self.paper.claims)


def changes_of(one: Compared) -> str:
    """What another reading changes, such as "3 contradicted instead of holds".

    Of what is undecided under both nothing is known.
    """
    moves: dict[tuple[Verdict, Verdict], int] = {}
    for before, after in one.changed:
        key = before.verdict, after.verdict
        moves[key] = moves.get(key, 0) + 1
    counts = [f"{count} {after} instead of {before}" for (before, after), count in moves.items()]
    if set(one.finding.counts) == {Verdict.NOT_RUN}:
        return "not run"
    if one.undecided:
        nothing = "" if counts else "nothing that is decided; "
        few = "undecided under both: too few repetitions to tell"
        return f"{nothing}{', '.join(counts)}{'; ' if counts else ''}{one.undecided} {few}"
    return ", ".join(counts) or "nothing"


def sections(judgement: Judgement) -> list[Section]:
    """The page, after its title."""
    paper = judgement.paper
    short = Table(SHORT, [short_cells(one) for one in judgement.judged], prose=True)
    return [
        Section("The paper", [*source_lines(paper), *_cost_lines(judgement)]),
        Section("Claims", [short]),
        *(Section(_heading(one), _claim_blocks(one, judgement)) for one in judgement.judged),
        Section("Figures", list(judgement.pictures)),
        Section("What this depends on", _reading_blocks(judgement)),
        Section("What contradicts the paper, and why", _why(judgement)),
        Section("What stands behind the other verdicts", _notes(judgement)),
        Section("What the paper leaves out, and what is not judged", list(paper.left_out)),
    ]


def source_lines(paper: Paper) -> list[str]:
    """Title, authors, year and where it was published, as far as the text says."""
    source = paper.source
    given = {
        "Title": source.title,
        "Authors": source.authors,
        "Year": str(source.year or ""),
        "Published": source.published,
    }
    unknown = [name.lower() for name, value in given.items() if not value]
    lines = [f"{name}: {value}." for name, value in given.items() if value]
    if unknown:
        lines.append(f"Not in the text that we have: {', '.join(unknown)}.")
    lines.append(f"DOI: {source.doi}." if source.doi else "The text gives no DOI.")
    return [*lines, paper.summary]


def _cost_lines(judgement: Judgement) -> list[str]:
    return [
        f"scenarios/experiments/{name}.yaml: {counted(len(study.runs), 'run')}, "
        f"{counted(len({seed for _, seed, _ in study.runs}), 'seed')}, confidence "
        f"{100 * study.level:g} %, {cpu_seconds(study):,.0f} CPU seconds"
        for name, study in judgement.studies.items()
    ]


def cpu_seconds(study: Study) -> float:
    """What the runs cost that have a clock, compiling not counted."""
    return sum(sum(clock["cpu_seconds"].values()) for clock in study.clocks.values())


def short_cells(one: Judged) -> tuple[str, ...]:
    """What stands under SHORT: the counts by what the paper says, too, for sums can hide a part."""
    counts = one.finding.in_words
    if kinds := _kinds(one.finding):
        counts = f"{counts}. {kinds}"
    return one.claim.name, one.claim.text, one.claim.paper, counts


def _kinds(finding: Finding) -> str:
    """The counts by what the paper says, where it says several things, and not too many."""
    by_kind = finding.by_kind
    if not 1 < len(by_kind) <= MOST_KINDS:
        return ""
    kinds = (f"{kind or 'else'}: {in_words(counts)}" for kind, counts in by_kind.items())
    return f"By what the paper says: {'; '.join(kinds)}"


def _heading(one: Judged) -> str:
    return f"{one.claim.name}: {one.claim.text}"


def _claim_blocks(one: Judged, judgement: Judgement) -> list[Block]:
    blocks: list[Block] = [f"{one.finding.in_words}."]
    if kinds := _kinds(one.finding):
        blocks.append(f"{kinds}.")
    if one.claim.criterion:
        blocks.append(f"How words are taken: {one.claim.criterion}.")
    study = judgement.studies.get(one.claim.experiments[0])
    if study is not None and (levels := _levels(one.finding)):
        blocks.append(f"{levels} {_confidence(study.level, judgement.paper)}")
    blocks.append(Table(LONG, [_row(sub) for sub in one.finding.sub_claims], prose=True))
    blocks += _tables_over_unknown(one.finding)
    if study is not None:
        blocks += _beside(one.claim, study)
    if one.others:
        rows = [
            (
                other.other.text,
                other.finding.in_words,
                _repetitions(other.finding) + (f", at {other.only_at}" if other.only_at else ""),
                changes_of(other),
                _figures(other.finding, [after for _, after in other.changed]),
            )
            for other in one.others
        ]
        headers = (
            "under the other reading",
            "sub-claims",
            "repetitions",
            "changes, against the main reading with the same repetitions at the same points",
            "its figures",
        )
        blocks.append(Table(headers, rows, prose=True))
    return blocks


def _levels(finding: Finding) -> str:
    """How wide the intervals of a claim are, and how many of them share its confidence."""
    every = [one for sub in finding.sub_claims for one in (sub, *(row for _, row in sub.rows))]
    levels = [one.interval.level for one in every if one.interval is not None]
    if not levels:
        return ""
    least, most = (f"{100 * level:.4g}" for level in (min(levels), max(levels)))
    span = least if least == most else f"{least} to {most}"
    return f"Intervals have levels of {span} %, after Holm."


def _confidence(level: float, paper: Paper) -> str:
    """What Holm's method gives, and whose the level is."""
    whose = "the paper's confidence" if paper.gives_confidence else "our choice, the paper has none"
    wrong = f"{100 * (1 - level):.4g}"
    return (
        f"The chance that any verdict here is wrong is at most {wrong} % ({100 * level:g} % is "
        f"{whose})."
    )


def _beside(claim: Claim, study: Study) -> list[Block]:
    """Figures that are no part of the claim and help to read it: a row a point."""
    rows = [
        (
            ", ".join(str(value) for value in point.values()),
            *(
                with_interval(interval) if interval is not None else "–"
                for interval in (study.interval(metric, point) for metric in claim.beside)
            ),
        )
        for point in study.points
    ]
    if not claim.beside or not rows:
        return []
    return ["Beside it, not judged:", Table(("", *claim.beside.values()), rows, prose=True)]


def _figures(finding: Finding, changed: Sequence[SubClaim]) -> str:
    """The figures of all sub-claims where they are few, or else of those that change."""
    chosen = finding.sub_claims if len(finding.sub_claims) <= FEW else changed[:FEW]
    figures = [
        f"{sub.what} ({place}): {row.ours} {row.unit}".rstrip().replace(" ()", "")
        for sub in chosen
        for place, row in ((sub.setting, sub), *sub.rows)
        if row.ours
    ]
    return "; ".join(figures) or "–"


def _repetitions(finding: Finding) -> str:
    counts = {one.interval.count for one in finding.sub_claims if one.interval is not None}
    counts |= {
        one.interval.count
        for sub in finding.sub_claims
        for _, one in sub.rows
        if one.interval is not None
    }
    return ", ".join(map(str, sorted(counts))) or "–"


def _row(sub: SubClaim) -> tuple[str, ...]:
    verdict = str(sub.verdict)
    if sub.because:
        verdict += f" ({sub.because})"
    for text, other in sub.otherwise:
        verdict += f"; under the other reading ({text}): {other}"
    unit = f" {sub.unit}" if sub.unit else ""
    ours = f"{sub.ours}{unit}" if sub.ours else "–"
    interval = with_interval(sub.interval) if sub.interval is not None else "–"
    return sub.what, sub.setting or "–", sub.paper or "–", ours, interval, verdict


def _tables_over_unknown(finding: Finding) -> list[Block]:
    """The verdicts over what the paper does not give: a row a sub-claim, a column a value."""
    unknown = [sub for sub in finding.sub_claims if sub.rows]
    if not unknown:
        return []
    values = list(dict.fromkeys(value for sub in unknown for value, _ in sub.rows))
    rows = []
    for sub in unknown:
        by_value = {value: _cell(one) for value, one in sub.rows}
        rows.append((sub.what, sub.setting, *(by_value.get(value, "–") for value in values)))
    return [Table(("sub-claim", "at", *values), rows, prose=True)]


def _cell(sub: SubClaim) -> str:
    """A sub-claim at one value of an unknown quantity."""
    line = f"{sub.ours} {sub.unit}".strip()
    if sub.interval is not None:
        line += f"; {with_interval(sub.interval)}"
    return f"{line}: {sub.verdict}" + (f" ({sub.because})" if sub.because else "")


def with_interval(interval: Interval) -> str:
    """Mean and half width, with as many digits as the width deserves."""
    half, value = interval.half_width, interval.mean
    if not math.isfinite(half):
        return shown(value)
    if half == 0.0:
        return f"{shown(value)} ± 0"
    places = min(9, max(0, 1 - math.floor(math.log10(half))))
    return f"{value:,.{places}f} ± {half:,.{places}f}"


def _reading_blocks(judgement: Judgement) -> list[Block]:
    rows = []
    for reading in judgement.paper.readings:
        others = "; ".join(
            other.text + (f" (not run: {other.lacking})" if other.lacking else "")
            for other in reading.others
        )
        claims = ", ".join(reading.claims)
        rows.append(
            (
                f"{reading.where} ({claims})",
                f"{reading.main}. {reading.why}",
                reading.settings,
                others or "we found no other",
                reading.history or "–",
            )
        )
    return [Table(READING, rows, prose=True)] if rows else []


def _why(judgement: Judgement) -> list[Block]:
    lines: list[Block] = []
    for one in judgement.judged:
        if against := _contradicted(one.finding):
            why = judgement.paper.why.get(one.claim.name, "Why is not known.")
            lines.append(f"{one.claim.name} ({in_words(against)}): {why}")
    return lines or ["Nothing."]


def _notes(judgement: Judgement) -> list[Block]:
    """What is to be known of the claims that nothing contradicts."""
    return [
        f"{one.claim.name} ({in_words(one.finding.counts)}): {judgement.paper.why[one.claim.name]}"
        for one in judgement.judged
        if one.claim.name in judgement.paper.why and not _contradicted(one.finding)
    ]


def _contradicted(finding: Finding) -> dict[Verdict, int]:
    """How many sub-claims are contradicted or cannot hold; nothing where none is."""
    against = (Verdict.CONTRADICTED, Verdict.IMPOSSIBLE)
    return {verdict: finding.counts[verdict] for verdict in against if finding.counts[verdict]}


def markdown(title: str, introduction: Sequence[str], parts: Sequence[Section]) -> str:
    """The page in Markdown; pictures stand beside it as NAME.svg, long tables are folded away."""
    lines = [f"# {title}", ""]
    for paragraph in introduction:
        lines += [paragraph, ""]
    for section in parts:
        if section.blocks:
            lines += [f"## {section.title}", ""]
            for block in section.blocks:
                lines += [*_markdown_block(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_block(block: Block) -> list[str]:
    if isinstance(block, Picture):
        return [f"![{block.caption}]({block.name}.svg)", "", block.caption]
    if isinstance(block, Table):
        table = [markdown_row(block.headers), markdown_row(["---"] * len(block.headers))]
        table += [markdown_row(row) for row in block.rows]
        if len(block.rows) < FOLDED_FROM:
            return table
        summary = f"<summary>{counted(len(block.rows), 'row')}</summary>"
        return ["<details>", summary, "", *table, "", "</details>"]
    return [str(block)]


def markdown_row(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
