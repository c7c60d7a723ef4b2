"""One pool of processors under a queue policy that is compiled: whole windows in one call."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from grid.policies.flexible import EgFactors


class PoolPolicy(IntEnum):
    """The policies that the compiled loop can play, by number."""

    FCFS = 0
    EASY = 1
    SJF = 2
    EASY_SJBF = 3
    EDF = 4
    RESERVING = 5
    FLEXIBLE = 6
    FLEXIBLE_KEPT = 7


class CompiledForm(NamedTuple):
    """A policy as the compiled loop plays it.

    `slowdown_limit` is a setting of RESERVING, `factors` are those of the priority of FLEXIBLE and
    FLEXIBLE_KEPT, which remake the reservation at each instant or keep it.
    """

    policy: PoolPolicy
    slowdown_limit: float = 0.0
    factors: EgFactors = EgFactors()
