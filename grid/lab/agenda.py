"""Which run is next, so that two workers do not compile the same at the same time.

Compiled functions are kept on disk: what one run had to compile, later ones load. The first run of
a kind (a policy of an experiment, say) may have to compile for half a minute, and another like it
that began meanwhile would compile the same again. So first runs begin early, one of an experiment
at a time, and others wait for the first of their kind, as long as there is anything else to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence

Kind = tuple[int, Hashable]
"""The number of an experiment, and what tells its runs apart that call different functions."""


class Agenda:
    """The order of runs that are known by their positions in `kinds`."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = kinds
        firsts = {kind: place for place, kind in reversed(list(enumerate(kinds)))}
        self._firsts = deque(sorted(firsts.values()))
        early = set(self._firsts)
        self._rest = deque(place for place in range(len(kinds)) if place not in early)
        self._begun: set[int] = set()
        self._known: set[Kind] = set()

    @property
    def is_careful(self) -> bool:
        """Is it too soon to hand out more runs than there are workers?"""
        return bool(self._firsts or self._begun)

    def next(self) -> int | None:
        """The position of the run to begin now; None if there is none left."""
        busy = {self._kinds[place][0] for place in self._begun}
        for place in self._firsts:
            if self._kinds[place][0] not in busy:
                return self._take(self._firsts, place)
        for place in self._rest:
            if self._kinds[place] in self._known:
                return self._take(self._rest, place)
        for queue in (self._firsts, self._rest):
            if queue:
                return self._take(queue, queue[0])
        return None

    def ended(self, place: int) -> None:
        """The run at `place` has ended, one way or another."""
        self._begun.discard(place)
        self._known.add(self._kinds[place])

    def _take(self, queue: deque[int], place: int) -> int:
        queue.remove(place)
        if queue is self._firsts:
            self._begun.add(place)
        return place
