"""A rate of arrivals that changes with the time of day, and is the same every day."""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats

DAY_S = 86_400.0


class DayCycle:
    """A day of equal parts, each with its rate relative to the mean over the day.

    Where the rate is constant, a process that has reached x seconds has reached x. Here it is then
    as late as the rates, summed up from `start_s` of the first day on, take to reach x.
    """

    def __init__(self, rates: Floats, start_s: float) -> None:
        parts = len(rates)
        self._edges_s = np.linspace(0.0, DAY_S, parts + 1)
        self._reached = np.append(0.0, np.cumsum(rates / rates.mean()) * (DAY_S / parts))
        self._reached[-1] = DAY_S
        self._start_s = start_s % DAY_S

    def times_s(self, reached: Floats) -> Floats:
        """The times from the start on at which the process has reached these."""
        first = np.interp(self._start_s, self._edges_s, self._reached)
        days, rest = np.divmod(reached + first, DAY_S)
        late_s: Floats = days * DAY_S + np.interp(rest, self._reached, self._edges_s)
        return late_s - self._start_s
