"""Parts of compiled functions that tests call by themselves, compiled as they are in those."""

from __future__ import annotations

from numba import njit

from grid.policies.schedule import search, timetable

figures = njit(search.figures)
improve = njit(search.improve)
insert = njit(timetable.insert)
lengths_us = njit(timetable.lengths_us)
place = njit(search.place)
start = njit(timetable.start)
weight = njit(search.weight)
