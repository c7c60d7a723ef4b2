"""The table that a sweep ends with on the terminal: a row a combination, a column a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from grid.experiment.statistics import Interval
from grid.experiment.study import Study, read_study
from grid.experiment.sweep_page import telling_metrics
from grid.experiment.sweep_texts import SAME, SAME_TOLD, is_same, measured_line
from grid.results.definitions import label_of

if TYPE_CHECKING:
    from rich.console import Console

ROWS_SHOWN = 40
COLUMNS_SHOWN = 5
_GAP = 2


def print_sweep_table(folder: Path, console: Console | None = None) -> None:
    """Prints means over seeds, with half the width of their confidence interval."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = console or Console()
    study = read_study(folder)
    metrics = study.metrics or telling_metrics(study)[:COLUMNS_SHOWN]
    points = study.points[:ROWS_SHOWN]
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        show_edge=False,
    )
    columns = {axis: [str(point[axis]) for point in points] for axis in study.axes}
    left = console.width - sum(max(map(len, [axis, *columns[axis]])) + _GAP for axis in columns)
    widths: dict[str, int] = {}
    for metric in metrics:
        texts = _texts([study.interval(metric, point) for point in points])
        width = max(map(len, [*label_of(metric).split(), *texts]))
        left -= width + _GAP
        if left < 0:
            left += width + _GAP
            break
        columns[metric], widths[metric] = texts, width
    for axis in study.axes:
        table.add_column(axis, no_wrap=True)
    for header in _headers(widths, left):
        table.add_column(header, justify="right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    console.print(table)
    left_out = len(study.points) - len(points)
    if left_out:
        line = f"{left_out:,} more combinations are in {folder}/results.csv."
        console.print(line, markup=False, highlight=False)
    if no_room := ", ".join(metric for metric in metrics if metric not in columns):
        line = f"There is no room for {no_room}, which {folder}/results.csv has, too."
        console.print(line, markup=False, highlight=False)
    if _has_intervals(study):
        console.print(
            f"means over seeds ± half of their {100 * study.level:g} % confidence interval",
            markup=False,
            highlight=False,
        )
    if any(text.endswith(f" {SAME}") for texts in columns.values() for text in texts):
        console.print(SAME_TOLD, markup=False, highlight=False)
    if line := measured_line(folder):
        console.print(f"{line[0].lower()}{line[1:-1]}", markup=False, highlight=False)


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


def _texts(intervals: list[Interval | None]) -> list[str]:
    """The cells of a column, all with the same decimals."""
    known = [one for one in intervals if one is not None]
    largest = max((abs(one.mean) for one in known), default=0.0)
    digits = 1 if largest >= 100 else 3 if largest == 0 or largest >= 0.01 else 6

    def text(one: Interval | None) -> str:
        if one is None:
            return "-"
        if is_same(one):
            return f"{one.mean:z,.{digits}f} {SAME}"
        half = one.half_width
        spread = f" ± {half:,.{digits}f}" if math.isfinite(half) else ""
        return f"{one.mean:z,.{digits}f}{spread}"

    return [text(one) for one in intervals]
