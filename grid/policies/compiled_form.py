"""How a policy declares that the compiled loop of a cluster can plan for it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class QueueKernel(IntEnum):
    """The plans that are made within the compiled loop, by number."""

    FCFS = 0
    EASY = 1
    SJF = 2
    EASY_SJBF = 3
    EDF = 4
    RESERVING = 5
    FLEXIBLE = 6
    FLEXIBLE_KEPT = 7


class CompiledForm(NamedTuple):
    """A policy as the compiled loop plans it; the attribute `compiled_form` of the policy.

    `slowdown_limit` is a setting of RESERVING. `factors` are those of `EgFactors`, in its order,
    for FLEXIBLE and FLEXIBLE_KEPT, which remake the reservation at each instant or keep it.
    """

    kernel: QueueKernel
    slowdown_limit: float = 0.0
    factors: tuple[float, ...] = ()
