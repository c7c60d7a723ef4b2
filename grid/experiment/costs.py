"""What experiments cost here when they were run last, for those who are about to run them again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from grid.experiment.store import read_costs, write_json
from grid.model.errors import InputError
from grid.report.labels import counted
from grid.runtime.cpus import usable_cpus

COSTS_FILE = "costs.json"


@dataclass(slots=True)
class Costs:
    """CPU seconds by the name of an experiment, of full and of quick ones apart."""

    seconds: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, *folders: Path) -> Costs:
        """Those of the first folder that knows them."""
        seconds: dict[str, float] = {}
        for folder in reversed(folders):
            path = folder / COSTS_FILE
            if path.is_file():
                with suppress(InputError):
                    seconds |= read_costs(path)
        return cls(seconds)

    def of(self, name: str, quick: bool) -> float | None:
        """What the experiment cost; None if it never ran here."""
        return self.seconds.get(_key(name, quick))

    def note(self, quick: bool, seconds: Mapping[str, float]) -> None:
        """Remember what these cost."""
        self.seconds |= {_key(name, quick): round(cost, 1) for name, cost in seconds.items()}

    def write(self, folder: Path) -> None:
        """Leave them in a folder."""
        write_json(folder / COSTS_FILE, {"cpu_seconds": dict(sorted(self.seconds.items()))})


def _key(name: str, quick: bool) -> str:
    return f"{name} --quick" if quick else name


@dataclass(slots=True)
class Expected:
    """What several experiments will cost, as far as it is known."""

    runs: int = 0
    seconds: float = 0.0
    unknown: int = 0

    def add(self, name: str, runs: int, costs: Costs, quick: bool) -> str:
        """Count an experiment; says what is known of it."""
        self.runs += runs
        cost = costs.of(name, quick)
        if cost is None:
            self.unknown += 1
            return f"{name}: {runs:,} runs, never run here before"
        self.seconds += cost
        return f"{name}: {runs:,} runs, {cost:,.0f} CPU seconds here last time"

    def in_words(self, cpus: int | None) -> str:
        """All of them in a line."""
        count = cpus or usable_cpus()
        line = f"{self.runs:,} runs in all, those that are there already included"
        if self.seconds:
            minutes = self.seconds / count / 60
            line += f"; about {minutes:.0f} minutes on {count} CPUs, as it took here last time"
        if self.unknown:
            line += f"; never run here: {counted(self.unknown, 'experiment')}"
        return line
