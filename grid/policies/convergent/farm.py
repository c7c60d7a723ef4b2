"""Every job of a cluster against every machine of it, at one instant: what heuristics work on.

Here and in the heuristics, compiled code is imported when it is called, so that a scenario can be
checked without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.time import Time
from grid.policies.interface import ClusterView, Plan

PART_PAIRS = 40_000
"""Pairs of a job and a machine that heuristics are given at a time: 640 kB in two matrices."""


@dataclass(slots=True, eq=False)
class Farm:
    """The job-machine matrix and what goes into it.

    Rows are jobs: the running ones in the order of `ClusterView.running`, then the waiting ones in
    order of arrival. Columns are machines. Heuristics add to `priority` and leave the rest alone.
    """

    slots: Ints
    """The cluster's slot of each job, shape (jobs,)."""
    running: int
    """How many of the first rows are running jobs."""
    priority: Floats
    """p of the papers, shape (jobs, machines); -inf where the job cannot run on the machine."""
    remaining_s: Floats
    """CS2 Eq. 1, shape (jobs, machines): what is left of the job if that machine goes on with it.

    A job that is preempted goes on where it was, and starts again elsewhere; one that is
    checkpointable goes on anywhere. So the work that is left depends on the machine.
    """
    longest_s: float
    """The largest remaining time of a job on a machine that can run it (Sup of CS2 Eq. 12)."""
    eligible: Ints
    """On how many machines each job can run, |M_Aff|."""
    machine: Ints
    """Where each job runs, or ran when it was preempted; -1: nowhere yet."""
    elapsed_s: Floats
    """For how long it has run there, counting only what is kept."""
    age_s: Floats
    """Time since submission."""
    slack_s: Floats
    """Time until its deadline, negative when that is over; inf without one."""
    licenses: Ints
    """Bit mask of the licenses that the job asks for."""
    processors: Ints
    input_mb: Floats
    input_machine: Ints
    """Where its input lies: on the machine it ran on, else on its user's."""
    capacity: Ints
    """CPUs of each machine that are free or held by running jobs; none if it is down."""
    requests: Ints
    """How many jobs ask for each license, shape (licenses,)."""
    copies: Ints
    """How many copies of each license there are."""

    def part(self, rows: slice) -> Farm:
        """Some of the rows; their matrices and columns are this farm's own."""
        first, last, _ = rows.indices(len(self.slots))
        return Farm(
            self.slots[rows], min(max(self.running - first, 0), last - first),
            self.priority[rows], self.remaining_s[rows], self.longest_s, self.eligible[rows],
            self.machine[rows], self.elapsed_s[rows], self.age_s[rows], self.slack_s[rows],
            self.licenses[rows], self.processors[rows], self.input_mb[rows],
            self.input_machine[rows], self.capacity, self.requests, self.copies,
        )  # fmt: skip


class Needs(NamedTuple):
    """What a farm's matrices are filled from: columns of its rows, then of its machines."""

    bound: Ints
    """The only machine the job may run on; -1: any."""
    work: Floats
    """What is left of it on a machine that is new to it, in million instructions."""
    remaining_s: Floats
    """What is left of it on the machine where it runs or has run."""
    cpus: Ints
    usable: Ints
    """Bit mask of the licenses that the machine can run and of which there are copies."""
    mips: Floats


Heuristic = Callable[[Farm, float], None]
"""Adds its share, times a weight, to `priority`. See `cs2_heuristics` for examples."""


class Survey:
    """Draws up the farm of a cluster; keeps the two matrices, which are large, between plans."""

    def __init__(self) -> None:
        self._buffers = np.empty((2, 0))

    def __reduce__(self) -> tuple[type[Survey], tuple[()]]:
        """A copy begins without the buffers: what stands in them is of no use to another plan."""
        return Survey, ()

    def __call__(
        self, view: ClusterView, now: Time, heuristics: Sequence[tuple[Heuristic, float]] = ()
    ) -> Farm:
        """The farm at `now`, with what `heuristics` add, each with its weight.

        They are given some of the rows at a time, so that these stay in the processor's cache; all
        that a farm says of its jobs together is then still of all of them. The farm's matrices are
        overwritten by the next call.
        """
        from grid.policies.convergent.farm_kernels import fill_matrix

        farm, needs = described(view, now)
        jobs, machines = len(farm.slots), len(needs.mips)
        farm.priority, farm.remaining_s = self._matrices(jobs, machines)
        for rows in _parts(jobs, machines):
            part = farm.part(rows)
            fill_matrix(
                part.priority, part.remaining_s, part.eligible, part.processors, part.licenses,
                needs.bound[rows], needs.work[rows], part.machine, needs.remaining_s[rows],
                needs.cpus, needs.usable, needs.mips,
            )  # fmt: skip
            for heuristic, weight in heuristics:
                heuristic(part, weight)
        return farm

    def _matrices(self, jobs: int, machines: int) -> tuple[Floats, Floats]:
        size = jobs * machines
        if self._buffers.shape[1] < size:
            self._buffers = np.empty((2, 2 * size))
        first, second = self._buffers
        return first[:size].reshape(jobs, machines), second[:size].reshape(jobs, machines)


def described(view: ClusterView, now: Time) -> tuple[Farm, Needs]:
    """The farm at `now` without its matrices, and what these are filled from."""
    from grid.policies.convergent import farm_kernels as kernels

    jobs, machines = view.jobs, view.machines
    slots = np.concatenate((view.running, view.queue))
    running = len(view.running)
    licenses = jobs.licenses[slots]
    own = jobs.machine[slots]
    capacity = view.free.copy()
    in_use = kernels.licenses_in_use(
        own[:running], jobs.processors[view.running], licenses[:running], capacity,
        len(view.license_copies_free),
    )  # fmt: skip
    copies = view.license_copies_free + in_use
    work, remaining, elapsed, age, slack, requests = kernels.describe_jobs(
        now, slots, running, jobs.submit_us, jobs.deadline_us, jobs.estimate_us, jobs.done_us,
        jobs.start_us, jobs.expected_end_us, jobs.reference_mips, jobs.checkpointable, own,
        machines.mips, licenses, len(copies),
    )  # fmt: skip
    processors = jobs.processors[slots]
    bound = jobs.bound_machine[slots]
    usable = machines.licenses & _mask(copies > 0)
    longest = kernels.longest_remaining(
        processors, licenses, bound, work, own, remaining, machines.cpus, usable,
        machines.mips, machines.speed_order[::-1],
    )  # fmt: skip
    home = jobs.user[slots] % len(machines.cpus)
    none = np.empty((0, len(machines.cpus)))
    farm = Farm(
        slots, running, none, none, longest, np.empty(len(slots), np.int64), own,
        elapsed, age, slack, licenses, processors, jobs.input_mb[slots],
        np.where(own < 0, home, own), capacity, requests, copies,
    )  # fmt: skip
    return farm, Needs(bound, work, remaining, machines.cpus, usable, machines.mips)


def plan_of(farm: Farm, machine_of: Ints) -> Plan:
    """The changes that bring every job to its machine of `machine_of` (-1: to none).

    A job that no machine of the cluster could ever run is rejected.
    """
    running = farm.running
    moved = machine_of != farm.machine
    moved[running:] = True
    starting = np.flatnonzero(moved & (machine_of >= 0))
    slots = farm.slots
    return Plan(
        start=list(zip(slots[starting].tolist(), machine_of[starting].tolist(), strict=True)),
        preempt=slots[:running][moved[:running]].tolist(),
        reject=slots[running:][farm.eligible[running:] == 0].tolist(),
    )


def _parts(jobs: int, machines: int) -> list[slice]:
    rows = max(1, PART_PAIRS // max(machines, 1))
    return [slice(first, min(first + rows, jobs)) for first in range(0, jobs, rows)]


def _mask(bits: Bools) -> int:
    """The bits as one number, the first one lowest."""
    return sum(1 << index for index, bit in enumerate(bits.tolist()) if bit)
