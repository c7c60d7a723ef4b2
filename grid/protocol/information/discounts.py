"""How a reader discounts old status: what it takes others' assigned CPUs for, given their age."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats
from grid.model.resources import ResourceTable
from grid.model.time import SECOND_US


def as_told(table: ResourceTable, _: int) -> Floats:
    """Status counts as it was told, however old it is."""
    return table.assigned_cpus


def drained(table: ResourceTable, vo: int) -> Floats:
    """What must have been worked off since is taken off: assigned CPUs shrink with the work left.

    All CPUs that are assigned work, at most those that there are, and no job comes. A resource
    whose jobs should all have ended is idle. Where work is not told it is as told.
    """
    assigned, work_s = table.assigned_cpus, table.work_s
    since_s = (table.now - table.told_us) / SECOND_US
    known = (table.columns.vo != vo) & np.isfinite(assigned) & np.isfinite(work_s)
    left: Floats = assigned.copy()
    at_work = np.minimum(assigned[known], table.columns.cpus[known])
    # Of a job that runs over its estimate no work is left, and yet it holds a CPU.
    some = work_s[known] > 0.0
    done = np.divide(at_work * since_s[known], work_s[known], out=np.ones(len(some)), where=some)
    left[known] *= np.maximum(1.0 - done, 0.0)
    return left


def by_age(
    table: ResourceTable,
    vo: int,
    *,
    horizon_s: Annotated[
        float, Field(gt=0, le=1e9, description="age at which a status counts 1/e")
    ] = 60.0,
) -> Floats:
    """The older a status is, the more it is taken for the mean: m + (told - m) exp(-age / horizon).

    m is the resource's CPUs times the share of all CPUs of other VOs that are assigned, as far as a
    status of them is known. In the sense of M. Dahlin, Interpreting stale load information, 1999:
    what is old should weigh little, and what says nothing should say that all are alike. Resources
    of different sizes that come to the same load may differ in its last bit, and so be told apart.
    Where others are busy no old status is taken for quite idle: a job that asks for all CPUs of a
    resource does not find it free.
    """
    columns, assigned = table.columns, table.assigned_cpus
    known = (columns.vo != vo) & np.isfinite(assigned)
    if not known.any():
        return assigned
    cpus = columns.cpus[known]
    mean = assigned[known].sum() / cpus.sum() * cpus
    trust = np.exp(-np.maximum(table.age_us[known], 0.0) / (horizon_s * SECOND_US))
    taken: Floats = assigned.copy()
    taken[known] = mean + (assigned[known] - mean) * trust
    return taken


drained.needs_work = True  # type: ignore[attr-defined]
