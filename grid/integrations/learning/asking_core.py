"""A cluster whose queue an agent decides, in compiled code between two decisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grid.cluster.arrivals import Arrivals
from grid.cluster.general.machine_columns import machine_columns
from grid.cluster.outcomes import Outcomes
from grid.cluster.pool import CompiledForm, PoolPolicy, loop
from grid.cluster.pool import state as at
from grid.cluster.pool.core import FIRST_ENDS, PoolCore
from grid.integrations.learning import asking_loop
from grid.integrations.learning.asking_loop import Farm
from grid.integrations.learning.queue_agent import Decide, open_action
from grid.model.arrays import Ints
from grid.model.job import JobOutcome, JobState
from grid.model.platform import Cluster
from grid.model.time import Time

ABLE = (
    "several machines",
    "binding to machines",
    "preemption costs",
    "exact estimates",
    "factors of estimates",
)
"""The features of `grid.cluster.engines` that this core takes account of; nothing is preempted."""


class AskingCore(PoolCore):
    """A `Core` that asks `decide`; `kind` says what it gains (see `asking_loop`).

    What it tells the agent, asks and gains is that of `AgentPolicy` with `QueueObservation` of
    shape `shape`; the cluster asks for nothing but `ABLE`.
    """

    def __init__(
        self,
        platform: Cluster,
        arrivals: Arrivals,
        outcomes: Outcomes,
        decide: Decide,
        offered: int,
        shape: tuple[int, ...],
        kind: int,
    ) -> None:
        machines = platform.machines
        super().__init__(machines[0], CompiledForm(PoolPolicy.FCFS), arrivals, outcomes)
        self._machines = len(machines)
        self._busy_watts = np.array([one.watts_busy for one in machines])
        self._idle_watts = np.array([one.watts_idle for one in machines])
        columns = machine_columns(platform, [])
        self.processors = int(columns.cpus.sum())
        self._pool.counters[at.CPUS] = self._pool.counters[at.FREE] = self.processors
        width = max(self._machines, self._slots, offered)
        self._farm = np.zeros((len(Farm._fields), width), np.int64)
        farm, here = self._rows(), slice(self._machines)
        farm.cpus[here], farm.free[here] = columns.cpus, columns.cpus
        farm.order[here], farm.mips[here] = columns.speed_order, columns.mips
        self._ends = np.zeros((asking_loop.MACHINE_OF_END + 1, FIRST_ENDS), np.int64)
        self._decide = decide
        self._offered = offered
        self._shape = shape
        self._turn = np.zeros(6, np.int64)
        self._turn[asking_loop.KIND] = kind
        self._turn[asking_loop.MACHINES] = self._machines
        self._gained = np.zeros(1)
        self.forbidden = 0

    def play(self, until: Time) -> None:
        arrivals, action = self._arrivals, 0
        told: Any = np.empty(self._shape, np.float32)
        is_open = np.empty(self._offered + 1, np.bool_)
        while True:
            what = asking_loop.play(
                until, arrivals.first, arrivals.end, self._block, self._farm, arrivals.block,
                self._ends, self._turn, self._gained, told, is_open, action,
            )  # fmt: skip
            arrivals.taken(int(self._pool.counters[at.NEXT_ARRIVAL]))
            if what == asking_loop.ASK:
                number = int(self._decide(told, is_open))
                # Each decision has arrays of its own, for an agent may keep them.
                if 0 <= number <= self._offered and is_open[number]:
                    action = number
                else:
                    action = open_action(number, is_open).number
                    self.forbidden += 1
                told = np.empty(self._shape, np.float32)
                is_open = np.empty(self._offered + 1, np.bool_)
            elif what == loop.DONE:
                break
            else:
                self._make_room(what)
        if self._pool.counters[at.ENDED]:
            self._hand_over_ends()

    def take_gained(self) -> float:
        """What was gained since the last call."""
        gained = float(self._gained[0])
        self._gained[0] = 0.0
        return gained

    def busy_machines(self) -> list[int]:
        machines: list[int] = self._machines_of_running().tolist()
        return machines

    def broken_limits(self) -> Iterator[str]:
        pool = self._pool
        running = pool.by_end[: pool.counters[at.RUNNING]]
        there = self._machines_of_running()
        busy = np.bincount(there, pool.processors[running], self._machines)
        cpus = self._rows().cpus
        for over in np.flatnonzero(busy > cpus[: self._machines]).tolist():
            yield f"{busy[over]:g} CPUs of {cpus[over]} of machine {over} are busy"

    def _rows(self) -> Farm:
        rows: list[Any] = list(self._farm)
        whole = len(rows) - asking_loop.FLOATS
        return Farm(*rows[:whole], *(row.view(np.float64) for row in rows[whole:]))

    def _machines_of_running(self) -> Ints:
        pool = self._pool
        running = pool.by_end[: pool.counters[at.RUNNING]]
        machines: Ints = self._rows().machine[running]
        return machines

    def _grow(self) -> None:
        super()._grow()
        wider = np.zeros((len(self._farm), max(self._slots, self._farm.shape[1])), np.int64)
        wider[:, : self._farm.shape[1]] = self._farm
        self._farm = wider

    def _make_room(self, what: int) -> None:
        if what != loop.ENDED_FULL:
            self._grow()
            return
        self._hand_over_ends()
        most = int(self._pool.counters[at.RUNNING]) + self._next_arrivals()
        if 2 * most > self._ends.shape[1]:
            self._ends = np.zeros((len(self._ends), 2 * most), np.int64)

    def _hand_over_ends(self) -> None:
        count = int(self._pool.counters[at.ENDED])
        self._pool.counters[at.ENDED] = 0
        row, state, start, end, machine = self._ends[:, :count].copy()
        ran = state != JobState.REJECTED
        held_us = np.where(ran, end - start, 0)
        # As the general core sums watts over the runs of a job.
        watts = [
            held_us * one[machine] / np.maximum(held_us, 1)
            for one in (self._busy_watts, self._idle_watts)
        ]
        machine[~ran] = -1
        none = np.zeros(count, np.int64)
        ended = JobOutcome(machine, state, start, end, none, none, none, held_us, *watts)
        if self._arrivals.routed:
            for place in np.flatnonzero(row < 0).tolist():
                one: list[Any] = [column[place].item() for column in ended]
                self._outcomes.add(int(row[place]), JobOutcome(*one))
            ended = JobOutcome(*(column[row >= 0] for column in ended))
            row = row[row >= 0]
        if len(row):
            self._outcomes.add_rows(row, ended)
