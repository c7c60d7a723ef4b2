"""Selections by name. Importing this imports no compiled code; making one does."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats
from grid.model.errors import WrongPart, kind_of, shorten
from grid.model.job import Job
from grid.model.plugins.kind import Kind, refuse_other_arguments
from grid.model.plugins.lent_table import lent
from grid.model.plugins.origin import Origin, ask, is_whole
from grid.model.resources import ResourceTable
from grid.protocol.selection.interface import Choice, Selection, within_reach

if TYPE_CHECKING:
    from numpy.random import Generator

    from grid.protocol.selection.by_load import EarliestCompletion, LeastLoaded
    from grid.protocol.selection.by_utility import ByUtility
    from grid.protocol.selection.picked import PowerOfD, Random, RoundRobin


class GuardedSelection:
    """A selection that another plugged in. Utilities are those of Eq. 1, whatever chose.

    Its `choose` is given the random stream where it takes one more argument. What resources are
    worth to forwarding rules is told by its `worth`, if it has one, else by Eq. 1: the utility that
    `partial` counts, whatever its `choose` goes by.
    """

    def __init__(self, origin: Origin, selection: Any) -> None:
        self.origin = origin
        self._selection = selection
        self.draws = "rng" in signature(selection.choose).parameters
        self.needs_work = bool(getattr(selection, "needs_work", False))
        self._by_utility: ByUtility | None = None

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: Generator | None = None,
    ) -> Choice:
        choose = self._selection.choose
        with lent(self.origin, "choose", table) as copy:
            given = (job, copy, own_vo, own_only, *((rng,) if self.draws else ()))
            choice: Choice = ask(self.origin, "choose", choose, _problem, *given)
        return choice

    def worth(self, job: Job, table: ResourceTable) -> Floats:
        own = getattr(self._selection, "worth", None)
        if own is None:
            return self._partial().worth(job, table)
        with lent(self.origin, "worth", table) as copy:
            found: Floats = ask(self.origin, "worth", own, _worth_problem, job, copy)
        return within_reach(found, table)

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        return self._partial().utility(job, table, row)

    def _partial(self) -> ByUtility:
        if self._by_utility is None:
            self._by_utility = partial()
        return self._by_utility


def _worth_problem(worth: Any, _: Job, table: ResourceTable) -> str | None:
    """What is wrong with what resources are said to be worth."""
    count = len(table.columns.vo)
    if not isinstance(worth, np.ndarray) or worth.shape != (count,) or worth.dtype != np.float64:
        return f"gave no array of {count} numbers (float64), one for each resource"
    is_right = (within_reach(worth, table) >= 0.0).all()
    return None if is_right else "gave a worth that is not a number of at least 0"


def _problem(
    choice: Any, job: Job, table: ResourceTable, own_vo: int, own_only: bool, *_: Any
) -> str | None:
    """What is wrong with a choice for `job`."""
    if not isinstance(choice, Choice):
        return f"gave {kind_of(choice)}, expected a Choice"
    vo, widest = table.columns.vo, table.columns.widest
    for name, row in choice._asdict().items():
        if not is_whole(row) or not -1 <= row < len(vo):
            return f"gave {shorten(row)} for {name}, expected a row of the table or -1"
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
        raise WrongPart(
            found,
            "a selection with choose(self, job, table, own_vo, own_only)",
        )
    guarded = GuardedSelection(origin, selection)
    given = ("job", "table", "own_vo", "own_only", *(("rng",) if guarded.draws else ()))
    refuse_other_arguments(origin, selection, "choose", given)
    if callable(getattr(selection, "worth", None)):
        refuse_other_arguments(origin, selection, "worth", ("job", "table"))
    return guarded


Ties = Annotated[
    Literal["own_vo", "first", "less_loaded", "random"],
    Field(description="which of equally good resources is taken"),
]

Measured = Annotated[
    Literal["all_options", "as_chosen"],
    Field(description="what a job's user has of it: Eq. 1, or what the selection counts"),
]


def partial(*, ties: Ties = "own_vo") -> ByUtility:
    """Partial utility: the mean of what the requirements' best fulfilled options are worth."""
    from grid.protocol.selection.by_utility import ByUtility

    return ByUtility("partial", ties)


def binary(*, ties: Ties = "own_vo", measured: Measured = "all_options") -> ByUtility:
    """Binary utility: the share of requirements whose preferred option is fulfilled."""
    from grid.protocol.selection.by_utility import ByUtility

    return ByUtility("binary", ties, measured)


def matchmaking(*, ties: Ties = "own_vo", measured: Measured = "all_options") -> ByUtility:
    """Matchmaking: only resources that fulfil the preferred option of every requirement."""
    from grid.protocol.selection.by_utility import ByUtility

    return ByUtility("matchmaking", ties, measured)


TiesOfLoads = Annotated[
    Literal["own_vo", "first", "random"],
    Field(description="which of equally loaded resources is taken"),
]
ByWorth = Annotated[
    bool,
    Field(description="weigh what a resource is worth to the job (PU Eq. 1), not only that it is"),
]


def least_loaded(*, ties: TiesOfLoads = "own_vo", by_utility: ByWorth = False) -> LeastLoaded:
    """The least loaded resource: assigned CPUs over CPUs, those of queued jobs included.

    Join the shortest queue, where resources are alike (Winston 1977: the best that can be done with
    fresh information and exponential run times). Among resources that are free, the least loaded of
    these. With `by_utility` the value of a resource is utility / (1 + load).
    """
    from grid.protocol.selection.by_load import LeastLoaded

    return LeastLoaded(ties, by_utility)


def random(*, by_utility: ByWorth = False) -> Random:
    """A resource drawn at random, free or not: each one that would do is as likely.

    It needs no information beyond who is there, so resources of unknown status are drawn, too. A
    queue before each: Poisson arrivals stay Poisson (the thinning of M/M/1). With `by_utility` the
    chance of a resource is in proportion to its utility.
    """
    from grid.protocol.selection.picked import Random

    return Random("first", by_utility)


def round_robin() -> RoundRobin:
    """The next resource in turn, free or not, of those that would do; each VO has its own turn.

    It needs no information beyond who is there. Turns for the VO's own resources and for those of
    others, where only such ones are asked for, are kept apart.
    """
    from grid.protocol.selection.picked import RoundRobin

    return RoundRobin()


def earliest_completion(
    *, ties: TiesOfLoads = "own_vo", by_utility: ByWorth = False
) -> EarliestCompletion:
    """Where the job is expected to end first: the wait, by what is told of queues, and its run.

    The minimum completion time of Maheswaran et al. (1999), by estimates. A job waits, where too
    few CPUs are free, until all CPUs together have done the work that was promised there. So status
    tells that work, too. A fast resource that is busy may be better than a slow one that is free.
    With `by_utility` the largest utility / completion time is taken.
    """
    from grid.protocol.selection.by_load import EarliestCompletion

    return EarliestCompletion(ties, by_utility)


def power_of_d(
    *,
    d: Annotated[int, Field(ge=1, le=1_000_000, description="resources that are drawn")] = 2,
    ties: TiesOfLoads = "own_vo",
    by_utility: ByWorth = False,
) -> PowerOfD:
    """The least loaded of `d` different resources, drawn from those that would do.

    Two choices already shorten queues exponentially (Vvedenskaya, Dobrushin and Karpelevich 1996;
    Mitzenmacher 2001), and with old information fewer choices are better than many (Mitzenmacher
    2000). Resources of unknown status are taken only where all that were drawn are such. With
    `by_utility` the best of the drawn is that of the largest utility / (1 + load).
    """
    from grid.protocol.selection.picked import PowerOfD

    return PowerOfD(d, ties, by_utility)


NAMES = (
    "partial", "binary", "matchmaking", "random", "round_robin", "least_loaded", "power_of_d",
    "earliest_completion",
)  # fmt: skip
SELECTIONS = Kind(
    "selections",
    "selection",
    "chooses a resource of the grid for each job",
    {name: f"{__name__}:{name}" for name in NAMES},
    _guarded,
    place="vos.*.selection",
)
