"""What becomes of a schedule when things go otherwise than planned: each repair by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.model.job import dtypes
from grid.model.time import NEVER
from grid.policies.interface import ClusterView, JobColumns, MachineColumns
from grid.policies.schedule.policy import ScheduleBased


class ByHand:
    """A cluster, and what happens there at each instant; estimates are for 1000 MIPS."""

    def __init__(self, policy: ScheduleBased, *machines: tuple[int, float], **more: Any) -> None:
        cpus, mips = (np.array(column) for column in zip(*machines, strict=True))
        zeros = np.zeros(len(machines), np.int64)
        licenses = np.array(more.get("licenses", zeros))
        order, no_limit = np.argsort(-mips), np.full(len(machines), np.inf)
        self.machines = MachineColumns(cpus, mips * 1.0, licenses, zeros, order, no_limit)
        self.copies = np.array(more.get("copies", []), np.int64)
        self.policy = policy
        self.jobs = JobColumns(
            **{name: np.zeros(30, dtype) for name, dtype in dtypes(JobColumns).items()}
        )
        self.jobs.reference_mips[:] = 1000.0
        self.down: list[int] = []
        self.queue: list[int] = []
        self.running: dict[int, int] = {}
        self.names: dict[str, int] = {}

    def at(
        self,
        now: int,
        *arrivals: tuple[Any, ...],
        ended: str = "",
        lost: str = "",
        expected: dict[str, int] | None = None,
    ) -> list[tuple[str, int]]:
        """Play the instant `now`; what starts, as (name, machine).

        An arrival is (name, processors, estimate[, deadline[, bound machine[, licenses]]]). `lost`
        are running jobs that a machine going down sends back to the queue.
        """
        jobs = self.jobs
        gone = [self.names[name] for name in ended]
        for slot in [*gone, *(self.names[name] for name in lost)]:
            del self.running[slot]
        for name in lost:
            self.queue.append(self.names[name])
            jobs.expected_end_us[self.names[name]] = NEVER
        for name, end in (expected or {}).items():
            jobs.expected_end_us[self.names[name]] = end
        arrived = [self._take_in(*arrival) for arrival in arrivals]
        plan = self.policy.plan(self._view(now, arrived, gone), now)
        self.queue = [slot for slot in self.queue if slot not in plan.reject]
        for slot, machine in plan.start:
            self.queue.remove(slot)
            self.running[slot] = machine
            length = int(jobs.estimate_us[slot] * 1000 / self.machines.mips[machine])
            jobs.expected_end_us[slot] = now + length
        self.rejected = [self._name(slot) for slot in plan.reject]
        return [(self._name(slot), machine) for slot, machine in plan.start]

    def _take_in(
        self,
        name: str,
        processors: int,
        estimate: int,
        deadline: int = NEVER,
        bound: int = -1,
        licenses: int = 0,
    ) -> int:
        slot, jobs = len(self.names), self.jobs
        jobs.serial[slot] = slot
        jobs.processors[slot], jobs.estimate_us[slot] = processors, estimate
        jobs.deadline_us[slot] = deadline
        jobs.bound_machine[slot], jobs.licenses[slot] = bound, licenses
        self.names[name] = slot
        self.queue.append(slot)
        return slot

    def _view(self, now: int, arrived: list[int], gone: list[int]) -> ClusterView:
        free = self.machines.cpus.copy()
        for slot, machine in self.running.items():
            free[machine] -= self.jobs.processors[slot]
        free[self.down] = 0
        lists = (self.queue, list(self.running), arrived, gone)
        queue, running, new, old = (np.array(slots, np.int64) for slots in lists)
        return ClusterView(
            now, self.machines, free, self.jobs, queue, running, new, old, self.copies,
            np.zeros((len(free), len(self.copies)), np.int64), self.machines.ram_mb,
        )  # fmt: skip

    def _name(self, slot: int) -> str:
        return next(name for name, of in self.names.items() if of == slot)

    def planned(self) -> dict[str, tuple[int, int, int]]:
        """(machine, start, end) of each job in the schedule."""
        schedule = self.policy.schedule
        return {
            self._name(schedule.slot[m, p]): (
                m,
                int(schedule.start_us[m, p]),
                int(schedule.end_us[m, p]),
            )
            for m in range(len(schedule.cpus))
            for p in range(schedule.planned[m])
        }


def test_after_an_early_end_the_jobs_behind_move_up() -> None:
    cluster = ByHand(ScheduleBased(), (1, 1000))
    assert cluster.at(0, ("a", 1, 10), ("b", 1, 5), ("c", 1, 5)) == [("a", 0)]
    assert cluster.planned() == {"a": (0, 0, 10), "b": (0, 10, 15), "c": (0, 15, 20)}
    assert cluster.at(4, ended="a") == [("b", 0)]
    assert cluster.planned() == {"b": (0, 4, 9), "c": (0, 9, 14)}


def test_a_job_that_goes_on_holds_up_those_behind_it() -> None:
    cluster = ByHand(ScheduleBased(moves=False), (1, 1000), (1, 1000))
    cluster.at(0, ("a", 1, 10), ("x", 1, 10), ("b", 1, 5, NEVER, 0), ("c", 1, 5, NEVER, 1))
    assert cluster.at(10, ended="x", expected={"a": 20}) == [("c", 1)]
    assert cluster.planned() == {"a": (0, 0, 20), "b": (0, 20, 25), "c": (1, 10, 15)}
    assert cluster.at(15, ended="ac") == [("b", 0)]


def test_with_moves_delayed_jobs_are_placed_again() -> None:
    cluster = ByHand(ScheduleBased(), (1, 1000), (1, 1000))
    cluster.at(0, ("a", 1, 10), ("x", 1, 11), ("b", 1, 5))
    assert cluster.planned()["b"] == (0, 10, 15)
    assert cluster.at(10, expected={"a": 20}) == []
    assert cluster.planned() == {"a": (0, 0, 20), "x": (1, 0, 11), "b": (1, 11, 16)}


def test_what_is_idle_after_an_early_end_goes_to_a_job_of_another_machine() -> None:
    cluster = ByHand(ScheduleBased(), (1, 1000), (1, 1000))
    cluster.at(0, ("a", 1, 10), ("x", 1, 12), ("b", 1, 5, NEVER, 0))
    cluster.at(1, ("c", 1, 5, 100, 0), ("d", 1, 9, NEVER, 0))
    assert cluster.planned()["c"] == (0, 10, 15)
    for name in "bcd":
        cluster.jobs.bound_machine[cluster.names[name]] = -1
    # Both c and b could start on the second machine now; c has a deadline. Then b moves up.
    assert cluster.at(3, ended="x") == [("c", 1)]
    assert cluster.planned() == {
        "a": (0, 0, 10),
        "b": (0, 10, 15),
        "d": (0, 15, 24),
        "c": (1, 3, 8),
    }


def test_idle_cpus_go_to_a_job_of_the_same_machine_that_delays_no_other() -> None:
    cluster = ByHand(ScheduleBased(), (2, 1000))
    cluster.at(0, ("a", 1, 10), ("x", 1, 8), ("b", 2, 5), ("c", 1, 7), ("d", 1, 6))
    assert cluster.planned() == {
        "a": (0, 0, 10),
        "x": (0, 0, 8),
        "b": (0, 10, 15),
        "c": (0, 15, 22),
        "d": (0, 15, 21),
    }
    # From 4 to 10 one CPU is idle in front of b: c would take until 11, d just fits.
    assert cluster.at(4, ended="x") == [("d", 0)]
    assert cluster.planned() == {
        "a": (0, 0, 10),
        "d": (0, 4, 10),
        "b": (0, 10, 15),
        "c": (0, 15, 22),
    }


def test_the_jobs_of_a_machine_that_goes_down_are_placed_elsewhere_or_wait_for_it() -> None:
    cluster = ByHand(ScheduleBased(10), (1, 1000), (2, 1000))
    cluster.at(0, ("a", 1, 10, NEVER, 1), ("b", 2, 5), ("c", 1, 20, NEVER, 0), ("d", 1, 4))
    assert cluster.planned() == {
        "a": (1, 0, 10),
        "d": (1, 0, 4),
        "b": (1, 10, 15),
        "c": (0, 0, 20),
    }
    cluster.down = [1]
    # d may run anywhere, a is bound to the machine, and b is too wide for the other one.
    assert cluster.at(2, lost="ad") == []
    assert cluster.planned() == {"c": (0, 0, 20), "d": (0, 20, 24)}
    assert cluster.at(5, ("e", 2, 1)) == []
    cluster.down = []
    assert cluster.at(9) == [("b", 1)]
    assert cluster.planned()["a"] == (1, 14, 24)
    assert cluster.planned()["e"] == (1, 24, 25)


def test_a_job_without_a_license_copy_waits_and_delays_no_other() -> None:
    cluster = ByHand(ScheduleBased(), (3, 1000), (1, 1000), licenses=[1, 1], copies=[1])
    assert cluster.at(0, ("a", 1, 10, NEVER, 0, 1), ("b", 1, 5, NEVER, 1, 1)) == [("a", 0)]
    # The copy is the first machine's; its jobs share it.
    cluster.copies = np.array([0])
    assert cluster.at(2, ("c", 1, 4, NEVER, 0, 1), ("d", 1, 4, NEVER, 0)) == [("c", 0), ("d", 0)]
    assert cluster.planned()["b"] == (1, 2, 7)
    cluster.copies = np.array([1])
    assert cluster.at(10, ended="acd") == [("b", 1)]


def test_two_machines_cannot_take_the_same_copy_at_once() -> None:
    cluster = ByHand(ScheduleBased(), (1, 1000), (1, 1000), licenses=[1, 1], copies=[1])
    arrivals = (("a", 1, 10, NEVER, 0, 1), ("b", 1, 5, NEVER, 1, 1))
    assert cluster.at(0, *arrivals) == [("a", 0)]


def test_a_job_that_no_machine_could_ever_run_is_rejected() -> None:
    cluster = ByHand(ScheduleBased(), (2, 1000), (1, 1000), licenses=[0, 1], copies=[1])
    assert cluster.at(0, ("a", 3, 1), ("b", 2, 1, NEVER, 1), ("c", 2, 1, NEVER, -1, 1)) == []
    assert cluster.rejected == ["a", "b", "c"]
