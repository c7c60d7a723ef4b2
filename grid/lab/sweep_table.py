"""The tables that a sweep ends with on the terminal: a row a combination, a column a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from grid.lab.cases import Point
from grid.lab.paired import paired_differences
from grid.lab.repetitions import read_repeated, repetitions_told
from grid.lab.statistics import Interval
from grid.lab.study import Study
from grid.lab.sweep_texts import (
    SAME,
    SAME_TOLD,
    fewer_seeds,
    is_same,
    jobs_turned_away,
    measured_line,
)
from grid.lab.telling import telling_metrics, without_effect
from grid.results.definitions import label_of

if TYPE_CHECKING:
    from rich.console import Console

WIDEST = 400
"""More than all columns that are ever shown take."""
ROWS_SHOWN = 40
COLUMNS_SHOWN = 5
NO_VALUE = "-"
UNSURE = "?"
UNSURE_TOLD = f"{UNSURE}: the interval contains zero, so these seeds do not tell which is better"
_GAP = 2


def print_sweep_table(folder: Path, console: Console | None = None) -> None:
    """Prints means over seeds with half the width of their confidence interval, and differences."""
    from rich.console import Console

    if console is None:
        console = Console()
        if not console.is_terminal:
            # Nothing needs to be left out of a file or a pipe, which have no width.
            console.width = WIDEST
    study = read_repeated(folder)
    metrics = study.metrics or telling_metrics(study)[:COLUMNS_SHOWN]
    points = study.points[:ROWS_SHOWN]
    figures = {
        metric: _texts([study.interval(metric, point) for point in points]) for metric in metrics
    }
    no_room = _print_table(console, _axes_at(study, points), figures)
    lines = []
    if left_out := len(study.points) - len(points):
        lines.append(f"{left_out:,} more combinations are in {folder}/results.csv.")
    if no_room:
        names = ", ".join(no_room)
        lines.append(f"There is no room for {names}, which {folder}/results.csv has, too.")
    if _has_intervals(study):
        lines.append(
            f"means over seeds ± half of their {100 * study.level:g} % confidence interval"
        )
    cells = [text for metric, texts in figures.items() if metric not in no_room for text in texts]
    if NO_VALUE in cells:
        lines.append(f"{NO_VALUE}: the figure does not apply there")
    if any(text.endswith(f" {SAME}") for text in cells):
        lines.append(SAME_TOLD)
    told = repetitions_told(folder), fewer_seeds(study), jobs_turned_away(study)
    for line in filter(None, told):
        lines.append(f"{line[0].lower()}{line[1:-1]}")
    if line := without_effect(study):
        lines.append(line[:-1])
    if line := measured_line(folder):
        lines.append(f"{line[0].lower()}{line[1:-1]}")
        records = study.records.values()
        if empty := sum(not one["metrics"]["grid"].get("jobs_submitted") for one in records):
            lines.append(f"in {empty} of {len(records)} runs no job was submitted then")
    _say(console, lines)
    if _has_intervals(study):
        _print_differences(study, metrics, folder, console)


def _print_differences(
    study: Study, metrics: Sequence[str], folder: Path, console: Console
) -> None:
    """Prints how far all are from the first of the compared values, paired by seed."""
    axis = study.compare
    first = None if axis is None else study.axes[axis][0]
    from_first: dict[str, dict[str, Interval]] = {}
    points: dict[str, Point] = {}
    for one in paired_differences(study, metrics):
        if one.baseline == first:
            points[str(one.point)] = one.point
            from_first.setdefault(one.metric, {})[str(one.point)] = one.interval
    if not points:
        return
    shown = dict(list(points.items())[:ROWS_SHOWN])
    figures = {}
    for metric, found in from_first.items():
        intervals = [found.get(name) for name in shown]
        texts = zip(_texts(intervals), intervals, strict=True)
        figures[metric] = [text + (f" {UNSURE}" if _is_unsure(one) else "") for text, one in texts]
    lacking = [label_of(metric) for metric in metrics if metric not in from_first]
    _say(console, ["", f"Differences from {axis} {first}, with the same seeds:"])
    no_room = _print_table(console, _axes_at(study, list(shown.values())), figures)
    lines = []
    if len(points) > len(shown) or no_room:
        where = f"{folder}/differences.csv"
        lines.append(f"There is no room for all of them here; they are in {where}.")
    if lacking:
        lines.append(f"{axis} {first} has no value of {', '.join(lacking)} to hold others against")
    seen = [text for metric, texts in figures.items() if metric not in no_room for text in texts]
    if any(text.endswith(f" {UNSURE}") for text in seen):
        lines.append(UNSURE_TOLD)
    _say(console, lines)


def _print_table(
    console: Console, axes: Mapping[str, list[str]], figures: Mapping[str, list[str]]
) -> list[str]:
    """Prints the columns; gives the names of metrics for which there is no room."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        show_edge=False,
    )
    left = console.width - sum(max(map(len, [axis, *axes[axis]])) + _GAP for axis in axes)
    widths: dict[str, int] = {}
    for metric, texts in figures.items():
        width = max(map(len, [*label_of(metric).split(), *texts]))
        left -= width + _GAP
        if left < 0:
            left += width + _GAP
            break
        widths[metric] = width
    if figures and not widths:
        return list(figures)
    for axis in axes:
        table.add_column(axis, no_wrap=True)
    for header in _headers(widths, left):
        table.add_column(header, justify="right", no_wrap=True)
    shown = [figures[metric] for metric in widths]
    for row in zip(*axes.values(), *shown, strict=True):
        table.add_row(*row)
    console.print(table)
    return [metric for metric in figures if metric not in widths]


def _say(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _axes_at(study: Study, points: Sequence[Point]) -> dict[str, list[str]]:
    return {axis: [str(point[axis]) for point in points] for axis in study.axes}


def _headers(widths: dict[str, int], left: int) -> Iterator[str]:
    """The labels of metrics, broken to the width of their columns where no room is `left`.

    Rich would cut the columns of the longer ones.
    """
    for metric, width in widths.items():
        label = label_of(metric)
        more = max(0, len(label) - width)
        if more > left:
            label = "\n".join(wrap(label, width, break_long_words=False))
        else:
            left -= more
        yield label


def _has_intervals(study: Study) -> bool:
    return len({seed for _, seed, _ in study.runs}) > 1


def _is_unsure(one: Interval | None) -> bool:
    """Whether its interval contains zero."""
    return one is not None and not (one.above_zero or one.below_zero or is_same(one))


def _texts(intervals: list[Interval | None]) -> list[str]:
    """The cells of a column, all with the same decimals."""
    known = [one for one in intervals if one is not None]
    largest = max((abs(one.mean) for one in known), default=0.0)
    digits = 1 if largest >= 100 else 3 if largest == 0 or largest >= 0.01 else 6

    def text(one: Interval | None) -> str:
        if one is None:
            return NO_VALUE
        if is_same(one):
            return f"{one.mean:z,.{digits}f} {SAME}"
        half = one.half_width
        spread = f" ± {half:,.{digits}f}" if math.isfinite(half) else ""
        return f"{one.mean:z,.{digits}f}{spread}"

    return [text(one) for one in intervals]
