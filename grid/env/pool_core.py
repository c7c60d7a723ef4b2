"""One pool of processors whose queue an agent decides, in compiled code between two decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.cluster.arrivals import Arrivals
from grid.cluster.outcomes import Outcomes
from grid.cluster.pool import CompiledForm, PoolPolicy, loop
from grid.cluster.pool import state as at
from grid.cluster.pool.core import PoolCore
from grid.env import pool_loop
from grid.env.queue_agent import Decide, open_action
from grid.model.platform import Machine
from grid.model.time import Time


class AskingPool(PoolCore):
    """A `Core` of one machine that asks `decide`; `kind` says what it gains (see `pool_loop`).

    What it tells the agent, asks and gains is that of `AgentPolicy` with `QueueObservation` of
    shape `shape`.
    """

    def __init__(
        self,
        machine: Machine,
        arrivals: Arrivals,
        outcomes: Outcomes,
        decide: Decide,
        offered: int,
        shape: tuple[int, ...],
        kind: int,
    ) -> None:
        super().__init__(machine, CompiledForm(PoolPolicy.FCFS), arrivals, outcomes)
        self._decide = decide
        self._offered = offered
        self._shape = shape
        self._turn = np.zeros(5, np.int64)
        self._turn[pool_loop.KIND] = kind
        self._gained = np.zeros(1)
        self.forbidden = 0

    def play(self, until: Time) -> None:
        arrivals, action = self._arrivals, 0
        told: Any = np.empty(self._shape, np.float32)
        is_open = np.empty(self._offered + 1, np.bool_)
        while True:
            what = pool_loop.play(
                until, arrivals.first, arrivals.end, self._block, arrivals.block, self._ends,
                self._turn, self._gained, told, is_open, action,
            )  # fmt: skip
            arrivals.taken(int(self._pool.counters[at.NEXT_ARRIVAL]))
            if what == pool_loop.ASK:
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

    def _make_room(self, what: int) -> None:
        if what != loop.ENDED_FULL:
            self._grow()
            return
        self._hand_over_ends()
        most = int(self._pool.counters[at.RUNNING]) + self._next_arrivals()
        if 2 * most > self._ends.shape[1]:
            self._ends = np.zeros((len(self._ends), 2 * most), np.int64)
