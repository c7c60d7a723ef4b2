"""The local policies `eg_edf` and `tabu`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid.model.time import Time
from grid.policies.interface import ClusterView, Plan
from grid.policies.schedule import instant
from grid.policies.schedule.arrays import (
    FULLEST,
    HOMELESS,
    JOBS,
    ORIGIN_US,
    Ints,
    Jobs,
    Schedule,
    empty_schedule,
    no_jobs,
    with_positions,
    with_slots,
)
from grid.policies.schedule.repair import fill, repair
from grid.policies.schedule.tabu import empty_tabu_list, improve

ITERATIONS = 100
TABU_LIST = 100
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
        if not self._begun:
            self._begin(view, now)
        if len(view.arrived):
            self._copy(view)
        waiting = view.queue if self.schedule.totals[HOMELESS] else view.arrived
        iterations = self._iterations * len(view.arrived)
        if len(waiting) + iterations <= MOVES_AT_ONCE:
            self._make_room(len(waiting) + iterations)
            whole, due, rejected = instant.play(
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
                return _plan(due, rejected.tolist())
        return self._plan_in_pieces(view, iterations, now)

    def _plan_in_pieces(self, view: ClusterView, iterations: int, now: Time) -> Plan:
        """The same, with any number of jobs to place and iterations to make."""
        schedule, jobs, expected_end_us = self.schedule, self.jobs, view.jobs.expected_end_us
        repair(schedule, jobs, self._moves, now, view.free, expected_end_us, view.ended)
        homeless = 0
        rejected: list[int] = []
        for first in range(0, len(view.queue), MOVES_AT_ONCE):
            self._make_room(MOVES_AT_ONCE)
            piece = view.queue[first : first + MOVES_AT_ONCE]
            impossible = instant.place_all(self.schedule, self.jobs, now, piece)
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
        due = instant.due(self.schedule, self.jobs, now, view.license_copies_free)
        return _plan(due, rejected)

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


def _plan(due: Ints, rejected: list[int]) -> Plan:
    return Plan(start=[(slot, machine) for slot, machine in due.tolist()], reject=rejected)


def eg_edf(settings: Mapping[str, Any]) -> ScheduleBased:
    """`eg_edf`; it has no settings."""
    _numbers("eg_edf", settings, {})
    return ScheduleBased()


def tabu(settings: Mapping[str, Any]) -> ScheduleBased:
    """`tabu` with the settings `iterations`, for each job, and `tabu_list`, its length in jobs."""
    known = {"iterations": ITERATIONS, "tabu_list": TABU_LIST}
    return ScheduleBased(**_numbers("tabu", settings, known))


def _numbers(name: str, settings: Mapping[str, Any], known: dict[str, int]) -> dict[str, int]:
    """The settings, with defaults, all of them whole numbers from 1 to a million."""
    for key, value in settings.items():
        if key not in known:
            expected = ", ".join(known) or "none"
            raise ValueError(f"{name} has no setting {key!r}; there are: {expected}")
        if type(value) is not int or not 1 <= value <= 1_000_000:
            raise ValueError(f"{name}: {key} is {value!r}, not a whole number from 1 to 1000000")
    return known | dict(settings)
