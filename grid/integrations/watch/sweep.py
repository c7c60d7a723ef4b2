"""A sweep that goes on, as its news tell: how far it is, and the table of its results so far."""

from __future__ import annotations

import math
import threading
import time

from grid.integrations.watch.source import Answer
from grid.results.definitions import label_of
from grid.results.sweep_look import SweepBeginning, SweepNews

COMMON = (
    "jobs_completed",
    "response_time_mean",
    "wait_mean",
    "bounded_slowdown_mean",
    "utilization",
    "jobs_forwarded",
)
"""Shown where an experiment names no metrics."""
MOST_ROWS = 500
MOST_FAILURES = 100


class SweepShown:
    """A sweep of which nothing but its beginning is known, until it takes news."""

    def __init__(self, beginning: SweepBeginning) -> None:
        self._beginning = beginning
        self._news = SweepNews(0, 0, 0, 0, 0)
        self._cells: list[list[dict[str, float]]] = [[] for _ in beginning.points]
        self._failures: list[str] = []
        self._begun = self._first = self._ended = time.monotonic()
        self._lock = threading.Lock()

    def take(self, news: SweepNews) -> None:
        """The sweep stands like this now."""
        with self._lock:
            self._ended = time.monotonic()
            if not self._news.running and not self._ended_runs(news):
                # Until the first runs begin, Ray starts its workers.
                self._first = self._ended
            self._news = news
            for cell in news.cells:
                self._cells[cell.point].append(dict(cell.figures))
            self._failures += news.failures

    def answer(self) -> Answer:
        """All that the page shows."""
        with self._lock:
            beginning, news = self._beginning, self._news
            found = next((cells[0] for cells in self._cells if cells), {})
            metrics = beginning.metrics or tuple(name for name in COMMON if name in found)
            rows = [
                [list(beginning.points[place]), len(cells), [_spread(cells, m) for m in metrics]]
                for place, cells in enumerate(self._cells[:MOST_ROWS])
            ]
            return {
                "name": beginning.name,
                "runs": news.runs,
                "kept": news.kept,
                "done": news.done,
                "failed": news.failed,
                "running": news.running,
                "over": news.is_over,
                "passed_s": round(self._passed(), 1),
                "left_s": self._left(),
                "axes": list(beginning.axes),
                "seeds": beginning.seeds,
                "measured": beginning.measured,
                "metrics": [label_of(name) for name in metrics],
                "rows": rows,
                "more": max(0, len(self._cells) - MOST_ROWS),
                "failures": self._failures[-MOST_FAILURES:],
            }

    def _passed(self) -> float:
        return (self._ended if self._news.is_over else time.monotonic()) - self._begun

    def _left(self) -> float | None:
        """Seconds that the rest takes if it goes on like this; None where nobody can tell."""
        news = self._news
        ended = self._ended_runs(news)
        if news.is_over or not ended:
            return None
        passed = time.monotonic() - self._first
        return round(passed * (news.runs - news.kept - ended) / ended, 1)

    def _ended_runs(self, news: SweepNews) -> int:
        return news.done + news.failed


def _spread(cells: list[dict[str, float]], metric: str) -> list[float] | None:
    """Mean, lowest and highest of the runs so far; None where none has such a figure."""
    values = [cell[metric] for cell in cells if math.isfinite(cell.get(metric, math.nan))]
    return [sum(values) / len(values), min(values), max(values)] if values else None
