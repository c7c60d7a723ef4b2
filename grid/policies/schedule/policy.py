"""The local policies `eg_edf` and `tabu`.

Compiled code is imported when the first plan is asked for, so that a scenario can be checked
without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grid.model.arrays import Ints
from grid.model.time import Time
from grid.policies.interface import ClusterView, JobColumns, Plan
from grid.policies.schedule.arrays import (
    FULLEST,
    HOMELESS,
    JOBS,
    NOWHERE,
    ORIGIN_US,
    Jobs,
    Schedule,
    empty_storage,
    empty_tabu_list,
    schedule_of,
    with_positions,
)
from grid.policies.settings import Settings

ITERATIONS = 100
TABU_LIST = 100
REPAIR = ("moves", "times")
MOVES_AT_ONCE = 512
"""How many jobs one compiled call may put on a machine; room for them is made before it."""


class ScheduleBased:
    """Keeps a schedule of all jobs, places each as it comes (EG-EDF), and may search on (Tabu).

    The search makes `iterations` for each job that came, 0 is none; its tabu list holds `tabu_list`
    jobs. Where run times differ from their estimates, repair moves jobs, or, without `moves`, only
    times its machine anew. A job without a deadline is never late; where none has one, as in a log,
    only makespan and ends decide, and the search finds nothing to do.
    """

    iterations: int
    jobs: Jobs
    """As they were when the last plan was made."""

    def __init__(self, iterations: int = 0, tabu_list: int = TABU_LIST, moves: bool = True) -> None:
        self.iterations = iterations
        self._moves = moves
        self._tabu_list = empty_tabu_list(tabu_list)
        self._machine = np.empty(0, np.int64)
        self._tabu = np.empty(0, np.bool_)
        self._begun = False

    @property
    def schedule(self) -> Schedule:
        """Of the cluster that the policy serves; there is none before the first plan."""
        return schedule_of(self._storage)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        from grid.policies.schedule.instant import play

        if not self._begun:
            self._begin(view, now)
        self.jobs = self._known(view.jobs)
        waiting = view.queue if self._storage.totals[HOMELESS] else view.arrived
        iterations = self.iterations * len(view.arrived)
        moves = len(waiting) + iterations
        if moves <= MOVES_AT_ONCE:
            self._make_room(moves)
            whole, started, rejected = play(
                self._storage,
                self.jobs,
                self._tabu_list,
                iterations,
                self._moves,
                now,
                view.free,
                view.license_copies_free,
                view.jobs.expected_end_us,
                view.ended,
                waiting,
            )
            if whole:
                return _plan(started, rejected.tolist())
        return self._plan_in_pieces(view, iterations, now)

    def _plan_in_pieces(self, view: ClusterView, iterations: int, now: Time) -> Plan:
        """The same, with any number of jobs to place and iterations to make."""
        from grid.policies.schedule.instant import due, place_all
        from grid.policies.schedule.repair import fill, repair
        from grid.policies.schedule.tabu import improve

        schedule, jobs, expected_end_us = self.schedule, self.jobs, view.jobs.expected_end_us
        repair(schedule, jobs, self._moves, now, view.free, expected_end_us, view.ended)
        homeless = 0
        rejected: list[int] = []
        for first in range(0, len(view.queue), MOVES_AT_ONCE):
            self._make_room(MOVES_AT_ONCE)
            piece = view.queue[first : first + MOVES_AT_ONCE]
            impossible = place_all(self.schedule, jobs, now, piece)
            homeless += int(self._storage.totals[HOMELESS])
            rejected += impossible.tolist()
        self._storage.totals[HOMELESS] = homeless
        self._make_room(0)
        fill(self.schedule, jobs, self._moves, now)
        while iterations > 0:
            self._make_room(MOVES_AT_ONCE)
            wanted = min(iterations, MOVES_AT_ONCE)
            improve(self.schedule, jobs, self._tabu_list, wanted, now)
            iterations -= wanted
        started = due(self.schedule, jobs, now, view.license_copies_free)
        return _plan(started, rejected)

    def _begin(self, view: ClusterView, now: Time) -> None:
        self._storage = empty_storage(view.machines)
        self._storage.totals[ORIGIN_US] = now
        self._widest = int(view.machines.cpus.max())
        self._begun = True

    def _known(self, columns: JobColumns) -> Jobs:
        """What is known of the jobs now, with a place for each slot in what is kept of them."""
        more = len(columns.serial) - len(self._machine)
        if more:
            self._machine = np.append(self._machine, np.full(more, NOWHERE))
            self._tabu = np.append(self._tabu, np.zeros(more, np.bool_))
        return Jobs(
            columns.serial,
            columns.processors,
            columns.estimate_us,
            columns.reference_mips,
            columns.deadline_us,
            columns.licenses,
            columns.bound_machine,
            self._machine,
            self._tabu,
        )

    def _make_room(self, moves: int) -> None:
        """Room for so many more jobs on any machine, and for those that repair starts on it."""
        totals, positions = self._storage.totals, self._storage.scratch.shape[1] - 2
        started = min(self._widest, int(totals[JOBS]))
        needed = int(totals[FULLEST]) + moves + started
        if needed > positions:
            self._storage = with_positions(self._storage, max(needed, 2 * positions))


def _plan(started: Ints, rejected: list[int]) -> Plan:
    return Plan(start=[(slot, machine) for slot, machine in started.tolist()], reject=rejected)


def eg_edf(settings: Mapping[str, Any]) -> ScheduleBased:
    """`repair`: moves, or times to repair the times of a machine only. Raises ValueError."""
    read = Settings(settings)
    moves = read.choice("repair", REPAIR) == "moves"
    read.end()
    return ScheduleBased(moves=moves)


def tabu(settings: Mapping[str, Any]) -> ScheduleBased:
    """`iterations` for each job that comes, `tabu_list`: its length in jobs, and `repair`."""
    read = Settings(settings)
    iterations = read.count("iterations", ITERATIONS)
    tabu_list = read.count("tabu_list", TABU_LIST)
    moves = read.choice("repair", REPAIR) == "moves"
    read.end()
    return ScheduleBased(iterations, tabu_list, moves)
