"""Rules by which work is not sent but fetched: an idle VO asks others for jobs that wait there."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from grid.model.distances import Distances
from grid.model.resources import ResourceTable
from grid.model.time import Time, from_seconds
from grid.protocol.forwarding import NOWHERE, Destination, Question
from grid.protocol.forwarding.local import stay_or_leave


class Idle(NamedTuple):
    """VO number `vo` may have CPUs to spare, as `table` has it. `asked` have just had no work."""

    table: ResourceTable
    vo: int
    now: Time
    asked: tuple[int, ...]
    distances: Distances
    rng: np.random.Generator


class PullFrom(NamedTuple):
    """Ask that VO for a job, -1: none. If none comes of it, look again after `again_us`.

    Each time in vain it is twice as long, up to 16 times, or 1,000 latencies if that is more.
    None: not before another job has ended here.
    """

    vo: int
    again_us: Time | None


class Pull:
    """Jobs wait at home; a VO with free CPUs asks another one for a job that waits there.

    Receiver-initiated load sharing of Eager, Lazowska and Zahorjan (1986), or work stealing. Jobs
    wait at the Resource Manager, first come first served, until their CPUs are free, so that the
    first that suits the one who asks can be given away. So local policies have no queue to choose
    from.
    """

    def __init__(
        self,
        *,
        from_vo: Annotated[
            Literal["random", "most_loaded"],
            Field(description="whom it asks: one drawn by lot, or the most loaded known"),
        ] = "random",
        tries: Annotated[
            int, Field(ge=1, le=1000, description="how many VOs it asks, one after the other")
        ] = 1,
        every_s: Annotated[
            float | None,
            Field(ge=1e-3, le=1e9, description="asks again so often; none: when a job ends here"),
        ] = 300.0,
    ) -> None:
        self._by_load = from_vo == "most_loaded"
        self._tries = tries
        self._every_us = None if every_s is None else from_seconds(every_s)

    def __call__(self, question: Question) -> Destination:
        answer = stay_or_leave(question, question.local_choice())
        return answer if answer == NOWHERE else answer._replace(late=True)

    def idle(self, idle: Idle) -> PullFrom:
        """PeerLists to ask, if anything is free here."""
        columns, assigned = idle.table.columns, idle.table.assigned_cpus
        here = columns.vo == idle.vo
        is_free = bool((assigned[here] < columns.cpus[here]).any())
        if not is_free or len(idle.asked) >= self._tries:
            return PullFrom(-1, self._every_us)
        others = ~here & ~np.isin(columns.vo, idle.asked)
        vos = np.unique(columns.vo[others])
        if len(vos) == 0:
            return PullFrom(-1, self._every_us)
        if not self._by_load:
            return PullFrom(int(vos[idle.rng.integers(len(vos))]), self._every_us)
        known = others & np.isfinite(assigned)
        count = int(vos[-1]) + 1
        busy = np.bincount(columns.vo[known], assigned[known], count)
        cpus = np.bincount(columns.vo[known], columns.cpus[known], count)
        loads = busy[vos] / np.maximum(cpus[vos], 1.0)
        return PullFrom(int(vos[np.argmax(loads)]), self._every_us)
