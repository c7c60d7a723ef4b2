"""The tables that a sweep prints: a row a combination, a column a metric; means, differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from grid.lab.experiment import Point
from grid.lab.statistics import Interval
from grid.lab.study import Study, read_repeated
from grid.lab.sweep_texts import SAME, SAME_TOLD, measured_line, remarks, telling_metrics
from grid.lab.tables import paired_differences
from grid.results.definitions import label_of

if TYPE_CHECKING:
    from rich.console import Console

UNLIMITED = 400
"""The width of a file or pipe: more than all columns take."""
ROWS_SHOWN = 40
COLUMNS_SHOWN = 5
NO_VALUE = "-"
UNSURE = "?"
UNSURE_TOLD = f"{UNSURE}: the interval contains zero, so the difference is not significant"
_GAP = 2


def print_sweep_table(folder: Path, console: Console | None = None) -> None:
    """Print means over seeds ± half their confidence interval, and differences."""
    from rich.console import Console

    if console is None:
        console = Console()
        if not console.is_terminal:
            console.width = UNLIMITED
    study = read_repeated(folder)
    metrics = study.metrics or telling_metrics(study)[:COLUMNS_SHOWN]
    points = study.points[:ROWS_SHOWN]
    columns = {
        metric: _cells([study.interval(metric, point) for point in points]) for metric in metrics
    }
    cut = _print_table(console, _axes_at(study, points), columns)
    notes = []
    if left_out := len(study.points) - len(points):
        notes.append(f"{left_out:,} more combinations are in {folder}/results.csv.")
    if cut:
        notes.append(f"There is no room for {', '.join(cut)}; see {folder}/results.csv.")
    has_intervals = len({seed for _, seed, _ in study.runs}) > 1
    if has_intervals:
        level = f"{100 * study.level:g} %"
        notes.append(f"means over seeds ± half of their {level} confidence interval")
    cells = [text for metric, texts in columns.items() if metric not in cut for text in texts]
    if NO_VALUE in cells:
        notes.append(f"{NO_VALUE}: the metric does not apply there")
    if any(text.endswith(f" {SAME}") for text in cells):
        notes.append(SAME_TOLD)
    notes += remarks(folder, study)
    if measured_line(folder):
        records = study.records.values()
        if empty := sum(not one["metrics"]["grid"].get("jobs_submitted") for one in records):
            notes.append(f"In {empty} of {len(records)} runs no job was submitted then.")
    _print_lines(console, notes)
    if has_intervals:
        _print_differences(study, metrics, folder, console)


def _print_differences(
    study: Study, metrics: Sequence[str], folder: Path, console: Console
) -> None:
    """Print the differences of all points from the first of the compared values."""
    axis = study.compare
    first = None if axis is None else study.axes[axis][0]
    by_metric: dict[str, dict[str, Interval]] = {}
    points: dict[str, Point] = {}
    for one in paired_differences(study, metrics):
        if one.baseline == first:
            points[str(one.point)] = one.point
            by_metric.setdefault(one.metric, {})[str(one.point)] = one.interval
    if not points:
        return
    shown = dict(list(points.items())[:ROWS_SHOWN])
    columns = {}
    for metric, found in by_metric.items():
        intervals = [found.get(name) for name in shown]
        texts = zip(_cells(intervals), intervals, strict=True)
        columns[metric] = [f"{text} {UNSURE}" if _is_unsure(one) else text for text, one in texts]
    _print_lines(console, ["", f"Differences from {axis} {first}, with the same seeds:"])
    cut = _print_table(console, _axes_at(study, list(shown.values())), columns)
    notes = []
    if len(points) > len(shown) or cut:
        notes.append(f"There is no room for all differences; see {folder}/differences.csv.")
    if lacking := [label_of(metric) for metric in metrics if metric not in by_metric]:
        notes.append(f"{axis} {first} has no value of {', '.join(lacking)} to compare with")
    seen = [text for metric, texts in columns.items() if metric not in cut for text in texts]
    if any(text.endswith(f" {UNSURE}") for text in seen):
        notes.append(UNSURE_TOLD)
    _print_lines(console, notes)


def _print_table(
    console: Console, axes: Mapping[str, list[str]], columns: Mapping[str, list[str]]
) -> list[str]:
    """Print the axes and as many metrics as fit; returns the metrics that do not."""
    from rich import box
    from rich.table import Table

    style = box.SIMPLE_HEAD if console.is_terminal else None
    table = Table(box=style, pad_edge=False, padding=(0, _GAP, 0, 0), show_edge=False)
    left = console.width
    for axis, texts in axes.items():
        table.add_column(axis, no_wrap=True)
        left -= max(map(len, [axis, *texts])) + _GAP
    fitting: dict[str, int] = {}
    for metric, texts in columns.items():
        width = max(map(len, [*label_of(metric).split(), *texts]))
        if width + _GAP > left:
            break
        left -= width + _GAP
        fitting[metric] = width
    if columns and not fitting:
        return list(columns)
    for metric, width in fitting.items():
        label = label_of(metric)
        # A label wider than its column is wrapped, unless there is room left.
        more = max(0, len(label) - width)
        if more > left:
            label = "\n".join(wrap(label, width, break_long_words=False))
        else:
            left -= more
        table.add_column(label, justify="right", no_wrap=True)
    for row in zip(*axes.values(), *(columns[metric] for metric in fitting), strict=True):
        table.add_row(*row)
    console.print(table)
    return [metric for metric in columns if metric not in fitting]


def _print_lines(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _axes_at(study: Study, points: Sequence[Point]) -> dict[str, list[str]]:
    return {axis: [str(point[axis]) for point in points] for axis in study.axes}


def _is_unsure(one: Interval | None) -> bool:
    return one is not None and not (one.above_zero or one.below_zero or one.is_constant)


def _cells(intervals: Sequence[Interval | None]) -> list[str]:
    """The cells of a column, all with the same decimals."""
    largest = max((abs(one.mean) for one in intervals if one is not None), default=0.0)
    digits = 1 if largest >= 100 else 3 if largest == 0 or largest >= 0.01 else 6

    def text(one: Interval | None) -> str:
        if one is None:
            return NO_VALUE
        mean, half = f"{one.mean:z,.{digits}f}", one.half_width
        if one.is_constant:
            return f"{mean} {SAME}"
        return f"{mean} ± {half:,.{digits}f}" if math.isfinite(half) else mean

    return [text(one) for one in intervals]
