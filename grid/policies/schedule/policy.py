"""The local policies `eg_edf` and `tabu`.

Compiled code is imported with the first plan, so that a scenario can be checked without it."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.time import Time
from grid.policies.columns import packed_view
from grid.policies.interface import ClusterView, Plan
from grid.policies.schedule.timetable import Schedule, empty_schedule, with_room

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Repair = Annotated[
    Literal["moves", "times"],
    Field(
        description=(
            "repair of the schedule if run times differ from estimates: move jobs, or only "
            "recompute times on their machine"
        )
    ),
]
Gaps = Annotated[
    Literal["before_last_start", "before_last_end"],
    Field(
        description=(
            "time until which idle CPUs of a machine count as gaps: the start or the end of its "
            "last job"
        )
    ),
]


class ScheduleBased:
    """Keeps a schedule of all jobs, places each as it arrives (EG-EDF), and may continue with a
    search (Tabu).

    The search makes `iterations` for each arrival, 0 is none; its tabu list holds `tabu_list` jobs.
    For `wide_gaps` see `Schedule`. If run times differ from their estimates, repair moves jobs, or,
    without `moves`, only times the machine again. A job without a deadline is never late; if none
    has one, as in a log, only makespan and ends decide, and the search has no effect.
    """

    schedule: Schedule
    """Of the cluster that the policy serves, from the first plan on."""

    def __init__(
        self, iterations: int = 0, tabu_list: int = 100, moves: bool = True, wide_gaps: bool = False
    ) -> None:
        self.iterations = iterations
        self._wide_gaps = wide_gaps
        self._moves = moves
        self._tabu_list = np.array([0, tabu_list]) if iterations else None

    def plan(self, view: ClusterView, now: Time) -> Plan:
        from grid.policies.schedule.instant import plan_instant

        if not hasattr(self, "schedule"):
            self.schedule = empty_schedule(view.machines, now, self._wide_gaps)
        slots, jobs = len(view.jobs.serial), len(view.queue) + len(view.running)
        self.schedule = with_room(self.schedule, slots, jobs)
        searched = self.iterations * len(view.arrived)
        started, rejected = plan_instant(
            self.schedule, packed_view(view), self._tabu_list, searched, self._moves
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
        Count, Field(description="length of the tabu list: jobs that are not moved again")
    ] = 100,
    repair: Repair = "moves",
    gaps: Gaps = "before_last_start",
) -> ScheduleBased:
    """EG-EDF, improved by tabu search."""
    wide = gaps == "before_last_end"
    return ScheduleBased(iterations, tabu_list, moves=repair == "moves", wide_gaps=wide)
