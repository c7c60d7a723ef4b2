"""An agent that decides which waiting job of a cluster starts: as a policy, and what it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Ints
from grid.model.time import Time
from grid.policies.columns import packed_view
from grid.policies.interface import ClusterView, Plan, Slots

Observed = npt.NDArray[np.float32]
Decide = Callable[[Any, Bools], int]
"""What an agent does, from what it observes and which actions are open to it: the number of one."""


class Expected:
    """What is expected at this instant, with the jobs that were started at it.

    By slot: how long a job takes, `estimate_us`, on the first machine or, once it has been placed,
    on its own; `end_us` of those that run. `running` are these, by (expected end, serial).
    """

    def __init__(self, view: ClusterView) -> None:
        from grid.integrations.learning.queue_kernels import scaled

        jobs = view.jobs
        self._serial = jobs.serial
        self.estimate_us: Ints = scaled(
            jobs.estimate_us, jobs.reference_mips, float(view.machines.mips[0])
        )
        self.end_us: Ints = jobs.expected_end_us.copy()
        self.running: Slots = view.running

    def start(self, slot: int, now: Time) -> None:
        """The job runs from now on."""
        end_us, serial, running = now + int(self.estimate_us[slot]), self._serial, self.running
        self.end_us[slot] = end_us
        ends = self.end_us[running]
        at = int(np.searchsorted(ends, end_us))
        while at < len(ends) and ends[at] == end_us and serial[running[at]] < serial[slot]:
            at += 1
        self.running = np.concatenate((running[:at], (slot,), running[at:]))


class Observation(Protocol):
    """What an agent is told of a queue; `shape` is that of what it gives, numbers from 0 to 1.

    It is given the cluster as a policy sees it, the waiting jobs without those that were started at
    this instant, what is expected, and which of the offered ones fit (the last is no job).
    """

    shape: tuple[int, ...]

    def __call__(
        self, view: ClusterView, queue: Slots, expected: Expected, is_open: Bools
    ) -> Observed: ...


class QueueObservation:
    """The default: the cluster, the first `offered` waiting jobs, the next `shown` running ones.

    All numbers are from 0 to 1; of an amount x that has no limit x / (x + h). In this order:

    - of the cluster: its free CPUs, a share; jobs that wait (h: `offered`); CPUs that they want
      (h: all CPUs); how long the first of them has to wait by the estimates (h: one hour);
    - of each offered job: 1; its share of the CPUs; its estimate (h: one hour); how long it has
      waited since its submission (h: one hour); whether it fits now; whether it fits and does not
      delay the first one, as EASY has it;
    - of each running job, by expected end: its share of the CPUs; what is left by its estimate
      (h: one hour).

    Places without a job hold zeros. Estimates are those of users: nobody knows the true run time.
    On several machines, the wait of the first job is reckoned as if they were one, and the run of a
    job that fits nowhere as on the first.
    """

    def __init__(self, offered: int = 16, shown: int = 8) -> None:
        from grid.integrations.learning.queue_kernels import OF_CLUSTER, OF_RUNNING, OF_WAITING

        self.shape = (OF_CLUSTER + OF_WAITING * offered + OF_RUNNING * shown,)

    def __call__(
        self, view: ClusterView, queue: Slots, expected: Expected, is_open: Bools
    ) -> Observed:
        from grid.integrations.learning.queue_kernels import observe

        out = np.empty(self.shape, np.float32)
        observe(
            out,
            view.now,
            int(view.machines.cpus.sum()),
            int(view.free.sum()),
            view.jobs.processors,
            view.jobs.submit_us,
            expected.estimate_us,
            expected.end_us,
            queue,
            expected.running,
            is_open,
        )
        return out


class AgentPolicy:
    """A local policy that asks `decide` which of the first `offered` waiting jobs starts next.

    Action n starts job n, in order of arrival, on the fastest machine that it fits on now; the last
    action, number `offered`, starts no more at this instant. The agent is asked while anything
    fits. While nothing runs it has to start something. An action that is not open starts nothing
    more or, where that is not open either, the first job that fits.
    """

    def __init__(
        self, decide: Decide, observation: Observation | None = None, offered: int = 16
    ) -> None:
        self.offered = offered
        self.observation = observation or QueueObservation(offered)
        self.decide = decide
        self.forbidden = 0
        """How many actions were not open."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        queue, plan = view.queue, Plan()
        if not len(queue) or not view.free.any():
            return plan
        expected: Expected | None = None
        while True:
            machines, fitting = self._machines(view, queue)
            if not fitting:
                return plan
            expected = expected or Expected(view)
            if len(view.machines.mips) > 1:
                _place(view, queue, machines, expected)
            is_open = np.append(machines >= 0, len(expected.running) > 0)
            told = self.observation(view, queue, expected, is_open)
            action = open_action(int(self.decide(told, is_open)), is_open)
            self.forbidden += action.forbidden
            if action.number == self.offered:
                return plan
            slot, machine = int(queue[action.number]), int(machines[action.number])
            view.take(slot, machine)
            plan.start.append((slot, machine))
            expected.start(slot, now)
            queue = np.concatenate((queue[: action.number], queue[action.number + 1 :]))

    def _machines(self, view: ClusterView, queue: Slots) -> tuple[Ints, int]:
        """Where each offered job would run, -1: it does not fit; and how many fit."""
        machines = view.machines
        if len(view.license_copies_free):
            places = np.full(self.offered, -1, np.int64)
            for place, slot in enumerate(queue[: self.offered].tolist()):
                places[place] = view.fastest(slot)
            return places, int(np.count_nonzero(places >= 0))
        from grid.integrations.learning.queue_kernels import fits_in_pool, fits_on_machines

        found: tuple[Ints, int]
        if len(machines.cpus) == 1 and machines.ram_mb[0] == np.inf:
            found = fits_in_pool(view.jobs.tables[0], int(view.free[0]), queue, self.offered)
        else:
            found = fits_on_machines(packed_view(view), queue, self.offered)
        return found


class Action(NamedTuple):
    """An action that is open, and whether it stands for one that is not."""

    number: int
    forbidden: bool


def open_action(number: int, is_open: Bools) -> Action:
    """The action of that number or, if it is not open, the last; if that is not, the first."""
    last = len(is_open) - 1
    if 0 <= number <= last and is_open[number]:
        return Action(number, False)
    return Action(last if is_open[last] else int(is_open.argmax()), True)


def _place(view: ClusterView, queue: Slots, machines: Ints, expected: Expected) -> None:
    """The jobs that fit take as long as on their machines."""
    fitting = np.flatnonzero(machines >= 0)
    slots, jobs = queue[fitting], view.jobs
    mips = view.machines.mips[machines[fitting]]
    exact = jobs.estimate_us[slots] * jobs.reference_mips[slots] / mips
    expected.estimate_us[slots] = np.maximum(1, np.rint(exact))
