"""The page of a paper, the table of all its cells, and the index of all papers."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from grid.config.shipped import experiments_folder
from grid.lab.markdown import markdown
from grid.lab.papers.judge import Cell, Effect, JudgedSentence, Judgement, Verdict
from grid.lab.papers.paper import NAMES, Figure, load_paper
from grid.lab.report.charts import grid_chart
from grid.lab.report.picture import Picture, columns_of, counted
from grid.lab.report.sweep_page import drawn_ends
from grid.lab.store import write_text

PAGES = experiments_folder() / "reproduced"
MOST_TURNS = 1
"""At most this many readings that turn a verdict are named in a row."""
MOST_EFFECTS = 2
"""At most this many assumptions are on a page."""
HEADERS = ("the authors (their figure)", "ours", "verdict", "what changes it")
CSV_HEADERS = (
    "reading", "claim", "sentence", "comparison", "metric", "place", "over", "first", "second",
    "unit", "mean", "low", "high", "level", "repetitions", "verdict", "because",
)  # fmt: skip
CLAIM_ROW = re.compile(r"^\| \[([A-Z0-9]+-\d+)\]\(\w+\.md\) \| (.*) \| (.*) \|$", re.MULTILINE)


def table(judgement: Judgement, kind: str = "verdict") -> list[tuple[str, ...]]:
    """The rows of the page: quote and figure, ours, verdict, what changes it."""
    rows: list[tuple[str, ...]] = []
    for one in judgement.sentences:
        if judgement.paper.claims[one.claim].kind != kind:
            continue
        sentence = one.sentence
        says = f'{one.claim}: "{sentence.quote}" ({sentence.figure})'
        rows.append((says, ours(one), str(one.headline), turns(one)))
    return rows


def ours(one: JudgedSentence) -> str:
    """The cells that the page shows: means that are compared, difference and interval."""
    chosen = []
    for selector in one.sentence.show or ({},):
        wanted = {axis: str(value) for axis, value in selector.items()}
        fitting = [cell for cell in one.cells if wanted.items() <= cell.place.items()]
        chosen += fitting[:1]
    return "; ".join(_figures(cell) for cell in chosen or one.cells[:1]) or "not run"


def _figures(cell: Cell) -> str:
    place = [cell.place[axis] for axis in ("first", "second") if axis in cell.place]
    at = [f"{_axis(axis)} {value}" for axis, value in cell.place.items()
          if axis not in ("first", "second", "from")]  # fmt: skip
    where = ", ".join([" vs ".join(place), *at])
    return f"{where}: {means_of(cell)}"


def means_of(cell: Cell) -> str:
    """One or two means in their unit, with the half width of the interval of what is compared."""
    unit = f" {cell.unit}" if cell.unit else ""
    half = ""
    if cell.interval is not None and math.isfinite(cell.interval.half_width):
        half = f" (±{_short(cell.interval.half_width)})"
    return " vs ".join(_short(mean) for mean in cell.means) + unit + half


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _axis(axis: str) -> str:
    return {"interarrival": "Ta", "to": "to Ta"}.get(axis, axis)


def turns(one: JudgedSentence) -> str:
    """Other readings with another verdict."""
    words = [f"{other.text}: {new.verdict}" for other, new in one.turned[:MOST_TURNS]]
    more = len(one.turned) - MOST_TURNS
    return "; ".join(words) + (f"; {more} more" if more > 0 else "") or "–"


def assumptions(judgement: Judgement) -> list[str]:
    """The readings with the largest effects: verdicts that change, and the largest change."""
    lines = []
    for one in judgement.effects[:MOST_EFFECTS]:
        if not one.turned and one.change < 0.05:
            break
        lines.append(f"{one.other.text} ({one.reading.open}): {_effect(one)}")
    return lines


def _effect(one: Effect) -> str:
    words = counted(len(one.turned), "verdict")
    if one.cell is None:
        return words
    at = ", ".join(f"{_axis(axis)} {value}" for axis, value in one.cell.place.items()
                   if axis not in ("first", "second", "from"))  # fmt: skip
    name = one.cell.place.get("first", "")
    change = f"{_short(one.cell.means[0])} → {_short(one.mean)}"
    metric = one.cell.metric.removesuffix("_mean").replace("_", " ")
    return f"{words}; {metric} of {name}{', ' + at if at else ''}: {change}"


def page(judgement: Judgement, pictures: Sequence[Picture]) -> str:
    paper, studies = judgement.paper, judgement.studies.values()
    counts = sorted({len({seed for _, seed, _ in study.runs}) for study in studies})
    left = "; ".join(paper.left_out)
    return markdown(
        "paper",
        paper=paper,
        repetitions=" to ".join(dict.fromkeys(map(str, counts[:1] + counts[-1:]))) or "no",
        levels=", ".join(f"{100 * one:g}" for one in sorted({study.level for study in studies})),
        headers=HEADERS,
        rows=table(judgement),
        measured=[row[:2] for row in table(judgement, "measurement")],
        pictures=pictures,
        assumptions=assumptions(judgement),
        left_out=f"{left[:1].upper()}{left[1:]}." if left else "",
        unrun="; ".join(
            f"{other.text} ({other.not_run})"
            for reading in paper.readings
            for other in reading.others
            if other.not_run
        ),
    )


def cells_csv(judgement: Judgement) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADERS)
    for one in judgement.sentences:
        if not one.cells:
            empty = [""] * (len(CSV_HEADERS) - 5)
            writer.writerow(["main", one.claim, one.sentence.label, *empty, "not run", ""])
        for cell in one.cells:
            writer.writerow(_csv_row("main", one.claim, one.sentence.label, cell))
    for effect in judgement.effects:
        for claim, label, cell in effect.cells:
            writer.writerow(_csv_row(effect.other.text, claim, label, cell))
    return text.getvalue()


def _csv_row(reading: str, claim: str, label: str, cell: Cell) -> list[str]:
    place = "; ".join(f"{axis}={value}" for axis, value in cell.place.items())
    means = [f"{mean:.6g}" for mean in cell.means] + [""] * (2 - len(cell.means))
    interval: list[str] = ["", "", "", ""]
    if cell.interval is not None:
        one = cell.interval
        interval = [f"{one.mean:.6g}", f"{one.low:.6g}", f"{one.high:.6g}", f"{one.level:.6g}"]
    return [
        reading, claim, label, cell.what, cell.metric, place, cell.over, *means[:2], cell.unit,
        *interval, str(len(cell.values)), str(cell.verdict), cell.because,
    ]  # fmt: skip


def _picture(judgement: Judgement, figure: Figure) -> Picture | None:
    study = judgement.studies.get(figure.experiment)
    if study is None:
        return None
    places = list(study.axes.get(figure.axis, []))
    wheres = {axis: value for axis, value in figure.where.items() if value in study.axes[axis]}
    for axis, values in study.axes.items():
        named = axis in {figure.axis, *wheres, *(key for one in figure.series for key in one)}
        if not named:
            wheres[axis] = values[0]
    rows = [
        (" ".join(map(str, one.values())), place, interval.mean, *drawn_ends(interval))
        for one in figure.series
        for place in places
        if (interval := study.interval(figure.metric, {**one, **wheres, figure.axis: place}))
    ]
    if not rows:
        return None
    name = f"{judgement.paper.name.lower()}-figure"
    columns = columns_of(("series", "x", "value", "low", "high"), rows)
    return grid_chart(name, figure.caption, columns, x=figure.x, y=figure.y)


def write_page(folder: Path, judgement: Judgement) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = judgement.paper.name
    drawn = (_picture(judgement, figure) for figure in judgement.paper.figures)
    pictures = [one for one in drawn if one is not None]
    for one in pictures:
        (folder / f"{one.name}.svg").write_bytes(one.svg)
    write_text(folder / f"{name}.csv", cells_csv(judgement))
    write_text(folder / f"{name}.md", page(judgement, pictures))


def write_index(folder: Path, judgements: Sequence[Judgement]) -> None:
    """A line for each claim; those of papers that are not judged now stay as they are."""
    path = folder / "README.md"
    known = read_index(folder)
    for one in judgements:
        for name, found in one.claims.items():
            measured = one.paper.claims[name].kind == "measurement"
            known[name] = "measurement" if measured else str(found)
    rows = [
        (f"[{claim}]({name}.md)", load_paper(name).claims[claim].text, known[claim])
        for name in NAMES
        for claim in load_paper(name).claims
        if claim in known
    ]
    write_text(path, markdown("papers", rows=rows))


def read_index(folder: Path) -> dict[str, str]:
    """The verdict on each claim, as the index in the folder has it."""
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return {claim: verdict for claim, _, verdict in CLAIM_ROW.findall(text)}


def differing_verdicts(folder: Path, judgements: Sequence[Judgement]) -> Iterator[str]:
    """Lines for claims whose verdict contradicts that of the index.

    A quick reproduction leaves more undecided, so only opposite verdicts count.
    """
    published = read_index(folder)
    holding = (Verdict.HOLDS, Verdict.EXCEPT)
    against = (Verdict.CONTRADICTED, Verdict.IMPOSSIBLE)
    for one in judgements:
        for claim, found in one.claims.items():
            known = published.get(claim)
            if known is None:
                yield f"{claim}: the index has no verdict"
            elif known == "measurement":
                continue
            elif (found.verdict in holding and known.startswith(against)) or (
                found.verdict in against and known.startswith(holding)
            ):
                yield f"{claim}: {found}, the index has: {known}"
