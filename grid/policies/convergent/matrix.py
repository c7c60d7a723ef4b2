"""The job-machine matrix: every job of a cluster against every machine of it, at one instant.

Here and in the heuristics, compiled code is imported when it is called, so that a scenario can be
checked without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.policies.columns import packed_view
from grid.policies.interface import ClusterView, Plan

if TYPE_CHECKING:
    from grid.policies.convergent.matrix_kernels import MatrixJobs, MatrixMachines

PART_PAIRS = 40_000
"""Pairs of a job and a machine that heuristics are given at a time: 640 kB in two matrices."""


@dataclass(slots=True, eq=False)
class JobMachineMatrix:
    """The job-machine matrix of the papers, and what is known of its jobs and machines.

    Rows are jobs: the running ones in the order of `ClusterView.running`, then the waiting ones in
    order of arrival. Columns are machines. Heuristics add to `priority` and change nothing else. A
    heuristic may be given some of the rows only; the last five and `longest_s` are of all jobs then
    too. Times are in seconds.
    """

    slots: Ints
    """The cluster's slot of each job, shape (jobs,), as all columns up to `input_machine`."""
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
    all_licenses: Ints
    """`licenses` of all jobs, shape (all jobs,)."""
    capacity: Ints
    """CPUs that are free or held by running jobs; none if it is down. Shape (machines,)."""
    requests: Ints
    """How many jobs ask for each license, shape (licenses,)."""
    copies: Ints
    """How many copies of each license there are, shape (licenses,)."""

    def part(self, rows: slice) -> JobMachineMatrix:
        """Some of the rows; their matrices and columns are this matrix's own."""
        first, last, _ = rows.indices(len(self.slots))
        return JobMachineMatrix(
            self.slots[rows], min(max(self.running - first, 0), last - first),
            self.priority[rows], self.remaining_s[rows], self.longest_s, self.eligible[rows],
            self.machine[rows], self.elapsed_s[rows], self.age_s[rows], self.slack_s[rows],
            self.licenses[rows], self.processors[rows], self.input_mb[rows],
            self.input_machine[rows], self.all_licenses, self.capacity, self.requests, self.copies,
        )  # fmt: skip


Heuristic = Callable[[JobMachineMatrix, float], None]
"""Adds its share, times a weight, to `priority`. See `cs2_heuristics` for examples."""
WeighedHeuristics = Sequence[tuple[Heuristic, float]]


class MatrixBuilder:
    """Makes the matrix of a cluster; keeps its two arrays, which are large, between plans.

    Heuristics are given some of the rows at a time, so that these stay in the processor's cache.
    """

    def __init__(self) -> None:
        self._buffers = np.empty((2, 0))

    def __reduce__(self) -> tuple[type[MatrixBuilder], tuple[()]]:
        """A copy begins without the buffers: what stands in them is of no use to another plan."""
        return MatrixBuilder, ()

    def whole(self, view: ClusterView, heuristics: WeighedHeuristics = ()) -> JobMachineMatrix:
        """The matrix, with what `heuristics` add, each with its weight.

        Its `priority` and `remaining_s` are overwritten by the next call.
        """
        matrix, jobs, machines = _described(view)
        matrix.priority, matrix.remaining_s = self._arrays(len(matrix.slots), len(machines.cpus))
        for rows in _parts(0, len(matrix.slots), len(machines.cpus)):
            _fill(matrix.part(rows), jobs, rows.start, machines, heuristics)
        return matrix

    def waiting_parts(
        self, view: ClusterView, heuristics: WeighedHeuristics
    ) -> Iterator[JobMachineMatrix]:
        """The rows of waiting jobs, some at a time, each overwritten by the next."""
        matrix, jobs, machines = _described(view)
        for rows in _parts(matrix.running, len(matrix.slots), len(machines.cpus)):
            part = matrix.part(rows)
            part.priority, part.remaining_s = self._arrays(len(part.slots), len(machines.cpus))
            _fill(part, jobs, rows.start, machines, heuristics)
            yield part

    def _arrays(self, jobs: int, machines: int) -> tuple[Floats, Floats]:
        size = jobs * machines
        if self._buffers.shape[1] < size:
            self._buffers = np.empty((2, 2 * size))
        first, second = self._buffers
        return first[:size].reshape(jobs, machines), second[:size].reshape(jobs, machines)


def plan_of(matrix: JobMachineMatrix, machine_of: Ints) -> Plan:
    """The changes that bring every job to its machine of `machine_of` (-1: to none).

    A job that no machine of the cluster could ever run is rejected.
    """
    running = matrix.running
    moved = machine_of != matrix.machine
    moved[running:] = True
    starting = np.flatnonzero(moved & (machine_of >= 0))
    slots = matrix.slots
    return Plan(
        start=list(zip(slots[starting].tolist(), machine_of[starting].tolist(), strict=True)),
        preempt=slots[:running][moved[:running]].tolist(),
        reject=slots[running:][matrix.eligible[running:] == 0].tolist(),
    )


def _described(view: ClusterView) -> tuple[JobMachineMatrix, MatrixJobs, MatrixMachines]:
    """The matrix without its two arrays, and what these are filled from."""
    from grid.policies.convergent import matrix_kernels as kernels

    seen = packed_view(view)
    slots = np.concatenate((view.running, view.queue))
    jobs, requests = kernels.describe_jobs(seen, slots)
    capacity, copies = kernels.capacity_and_copies(seen)
    cpus, usable = view.machines.cpus, view.machines.licenses & _mask(copies > 0)
    machines = kernels.MatrixMachines(cpus, usable, view.machines.mips, view.machines.speed_order)
    longest_s = kernels.longest_remaining(jobs, machines)
    own = jobs.machine
    home = view.jobs.user[slots] % len(cpus)
    none = np.empty((0, len(cpus)))
    matrix = JobMachineMatrix(
        slots, len(view.running), none, none, longest_s, np.empty(len(slots), np.int64), own,
        jobs.elapsed_s, jobs.age_s, jobs.slack_s, jobs.licenses, jobs.processors,
        view.jobs.input_mb[slots], np.where(own < 0, home, own), jobs.licenses, capacity, requests,
        copies,
    )  # fmt: skip
    return matrix, jobs, machines


def _fill(
    part: JobMachineMatrix,
    jobs: MatrixJobs,
    first: int,
    machines: MatrixMachines,
    heuristics: WeighedHeuristics,
) -> None:
    from grid.policies.convergent.matrix_kernels import fill_matrix

    fill_matrix(part.priority, part.remaining_s, part.eligible, jobs, first, machines)
    priority = part.priority
    for heuristic, weight in heuristics:
        heuristic(part, weight)
        if part.priority is not priority:
            # It says `matrix.priority = matrix.priority + ...`: the whole matrix is elsewhere.
            priority[:] = part.priority
            part.priority = priority


def _parts(first: int, jobs: int, machines: int) -> list[slice]:
    rows = max(1, PART_PAIRS // max(machines, 1))
    return [slice(row, min(row + rows, jobs)) for row in range(first, jobs, rows)]


def _mask(bits: Bools) -> int:
    """The bits as one number, the first one lowest."""
    return sum(1 << index for index, bit in enumerate(bits.tolist()) if bit)
