"""The job-machine matrix: every job of a cluster against every machine of it, at one instant.

Compiled code is imported when it is called, so that a scenario can be checked without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.policies.columns import packed_view
from grid.policies.interface import ClusterView, Plan

if TYPE_CHECKING:
    from grid.policies.convergent.heuristics import Heuristics


@dataclass(slots=True, eq=False)
class JobMachineMatrix:
    """The job-machine matrix of the papers, and the columns of its jobs and machines.

    Rows are jobs: the running ones in the order of `ClusterView.running`, then the waiting ones in
    order of arrival. Columns are machines. Heuristics add to `priority` and change nothing else.
    Times are in seconds.
    """

    slots: Ints
    """The cluster's slot of each job, shape (jobs,), as all columns up to `input_machine`."""
    running: int
    """How many of the first rows are running jobs."""
    priority: Floats
    """p of the papers, shape (jobs, machines); -inf where the job cannot run on the machine."""
    remaining_s: Floats
    """CS2 Eq. 1, shape (jobs, machines): time left if the job continues on that machine.

    A preempted job continues where it was and restarts elsewhere; a checkpointable one continues
    anywhere. So the work that is left depends on the machine.
    """
    longest_s: float
    """The largest remaining time of a job on a machine that can run it (Sup of CS2 Eq. 12)."""
    eligible: Ints
    """On how many machines each job can run, |M_Aff|."""
    impossible: Bools
    """Whether no machine could ever run the job."""
    machine: Ints
    """Where each job runs, or ran when it was preempted; -1: nowhere yet."""
    elapsed_s: Floats
    """For how long it has run there, as far as that is kept."""
    age_s: Floats
    """Time since submission."""
    slack_s: Floats
    """Time until its deadline, negative after it; inf without one."""
    licenses: Ints
    """Bit mask of the licenses that the job requests."""
    processors: Ints
    resources: Floats
    """How much the job holds of each resource, shape (resources, jobs)."""
    input_mb: Floats
    input_machine: Ints
    """The machine that has its input: the one it ran on, else its user's."""
    capacity: Ints
    """CPUs that are free or held by running jobs; none if it is down. Shape (machines,)."""
    requests: Ints
    """How many jobs request each license, shape (licenses,)."""
    copies: Ints
    """How many copies of each license there are, shape (licenses,)."""
    amounts: Floats
    """How much of each resource is free or held by running jobs, shape (resources, machines)."""
    shared: int
    """How many of the resources, the last ones, all machines share."""


class MatrixBuilder:
    """Makes the matrix of a cluster; keeps its two arrays, which are large, between plans."""

    def __init__(self) -> None:
        self._buffers = np.empty((2, 0))

    def __reduce__(self) -> tuple[type[MatrixBuilder], tuple[()]]:
        """A copy begins without the buffers, whose content no other plan uses."""
        return MatrixBuilder, ()

    def matrix(
        self, view: ClusterView, heuristics: Heuristics, *, reserved: bool = True
    ) -> JobMachineMatrix:
        """The matrix; its `priority` and `remaining_s` are overwritten by the next call.

        With `reserved`, no job can run on a machine where it would run into a reservation.
        """
        from grid.policies.convergent import kernels
        from grid.policies.convergent.heuristics import Cs2Weights

        slots, running = np.concatenate((view.running, view.queue)), len(view.running)
        described = kernels.describe(packed_view(view), slots)
        jobs = described.jobs
        size = len(slots) * len(view.free)
        if self._buffers.shape[1] < size:
            self._buffers = np.empty((2, 2 * size))
        priority, remaining_s = (
            buffer[:size].reshape(len(slots), len(view.free)) for buffer in self._buffers
        )
        own, input_mb = jobs.machine, view.jobs.input_mb[slots]
        input_machine = np.where(own < 0, view.jobs.user[slots] % len(view.free), own)
        eligible = np.empty(len(slots), np.int64)
        filled = priority, remaining_s, eligible, described, running
        if isinstance(heuristics.weights, Cs2Weights):
            kernels.fill_cs2(*filled, heuristics.weights)
        else:
            links = _links(heuristics.bandwidths_mbps, len(view.free))
            kernels.fill_cs2007(*filled, heuristics.weights, input_mb, input_machine, links)
        impossible = eligible == 0
        if reserved and len(view.machines.windows):
            kernels.exclude_reserved(packed_view(view), slots, priority, remaining_s, eligible)
        matrix = JobMachineMatrix(
            slots, running, priority, remaining_s, described.longest_s, eligible, impossible, own,
            jobs.elapsed_s, jobs.age_s, jobs.slack_s, jobs.licenses, jobs.processors,
            jobs.resources, input_mb, input_machine, described.capacity, described.requests,
            described.copies, described.amounts, view.machines.shared,
        )  # fmt: skip
        for heuristic, weight in heuristics.plugins:
            heuristic(matrix, weight)
        return matrix


@lru_cache
def _links(bandwidths_mbps: tuple[float, ...], machines: int) -> Floats:
    """Machine m has a link of bandwidths_mbps[m mod their number]."""
    return np.resize(np.array(bandwidths_mbps, np.float64), machines)


def plan_of(view: ClusterView, matrix: JobMachineMatrix, machine_of: Ints) -> Plan:
    """The changes that bring every job to its machine of `machine_of` (-1: to none).

    A job that no machine of the cluster could ever run is rejected.
    """
    if len(view.machines.windows):
        from grid.policies.convergent.kernels import keep_reserved

        packed = packed_view(view)
        keep_reserved(packed, matrix.slots, matrix.priority, matrix.remaining_s, machine_of)
    running = matrix.running
    moved = machine_of != matrix.machine
    moved[running:] = True
    starting = np.flatnonzero(moved & (machine_of >= 0))
    slots = matrix.slots
    return Plan(
        start=list(zip(slots[starting].tolist(), machine_of[starting].tolist(), strict=True)),
        preempt=slots[:running][moved[:running]].tolist(),
        reject=slots[running:][matrix.impossible[running:]].tolist(),
    )
