"""What a page can ask of a run; the server passes it on, and knows no more of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Answer = dict[str, Any]
"""For JSON. Times are seconds of virtual time, lists go by the positions of VOs or clusters."""


class NotThere(Exception):
    """A page asked for a VO, a cluster or a job that the run does not have."""


class Source(Protocol):
    """A run that can be looked at. Questions come from several threads; only wishes change it."""

    def about(self) -> Answer:
        """What does not change: names of VOs and clusters, from when to when the run goes."""
        ...

    def frame(self, time_s: float) -> Answer:
        """How the grid was at that time: jobs by state of each VO, load of each cluster."""
        ...

    def flows(self, time_s: float) -> Answer:
        """Jobs that had been handed from one VO to another by then."""
        ...

    def course(self, vo: int | None) -> Answer:
        """Figures over time, of one VO or of the grid."""
        ...

    def gantt(self, cluster: int, since_s: float, until_s: float) -> Answer:
        """What ran on a cluster in that time: a chart, and its rows."""
        ...

    def job(self, vo: int, number: int, time_s: float) -> Answer:
        """What happened to a job up to that time, and what it does or waits for then, in words."""
        ...

    def wish(self, wanted: Mapping[str, Any]) -> Answer:
        """Have something done to a live run (`grid.model.interventions`).

        Raises NotThere and ValueError.
        """
        ...

    def events(self, vo: int | None, cluster: int | None, until_s: float) -> Answer:
        """The last things that happened to the jobs of a VO or a cluster, in words."""
        ...
