"""The verbs of external migration: what Local Dispatchers say to each other to move a gang.

All of them carry the number of the attempt, which the giver counts up: a taker that receives a
number knows that all lower ones of that giver are over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from grid.model.job import Job
from grid.model.messages import message
from grid.model.time import NEVER, Time


class GangProgress(NamedTuple):
    """What a gang brings along from the clusters that it was in, as far as it ran there.

    It was first started at `start_us` (NEVER: never), and `done` of its work is kept, in
    microseconds on a processor of one MIPS. The others are as in `grid.cluster.gang.state.Gangs`.
    """

    start_us: Time = NEVER
    done: float = 0.0
    interruptions: int = 0
    restarts: int = 0
    held_us: Time = 0
    lost_us: Time = 0
    watts_busy: float = 0.0
    watts_idle: float = 0.0


NEVER_RAN = GangProgress()


@message()
@dataclass(frozen=True, slots=True)
class AskMigration:
    """Giver to taker: have you got so many idle processors for a gang of mine?"""

    number: int
    processors: int


@message()
@dataclass(frozen=True, slots=True)
class MigrationGranted:
    """Taker to giver: I keep them for you, for a while."""

    number: int


@message()
@dataclass(frozen=True, slots=True)
class MigrationRefused:
    """Taker to giver: no."""

    number: int


@message(custody="transfer")
@dataclass(frozen=True, slots=True)
class MoveGang:
    """Giver to taker: here it is. It is yours from the moment you hear this; I say it until you
    confirm."""

    number: int
    job: Job
    progress: GangProgress = NEVER_RAN


@message()
@dataclass(frozen=True, slots=True)
class GangMoved:
    """Taker to giver: I have it."""

    number: int


@message()
@dataclass(frozen=True, slots=True)
class CancelMigration:
    """Giver to taker: nothing comes of this number; keep nothing for it."""

    number: int
