"""A live run as it is shown to a watcher, and what the watcher wishes done to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from grid.model.interventions import KILL, Asked, Intervention, Refusal, why_idle
from grid.model.job_results import JobResults
from grid.results.look import Look, ProcessLook
from grid.runtime.host import Status
from grid.runtime.interventions import Interventions, pauses
from grid.runtime.live_clock import Clock
from grid.runtime.looking import Watcher
from grid.runtime.pace import Lateness

NOTICE_SECONDS = 0.6
"""So long before an intervention takes effect the actors are told, so that it does everywhere at
the same virtual time."""
MILLISECONDS = 1000
MOST_REFUSALS = 1000
"""So many are written down; somebody may press for ever."""


class LiveWatch:
    """Shows a run to `watcher`; `kill` ends the actor of an entity and says if there was one."""

    def __init__(self, watcher: Watcher, kill: Callable[[str], bool]) -> None:
        self._watcher = watcher
        self._kill = kill
        self.done: Interventions = ()
        self.refused: tuple[Refusal, ...] = ()
        """What was wished and not done, the first of it."""
        self._undone: tuple[str, ...] = ()
        self._looks: dict[str, ProcessLook] = {}
        self._news: list[JobResults] = []
        self._known: set[tuple[int, int]] = set()
        self._gone: Counter[str] = Counter()

    def take(self, host: str, look: ProcessLook) -> None:
        """How an actor stands. One that was started again tells of all jobs of its journals."""
        before = self._looks.get(host)
        if before is not None and look.cpu_s < before.cpu_s:
            self._gone.update(before.messages)
        self._news += [new for chunk in look.ended if len(new := self._unknown(chunk))]
        self._looks[host] = look._replace(ended=[])

    def step(
        self,
        clock: Clock,
        status: Mapping[str, Status],
        past: Sequence[Status],
        *,
        is_over: bool = False,
    ) -> None:
        """Do what is wished, and show the run if it is time for that."""
        for asked in () if is_over else self._watcher.wishes():
            self._do(asked, clock)
        if not (is_over or self._watcher.is_due()):
            return
        looks = list(self._looks.values())
        # What is told of no single process goes with the first.
        messages = Counter(looks[0].messages) + self._gone
        looks[0] = looks[0]._replace(ended=self._news, messages=messages)
        self._news = []
        real_s = clock.real_s()
        more = _figures([*status.values(), *past], len(past), clock)
        look = Look(clock.now(), max(0.0, real_s), 0, tuple(looks), is_over=is_over)
        self._watcher.look(look._replace(more=more, done=self.done, undone=self._undone))

    def _unknown(self, chunk: JobResults) -> JobResults:
        """The rows of jobs of which nothing was told."""
        keys = list(zip(chunk.vo.tolist(), chunk.number.tolist(), strict=True))
        rows = np.array([key not in self._known for key in keys], np.bool_)
        self._known.update(keys)
        return chunk.take(np.flatnonzero(rows))

    def _do(self, asked: Asked, clock: Clock) -> None:
        """Do it, unless it is refused or there is nothing to do."""
        wish = asked.wish
        if asked.refused:
            self._refuse(asked, clock)
            return
        why = why_idle(self.done, wish)
        if wish.what == KILL and not self._kill(wish.entity):
            why = f"the actor of {wish.entity} was not killed: it is being started again"
        if why:
            self._undone = (*self._undone, why)
            self._refuse(Asked(wish, why), clock)
            return
        notice_s = 0.0 if wish.what == KILL else NOTICE_SECONDS
        real_s = max(0.0, clock.real_s() + notice_s)
        new = Intervention(len(self.done) + 1, clock.at(real_s), real_s, wish)
        self.done = (*self.done, new)
        clock.pauses = pauses(self.done)

    def _refuse(self, asked: Asked, clock: Clock) -> None:
        if len(self.refused) < MOST_REFUSALS:
            real_s = max(0.0, clock.real_s())
            new = Refusal(len(self.done), clock.at(real_s), real_s, asked.wish, asked.refused)
            self.refused = (*self.refused, new)


def _figures(status: Iterable[Status], restarts: int, clock: Clock) -> dict[str, float]:
    """What a page says of the actors, and of how late messages and timers are."""
    nodes: set[str] = set()
    late = {"messages": Lateness(), "timers": Lateness()}
    for one in status:
        nodes.add(one.node)
        late["messages"].merge(one.messages)
        late["timers"].merge(one.timers)
    figures: dict[str, float] = {"Ray nodes": len(nodes), "actors started again": restarts}
    for what, of in late.items():
        report = of.report(clock.speedup)
        for name in ("p50", "p99"):
            figures[f"{what} late, {name} (ms)"] = MILLISECONDS * report[f"{name}_s"]
    return figures
