"""Policies that compiled code plans: FCFS, SJF, EASY, EDF, conservative and selective backfilling.

Compiled code is imported when the first plan is needed, so that a scenario can be checked without
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Ints
from grid.model.time import Time
from grid.policies.columns import CompiledForm, memory_shape, packed_view, plan_of, wider
from grid.policies.interface import ClusterView, Plan

KERNELS = "grid.policies.in_order_kernels"
EASY = "grid.policies.easy_kernels:easy"


class KernelPolicy:
    """A policy that is a compiled kernel: the loop of a cluster calls it by its form.

    `plan` is for other callers, such as a policy that wraps this one.
    """

    def __init__(self, form: CompiledForm, ignores: Sequence[str] = ()) -> None:
        self.compiled_form: CompiledForm | None = form
        self._form = form
        self.ignores = tuple(ignores)
        self._settings = np.array(form.settings, np.float64)
        self._memory = np.zeros((0, 0), np.int64)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        rows, memory = self.room(view)
        count = planner(self._form.kernel)(packed_view(view), self._settings, memory, rows)
        return plan_of(rows[:count])

    def room(self, view: ClusterView) -> tuple[Ints, Ints]:
        """Rows for a plan, and the memory."""
        machines, slots = len(view.free), len(view.jobs.serial)
        licenses = len(view.license_copies_free)
        shape = memory_shape(self._form, view.machines, licenses, slots)
        if self._memory.shape != shape:
            self._memory = wider(self._memory, shape)
        return np.empty((2 * slots + machines + 1, 4), np.int64), self._memory


def form_of(policy: object) -> CompiledForm | None:
    """The form of a policy that compiled code plans; None if Python does, as in a subclass."""
    if isinstance(policy, KernelPolicy) and type(policy).plan is KernelPolicy.plan:
        return policy.compiled_form
    return None


def kernel_named(name: str) -> Any:
    """The function of a `CompiledForm.kernel`."""
    module, function = name.split(":")
    return getattr(import_module(module), function)


@cache
def planner(name: str) -> Any:
    """The kernel of that name for a call from Python with a `PackedView`."""
    from grid.policies.fitting import planner_of

    return planner_of(kernel_named(name))


def fcfs() -> KernelPolicy:
    """First come, first served.

    A job that does not fit delays all jobs behind it. If it is bound to a machine, it delays only
    jobs that are bound to the same machine.
    """
    return KernelPolicy(CompiledForm(f"{KERNELS}:fcfs", pool="in_turn"))


def sjf() -> KernelPolicy:
    """Shortest job first: FCFS in the order of remaining estimated work."""
    return KernelPolicy(CompiledForm(f"{KERNELS}:sjf", pool=f"in_turn by {KERNELS}:work"))


def easy() -> KernelPolicy:
    """EASY backfilling: a reservation for the head of the queue."""
    return KernelPolicy(CompiledForm(EASY, (0.0,), "easy", moldable=True))


def easy_sjbf() -> KernelPolicy:
    """EASY, but backfilling the shortest jobs first.

    SJBF: Tsafrir, Etsion and Feitelson, IEEE TPDS 18(6), 2007.
    """
    return KernelPolicy(CompiledForm(EASY, (1.0,), "easy_sjbf", moldable=True))


def edf(
    *,
    preemptive: Annotated[
        Literal[True, False, "on_arrival"],
        Field(
            description=(
                "whether more urgent jobs preempt jobs with later deadlines; on_arrival: only jobs "
                "that have just arrived do"
            )
        ),
    ] = False,
    without_deadline: Annotated[
        Literal["last", "first"],
        Field(description="position of jobs without a deadline in the order"),
    ] = "last",
    order: Annotated[
        Literal["earliest_first", "latest_first"], Field(description="sort order of deadlines")
    ] = "earliest_first",
) -> KernelPolicy:
    """Earliest deadline first, optionally preemptive.

    C07, section 6: jobs are sorted by deadline, and each is assigned to the best free machine. If
    none is free, the job waits and delays no other job. C07's "decreasing order w.r.t. their
    deadline" is read as the most urgent job first, as in its section 2; `latest_first` takes it
    literally. Equal deadlines are in order of arrival.
    """
    mode = 2.0 if preemptive == "on_arrival" else float(preemptive)
    settings = (mode, float(without_deadline == "first"), float(order == "latest_first"))
    pool = "" if any(settings) else "edf"
    return KernelPolicy(CompiledForm(f"{KERNELS}:edf", settings, pool))


def conservative() -> KernelPolicy:
    """Conservative backfilling: a reservation for every job."""
    return selective(slowdown_limit=0.0)


def selective(
    *,
    slowdown_limit: Annotated[
        float, Field(ge=0, description="expected slowdown above which a job gets a reservation")
    ] = 2.0,
) -> KernelPolicy:
    """Selective backfilling: a reservation for jobs that have waited long.

    Srinivasan, Kettimuthu, Subramani and Sadayappan (JSSPP 2002), as described in C07, section 2.
    """
    kernel = "grid.policies.reserving_kernels:reserving"
    for_all = slowdown_limit == 0
    settings = (slowdown_limit,)
    form = CompiledForm(kernel, settings, "reserving", has_profile=True, moldable=for_all)
    return KernelPolicy(form)
