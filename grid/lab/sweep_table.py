"""The tables that a sweep prints: a row a combination, a column a metric; means, differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grid.lab.experiment import Point
from grid.lab.findings import SAME, SAME_NOTE, findings, telling_metrics, warnings_of
from grid.lab.statistics import Interval
from grid.lab.study import Study, paired_differences, read_repeated
from grid.results.definitions import label_of

if TYPE_CHECKING:
    from rich.console import Console

UNLIMITED = 400
"""The width of a file or pipe: more than all columns take."""
ROWS_SHOWN = 40
COLUMNS_SHOWN = 5
NO_VALUE = "-"
UNSURE = "?"
_GAP = 2


def print_sweep_table(folder: Path, console: Console | None = None) -> None:
    """Print means over seeds ± half their confidence interval, differences, and findings."""
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
    left_out = _print_table(console, study, points, columns)
    notes = []
    if left_out or len(points) < len(study.points):
        notes.append(f"All combinations and metrics are in {folder}/results.csv.")
    has_intervals = len({seed for _, seed, _ in study.runs}) > 1
    if has_intervals:
        level = f"{100 * study.level:g} %"
        notes.append(f"Means over seeds ± half of their {level} confidence interval.")
    texts = [text for metric, column in columns.items() if metric not in left_out
             for text in column]  # fmt: skip
    if NO_VALUE in texts:
        notes.append(f"{NO_VALUE}: the metric does not apply.")
    if any(text.endswith(f" {SAME}") for text in texts):
        notes.append(f"{SAME_NOTE}.")
    _print_lines(console, [*notes, *warnings_of(folder, study)])
    if has_intervals:
        _print_differences(study, metrics, folder, console)
    _print_lines(console, findings(study, metrics))


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
    _print_lines(console, ["", f"Differences from {axis} {first}, paired by seed:"])
    left_out = _print_table(console, study, list(shown.values()), columns)
    if len(points) > len(shown) or left_out:
        _print_lines(console, [f"All differences are in {folder}/differences.csv."])
    seen = [text for metric, texts in columns.items() if metric not in left_out for text in texts]
    if any(text.endswith(f" {UNSURE}") for text in seen):
        _print_lines(console, [f"{UNSURE}: the interval contains zero."])


def _print_table(
    console: Console, study: Study, points: Sequence[Point], columns: Mapping[str, list[str]]
) -> list[str]:
    """Print the axes and as many metrics as fit; returns the metrics that do not."""
    from rich import box
    from rich.table import Table

    axes = {axis: [str(point[axis]) for point in points] for axis in study.axes}
    left = console.width - sum(max(map(len, [name, *texts])) + _GAP for name, texts in axes.items())
    fitting: list[str] = []
    for metric, texts in columns.items():
        left -= max(map(len, [*label_of(metric).split(), *texts])) + _GAP
        if left < 0:
            break
        fitting.append(metric)
    if columns and not fitting:
        return list(columns)
    style = box.SIMPLE_HEAD if console.is_terminal else None
    table = Table(box=style, pad_edge=False, padding=(0, _GAP, 0, 0), show_edge=False)
    for axis in axes:
        table.add_column(axis, no_wrap=True)
    for metric in fitting:
        width = max(map(len, [*label_of(metric).split(), *columns[metric]]))
        table.add_column(label_of(metric), justify="right", min_width=width)
    for row in zip(*axes.values(), *(columns[metric] for metric in fitting), strict=True):
        table.add_row(*row)
    console.print(table)
    return [metric for metric in columns if metric not in fitting]


def _print_lines(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False)


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
