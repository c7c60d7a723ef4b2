"""A watcher that looks as often as it can, and looks at a cluster that is down."""

from __future__ import annotations

from collections.abc import Sequence

from grid.integrations.watch.running import Running
from grid.results.look import Beginning, Look


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


def looks_at_one_that_goes_down(looks: Sequence[Look]) -> tuple[Look, Look]:
    """A look at which jobs run on the first cluster, and one a second later that cannot ask it."""
    before = next(one for one in looks if dict(one.processes[0].clusters[:, :2].tolist()).get(0))
    (process,) = before.processes
    asked = process.clusters[process.clusters[:, 0] != 0]
    during = before._replace(
        now_us=before.now_us + 1_000_000, processes=(process._replace(clusters=asked, ended=[]),)
    )
    return before, during
