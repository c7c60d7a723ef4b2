"""What compiled functions need of a view, as tuples of its columns."""

from __future__ import annotations

from typing import NamedTuple

from grid.model.arrays import Bools, Floats, Ints
from grid.policies.interface import ClusterView


class Jobs(NamedTuple):
    """Columns of `JobColumns`, by slot."""

    processors: Ints
    estimate: Ints
    done: Ints
    reference_mips: Floats
    licenses: Ints
    bound: Ints
    machine: Ints
    checkpointable: Bools
    expected_end: Ints


class Machines(NamedTuple):
    """Columns of `MachineColumns`."""

    cpus: Ints
    mips: Floats
    licenses: Ints
    speed_order: Ints


def jobs_of(view: ClusterView) -> Jobs:
    jobs = view.jobs
    return Jobs(
        jobs.processors,
        jobs.estimate_us,
        jobs.done_us,
        jobs.reference_mips,
        jobs.licenses,
        jobs.bound_machine,
        jobs.machine,
        jobs.checkpointable,
        jobs.expected_end_us,
    )


def machines_of(view: ClusterView) -> Machines:
    machines = view.machines
    return Machines(machines.cpus, machines.mips, machines.licenses, machines.speed_order)
