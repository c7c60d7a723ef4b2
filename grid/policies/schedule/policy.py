"""The local policies `eg_edf` and `tabu`.

Compiled code is imported when the first plan is asked for, so that a scenario can be checked
without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid.model.time import Time
from grid.policies.interface import ClusterView, Plan
from grid.policies.schedule.arrays import (
    FULLEST,
    HOMELESS,
    JOBS,
    ORIGIN_US,
    Ints,
    Jobs,
    Schedule,
    empty_schedule,
    empty_tabu_list,
    no_jobs,
    with_positions,
    with_slots,
)
from grid.policies.settings import Settings

ITERATIONS = 100
TABU_LIST = 100
REPAIR = ("moves", "times")
MOVES_AT_ONCE = 512
"""How many jobs one compiled call may put on a machine; room for them is made before it."""

_COPIED = (
    "serial",
    "processors",
    "estimate_us",
    "reference_mips",
    "deadline_us",
    "licenses",
    "bound_machine",
)


class ScheduleBased:
    """Keeps a schedule of all jobs, places each as it comes (EG-EDF), and may search on (Tabu).

    The search makes `iterations` for each job that came, 0 is none; its tabu list holds `tabu_list`
    jobs. Where run times differ from their estimates, repair moves jobs, or, without `moves`, only
    times its machine anew.
    """

    schedule: Schedule
    """Of the cluster that the policy serves; there is none before the first plan."""
    jobs: Jobs

    def __init__(self, iterations: int = 0, tabu_list: int = TABU_LIST, moves: bool = True) -> None:
        self._iterations = iterations
        self._moves = moves
        self._tabu = empty_tabu_list(tabu_list)
        self._begun = False

    def plan(self, view: ClusterView, now: Time) -> Plan:
        from grid.policies.schedule.instant import play

        if not self._begun:
            self._begin(view, now)
        if len(view.arrived):
            self._copy(view)
        waiting = view.queue if self.schedule.totals[HOMELESS] else view.arrived
        iterations = self._iterations * len(view.arrived)
        if len(waiting) + iterations <= MOVES_AT_ONCE:
            self._make_room(len(waiting) + iterations)
            whole, started, rejected = play(
                self.schedule,
                self.jobs,
                self._tabu,
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
            impossible = place_all(self.schedule, self.jobs, now, piece)
            homeless += int(self.schedule.totals[HOMELESS])
            rejected += impossible.tolist()
        self.schedule.totals[HOMELESS] = homeless
        self._make_room(0)
        fill(self.schedule, self.jobs, self._moves, now)
        while iterations > 0:
            self._make_room(MOVES_AT_ONCE)
            wanted = min(iterations, MOVES_AT_ONCE)
            improve(self.schedule, self.jobs, self._tabu, wanted, now)
            iterations -= wanted
        started = due(self.schedule, self.jobs, now, view.license_copies_free)
        return _plan(started, rejected)

    def _begin(self, view: ClusterView, now: Time) -> None:
        self.schedule = empty_schedule(view.machines)
        self.schedule.totals[ORIGIN_US] = now
        self.jobs = no_jobs()
        self._widest = int(view.machines.cpus.max())
        self._begun = True

    def _copy(self, view: ClusterView) -> None:
        """Take over what is known of the jobs that arrived."""
        slots = len(view.jobs.serial)
        if slots > len(self.jobs.serial):
            self.jobs = with_slots(self.jobs, slots)
        for name in _COPIED:
            getattr(self.jobs, name)[view.arrived] = getattr(view.jobs, name)[view.arrived]
        self.jobs.tabu[view.arrived] = False

    def _make_room(self, moves: int) -> None:
        """Room for so many more jobs on any machine, and for those that repair starts on it."""
        totals, positions = self.schedule.totals, self.schedule.slot.shape[1]
        started = min(self._widest, int(totals[JOBS]))
        needed = int(totals[FULLEST]) + moves + started
        if needed > positions:
            self.schedule = with_positions(self.schedule, max(needed, 2 * positions))


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
