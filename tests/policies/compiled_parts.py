"""Parts of compiled functions that tests call by themselves, compiled as they are in those."""

from __future__ import annotations

from numba import njit

from grid.policies.schedule import search, timetable

earliest_gap = njit(timetable.earliest_gap)
figures = njit(search.figures)
improve = njit(search.improve)
insert_in_gap = njit(timetable.insert_in_gap)
lengths_us = njit(timetable.lengths_us)
place = njit(search.place)
put = njit(timetable.put)
retime = njit(timetable.retime)
start = njit(timetable.start)
take_out = njit(timetable.take_out)
weight = njit(search.weight)
