"""A watcher that looks as often as it can."""

from __future__ import annotations

from grid.results.look import Beginning, Look
from grid.watch.running import Running


class Watching:
    """Looks as often as it can, and keeps what it sees."""

    def __init__(self) -> None:
        self.looks: list[Look] = []

    def begin(self, beginning: Beginning) -> None:
        self.beginning, self.run = beginning, Running(beginning)

    def is_due(self) -> bool:
        return True

    def look(self, look: Look) -> None:
        self.looks.append(look)
        self.run.take(look)
