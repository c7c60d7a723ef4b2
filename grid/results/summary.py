"""The table that a run prints at its end: a column for the grid and for VOs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grid.results.definitions import METRICS, label_of, row_texts
from grid.results.metrics import Metrics, Values

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
"""Rows that are omitted if the grid has no such value, or zero; slowdown if no job has a deadline
or was preempted, since the bounded slowdown is then sufficient."""
_ALL_UP_TO = 12
"""Up to this number of VOs, all are shown if they fit; of more, the busiest `_BUSIEST`."""
_BUSIEST = 6
_NAME_WIDTH = 16
_GAP = 2


def measured_line(manifest: Mapping[str, Any]) -> str | None:
    """Which jobs the metrics cover, by the run's manifest; None if they cover all."""
    measured = manifest.get("measured")
    if measured is None:
        return None
    until_s = measured["submitted_until_s"]
    until = "" if until_s is None else f" and before {until_s:,.12g} s"
    when = f"submitted from {measured['submitted_from_s']:,.12g} s on{until}"
    if not measured["jobs"]:
        return f"there are no metrics of jobs: none was {when}"
    return f"metrics of jobs cover {measured['jobs']:,} jobs, {when}"


def print_summary(metrics: Metrics, console: Console | None = None) -> None:
    """Print the table: styled on a terminal, plain text elsewhere.

    VOs are in the scenario's order. If not all fit, the busiest are shown, by utilization of their
    machines, then by jobs, and a last line says where the others are.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Files and pipes have no width.
    console = console or Console(width=None if Console().is_terminal else 400)
    texts = _texts(metrics)
    shown = _shown(metrics, texts, console.width)
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        show_edge=False,
    )
    table.add_column("", no_wrap=True)
    table.add_column("grid", justify="right", style="bold", no_wrap=True)
    for name in shown:
        table.add_column(Text(_shortened(name)), justify="right", no_wrap=True)
    for key, row in texts.items():
        table.add_row(label_of(key), *(row[column] for column in (None, *shown)))
    console.print(table)
    others = len(metrics["vos"]) - len(shown)
    if others:
        busiest = f"; shown are the {len(shown)} busiest, by utilization" if shown else ""
        plural = "VO is" if others == 1 else "VOs are"
        line = f"{others} more {plural} in metrics.json{busiest}."
        console.print(line, markup=False, highlight=False)


def _shown(metrics: Metrics, texts: Mapping[str, dict[str | None, str]], width: int) -> list[str]:
    vos = metrics["vos"]

    def load(name: str) -> tuple[float, float]:
        return vos[name]["utilization"] or 0.0, vos[name]["jobs_submitted"] or 0

    def column_width(name: str | None) -> int:
        return max(len(_shortened(name or "grid")), *(len(row[name]) for row in texts.values()))

    left = width - max(len(label_of(key)) for key in texts) - _GAP - column_width(None)
    fitting: list[str] = []
    limit = _BUSIEST if len(vos) > _ALL_UP_TO else _ALL_UP_TO
    for name in sorted(vos, key=load, reverse=True)[:limit]:
        left -= _GAP + column_width(name)
        if left < _GAP:
            break
        fitting.append(name)
    return [name for name in vos if name in fitting]


def _texts(metrics: Metrics) -> dict[str, dict[str | None, str]]:
    """The cells of each row by VO, None for the grid; plugin metrics are last."""
    grid = metrics["grid"]
    more = [key for key in _ROWS_IF_ANY if grid.get(key)]
    if not grid.get("late_percent") and not grid.get("preemptions"):
        more = [key for key in more if key != "slowdown_mean"]
    plugins = [key for key in grid if key not in METRICS]
    columns: dict[str | None, Values] = {None: grid}
    columns.update(metrics["vos"].items())
    return {
        key: dict(zip(columns, row_texts([one.get(key) for one in columns.values()]), strict=True))
        for key in (*_ROWS, *more, *plugins)
    }


def _shortened(name: str) -> str:
    """Cut in the middle, since many names differ at their ends."""
    if len(name) <= _NAME_WIDTH:
        return name
    end = (_NAME_WIDTH - 1) // 2
    return f"{name[: _NAME_WIDTH - 1 - end]}…{name[-end:]}"
