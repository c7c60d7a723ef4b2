"""A cluster as compiled functions see it: `ClusterView` and its columns as tuples of arrays."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

from grid.model.arrays import Bools, Floats, Ints
from grid.model.time import Time
from grid.policies.interface import ClusterView


class Jobs(NamedTuple):
    """Columns of `JobColumns`, by slot."""

    serial: Ints
    submit_us: Ints
    processors: Ints
    estimate_us: Ints
    done_us: Ints
    reference_mips: Floats
    deadline_us: Ints
    licenses: Ints
    ram_mb: Floats
    bound_machine: Ints
    machine: Ints
    start_us: Ints
    expected_end_us: Ints
    checkpointable: Bools


class Machines(NamedTuple):
    """Columns of `MachineColumns`."""

    cpus: Ints
    mips: Floats
    licenses: Ints
    speed_order: Ints
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


_job_columns = attrgetter(*Jobs._fields)
_machine_columns = attrgetter(*Machines._fields)


def compiled_view(view: ClusterView) -> CompiledView:
    return CompiledView(
        view.now,
        view.free,
        view.license_copies_free,
        view.queue,
        view.running,
        view.ended,
        Jobs._make(_job_columns(view.jobs)),
        Machines._make(_machine_columns(view.machines)),
        view.free_ram_mb,
    )
