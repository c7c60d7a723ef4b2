"""How a sweep stands while it goes on, for those who watch it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Value = str | int | float | bool | None


class SweepBeginning(NamedTuple):
    """What is known of a sweep before its first run.

    `points` are its combinations, a value for each of `axes`, and each has as many runs as there
    are `seeds`. `metrics` are the figures to be shown; none: those that most runs have. `measured`
    says which jobs the figures are of; empty: all.
    """

    name: str
    axes: tuple[str, ...]
    points: tuple[tuple[Value, ...], ...]
    seeds: int
    metrics: tuple[str, ...]
    measured: str = ""


class Cell(NamedTuple):
    """What came of a run: of the combination at that place of `points`, figures of the grid."""

    point: int
    figures: Mapping[str, float]


class SweepNews(NamedTuple):
    """How far a sweep is, and what came since the last news.

    Of its `runs`, `kept` were there before; `failed` are not `done`, and `failures` has a line for
    each new one of them. A run may be that of several combinations: `cells` has one for each.
    """

    runs: int
    kept: int
    done: int
    failed: int
    running: int
    cells: tuple[Cell, ...] = ()
    failures: tuple[str, ...] = ()
    is_over: bool = False
