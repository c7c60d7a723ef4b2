"""Parts of compiled functions that tests call by themselves, compiled as they are in those."""

from __future__ import annotations

from numba import njit

from grid.policies.schedule import eg_edf, moves, tabu, timing

earliest_gap = njit(timing.earliest_gap)
figures = njit(eg_edf.figures)
improve = njit(tabu.improve)
insert_in_gap = njit(moves.insert_in_gap)
lengths_us = njit(moves.lengths_us)
place = njit(eg_edf.place)
put = njit(moves.put)
retime = njit(timing.retime)
start = njit(moves.start)
take_out = njit(moves.take_out)
weight = njit(eg_edf.weight)
