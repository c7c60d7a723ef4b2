"""What a sweep tells of itself to those who watch it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from grid.lab.cases import Case, measured_intervals
from grid.lab.record import Answer, Record
from grid.lab.schema import ExperimentSection
from grid.lab.sweep_texts import measured_words
from grid.results.sweep_look import Cell, SweepBeginning, SweepNews

Tell = Callable[[SweepBeginning | SweepNews], None]
"""Takes what there is to be told, and does not hold up the sweep."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a sweep is: of its `runs`, `kept` were there before, and `failed` are not `done`."""

    runs: int
    kept: int
    done: int = 0
    failed: int = 0
    running: int = 0


@dataclass(slots=True)
class SweepLooks:
    """Tells of one sweep, whose `cases` have these `keys`: cases of one key are one run."""

    tell: Tell
    experiment: ExperimentSection
    cases: Sequence[Case]
    keys: Sequence[str]
    _places: dict[str, list[int]] = field(default_factory=dict)

    def begin(self, kept: Iterable[tuple[str, Record]], tally: Tally) -> None:
        """`kept` are the runs that were there before, by their keys."""
        points = list(dict.fromkeys(tuple(case.point.values()) for case in self.cases))
        place_of = {point: place for place, point in enumerate(points)}
        for case, key in zip(self.cases, self.keys, strict=True):
            self._places.setdefault(key, []).append(place_of[tuple(case.point.values())])
        section = self.experiment
        axes, seeds = tuple(self.cases[0].point), len(section.seed_list)
        measured = measured_words(measured_intervals(self.cases))
        metrics = section.metrics
        self.tell(SweepBeginning(section.name, axes, tuple(points), seeds, metrics, measured))
        cells = [cell for key, record in kept for cell in self._cells(key, record)]
        self._news(tally, cells)

    def step(self, tally: Tally, key: str | None = None, answer: Answer | None = None) -> None:
        """A run has ended, or just time has passed."""
        if key is None:
            self._news(tally)
        elif answer is None or isinstance(answer, str):
            case = self.cases[self.keys.index(key)]
            settings = ", ".join(f"{name}={value}" for name, value in case.point.items())
            reason = (answer or "no answer").partition("\n")[0]
            failure = f"{settings or 'the scenario'}, seed {case.seed}: {reason}"
            self._news(tally, failures=(failure,))
        else:
            self._news(tally, self._cells(key, answer[0]))

    def end(self, tally: Tally) -> None:
        """All runs have ended."""
        self._news(tally, is_over=True)

    def _cells(self, key: str, record: Record) -> list[Cell]:
        figures = {**record.get("more", {}), **record["metrics"]["grid"]}
        plain = {name: float(one) for name, one in figures.items() if isinstance(one, int | float)}
        return [Cell(place, plain) for place in self._places[key]]

    def _news(
        self,
        tally: Tally,
        cells: Iterable[Cell] = (),
        failures: tuple[str, ...] = (),
        is_over: bool = False,
    ) -> None:
        counts = tally.runs, tally.kept, tally.done, tally.failed, tally.running
        self.tell(SweepNews(*counts, tuple(cells), failures, is_over))
