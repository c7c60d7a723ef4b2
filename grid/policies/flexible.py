"""Flexible backfilling: EASY with the queue in the order of a priority, made anew at every event.

What the priority is can be chosen: that of EG, section 3.1, or the heuristics of Convergent
Scheduling, as C07 and CS2 have it for their comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, Strict, model_validator

from grid.model.arrays import Floats, Ints
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import MOST, PluginModel, Weight
from grid.model.time import Time
from grid.policies.columns import packed_view
from grid.policies.compiled_form import CompiledForm, QueueKernel
from grid.policies.convergent.heuristics import (
    HeuristicPriority,
    cs2_heuristics,
    cs2007_heuristics,
)
from grid.policies.interface import ClusterView, Plan
from grid.policies.queue import backfill_plan, backfilled

Priority = Callable[[ClusterView, Time], Floats]
"""The priority of each job of `ClusterView.queue`; the highest is first, equals by arrival."""
Factor = Annotated[float, Strict(), Field(ge=0, le=MOST)]


@dataclass(frozen=True, slots=True)
class EgFactors:
    """The factors of EG, 3.1, with the values that were tuned by hand there."""

    age_factor: float = 0.01
    k: float = 2.0
    maximum: float = 20.0
    minimum: float = 0.1
    boost_value: float = 2.0


def eg_priority(view: ClusterView, _now: Time, factors: tuple[float, ...]) -> Floats:
    """EG 3.1: the sum of Aging, Deadline and Wait Minimization, times in seconds.

    The machine m of the Deadline heuristic is the fastest of the cluster. A job without a deadline
    is one whose deadline is far away. `factors` are those of `EgFactors`.
    """
    from grid.policies.eg_priority import eg_priorities

    return eg_priorities(packed_view(view), *factors)


class FlexibleBackfilling:
    """The first job that must wait has a reservation, and those behind it may not delay it.

    The reservation is remade at each event (C07's BF-rm), so that it may go to another job; or it
    is kept until the job starts (BF-unrm). A kept one stays on its machine, and moves forward
    there if jobs end before their time.
    """

    def __init__(self, priority: Priority | EgFactors, *, keep_reservation: bool) -> None:
        self.compiled_form: CompiledForm | None = None
        self.keeps_reservation = keep_reservation
        self._priority = (
            priority if callable(priority) else partial(eg_priority, factors=astuple(priority))
        )
        self._kept_serial, self._kept_machine = -1, -1

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.queue) == 0:
            return Plan()
        if not self.keeps_reservation:
            return self._plan_anew(view, now)
        order = view.queue[np.argsort(-self._priority(view, now), kind="stable")]
        machine = -1
        place = np.flatnonzero(view.jobs.serial[order] == self._kept_serial)
        if len(place):
            machine, first = self._kept_machine, int(place[0])
            order[: first + 1] = np.roll(order[: first + 1], 1)
        plan = backfilled(view, order, kept_machine=machine)
        self._remember_first(plan, view, order)
        return plan

    def _plan_anew(self, view: ClusterView, now: Time) -> Plan:
        """The plan with no reservation kept."""
        from grid.policies.fitting import any_fits
        from grid.policies.priority_kernels import backfill_by_priority

        seen = packed_view(view)
        if not any_fits(seen):
            return Plan()
        return backfill_plan(*backfill_by_priority(seen, self._priority(view, now)))

    def _remember_first(self, plan: Plan, view: ClusterView, order: Ints) -> None:
        """Keep the reservation of the job that is first in order, of those that have one."""
        machine_of = {slot: machine for slot, machine, _ in plan.reserve}
        slot = next(iter(machine_of), None)
        if len(machine_of) > 1:
            slot = next(slot for slot in order.tolist() if slot in machine_of)
        self._kept_serial = -1 if slot is None else int(view.jobs.serial[slot])
        self._kept_machine = -1 if slot is None else machine_of[slot]


class FlexibleSettings(PluginModel):
    """The settings of `flexible`; the factors are those of EG 3.1."""

    reservation: Literal["remade", "kept"] = Field(
        default="remade", description="remade at each event, or kept until its job starts"
    )
    priority: Literal["eg", "cs2007", "cs2"] = Field(
        default="eg", description="that of EG 3.1, or from the heuristics of cs_i_p or cs2"
    )
    age_factor: Factor = Field(default=0.01, description="with eg: of a job's age in seconds")
    k: Annotated[float, Strict(), Field(ge=1 / MOST, le=MOST)] = Field(
        default=2.0, description="with eg: how many run times before its deadline a job presses"
    )
    maximum: Factor = Field(default=20.0, description="with eg: of a job that presses most")
    minimum: Factor = Field(default=0.1, description="with eg: of a job that does not press")
    boost_value: Factor = Field(default=2.0, description="with eg: of the shortest job")
    weights: dict[str, Weight] = Field(
        default_factory=dict, description="with cs2007 and cs2: of heuristics, by name"
    )
    row: Literal["mean", "largest"] = Field(
        default="mean", description="with cs2007 and cs2: how a job's row becomes one number"
    )
    f1: Literal["words", "words_max", "formula"] = Field(
        default="words",
        description="with cs2007: how f1 is read, as for cs_i_p",
    )

    @model_validator(mode="after")
    def _all_are_used(self) -> FlexibleSettings:
        of_eg = tuple(EgFactors.__dataclass_fields__)
        for name in (one for one in type(self).model_fields if one in self.model_fields_set):
            if name in of_eg and self.priority != "eg":
                raise ValueError(f"`{name}` only with the priority eg")
            if name in ("weights", "row") and self.priority == "eg":
                raise ValueError(f"`{name}` only with the priorities cs2007 and cs2")
            if name == "f1" and self.priority != "cs2007":
                raise ValueError("`f1` only with the priority cs2007")
        return self


def flexible(settings: FlexibleSettings, parts: Plugins) -> FlexibleBackfilling:
    """EASY in the order of a priority, made anew at every event."""
    priority: Priority | EgFactors
    if settings.priority == "eg":
        names = EgFactors.__dataclass_fields__
        priority = EgFactors(**{name: getattr(settings, name) for name in names})
    else:
        if settings.priority == "cs2":
            heuristics = cs2_heuristics(settings.weights, parts)
        else:
            heuristics = cs2007_heuristics(settings.weights, parts, f1=settings.f1)
        priority = HeuristicPriority(heuristics, settings.row)
    keeps = settings.reservation == "kept"
    policy = FlexibleBackfilling(priority, keep_reservation=keeps)
    if isinstance(priority, EgFactors):
        kernel = QueueKernel.FLEXIBLE_KEPT if keeps else QueueKernel.FLEXIBLE
        policy.compiled_form = CompiledForm(kernel, factors=astuple(priority))
    return policy
