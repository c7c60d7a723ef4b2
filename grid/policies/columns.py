"""A cluster as compiled functions see it: `ClusterView` and its columns as tuples of arrays.

What a call from Python costs grows with the number of arrays that it hands on. So such a call is
given a `PackedView`, of whole tables of columns; `grid.policies.fitting.unpacked` takes it apart.
"""

from __future__ import annotations

from typing import NamedTuple

from grid.model.arrays import Bools, Floats, Ints
from grid.model.time import Time
from grid.policies.interface import ClusterView, Tables


class Jobs(NamedTuple):
    """Columns of `JobColumns`, by slot, in the order of its tables."""

    serial: Ints
    submit_us: Ints
    processors: Ints
    estimate_us: Ints
    done_us: Ints
    deadline_us: Ints
    licenses: Ints
    bound_machine: Ints
    machine: Ints
    start_us: Ints
    expected_end_us: Ints
    reference_mips: Floats
    ram_mb: Floats
    checkpointable: Bools | Ints


class Machines(NamedTuple):
    """Columns of `MachineColumns`, in the order of its tables."""

    cpus: Ints
    licenses: Ints
    speed_order: Ints
    mips: Floats
    ram_mb: Floats


class CompiledView(NamedTuple):
    """What `ClusterView` has, by the same names."""

    now: Time
    free: Ints
    license_copies_free: Ints
    queue: Ints
    running: Ints
    ended: Ints
    jobs: Jobs
    machines: Machines
    free_ram_mb: Floats


PackedView = tuple[Time, Ints, Ints, Ints, Ints, Ints, Tables, Bools | Ints, Tables, Floats]
"""The same, in that order, for a call from Python; of jobs and machines the `tables`.

A plain tuple, which such a call takes apart in half the time of one with names.
"""


def packed_view(view: ClusterView) -> PackedView:
    jobs = view.jobs
    return (
        view.now,
        view.free,
        view.license_copies_free,
        view.queue,
        view.running,
        view.ended,
        jobs.tables,
        jobs.checkpointable,
        view.machines.tables,
        view.free_ram_mb,
    )
