"""Whom a Local Scheduler talks to, and what it goes by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from grid.model.distances import Distances
from grid.protocol.forwarding.interface import Answer, Question


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Whom a Local Scheduler talks to: its own VO's entities, and all schedulers by VO."""

    resource_manager: str
    information: str
    schedulers: tuple[str, ...]
    distances: Distances


@dataclass(frozen=True, slots=True)
class SchedulerRules:
    """What a Local Scheduler goes by: how often and how a job is forwarded, and whether back."""

    ttl: int
    rule: Callable[[Question], Answer]
    avoid_loops: bool = False
    when_refused: str = "next"
    listeners: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The Workload Sources that wait for the end of a job of the VO's users, by its number."""
