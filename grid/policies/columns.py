"""A cluster in the form for compiled functions, and how a policy declares the one that plans for
it.

The cost of a call from Python grows with the number of its arrays. Such a call therefore takes a
`PackedView`, of whole tables of columns, which `grid.policies.fitting.unpacked` takes apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.time import Time
from grid.policies.interface import ClusterView, Jobs, MachineColumns, Machines, Plan, Tables

KILL, PREEMPT, REJECT, START, RESERVE, WAKE = range(6)
"""Kinds of rows of a plan: kind, slot, machine, time. Rows of a kind precede those of the next."""


class CompiledView(NamedTuple):
    """The fields of `ClusterView`, by the same names."""

    now: Time
    free: Ints
    license_copies_free: Ints
    queue: Ints
    running: Ints
    ended: Ints
    jobs: Jobs
    machines: Machines
    free_resources: Floats


PackedView = tuple[
    Time, Ints, Ints, Ints, Ints, Ints, Tables, Bools | Ints, Tables, int, Ints, Floats
]
"""The same in that order, with the `tables` of jobs and machines. A plain tuple: a call from Python
unpacks it in half the time of a named one."""


def packed_view(view: ClusterView) -> PackedView:
    jobs = view.jobs
    return (
        view.now, view.free, view.license_copies_free, view.queue, view.running, view.ended,
        jobs.tables, jobs.checkpointable, view.machines.tables, view.machines.shared,
        view.machines.windows, view.free_resources,
    )  # fmt: skip


class CompiledForm(NamedTuple):
    """The attribute `compiled_form` of a policy that the compiled loop of a cluster can call.

    `kernel` is "module:function". It is called as function(view, settings, memory, rows), with a
    `CompiledView` and arrays of floats, shape (settings,), and of ints, writes the rows of its plan
    and returns their number; shape (rows, 4), with room for all jobs and machines. `memory` is kept
    from plan to plan. It begins with zeros and has shape (1, slots) or, for a policy that
    `has_profile`, that of `profile_rows` and room for two steps a slot. `pool` names its kernel in
    `grid.cluster.pool.loop`, if there is one; with ` by module:function`, the queue is in the order
    of that key. `moldable`: whether it chooses sizes of moldable jobs.
    """

    kernel: str
    settings: tuple[float, ...] = ()
    pool: str = ""
    has_profile: bool = False
    moldable: bool = False


def memory_shape(
    form: CompiledForm, columns: MachineColumns, licenses: int, slots: int
) -> tuple[int, int]:
    """The shape of the `memory` of a policy on a cluster with `slots` slots."""
    if not form.has_profile:
        return 1, slots
    rows = profile_rows(len(columns.cpus), licenses, len(columns.resources))
    # A job or a reservation adds at most two steps to a row of the profile; a change needs room for
    # two more.
    return 2 * rows + 8, max(2 * (slots + len(columns.windows)) + 4, rows)


def profile_rows(machines: int, licenses: int, resources: int) -> int:
    """The rows of a profile; see `grid.policies.profile`."""
    return machines + licenses + machines * licenses + machines * resources


def wider(array: Ints, shape: tuple[int, int]) -> Ints:
    """The array with more rows and columns, of zeros."""
    larger = np.zeros(shape, np.int64)
    larger[: array.shape[0], : array.shape[1]] = array
    return larger


def plan_of(rows: Ints) -> Plan:
    """The plan of a kernel's rows."""
    plan = Plan()
    for kind, slot, machine, time in rows.tolist():
        if kind == START:
            plan.start.append((slot, machine))
        elif kind == PREEMPT:
            plan.preempt.append(slot)
        elif kind == RESERVE:
            plan.reserve.append((slot, machine, time))  # type: ignore[union-attr]
        else:
            plan.wake_us = time
    return plan
