"""The table that a run prints at its end: a column for the grid and for VOs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grid.results.definitions import METRICS, label_of, row_texts
from grid.results.metrics import Metrics
from grid.results.workflows import Values

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_ROWS = (
    "jobs_submitted", "jobs_completed", "jobs_failed", "jobs_rejected", "jobs_cancelled",
    "jobs_forwarded",
    "response_time_mean", "wait_mean", "bounded_slowdown_mean", "utilization", "user_utility",
    "workflows_completed", "workflow_makespan_mean", "workflow_slowdown_mean",
)  # fmt: skip
_IF_ANY = ("jobs_failed", "jobs_rejected", "jobs_cancelled")
"""Rows that are omitted if the grid has none."""
_ALL_UP_TO = 12
"""Up to this number of VOs, all are shown if they fit; of more, the busiest `_BUSIEST`."""
_BUSIEST = 6
_NAME_WIDTH = 16
GAP = 2
"""Between columns."""
_UNLIMITED = 400


def interval_words(from_s: float, until_s: float | None) -> str:
    until = "" if until_s is None else f" and before {until_s:,.12g} s"
    return f"from {from_s:,.12g} s on{until}"


def measured_line(manifest: Mapping[str, Any]) -> str | None:
    """Which jobs the metrics cover, by the run's manifest; None if they cover all."""
    measured = manifest.get("measured")
    if measured is None:
        return None
    interval = interval_words(measured["submitted_from_s"], measured["submitted_until_s"])
    when = f"submitted {interval}"
    if not measured["jobs"]:
        return f"there are no job metrics: no job was {when}"
    return f"job metrics cover {measured['jobs']:,} jobs, {when}"


def console_for_tables() -> Console:
    """Standard output, without a limit of its width if it is a file or pipe."""
    from rich.console import Console

    return Console(width=None if Console().is_terminal else _UNLIMITED)


def text_table(console: Console) -> Table:
    """An empty table, plain text if not on a terminal."""
    from rich import box
    from rich.table import Table

    style = box.SIMPLE_HEAD if console.is_terminal else None
    return Table(box=style, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False)


def print_summary(
    metrics: Metrics, console: Console | None = None, *, every_row: bool = False
) -> None:
    """Print the table, of all metrics or of the usual ten.

    VOs are in the scenario's order. If not all fit, the busiest are shown, by utilization of their
    machines, then by jobs, and a last line names the file with the others.
    """
    from rich.text import Text

    console = console or console_for_tables()
    texts = _texts(metrics, every_row)
    shown = _shown(metrics, texts, console.width)
    table = text_table(console)
    table.add_column("", no_wrap=True)
    table.add_column("grid", justify="right", style="bold", no_wrap=True)
    for name in shown:
        table.add_column(Text(_shortened(name)), justify="right", no_wrap=True)
    for key, row in texts.items():
        table.add_row(_label(key), *(row[column] for column in (None, *shown)))
    console.print(table)
    others = len(metrics["vos"]) - len(shown)
    if others:
        busiest = f"; the {len(shown)} with the highest utilization are shown" if shown else ""
        plural = "VO is" if others == 1 else "VOs are"
        line = f"{others} more {plural} in metrics.json{busiest}."
        console.print(line, markup=False, highlight=False)


def _shown(metrics: Metrics, texts: Mapping[str, dict[str | None, str]], width: int) -> list[str]:
    """The VOs that fit, the busiest first to be chosen."""
    vos = metrics["vos"]
    busiest = sorted(
        vos,
        key=lambda name: (vos[name]["utilization"] or 0.0, vos[name]["jobs_submitted"] or 0),
        reverse=True,
    )
    widths = [
        GAP + max(len(_shortened(name or "grid")), *(len(row[name]) for row in texts.values()))
        for name in (None, *busiest)
    ]
    room = width - max(len(_label(key)) for key in texts) - GAP - np.cumsum(widths)
    limit = _BUSIEST if len(vos) > _ALL_UP_TO else _ALL_UP_TO
    fitting = busiest[: min(limit, max(0, int(np.count_nonzero(room >= 0)) - 1))]
    return [name for name in vos if name in fitting]


def _texts(metrics: Metrics, every_row: bool) -> dict[str, dict[str | None, str]]:
    """The cells of each row by VO, None for the grid; plugin metrics are last. Shares are in %."""
    grid = metrics["grid"]
    own = [key for key in grid if key not in METRICS]
    usual = [key for key in _ROWS if key in grid and (key not in _IF_ANY or grid[key])]
    columns: dict[str | None, Values] = {None: grid}
    columns.update(metrics["vos"].items())
    texts = {}
    for key in grid if every_row else (*usual, *own):
        values = [one.get(key) for one in columns.values()]
        if _is_share(key):
            cells = ["-" if one is None else f"{100 * one:.1f}" for one in values]
        elif label_of(key).endswith("(%)"):
            cells = ["-" if one is None else f"{one:.1f}" for one in values]
        else:
            cells = row_texts(values)
        texts[key] = dict(zip(columns, cells, strict=True))
    return texts


def _is_share(key: str) -> bool:
    return key in METRICS and METRICS[key].values == "0 to 1" and not METRICS[key].unit


def _label(key: str) -> str:
    return f"{label_of(key)} (%)" if _is_share(key) else label_of(key)


def _shortened(name: str) -> str:
    """Cut in the middle, since many names differ at their ends."""
    if len(name) <= _NAME_WIDTH:
        return name
    end = (_NAME_WIDTH - 1) // 2
    return f"{name[: _NAME_WIDTH - 1 - end]}…{name[-end:]}"
