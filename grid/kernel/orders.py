"""What somebody outside of the grid does to its entities while a live run goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Order(NamedTuple):
    """Number `number` of all that is done in a run, from 1, as far as it concerns an entity.

    An entity hears of it again after each of its crashes, and obeys once.
    """

    number: int
    content: Any


@dataclass(frozen=True, slots=True)
class Stop:
    """The entity is down until it is told to go on."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """It is up again."""
