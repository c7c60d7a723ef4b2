"""The local policies `eg_edf` and `tabu`.

Compiled code is imported when the first plan is asked for, so that a scenario can be checked
without it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from grid.model.time import Time
from grid.policies.columns import packed_view
from grid.policies.interface import ClusterView, Plan
from grid.policies.schedule.timetable import (
    ORIGIN_US,
    WIDE_GAPS,
    Schedule,
    Storage,
    empty_storage,
    empty_tabu_list,
    schedule_of,
    with_room,
)

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Repair = Annotated[
    Literal["moves", "times"],
    Field(
        description=(
            "repair if run times differ from estimates: move jobs, or only recompute the times on "
            "their machine"
        )
    ),
]
Gaps = Annotated[
    Literal["before_last_start", "before_last_end"],
    Field(
        description="end of the time in which idle CPUs of a machine are a gap: the start or "
        "the end of its last job"
    ),
]


class ScheduleBased:
    """Keeps a schedule of all jobs, places each as it comes (EG-EDF), and may search on (Tabu).

    The search makes `iterations` for each arrival, 0 is none; its tabu list holds `tabu_list` jobs.
    For `wide_gaps` see `Schedule`. If run times differ from their estimates, repair moves jobs, or,
    without `moves`, only times the machine again. A job without a deadline is never late; if none
    has one, as in a log, only makespan and ends decide, and the search has no effect.
    """

    ignores = ("memory",)
    iterations: int
    _storage: Storage

    def __init__(
        self,
        iterations: int = 0,
        tabu_list: int = 100,
        moves: bool = True,
        wide_gaps: bool = False,
    ) -> None:
        self.iterations = iterations
        self._wide_gaps = wide_gaps
        self._moves = moves
        self._tabu_list = empty_tabu_list(tabu_list) if iterations else None
        self._begun = False

    @property
    def schedule(self) -> Schedule:
        """Of the cluster that the policy serves; there is none before the first plan."""
        return schedule_of(self._storage)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        from grid.policies.schedule.instant import plan_instant

        if not self._begun:
            self._storage = empty_storage(view.machines)
            self._storage.totals[ORIGIN_US] = now
            self._storage.totals[WIDE_GAPS] = self._wide_gaps
            self._begun = True
        slots, jobs = len(view.jobs.serial), len(view.queue) + len(view.running)
        self._storage = with_room(self._storage, slots, jobs)
        searched = self.iterations * len(view.arrived)
        started, rejected = plan_instant(
            self._storage, packed_view(view), self._tabu_list, searched, self._moves
        )
        start = [(slot, machine) for slot, machine in started.tolist()]
        return Plan(start=start, reject=rejected.tolist())


def eg_edf(*, repair: Repair = "moves", gaps: Gaps = "before_last_start") -> ScheduleBased:
    """A schedule by earliest gap and earliest deadline first."""
    return ScheduleBased(moves=repair == "moves", wide_gaps=gaps == "before_last_end")


def tabu(
    *,
    iterations: Annotated[
        Count, Field(description="number of iterations of the search for each arriving job")
    ] = 100,
    tabu_list: Annotated[
        Count, Field(description="length of the list of jobs that are not moved again")
    ] = 100,
    repair: Repair = "moves",
    gaps: Gaps = "before_last_start",
) -> ScheduleBased:
    """EG-EDF, improved by tabu search."""
    wide = gaps == "before_last_end"
    return ScheduleBased(iterations, tabu_list, moves=repair == "moves", wide_gaps=wide)
