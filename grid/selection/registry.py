"""Selections by name. Importing this imports no compiled code; making one does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from grid.model.arrays import Floats
from grid.model.errors import WrongPart
from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.parts.kind import Kind
from grid.parts.origin import Origin, ask
from grid.selection.interface import Choice, Selection

if TYPE_CHECKING:
    from grid.selection.by_utility import ByUtility


class GuardedSelection:
    """A selection that another plugged in. Utilities are those of Eq. 1, whatever chose."""

    def __init__(self, origin: Origin, selection: Any) -> None:
        self.origin = origin
        self._selection = selection
        self._by_utility: ByUtility | None = None

    def choose(self, job: Job, table: ResourceTable, own_vo: int, own_only: bool) -> Choice:
        given = (job, table, own_vo, own_only)
        choice: Choice = ask(self.origin, "choose", self._selection.choose, _problem, *given)
        return choice

    def worth(self, job: Job, table: ResourceTable) -> Floats:
        return self._partial().worth(job, table)

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        return self._partial().utility(job, table, row)

    def _partial(self) -> ByUtility:
        if self._by_utility is None:
            self._by_utility = partial()
        return self._by_utility


def _problem(
    choice: Any, job: Job, table: ResourceTable, own_vo: int, own_only: bool
) -> str | None:
    """What is wrong with a choice for `job`."""
    if not isinstance(choice, Choice):
        return f"gave {type(choice).__name__}, expected a Choice"
    vo, widest = table.columns.vo, table.columns.widest
    for name, row in choice._asdict().items():
        if type(row) is bool or not hasattr(row, "__index__") or not -1 <= row < len(vo):
            return f"gave {row!r} for {name}, expected a row of the table or -1"
        if row >= 0 and job.processors > widest[row]:
            return f"gave row {row} for {name}, expected one that {job.processors} CPUs fit into"
        at_home = name == "own" or own_only
        if row >= 0 and at_home and vo[row] != own_vo:
            return f"gave row {row} for {name}, expected one of its own VO"
        if row >= 0 and name == "others" and vo[row] == own_vo:
            return f"gave row {row} for {name}, expected one of another VO"
    return None


def _guarded(origin: Origin, selection: Any) -> Selection:
    if not callable(getattr(selection, "choose", None)):
        found = f"{type(selection).__name__} without a method choose"
        found += f" ({origin.shown}:{origin.line})"
        raise WrongPart(found, "a selection with choose(self, job, table, own_vo, own_only)")
    return GuardedSelection(origin, selection)


Ties = Annotated[
    Literal["own_vo", "first", "less_loaded"],
    Field(description="which of equally good resources is taken"),
]

Measured = Annotated[
    Literal["all_options", "as_chosen"],
    Field(description="what a job's user has of it: Eq. 1, or what the selection counts"),
]


def partial(*, ties: Ties = "own_vo") -> ByUtility:
    """Partial utility: the mean of what the requirements' best fulfilled options are worth."""
    from grid.selection.by_utility import ByUtility

    return ByUtility("partial", ties)


def binary(*, ties: Ties = "own_vo", measured: Measured = "all_options") -> ByUtility:
    """Binary utility: the share of requirements whose preferred option is fulfilled."""
    from grid.selection.by_utility import ByUtility

    return ByUtility("binary", ties, measured)


def matchmaking(*, ties: Ties = "own_vo", measured: Measured = "all_options") -> ByUtility:
    """Matchmaking: only resources that fulfil the preferred option of every requirement."""
    from grid.selection.by_utility import ByUtility

    return ByUtility("matchmaking", ties, measured)


SELECTIONS = Kind(
    "selections",
    "selection",
    "chooses a resource of the grid for each job",
    {name: f"{__name__}:{name}" for name in ("partial", "binary", "matchmaking")},
    _guarded,
    place="vos.*.selection",
)
