"""The local policies `eg_edf` and `tabu`.

Compiled code is imported when the first plan is asked for, so that a scenario can be checked
without it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from grid.model.arrays import Ints
from grid.model.time import Time
from grid.policies.columns import PackedView, packed_view
from grid.policies.interface import ClusterView, Plan
from grid.policies.schedule.arrays import (
    FULLEST,
    JOBS,
    ORIGIN_US,
    UNPLACED,
    Schedule,
    Storage,
    empty_storage,
    empty_tabu_list,
    schedule_of,
    with_positions,
    with_slots,
)

MOVES_AT_ONCE = 512
"""How many jobs one compiled call may put on a machine; room for them is made before it."""

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Repair = Annotated[
    Literal["moves", "times"],
    Field(description="where run times differ: move jobs, or only time their machine anew"),
]


class ScheduleBased:
    """Keeps a schedule of all jobs, places each as it comes (EG-EDF), and may search on (Tabu).

    The search makes `iterations` for each job that came, 0 is none; its tabu list holds `tabu_list`
    jobs. Where run times differ from their estimates, repair moves jobs, or, without `moves`, only
    times its machine anew. A job without a deadline is never late; where none has one, as in a log,
    only makespan and ends decide, and the search finds nothing to do.
    """

    ignores = ("memory",)
    iterations: int
    _storage: Storage

    def __init__(self, iterations: int = 0, tabu_list: int = 100, moves: bool = True) -> None:
        self.iterations = iterations
        self._moves = moves
        self._tabu_list = empty_tabu_list(tabu_list) if iterations else None
        self._begun = False

    @property
    def schedule(self) -> Schedule:
        """Of the cluster that the policy serves; there is none before the first plan."""
        return schedule_of(self._storage)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        from grid.policies.schedule.instant import play

        if not self._begun:
            self._begin(view, now)
        slots = len(view.jobs.serial)
        if self._storage.slots.shape[1] < slots:
            self._storage = with_slots(self._storage, slots)
        seen = packed_view(view)
        waiting = view.queue if self._storage.totals[UNPLACED] else view.arrived
        iterations = self.iterations * len(view.arrived)
        moves = len(waiting) + iterations
        if moves <= MOVES_AT_ONCE:
            self._make_room(moves)
            whole, started, rejected = play(
                self._storage, seen, self._tabu_list, iterations, self._moves, waiting
            )
            if whole:
                return _plan(started, rejected.tolist())
        return self._plan_in_pieces(seen, view.queue, iterations)

    def _plan_in_pieces(self, packed: PackedView, queue: Ints, iterations: int) -> Plan:
        """The same, with any number of jobs to place and iterations to make."""
        from grid.policies.schedule import instant

        instant.repair_only(self._storage, packed, self._moves)
        unplaced = 0
        rejected: list[int] = []
        for first in range(0, len(queue), MOVES_AT_ONCE):
            self._make_room(MOVES_AT_ONCE)
            piece = queue[first : first + MOVES_AT_ONCE]
            impossible = instant.place_only(self._storage, packed, piece)
            unplaced += int(self._storage.totals[UNPLACED])
            rejected += impossible.tolist()
        self._storage.totals[UNPLACED] = unplaced
        self._make_room(0)
        instant.fill_only(self._storage, packed, self._moves)
        while self._tabu_list is not None and iterations > 0:
            self._make_room(MOVES_AT_ONCE)
            wanted = min(iterations, MOVES_AT_ONCE)
            instant.improve_only(self._storage, packed, self._tabu_list, wanted)
            iterations -= wanted
        started = instant.due_only(self._storage, packed)
        return _plan(started, rejected)

    def _begin(self, view: ClusterView, now: Time) -> None:
        self._storage = empty_storage(view.machines)
        self._storage.totals[ORIGIN_US] = now
        self._widest = int(view.machines.cpus.max())
        self._begun = True

    def _make_room(self, moves: int) -> None:
        """Room for so many more jobs on any machine, and for those that repair starts on it."""
        totals, positions = self._storage.totals, self._storage.scratch.shape[1] - 2
        started = min(self._widest, int(totals[JOBS]))
        needed = int(totals[FULLEST]) + moves + started
        if needed > positions:
            self._storage = with_positions(self._storage, max(needed, 2 * positions))


def _plan(started: Ints, rejected: list[int]) -> Plan:
    return Plan(start=[(slot, machine) for slot, machine in started.tolist()], reject=rejected)


def eg_edf(*, repair: Repair = "moves") -> ScheduleBased:
    """A schedule: earliest gap, earliest deadline first."""
    return ScheduleBased(moves=repair == "moves")


def tabu(
    *,
    iterations: Annotated[Count, Field(description="of the search, for each job that comes")] = 100,
    tabu_list: Annotated[Count, Field(description="so many jobs are not moved again")] = 100,
    repair: Repair = "moves",
) -> ScheduleBased:
    """EG-EDF, improved by tabu search."""
    return ScheduleBased(iterations, tabu_list, moves=repair == "moves")
