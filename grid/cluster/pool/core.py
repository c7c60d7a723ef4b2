"""The compiled loop as the core of a cluster: its arrays are made here, and made larger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grid.cluster.arrivals import Arrivals
from grid.cluster.outcomes import Outcomes
from grid.cluster.pool import loop
from grid.cluster.pool import state as at
from grid.cluster.pool.state import FLOATS, Ends, Pool
from grid.cluster.shell import NOT_MEASURED, TimedPlans
from grid.model.arrays import Ints
from grid.model.job import JobOutcome, JobState
from grid.model.platform import Machine
from grid.model.time import NEVER, Time
from grid.policies.compiled_form import CompiledForm

FIRST_SLOTS = 256
FIRST_ENDS = 4096
REJECTED = int(JobState.REJECTED)


class PoolCore:
    """A `Core` of one machine without licenses, under a policy that the loop can play."""

    binds = True

    def __init__(
        self,
        machine: Machine,
        form: CompiledForm,
        arrivals: Arrivals,
        outcomes: Outcomes,
    ) -> None:
        self.processors = machine.cpus
        self._watts = (machine.watts_busy, machine.watts_idle)
        self._arrivals = arrivals
        self._outcomes = outcomes
        self._kinds = loop.kinds_of(form.kernel)
        self._set_slots(FIRST_SLOTS)
        counters, measures = self._pool.counters, self._pool.measures
        # Who reserves for some jobs only lets others pass them.
        counters[at.IN_TURN] = form.slowdown_limit == 0
        counters[at.IN_TURN_AFTER] = 0 if form.slowdown_limit == 0 else NEVER
        counters[at.LAST_STEP] = 1
        counters[at.GAIN_FROM] = counters[at.NEXT_START] = counters[at.NEXT_INSTANT] = NEVER
        counters[at.FREE_SLOTS] = FIRST_SLOTS
        counters[at.POLICY] = form.kernel
        counters[at.CPUS] = counters[at.FREE] = machine.cpus
        measures[at.SHARE] = -1.0
        measures[at.MIPS], measures[at.SLOWDOWN_LIMIT] = machine.mips, form.slowdown_limit
        measures[at.AGE_FACTOR : at.BOOST_VALUE + 1] = form.factors or 0.0
        counters[at.KEPT] = -1
        self._pool.step_level[0] = machine.cpus
        self._ends = _no_ends(FIRST_ENDS)

    def __getstate__(self) -> dict[str, Any]:
        names = ("_pool", "_counters")
        return {name: value for name, value in vars(self).items() if name not in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy: its pool has to be the rows of its own block."""
        self.__dict__.update(state)
        self._take_rows()

    def play(self, until: Time) -> None:
        arrivals = self._arrivals
        while True:
            first, end, block = arrivals.first, arrivals.end, arrivals.block
            blocks = self._block, block, self._ends
            what = loop.advance(until, first, end, *blocks, *self._kinds)
            arrivals.taken(self._counters[at.NEXT_ARRIVAL])
            if what == loop.DONE:
                break
            if what == loop.ENDED_FULL:
                self._hand_over_ends()
                most = int(self._pool.counters[at.RUNNING]) + self._next_arrivals()
                if 2 * most > self._ends.shape[1]:
                    self._ends = _no_ends(2 * most)
            else:
                self._grow()
        if self._counters[at.ENDED]:
            self._hand_over_ends()

    def machine_down(self, machine: int, now: Time) -> None:
        raise NotImplementedError("pools whose machine goes down are played by the general core")

    machine_up = machine_down

    def next_instant(self) -> Time:
        return self._counters[at.NEXT_INSTANT]

    def last_instant(self) -> Time:
        pool = self._pool
        running = pool.by_end[: pool.counters[at.RUNNING]]
        reserved = int(pool.counters[at.NEXT_START])
        if len(running) == 0:
            return reserved
        end = int(pool.end[running].max())
        return end if reserved == NEVER else max(end, reserved)

    def has_jobs(self) -> bool:
        counters = self._counters
        return counters[at.RUNNING] > 0 or counters[at.FIRST] < counters[at.LAST]

    def processors_wanted(self) -> int:
        counters = self._counters
        return counters[at.CPUS] - counters[at.FREE] + counters[at.ASKED]

    def occupancy(self) -> tuple[int, int, int]:
        cpus, free, running, first, last = self._pool.counters[at.CPUS : at.LAST + 1].tolist()
        return cpus - free, running, last - first

    def busy_machines(self) -> list[int]:
        return [0] if self._pool.counters[at.RUNNING] else []

    def broken_limits(self) -> Iterator[str]:
        pool = self._pool
        busy = int(pool.processors[pool.by_end[: pool.counters[at.RUNNING]]].sum())
        if busy > self.processors:
            yield f"{busy} CPUs of {self.processors} are busy"

    def figures(self) -> dict[str, float]:
        """As those of the general core."""
        usage = self._pool.measures[at.PART_S : at.ARRIVING_WHOLE_S + 1].tolist()
        ends = (".part", ".whole", "_arriving.part", "_arriving.whole")
        figures = {f"machine_usage{end}": value for end, value in zip(ends, usage, strict=True)}
        return {"migrations_local": 0, **figures}

    def take_levels(self) -> None:
        """Not kept."""

    def plan_times(self) -> list[TimedPlans]:
        return [NOT_MEASURED]

    def _next_arrivals(self) -> int:
        """How many jobs arrive at the next instant of arrivals."""
        return len(self._arrivals.due(self._arrivals.next_us))

    def _set_slots(self, slots: int) -> None:
        """An empty pool. All its arrays have room for what adds most to them.

        A job adds two steps to the profile at most, and the queue has room for twice the slots, so
        that its front is not moved up for every arrival.
        """
        self._slots = slots
        self._block = np.zeros((len(Pool._fields), 2 * slots + 1), np.int64)
        self._take_rows()
        self._pool.free_slots[:slots] = np.arange(slots - 1, -1, -1)

    def _take_rows(self) -> None:
        self._pool = _rows_of(self._block)
        # For Python, to which a cell of a numpy array costs thrice as much.
        self._counters = self._pool.counters.data

    def _grow(self) -> None:
        """Twice as many slots, more if the next instant brings more jobs than that."""
        old, size = self._block, self._slots
        kept = self._pool.free_slots[: self._pool.counters[at.FREE_SLOTS]]
        self._set_slots(size + max(size, self._next_arrivals()))
        added = self._slots - size
        free = (self._pool.free_slots[:added].copy(), kept)
        self._block[:, : old.shape[1]] = old
        self._pool.counters[at.FREE_SLOTS] = added + len(kept)
        self._pool.free_slots[: added + len(kept)] = np.concatenate(free)

    def _hand_over_ends(self) -> None:
        count = self._counters[at.ENDED]
        self._counters[at.ENDED] = 0
        ends = self._ends[:, :count]
        if self._arrivals.routed:
            # Routed jobs end a few at a time: whole columns would cost more than they.
            if self._hand_over_routed(ends) == count:
                return
            ends = ends[:, ends[0] >= 0]
        row, state, start, end = ends.copy()
        if len(row):
            ran = state != JobState.REJECTED
            machine, held_us = np.where(ran, 0, -1), np.where(ran, end - start, 0)
            none = np.zeros(len(row), np.int64)
            watts = [np.full(len(row), one) for one in self._watts]
            outcome = JobOutcome(machine, state, start, end, none, none, none, held_us, *watts)
            self._outcomes.add_rows(row, outcome)

    def _hand_over_routed(self, ends: Ints) -> int:
        """How many routed jobs there were."""
        routed = 0
        for row, state, start, end in zip(*ends.tolist(), strict=True):
            if row >= 0:
                continue
            machine, held_us = (-1, 0) if state == REJECTED else (0, end - start)
            outcome = JobOutcome(machine, state, start, end, 0, 0, 0, held_us, *self._watts)
            self._outcomes.add(row, outcome)
            routed += 1
        return routed


def _rows_of(block: Ints) -> Pool:
    rows: list[Any] = list(block)
    whole = len(rows) - FLOATS
    return Pool(*rows[:whole], *(row.view(np.float64) for row in rows[whole:]))


def _no_ends(room: int) -> Ints:
    return np.zeros((len(Ends._fields), room), np.int64)
