"""How a Local Scheduler chooses: partial utility, binary utility, matchmaking (PU 3.2.4, 4.2).

- `partial`: a requirement is worth the highest utility among its options that the resource
  fulfils; the resource is worth the mean over requirements (Eq. 1).
- `binary`: each requirement has one option, the preferred one, and is worth one or nothing.
- `matchmaking`: the resource is worth one if it fulfils the preferred option of every
  requirement, and otherwise nothing.

Whatever chose, the utility that is recorded for a job is Eq. 1 with all its options: users do not
change their mind with the scheduler. With `measured: as_chosen` it is what the selection counted.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job import Job
from grid.model.resources import ResourceTable, SomeResources

PARTIAL, BINARY, MATCHMAKING = 0, 1, 2
OWN_VO, FIRST, LESS_LOADED = 0, 1, 2
TIES = {"own_vo": OWN_VO, "first": FIRST, "less_loaded": LESS_LOADED, "random": FIRST}
"""Which of equal resources is taken: one of the own VO, then the less loaded, then the earlier; the
first that is found, as PU's Algorithm 3 says; the less loaded, then the earlier; any of them, each
as likely as the others, which is the first in an order by chance."""
MODES = {"partial": PARTIAL, "binary": BINARY, "matchmaking": MATCHMAKING}


class Choice(NamedTuple):
    """Rows of a resource table, -1 where there is none."""

    free: int
    anywhere: int
    own: int
    others: int


class Selection(Protocol):
    """Chooses resources for jobs. Pure: all chance comes from `rng`, all else from what it is given
    and what it was given before.
    """

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        """The best resources for `job` as VO number `own_vo` sees them, or those of its own.

        `rng` is the random stream of the Local Scheduler that asks. So what is drawn hangs on the
        order of its own messages alone, and not on where it runs.
        """
        ...

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        """What each resource is worth by this selection; 0: it will not do. Shape (resources,)."""
        ...

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        """What the resource in `row` is worth to the job's user (PU Eq. 1)."""
        ...


def best_choice(
    utilities: Floats,
    job: Job,
    table: ResourceTable,
    own_vo: int,
    own_only: bool,
    ties: str = "own_vo",
    rng: np.random.Generator | None = None,
    rows: Ints | None = None,
) -> Choice:
    """The best rows by `utilities` of shape (resources,), for selections of your own.

    Only resources of a utility above zero that are wide enough and have the memory and licenses
    that the job holds, and of which a status is known, count; where `rows` are given, in ascending
    order, only those. For equal ones see TIES; the `random` one needs the `rng` that `choose` is
    given.
    """
    columns = table.columns
    if len(utilities) != len(columns):
        raise ValueError(
            f"found {len(utilities)} utilities, expected one for each of the "
            f"{len(columns)} resources of the table"
        )
    utilities = np.asarray(utilities, np.float64)
    if not utilities @ utilities >= 0.0:
        utilities = within_reach(utilities, table)
    if not utilities @ utilities >= 0.0:
        raise ValueError("found a utility that is not a number")
    if ties not in TIES:
        raise ValueError(f"found ties {ties!r}, expected one of {', '.join(TIES)}")
    return best_rows(utilities, job, table, own_vo, own_only, ties, rng, rows)


def within_reach(utilities: Floats, table: ResourceTable) -> Floats:
    """The same, and 0 where a job may not go: what follows from the CPUs there is not a number."""
    within: Floats = np.where(np.isnan(table.assigned_cpus), 0.0, utilities)
    return within


def best_rows(
    utilities: Floats,
    job: Job,
    table: ResourceTable,
    own_vo: int,
    own_only: bool,
    ties: str = "own_vo",
    rng: np.random.Generator | None = None,
    rows: Ints | None = None,
) -> Choice:
    """As `best_choice`, of what needs no check."""
    from grid.protocol.selection.kernels import best_of_some, best_resources

    columns = table.columns
    if ties == "random":
        if rng is None:
            raise ValueError("random ties need the `rng` that `choose` is given")
        order = np.argsort(rng.random(len(utilities) if rows is None else len(rows)), kind="stable")
        rows = order if rows is None else rows[order]
    values, assigned = utilities, table.assigned_cpus
    if job.ram_mb or job.licenses:
        values = np.where(columns.equipped(job), values, 0.0)
    if rows is None and isinstance(columns, SomeResources):
        whole = columns.whole
        found = best_of_some(
            columns.rows, values, whole.vo, whole.cpus, whole.widest, assigned, own_vo, own_only,
            job.processors, TIES[ties],
        )  # fmt: skip
        return Choice(*found)
    vo, cpus, widest = columns.vo, columns.cpus, columns.widest
    if rows is not None:
        values, assigned = values[rows], assigned[rows]
        vo, cpus, widest = vo[rows], cpus[rows], widest[rows]
    best: tuple[int, ...] = best_resources(
        values, vo, cpus, widest, assigned, own_vo, own_only, job.processors, TIES[ties]
    )
    if rows is not None:
        best = tuple(int(rows[place]) if place >= 0 else -1 for place in best)
    return Choice(*best)
