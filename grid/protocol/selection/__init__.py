"""Selections: how a Local Scheduler selects a resource for a job (PU 3.2.4, 4.2).

- `partial`: the utility of a requirement is the highest utility among its options that the
  resource fulfils; the utility of the resource is the mean over requirements (Eq. 1).
- `binary`: each requirement has one option, the preferred one, of utility one or nothing.
- `matchmaking`: the utility of a resource is one if it fulfils the preferred option of every
  requirement, and otherwise nothing.

The recorded utility of a job is Eq. 1 with all its options under every selection, since it is that
of the job's user. With `measured: as_chosen` it is the utility by which the selection chose.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job import Job
from grid.model.resources import ResourceTable, SomeResources

Rng = np.random.Generator
PARTIAL, BINARY, MATCHMAKING = 0, 1, 2
OWN_VO, FIRST, LESS_LOADED, LOAD_THEN_OWN = 0, 1, 2, 3
TIES = {"own_vo": OWN_VO, "first": FIRST, "less_loaded": LESS_LOADED, "random": FIRST}
"""Which of equal resources is chosen. `own_vo`: one of the own VO, then the less loaded, then the
earlier. `first`: the first, as in PU Algorithm 3. `less_loaded`: the less loaded, then the earlier.
`random`: each with equal probability, as the first in a random order."""
MODES = {"partial": PARTIAL, "binary": BINARY, "matchmaking": MATCHMAKING}


class Choice(NamedTuple):
    """Rows of a resource table; -1 for none.

    The best resource among those that are `free`, among all (`anywhere`), in the `own` VO, and in
    `others`."""

    free: int
    anywhere: int
    own: int
    others: int


NO_CHOICE = Choice(-1, -1, -1, -1)
NO_ROWS: Ints = np.empty(0, np.int64)


class Selection(Protocol):
    """Selects resources for jobs. Pure: random numbers come from `rng` alone."""

    def choose(
        self, job: Job, table: ResourceTable, own_vo: int, own_only: bool, rng: Rng | None = None
    ) -> Choice:
        """The best resources for `job` in the view of VO number `own_vo`, or among its own.

        `rng` is the random stream of the calling Local Scheduler, so that draws depend only on the
        order of its messages.
        """
        ...

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        """Utility of each resource by this selection, shape (resources,); 0: not eligible."""
        ...

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        """Utility of the resource in `row` for the job's user (PU Eq. 1)."""
        ...


def best_choice(
    utilities: Floats,
    job: Job,
    table: ResourceTable,
    own_vo: int,
    own_only: bool,
    ties: str = "own_vo",
    rng: Rng | None = None,
    rows: Ints | None = None,
) -> Choice:
    """The best rows by `utilities` of shape (resources,), for selections.

    A resource counts if its utility is above zero, its status is known, and it has the CPUs,
    resources and licenses for the job; with `rows`, in ascending order, only those. For equal
    utilities see TIES; `random` needs the `rng` that `choose` is given. Raises ValueError for wrong
    arguments.
    """
    from grid.protocol.selection.kernels import NOT_A_NUMBER, best_resources

    columns, assigned = table.columns, table.assigned_for(job)
    if len(utilities) != len(columns):
        raise ValueError(f"found {len(utilities)} utilities, expected {len(columns)}")
    values = np.asarray(utilities, np.float64)
    if job.needs_equipment:
        values = np.where(columns.equipped(job), values, 0.0)
    if ties == "random":
        if rng is None:
            raise ValueError("random ties require the `rng` argument of `choose`")
        order = np.argsort(rng.random(len(values) if rows is None else len(rows)), kind="stable")
        rows = order if rows is None else rows[order]
    whole, places = columns, rows
    if isinstance(columns, SomeResources):
        # The columns of these rows alone would be copies.
        whole, places = columns.whole, columns.rows if rows is None else columns.rows[rows]
    if rows is not None:
        values, assigned = values[rows], assigned[rows]
    code = busy = TIES[ties]
    if code == OWN_VO and table.has_own_dispatches:
        busy = LOAD_THEN_OWN
    best: tuple[int, ...] = best_resources(
        values, whole.vo, whole.cpus, whole.widest,
        NO_ROWS if places is None else places, places is None,
        assigned, own_vo, own_only, job.processors, code, busy,
    )  # fmt: skip
    if best[0] == NOT_A_NUMBER:
        raise ValueError("found a utility that is not a number")
    if rows is not None:
        best = tuple(int(rows[place]) if place >= 0 else -1 for place in best)
    return Choice(*best)


def within_reach(utilities: Floats, table: ResourceTable) -> Floats:
    """The same with 0 for resources to which the job must not go, whose status is hidden (NaN)."""
    within: Floats = np.where(np.isnan(table.assigned_cpus), 0.0, utilities)
    return within
