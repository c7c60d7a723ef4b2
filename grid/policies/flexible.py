"""Flexible backfilling: EASY in the order of a priority that is recomputed at every event.

The priority is that of EG, section 3.1, or from the heuristics of Convergent Scheduling, as in the
comparisons of C07 and CS2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, Strict, model_validator

from grid.model.arrays import Floats
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import MOST, PluginModel, Weight
from grid.model.time import Time
from grid.policies.columns import CompiledForm, packed_view, plan_of
from grid.policies.convergent.heuristics import HeuristicPriority, cs2_heuristics, cs2007_heuristics
from grid.policies.interface import ClusterView, Plan
from grid.policies.queue import KernelPolicy

Priority = Callable[[ClusterView, Time], Floats]
"""The priority of each job of `ClusterView.queue`; the highest is first, equals by arrival."""
Factor = Annotated[float, Strict(), Field(ge=0, le=MOST)]


EG_FACTORS = ("age_factor", "k", "maximum", "minimum", "boost_value")
"""The factors of EG, 3.1. Their defaults are the values that were tuned by hand there."""


class FlexibleBackfilling:
    """Flexible backfilling by a `priority` that Python computes."""

    def __init__(self, priority: Priority, *, keep_reservation: bool) -> None:
        self.keeps_reservation = keep_reservation
        self._priority = priority
        self._memory = np.zeros((1, 2), np.int64)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        waits = view.jobs.processors[view.queue]
        if not self.keeps_reservation and not (waits <= view.free.max()).any():
            return Plan()
        if len(waits) == 0:
            return Plan()
        from grid.policies.easy_kernels import plan_by_priority

        keeps, values = self.keeps_reservation, self._priority(view, now)
        rows = np.empty((len(waits) + len(view.free), 4), np.int64)
        count = plan_by_priority(packed_view(view), values, keeps, self._memory, rows)
        return plan_of(rows[:count])


class FlexibleSettings(PluginModel):
    """The settings of `flexible`; the factors are those of EG 3.1."""

    reservation: Literal["remade", "kept"] = "remade"
    """whether the reservation is remade at each event or kept until its job starts"""
    priority: Literal["eg", "cs2007", "cs2"] = "eg"
    """priority of EG 3.1, or the sum of the heuristics of cs_i_p or cs2"""
    age_factor: Factor = 0.01
    """with eg: weight of a job's age in seconds"""
    k: Annotated[float, Strict(), Field(ge=1 / MOST, le=MOST)] = 2.0
    """with eg: number of run times before its deadline at which a job becomes urgent"""
    maximum: Factor = 20.0
    """with eg: maximum weight, for the most urgent jobs"""
    minimum: Factor = 0.1
    """with eg: weight of a job that is not urgent"""
    boost_value: Factor = 2.0
    """with eg: weight of the shortest job"""
    weights: dict[str, Weight] = Field(default_factory=dict)
    """with cs2007 and cs2: weights of heuristics, by name"""
    row: Literal["mean", "largest"] = "mean"
    """with cs2007 and cs2: how the priorities of a job on all machines are combined"""
    f1: Literal["words", "words_max", "formula"] = "words"
    """with cs2007: reading of f1, as for cs_i_p"""

    @model_validator(mode="after")
    def _all_are_used(self) -> FlexibleSettings:
        for name in (one for one in type(self).model_fields if one in self.model_fields_set):
            if name in EG_FACTORS and self.priority != "eg":
                raise ValueError(f"`{name}` only with the priority eg")
            if name in ("weights", "row") and self.priority == "eg":
                raise ValueError(f"`{name}` only with the priorities cs2007 and cs2")
            if name == "f1" and self.priority != "cs2007":
                raise ValueError("`f1` only with the priority cs2007")
        return self


def flexible(settings: FlexibleSettings, plugins: Plugins) -> KernelPolicy | FlexibleBackfilling:
    """EASY in the order of a priority that is recomputed at every event.

    The reservation is also remade, so that another job may get it (C07's BF-rm), or it is kept
    until its job starts (BF-unrm). A reservation that is kept stays on its machine, and moves to an
    earlier time if jobs end early.
    """
    keeps = settings.reservation == "kept"
    if settings.priority == "eg":
        factors = [float(getattr(settings, name)) for name in EG_FACTORS]
        kernel = "grid.policies.easy_kernels:flexible"
        return KernelPolicy(CompiledForm(kernel, (float(keeps), *factors), "flexible"))
    if settings.priority == "cs2":
        heuristics = cs2_heuristics(settings.weights, plugins)
    else:
        heuristics = cs2007_heuristics(settings.weights, plugins, f1=settings.f1)
    return FlexibleBackfilling(HeuristicPriority(heuristics, settings.row), keep_reservation=keeps)
