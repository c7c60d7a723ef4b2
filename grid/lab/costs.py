"""What experiments cost here when they were run last, for those who are about to run them again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from grid.lab.report.labels import counted
from grid.lab.store import read_json, write_json
from grid.model.errors import InputError
from grid.runtime.cpus import usable_cpus

COSTS_FILE = "costs.json"
HERE, ELSEWHERE = "here last time", "where the shipped pages were made"


@dataclass(slots=True)
class Costs:
    """CPU seconds by the name of an experiment, of full and of quick ones apart.

    Those of `shipped` were measured on the machine on which the shipped pages were made.
    """

    here: dict[str, float] = field(default_factory=dict)
    shipped: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, *folders: Path, shipped: Path) -> Costs:
        """Those of the first folder that knows them, and those that are shipped."""
        here: dict[str, float] = {}
        for folder in reversed(folders):
            here |= _costs_in(folder)
        return cls(here, _costs_in(shipped))

    def of(self, name: str, quick: bool) -> tuple[float, str] | None:
        """What the experiment cost, and where that was; None if nobody knows."""
        key = _key(name, quick)
        if key in self.here:
            return self.here[key], HERE
        return (self.shipped[key], ELSEWHERE) if key in self.shipped else None

    def note(self, quick: bool, seconds: Mapping[str, float]) -> None:
        """Remember what these cost here."""
        self.here |= {_key(name, quick): round(cost, 1) for name, cost in seconds.items()}

    def write(self, folder: Path, *, to_ship: bool = False) -> None:
        """Leave those of here in a folder; all of them where they are `to_ship`."""
        known = self.shipped | self.here if to_ship else self.here
        write_json(folder / COSTS_FILE, {"cpu_seconds": dict(sorted(known.items()))})


def _costs_in(folder: Path) -> dict[str, float]:
    path = folder / COSTS_FILE
    if path.is_file():
        with suppress(InputError, KeyError, TypeError, ValueError, AttributeError):
            found = read_json(path)["cpu_seconds"]
            return {str(name): float(seconds) for name, seconds in found.items()}
    return {}


def _key(name: str, quick: bool) -> str:
    return f"{name} --quick" if quick else name


@dataclass(slots=True)
class Expected:
    """What several experiments will cost, as far as it is known."""

    runs: int = 0
    seconds: float = 0.0
    unknown: int = 0
    places: set[str] = field(default_factory=set)

    def add(self, name: str, runs: int, costs: Costs, quick: bool, share: float = 1.0) -> str:
        """Count an experiment; says what is known of it. `share` of its usual runs are done."""
        self.runs += runs
        known = costs.of(name, quick)
        if known is None:
            self.unknown += 1
            return f"{name}: {runs:,} runs, never run here before"
        cost, place = known[0] * share, known[1]
        self.seconds += cost
        self.places.add(place)
        return f"{name}: {runs:,} runs, {cost:,.0f} CPU seconds {place}"

    def in_words(self, cpus: int | None) -> str:
        """All of them in a line."""
        count = cpus or usable_cpus()
        line = f"{self.runs:,} runs in all, those that are there already included"
        if self.seconds:
            minutes = counted(max(1, round(self.seconds / count / 60)), "minute")
            took = " and ".join(sorted(self.places))
            line += f"; about {minutes} on {count} CPUs, as it took {took}"
        if self.unknown:
            line += f"; never run here: {counted(self.unknown, 'experiment')}"
        return line
