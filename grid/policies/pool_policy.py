"""The policies that the compiled loop of a pool of processors can play, by number."""

from __future__ import annotations

from enum import IntEnum


class PoolPolicy(IntEnum):
    FCFS = 0
    EASY = 1
    SJF = 2
    EASY_SJBF = 3
    EDF = 4
    RESERVING = 5
