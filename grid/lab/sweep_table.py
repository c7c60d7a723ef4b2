"""The tables that a sweep prints: a row a combination, a column a metric; means, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grid.lab.experiment import Point
from grid.lab.findings import (
    NO_VALUE,
    SAME,
    SAME_NOTE,
    cells_of,
    findings,
    telling_metrics,
    warnings_of,
)
from grid.lab.study import Study, axis_text, paired_differences, read_repeated
from grid.results.definitions import label_of
from grid.results.summary import GAP, console_for_tables, text_table

if TYPE_CHECKING:
    from rich.console import Console

ROWS_SHOWN = 40
COLUMNS_SHOWN = 5
UNDECIDED = "?"


def print_sweep_table(folder: Path, console: Console | None = None) -> None:
    """Print means over seeds ± half their confidence interval, differences, and findings."""
    console = console or console_for_tables()
    study = read_repeated(folder)
    metrics = study.metrics or telling_metrics(study)[:COLUMNS_SHOWN]
    columns = {
        metric: cells_of([study.interval(metric, point) for point in study.points])
        for metric in metrics
    }
    texts = _print_table(console, study.points, columns, folder / "results.csv")
    has_intervals = len({seed for _, seed, _ in study.runs}) > 1
    notes = []
    if has_intervals:
        level = f"{100 * study.level:g} %"
        notes.append(f"Means over seeds ± half of their {level} confidence interval.")
    if NO_VALUE in texts:
        notes.append(f"{NO_VALUE}: the metric does not apply.")
    if any(text.endswith(f" {SAME}") for text in texts):
        notes.append(f"{SAME_NOTE}.")
    _print_lines(console, [*notes, *warnings_of(folder, study)])
    if has_intervals and study.compare is not None:
        _print_differences(study, study.compare, metrics, folder, console)
    _print_lines(console, findings(study, metrics))


def _print_differences(
    study: Study, axis: str, metrics: Sequence[str], folder: Path, console: Console
) -> None:
    """Print the differences of all points from the first of the compared values."""
    first = study.axes[axis][0]
    found = [one for one in paired_differences(study, metrics) if one.baseline == first]
    points = {str(one.point): one.point for one in found}
    if not points:
        return
    columns = {}
    for metric in dict.fromkeys(one.metric for one in found):
        of_point = {str(one.point): one.interval for one in found if one.metric == metric}
        intervals = [of_point.get(point) for point in points]
        columns[metric] = [
            f"{text} {UNDECIDED}" if one is not None and one.is_undecided else text
            for text, one in zip(cells_of(intervals), intervals, strict=True)
        ]
    _print_lines(console, ["", f"Differences from {axis} {axis_text(first)}, paired by seed:"])
    texts = _print_table(console, list(points.values()), columns, folder / "differences.csv")
    if any(text.endswith(f" {UNDECIDED}") for text in texts):
        _print_lines(console, [f"{UNDECIDED}: undecided, since the interval contains zero."])


def _print_table(
    console: Console, points: Sequence[Point], columns: Mapping[str, Sequence[str]], file: Path
) -> list[str]:
    """Print the first points with as many metrics as fit; `file` has all. Returns the cells."""
    shown = points[:ROWS_SHOWN]
    table = text_table(console)
    left = console.width
    for axis in shown[0] if shown else ():
        texts = [axis_text(point[axis]) for point in shown]
        left -= max(map(len, [axis, *texts])) + GAP
        table.add_column(axis, no_wrap=True)
    fitting: list[str] = []
    for metric, cells in columns.items():
        width = max(map(len, [*label_of(metric).split(), *cells[:ROWS_SHOWN]]))
        left -= width + GAP
        if left < 0:
            break
        fitting.append(metric)
        table.add_column(label_of(metric), justify="right", min_width=width)
    for row, point in enumerate(shown):
        table.add_row(
            *map(axis_text, point.values()), *(columns[metric][row] for metric in fitting)
        )
    if fitting or not columns:
        console.print(table)
    if len(points) > len(shown) or len(fitting) < len(columns):
        _print_lines(console, [f"All combinations and metrics are in {file}."])
    return [text for metric in fitting for text in columns[metric][:ROWS_SHOWN]]


def _print_lines(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False)
