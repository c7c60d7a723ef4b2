"""Who ran and who waited in a cluster, at any moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from grid.model.cluster_facts import ClusterFacts
from grid.model.event import Event
from grid.model.job import JobKey
from grid.model.time import NEVER, Time

BY_ITSELF = ("submit", "run_job", "move_gang")
"""Events with which a job comes to a cluster."""


@dataclass(slots=True)
class Stay:
    """A job in a cluster: from `came_us` on, started then, and ended or moved to another cluster
    at `end_us` (NEVER: not yet).

    It may be bound to a machine (`bound`, -1: to none), and ran on `machine`.
    """

    key: JobKey
    came_us: Time
    processors: int
    ram_mb: float
    licenses: int
    bound: int = -1
    machine: int = -1
    start_us: Time = NEVER
    end_us: Time = NEVER


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster at one moment: who runs there, and who waits, in the order in which they came."""

    facts: ClusterFacts
    time_us: Time
    running: tuple[Stay, ...]
    waiting: tuple[Stay, ...]

    def is_down(self, machine: int) -> bool:
        """Whether that machine is down; in a cluster for gangs, all CPUs count as one machine."""
        return not self.facts.gangs and machine in self._down()

    def cpus_down(self) -> int:
        """CPUs that are down, in a cluster for gangs."""
        return sum(self.facts.cpus_of[machine] for machine in self._down() if self.facts.gangs)

    def _down(self) -> set[int]:
        outages = self.facts.outages
        return {machine for machine, start, end in outages if start <= self.time_us < end}


class ClusterLog:
    """The jobs of the cluster of these `facts`, from its `events` in the order of the run.

    Events do not tell when a job was preempted: it counts as running from its first start to its
    end. A gang that moved to another cluster counts here until it came there. Machines that
    somebody took down are among the outages of the log's own `facts`.
    """

    def __init__(self, facts: ClusterFacts, events: Iterable[Event]) -> None:
        self.stays: dict[JobKey, Stay] = {}
        """The last of each job."""
        self._earlier: list[Stay] = []
        down: list[tuple[int, Time, Time]] = []
        for event in events:
            if event.entity != facts.entity:
                self._leave(facts.entity, event)
                continue
            if event.vo is not None and event.job is not None:
                self._take((event.vo, event.job), event)
            elif event.event == "take_down" and event.machine is not None:
                down.append((event.machine, event.time_us, NEVER))
            elif event.event == "repair":
                down = [(machine, start, min(end, event.time_us)) for machine, start, end in down]
        self.facts = replace(facts, outages=(*facts.outages, *down))

    def at(self, time_us: Time, still_waiting: JobKey | None = None) -> ClusterState:
        """The cluster at that moment, after all that happened then.

        A job that is `still_waiting` is one that has not started yet, whatever it did then.
        """
        stays = sorted((*self._earlier, *self.stays.values()), key=lambda one: one.came_us)
        there = [one for one in stays if one.came_us <= time_us < one.end_us]
        waits = [one.start_us > time_us or one.key == still_waiting for one in there]
        both = list(zip(there, waits, strict=True))
        running = tuple(one for one, is_waiting in both if not is_waiting)
        waiting = tuple(one for one, is_waiting in both if is_waiting)
        return ClusterState(self.facts, time_us, running, waiting)

    def _take(self, key: JobKey, event: Event) -> None:
        stay = self.stays.get(key)
        if event.event in BY_ITSELF:
            if stay is not None:
                self._earlier.append(self.stays.pop(key))
            bound = -1 if event.machine is None else event.machine
            self.stays[key] = Stay(
                key, event.time_us, event.processors or 1, event.ram_mb or 0.0,
                event.licenses or 0, bound,
            )  # fmt: skip
        elif stay is None:
            return
        elif event.event == "start":
            stay.start_us = event.time_us
            stay.machine = stay.machine if event.machine is None else event.machine
        elif event.event == "end":
            stay.end_us = event.time_us

    def _leave(self, entity: str, event: Event) -> None:
        """A gang of this cluster has come to another."""
        if event.event == "move_gang" and event.peer == entity and event.vo is not None:
            stay = self.stays.get((event.vo, event.job or 0))
            if stay is not None:
                stay.end_us = min(stay.end_us, event.time_us)
