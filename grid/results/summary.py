"""The table that a run ends with on the terminal: a column for the grid and for VOs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grid.results.metrics import Figures, Metrics

if TYPE_CHECKING:
    from rich.console import Console

_ROWS = {
    "jobs_submitted": "jobs submitted",
    "jobs_completed": "completed",
    "jobs_failed": "failed",
    "jobs_rejected": "rejected",
    "jobs_forwarded": "forwarded",
    "hops_mean": "hops, mean",
    "user_success_ratio": "user success ratio",
    "user_utility": "user utility",
    "submission_time_mean": "submission time (s)",
    "execution_time_mean": "execution time (s)",
    "wait_mean": "wait, mean (s)",
    "bounded_slowdown_mean": "bounded slowdown",
    "load_balance": "load balance",
    "utilization": "utilization (%)",
    "makespan": "makespan (s)",
}
_ROWS_IF_ANY = {
    "late_percent": "late jobs (%)",
    "slowdown_mean": "slowdown",
    "machine_usage": "machine usage (%)",
    "license_usage": "license usage (%)",
    "preemptions": "preemptions",
    "restarts": "restarts",
    "loss_of_capacity": "loss of capacity (%)",
    "loss_of_capacity_in_clusters": "  cluster by cluster",
    "interruptions": "interruptions",
    "migrations_local": "local migrations",
    "migrations_external": "external migrations",
    "lost_cpu_seconds": "CPU time lost (s)",
    "energy_j": "energy (J)",
    "energy_idle_j": "  of idle CPUs (J)",
}
"""Rows that are left out where the grid has no such figure, or a zero; slowdown where no job has
a deadline or was preempted, for then the bounded slowdown tells as much."""
_MOST = 12
"""So many VOs are shown if they fit; of more than that, the busiest _FEW."""
_FEW = 6
_NAME_WIDTH = 16
_GAP = 2


def print_summary(metrics: Metrics, console: Console | None = None) -> None:
    """Prints the table: styled on a terminal, plain text anywhere else.

    Where there are more VOs than fit the width, or than anyone reads, the busiest are shown (by
    utilization of their machines, then by jobs), and a last line says where the others are.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
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
    figures = [metrics["grid"], *(metrics["vos"][name] for name in shown)]
    for key, label in _rows(metrics).items():
        table.add_row(label, *(_cell(key, column) for column in figures))
    console.print(table)
    others = len(metrics["vos"]) - len(shown)
    if others:
        busiest = f"; shown are the {len(shown)} busiest" if shown else ""
        plural = "VO is" if others == 1 else "VOs are"
        line = f"{others} more {plural} in metrics.json{busiest}."
        console.print(line, markup=False, highlight=False)


def _shown(metrics: Metrics, width: int) -> list[str]:
    """The VOs that have a column: all, in the scenario's order, or the busiest first."""
    vos = metrics["vos"]

    def busyness(name: str) -> tuple[float, float]:
        return vos[name]["utilization"] or 0.0, vos[name]["jobs_submitted"] or 0

    rows = _rows(metrics)
    left = width - max(len(label) for label in rows.values())
    left -= _GAP + _width("grid", metrics["grid"], rows)
    fitting: list[str] = []
    for name in sorted(vos, key=busyness, reverse=True)[: _FEW if len(vos) > _MOST else _MOST]:
        left -= _GAP + _width(name, vos[name], rows)
        if left < _GAP:
            break
        fitting.append(name)
    return list(vos) if len(fitting) == len(vos) else fitting


def _rows(metrics: Metrics) -> dict[str, str]:
    """The figures of the table, with what they are called there."""
    grid = metrics["grid"]
    more = {key: label for key, label in _ROWS_IF_ANY.items() if grid.get(key)}
    if not any(grid.get(key) for key in ("late_percent", "preemptions")):
        more.pop("slowdown_mean", None)
    return _ROWS | more


def _width(name: str, figures: Figures, rows: dict[str, str]) -> int:
    return max(len(_shortened(name)), *(len(_cell(key, figures)) for key in rows))


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"


def _cell(key: str, figures: Figures) -> str:
    """A figure as people read it; a dash for one that does not apply."""
    value = figures.get(key)
    if value is None:
        return "-"
    if key == "utilization":
        return f"{100 * value:.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3f}"
