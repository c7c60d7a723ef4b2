"""One pool of processors under a queue policy that is compiled: whole windows in one call."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class PoolPolicy(IntEnum):
    """The policies that the compiled loop can play, by number."""

    FCFS = 0
    EASY = 1
    SJF = 2
    EASY_SJBF = 3
    EDF = 4
    RESERVING = 5


class CompiledForm(NamedTuple):
    """A policy as the compiled loop plays it. `slowdown_limit` is a setting of RESERVING."""

    policy: PoolPolicy
    slowdown_limit: float = 0.0
