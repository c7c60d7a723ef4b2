"""What the page of a sweep in progress shows: its progress, and the table of results so far."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from grid.results.definitions import label_of
from grid.results.look import SweepBeginning, SweepProgress

COMMON = (
    "jobs_completed", "response_time_mean", "wait_mean", "bounded_slowdown_mean", "utilization",
    "jobs_forwarded",
)  # fmt: skip
"""Metrics that are shown if an experiment names none."""
MAX_ROWS = 500
MAX_FAILURES = 100


class SweepView:
    """The state of a sweep, from its beginning and its reports."""

    def __init__(self, beginning: SweepBeginning) -> None:
        self._beginning = beginning
        self._last = SweepProgress(0, 0, 0, 0, 0)
        self._cells: list[list[dict[str, float]]] = [[] for _ in beginning.points]
        self._failures: list[str] = []
        self._started = self._first_run = self._updated = time.monotonic()
        self._lock = threading.Lock()

    def take(self, report: SweepProgress) -> None:
        """Update the state with the next report."""
        with self._lock:
            self._updated = time.monotonic()
            if not self._last.running and not report.done + report.failed:
                # Ray starts its workers until the first runs begin.
                self._first_run = self._updated
            self._last = report
            for cell in report.cells:
                self._cells[cell.point].append(dict(cell.figures))
            self._failures += report.failures

    def answer(self) -> dict[str, Any]:
        """All that the page shows, for JSON."""
        with self._lock:
            beginning, last = self._beginning, self._last
            now = self._updated if last.is_over else time.monotonic()
            ended = last.done + last.failed
            left_s = None
            if ended and not last.is_over:
                passed_s = now - self._first_run
                left_s = round(passed_s * (last.runs - last.kept - ended) / ended, 1)
            found = next((cells[0] for cells in self._cells if cells), {})
            metrics = beginning.metrics or tuple(name for name in COMMON if name in found)
            rows = [
                [list(point), len(cells), [_spread(cells, name) for name in metrics]]
                for point, cells in zip(beginning.points, self._cells, strict=True)
            ]
            return {
                "name": beginning.name,
                "runs": last.runs,
                "kept": last.kept,
                "done": last.done,
                "failed": last.failed,
                "running": last.running,
                "over": last.is_over,
                "passed_s": round(now - self._started, 1),
                "left_s": left_s,
                "axes": list(beginning.axes),
                "seeds": beginning.seeds,
                "measured": beginning.measured,
                "metrics": [label_of(name) for name in metrics],
                "rows": rows[:MAX_ROWS],
                "more": max(0, len(rows) - MAX_ROWS),
                "failures": self._failures[-MAX_FAILURES:],
            }


def _spread(cells: list[dict[str, float]], metric: str) -> list[float] | None:
    """Mean, lowest and highest value of the runs so far; None if no run has the metric."""
    values = [cell[metric] for cell in cells if math.isfinite(cell.get(metric, math.nan))]
    return [sum(values) / len(values), min(values), max(values)] if values else None
