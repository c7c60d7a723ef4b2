"""The verbs of external migration: what Local Dispatchers say to each other to move a gang.

All of them carry the number of the attempt, which the giver counts up: a taker that receives a
number knows that all lower ones of that giver are over.
"""

from __future__ import annotations

from dataclasses import dataclass

from grid.model.job import Job


@dataclass(frozen=True, slots=True)
class AskMigration:
    """Giver to taker: have you got so many idle processors for a gang of mine?"""

    number: int
    processors: int


@dataclass(frozen=True, slots=True)
class MigrationGranted:
    """Taker to giver: I keep them for you, for a while."""

    number: int


@dataclass(frozen=True, slots=True)
class MigrationRefused:
    """Taker to giver: no."""

    number: int


@dataclass(frozen=True, slots=True)
class MoveGang:
    """Giver to taker: here it is. It is yours from the moment you hear this; I say it until you
    confirm."""

    number: int
    job: Job


@dataclass(frozen=True, slots=True)
class GangMoved:
    """Taker to giver: I have it."""

    number: int


@dataclass(frozen=True, slots=True)
class CancelMigration:
    """Giver to taker: nothing comes of this number; keep nothing for it."""

    number: int
