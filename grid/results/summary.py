"""The table that a run ends with on the terminal: a column for the grid and for VOs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grid.results.definitions import METRICS, label_of, row_texts
from grid.results.metrics import Figures, Metrics

if TYPE_CHECKING:
    from rich.console import Console

_ROWS = (
    "jobs_submitted", "jobs_completed", "jobs_failed", "jobs_rejected", "jobs_forwarded",
    "hops_mean", "user_success_ratio", "user_utility", "submission_time_mean",
    "execution_time_mean", "wait_mean", "bounded_slowdown_mean", "load_balance", "utilization",
    "makespan",
)  # fmt: skip
_ROWS_IF_ANY = (
    "late_percent", "slowdown_mean", "machine_usage", "license_usage", "preemptions", "restarts",
    "loss_of_capacity", "loss_of_capacity_in_clusters", "interruptions", "migrations_local",
    "migrations_external", "lost_cpu_seconds", "energy_j", "energy_idle_j",
)  # fmt: skip
"""Rows that are left out where the grid has no such figure, or a zero; slowdown where no job has
a deadline or was preempted, for then the bounded slowdown tells as much."""
_MOST = 12
"""So many VOs are shown if they fit; of more than that, the busiest _FEW."""
_FEW = 6
_NAME_WIDTH = 16
_WIDEST = 400
"""More than all columns that are ever shown take."""
_GAP = 2


def measured_line(manifest: Mapping[str, Any]) -> str | None:
    """Which jobs the figures are of, by the run's manifest; None where they are of all."""
    measured = manifest.get("measured")
    if measured is None:
        return None
    until_s = measured["submitted_until_s"]
    until = "" if until_s is None else f" and before {until_s:,.12g} s"
    when = f"submitted from {measured['submitted_from_s']:,.12g} s on{until}"
    if not measured["jobs"]:
        return f"there are no figures of jobs: none was {when}"
    return f"figures of jobs are of {measured['jobs']:,} jobs, {when}"


def print_summary(metrics: Metrics, console: Console | None = None) -> None:
    """Prints the table: styled on a terminal, plain text anywhere else.

    VOs stand in the scenario's order. Where there are more than fit the width, or than anyone
    reads, the busiest are shown (by utilization of their machines, then by jobs), and a last line
    says where the others are.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if console is None:
        console = Console()
        if not console.is_terminal:
            # Nothing needs to be left out of a file or a pipe, which have no width.
            console.width = _WIDEST
    shown = _shown(metrics, console.width)
    styled = console.is_terminal
    table = Table(
        box=box.SIMPLE_HEAD if styled else None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        show_edge=False,
    )
    table.add_column("", no_wrap=True)
    table.add_column("grid", justify="right", style="bold", no_wrap=True)
    for name in shown:
        header = Text(_shortened(name))
        table.add_column(header, justify="right", no_wrap=True)
    for key, texts in _texts(metrics).items():
        table.add_row(label_of(key), *(texts[column] for column in (None, *shown)))
    console.print(table)
    others = len(metrics["vos"]) - len(shown)
    if others:
        busiest = f"; shown are the {len(shown)} busiest, by utilization" if shown else ""
        plural = "VO is" if others == 1 else "VOs are"
        line = f"{others} more {plural} in metrics.json{busiest}."
        console.print(line, markup=False, highlight=False)


def _shown(metrics: Metrics, width: int) -> list[str]:
    """The VOs that have a column, in the scenario's order: all, or the busiest."""
    vos = metrics["vos"]

    def busyness(name: str) -> tuple[float, float]:
        return vos[name]["utilization"] or 0.0, vos[name]["jobs_submitted"] or 0

    texts = _texts(metrics)

    def column_width(name: str | None) -> int:
        return max(len(_shortened(name or "grid")), *(len(row[name]) for row in texts.values()))

    left = width - max(len(label_of(key)) for key in texts) - _GAP - column_width(None)
    fitting: list[str] = []
    for name in sorted(vos, key=busyness, reverse=True)[: _FEW if len(vos) > _MOST else _MOST]:
        left -= _GAP + column_width(name)
        if left < _GAP:
            break
        fitting.append(name)
    return [name for name in vos if name in fitting]


def _texts(metrics: Metrics) -> dict[str, dict[str | None, str]]:
    """The cells of each row, by VO; those of the grid by None. Metrics that plug in come last."""
    grid = metrics["grid"]
    own = [key for key in grid if key not in METRICS]
    more = [key for key in _ROWS_IF_ANY if grid.get(key)]
    if "slowdown_mean" in more and not any(
        grid.get(key) for key in ("late_percent", "preemptions")
    ):
        more.remove("slowdown_mean")
    columns: dict[str | None, Figures] = {None: grid}
    columns.update(metrics["vos"].items())
    return {
        key: dict(zip(columns, row_texts([one.get(key) for one in columns.values()]), strict=True))
        for key in (*_ROWS, *more, *own)
    }


def _shortened(name: str) -> str:
    """Cut in the middle: many names differ at their ends."""
    if len(name) <= _NAME_WIDTH:
        return name
    end = (_NAME_WIDTH - 1) // 2
    return f"{name[: _NAME_WIDTH - 1 - end]}…{name[-end:]}"
