"""Utilities of all known resources for one job, and the best of them, in one compiled pass."""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined, inner, kernel
from grid.protocol.selection import FIRST, LOAD_THEN_OWN, MATCHMAKING, OWN_VO, PARTIAL

NOT_A_NUMBER = -2


@kernel()
def utilities(
    mode: int, asked: Floats, work_mi: float, attributes: Floats, rows: Ints, every: bool
) -> Floats:
    """Utility for one job of the resources in `rows`, or in every row. Shape (resources,).

    `asked` has each requirement's kind, weight, number of options, and their values and utilities.
    `attributes`, of shape (kinds, all resources), holds by kind of requirement what the resource
    offers; for the execution time it holds the MIPS, and the time is work_mi / MIPS in seconds.
    """
    count = attributes.shape[1] if every else len(rows)
    # Loops, which compile faster than np.full.
    total, best = np.empty(count), np.empty(count)
    for r in range(count):
        total[r] = 0.0
    place = requirements = 0
    while place < len(asked):
        kind, weight, options = int(asked[place]), asked[place + 1], int(asked[place + 2])
        place, after = place + 3, place + 3 + 2 * options
        offered = attributes[kind] if every else attributes[kind][rows]
        for r in range(count):
            best[r] = 0.0
        for k in range(place, after if mode == PARTIAL else place + 2, 2):
            utilities = asked[k + 1] if mode == PARTIAL else 1.0
            _take_option(best, offered, kind, asked[k], utilities, work_mi)
        if mode == MATCHMAKING:
            weight = 1.0
        for r in range(count):
            total[r] += best[r] * weight
        place = after
        requirements += 1
    for r in range(count):
        if mode == MATCHMAKING:
            total[r] = 1.0 if total[r] == requirements else 0.0
        else:
            total[r] /= requirements
    return total


@inner()
def _take_option(
    best: Floats, offered: Floats, kind: int, value: float, utility: float, work_mi: float
) -> None:
    """Raise `best` to `utility` where the option is fulfilled.

    A loop for each kind without branches, which the compiler vectorizes.
    """
    if kind < 2:
        for r in range(len(best)):
            best[r] = utility if (offered[r] == value) & (utility > best[r]) else best[r]
    elif kind == 2:
        for r in range(len(best)):
            best[r] = utility if (work_mi <= value * offered[r]) & (utility > best[r]) else best[r]
    else:
        for r in range(len(best)):
            best[r] = utility if (offered[r] >= value) & (utility > best[r]) else best[r]


@kernel()
def best_resources(
    utility: Floats,
    vo: Ints,
    cpus: Floats,
    widest: Floats,
    rows: Ints,
    every: bool,
    assigned: Floats,
    own: int,
    own_only: bool,
    processors: int,
    ties: int,
    busy_ties: int,
) -> tuple[int, int, int, int]:
    """Rows of the best resource: free anywhere, any, any of the own VO, any of another VO.

    `vo`, `cpus` and `widest` are of all resources, of which those in `rows`, or `every` one, count.
    -1 if there is none; the first is NOT_A_NUMBER if a utility is none. A resource counts if its
    utility is above zero, its status is known and it is wide enough; with `own_only` those of other
    VOs do not count. It is free if it has `processors` CPUs that are not assigned. The better of
    two is the one of higher utility; among equals, by `ties`, the earlier row, or one of the own VO
    first, then the less loaded, then the earlier row, or the last two alone. `busy_ties` are for
    resources that need not be free.
    """
    if not every:
        vo, cpus, widest = vo[rows], cpus[rows], widest[rows]
    return _best(utility, vo, cpus, widest, assigned, own, own_only, processors, ties, busy_ties)


@inner(allocates=False)
def _best(
    utility: Floats,
    vo: Ints,
    cpus: Floats,
    widest: Floats,
    assigned: Floats,
    own: int,
    own_only: bool,
    processors: int,
    ties: int,
    busy_ties: int,
) -> tuple[int, int, int, int]:
    free = anywhere = mine = others = -1
    for r in range(len(utility)):
        if not assigned[r] < np.inf or (own_only and vo[r] != own):
            continue
        if not utility[r] > 0.0 or widest[r] < processors:
            if np.isnan(utility[r]):
                free = NOT_A_NUMBER
                break
            continue
        if cpus[r] - assigned[r] >= processors and _better(
            r, free, utility, vo, cpus, assigned, own, ties
        ):
            free = r
        if _better(r, anywhere, utility, vo, cpus, assigned, own, busy_ties):
            anywhere = r
        if vo[r] == own:
            if _better(r, mine, utility, vo, cpus, assigned, own, busy_ties):
                mine = r
        elif _better(r, others, utility, vo, cpus, assigned, own, busy_ties):
            others = r
    return free, anywhere, mine, others


@inlined
def _better(
    r: int,
    other: int,
    utility: Floats,
    vo: Ints,
    cpus: Floats,
    assigned: Floats,
    own: int,
    ties: int,
) -> bool:
    if other < 0:
        return True
    if utility[r] != utility[other]:
        return bool(utility[r] > utility[other])
    if ties == FIRST:
        return False
    if ties == OWN_VO and (vo[r] == own) != (vo[other] == own):
        return bool(vo[r] == own)
    load, other_load = assigned[r] * cpus[other], assigned[other] * cpus[r]
    if ties == LOAD_THEN_OWN and load == other_load:
        return bool(vo[r] == own and vo[other] != own)
    return bool(load < other_load)
