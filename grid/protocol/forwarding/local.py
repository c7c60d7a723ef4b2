"""Forwarding policies that use the known state alone, without calls to other VOs."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats, Ints
from grid.model.time import SECOND_US
from grid.protocol.forwarding import (
    NO_DESTINATION,
    Destination,
    Question,
    expected_run_us,
    loads_including,
    remote_rows,
)
from grid.protocol.selection import Choice, best_choice
from grid.protocol.settings import count, seconds


def queue(question: Question) -> Destination:
    """The job queues at the best resource, free or not.

    A job that came from another VO queues at the best resource of its current VO.
    """
    choice = question.choice
    if choice.free >= 0:
        return Destination(choice.free, False)
    is_guest = question.origin != question.vo
    return Destination(choice.own if is_guest and choice.own >= 0 else choice.anywhere, True)


def forward(question: Question) -> Destination:
    """The job is forwarded to the best resource of another VO until its TTL is exhausted.

    Then it fails; if its TTL was 0 from the start, it is rejected. It queues here only if its TTL
    is not exhausted and no other VO has an eligible resource.
    """
    choice = question.choice
    if choice.free >= 0:
        return Destination(choice.free, False)
    if choice.others >= 0:
        return Destination(choice.others, False)
    return Destination(choice.own, True) if question.ttl > 0 else NO_DESTINATION


def reject(question: Question) -> Destination:
    """The job is rejected; if it was forwarded until its TTL was exhausted, it fails."""
    free = question.choice.free
    return Destination(free, False) if free >= 0 else NO_DESTINATION


def never(question: Question) -> Destination:
    """A job never leaves its current VO: it uses a free resource there, or queues.

    The baseline without sharing.
    """
    local = question.local_choice()
    return stay(local) if local.own >= 0 else NO_DESTINATION


def to_the_best(question: Question) -> Destination:
    """A job goes to the best free resource or, if none is free, to the best resource of all.

    If that resource is in its own VO, it queues there; another VO decides again. It fails if its
    best resource is in another VO and its TTL is exhausted: PU Algorithms 2 and 3 literally, by
    utility only, with ties to the first resource. A job that was never forwarded, with a TTL of 0,
    is rejected instead."""
    # Licenses are valid in this VO alone, so a job that needs some has its best resource here.
    spent = question.ttl == 0 and question.job.licenses == 0
    utilities = (
        question.selection.utilities(question.job, question.table)
        if spent
        else question.utilities()
    )
    best = best_choice(utilities, question.job, question.table, question.vo, False, "first")
    row = best.free if best.free >= 0 else best.anywhere
    if row >= 0 and question.table.columns.vo[row] == question.vo:
        return Destination(row, True)
    return NO_DESTINATION if spent else Destination(row, False)


def when_nothing_free(question: Question) -> Destination:
    """A job stays if a suitable resource is free here; otherwise, it goes to the best free one.

    If nothing is free anywhere, it queues here. Unlike under `queue`, it never leaves just because
    a remote resource is better."""
    local, choice = question.local_choice(), question.choice
    if local.free < 0 and choice.free >= 0:
        return Destination(choice.free, False)
    return stay_or_leave(question, local)


def above_load(
    question: Question,
    *,
    load: Annotated[
        float,
        Field(
            gt=0,
            le=1000,
            description="limit on the load (assigned CPUs over all CPUs), including the job",
        ),
    ] = 1.0,
) -> Destination:
    """A job goes to the least loaded VO below a limit if it would raise the local load above it.

    The threshold policy of Eager, Lazowska and Zahorjan (1986), with the known state instead of
    probes. If all VOs are above the limit, it stays.
    """
    local = question.local_choice()
    loads = loads_including(question)
    own = loads[question.table.columns.vo == question.vo]
    if local.own >= 0 and own.min(initial=np.inf) <= load:
        return stay(local)
    utilities = question.utilities()
    rows = remote_rows(question, utilities)
    rows = rows[loads[rows] <= load]
    if len(rows):
        return Destination(_least_loaded(question, rows, loads, utilities), False)
    return stay_or_leave(question, local)


def until_idle(
    question: Question,
    *,
    hops: Annotated[int, count("maximum number of hops, within the TTL", 0)] = 3,
    next_vo: Annotated[
        Literal["random", "least_loaded"],
        Field(
            description=(
                "the next VO: a random eligible one, or the least loaded one according to known "
                "state"
            )
        ),
    ] = "random",
    then: Annotated[
        Literal["queue", "reject"], Field(description="what happens to a job after its last hop")
    ] = "queue",
) -> Destination:
    """If nothing is free, a job moves on to another VO, up to a number of hops.

    Random transfers with a limit, as in Eager, Lazowska and Zahorjan (1986). With `random` the
    status of other VOs is not used.
    """
    local = question.local_choice()
    if local.free >= 0:
        return Destination(local.free, False)
    if question.hops < hops and not question.own_only:
        utilities = question.utilities()
        rows = remote_rows(question, utilities)
        loads = loads_including(question)
        if len(rows) and next_vo == "random":
            vos = question.table.columns.vo[rows]
            there = np.unique(vos)
            rows = rows[vos == there[question.rng.integers(len(there))]]
        if len(rows):
            return Destination(_least_loaded(question, rows, loads, utilities), False)
    return NO_DESTINATION if then == "reject" else stay_or_leave(question, local)


def best_expected_finish(
    question: Question,
    *,
    margin_s: Annotated[
        float, seconds("how much earlier a job must end in another VO to be forwarded", 0)
    ] = 0.0,
    queued_run_s: Annotated[
        float | None,
        Field(
            gt=0, le=1e9, description=("assumed run time of queued jobs; none: this job's run time")
        ),
    ] = None,
) -> Destination:
    """A job goes where it is expected to end first, including the transfer.

    The minimum completion time of Maheswaran et al. (1999) over VOs: transfer, wait and run time.
    Run times are estimates, scaled to the resource's speed. The wait is the time until the CPUs
    that the job lacks are released, assuming that all CPUs run jobs of `queued_run_s`.
    """
    utilities = question.utilities()
    finish_us = expected_finish_us(question, queued_run_s)
    finish_us[utilities <= 0.0] = np.inf
    here = question.table.columns.vo == question.vo
    finish_us[~here] += margin_s * SECOND_US
    if not np.isfinite(finish_us).any():
        return NO_DESTINATION
    best = np.flatnonzero(finish_us == finish_us.min())
    local = best[here[best]]
    return Destination(int(local[0] if len(local) else best[0]), True)


def expected_finish_us(question: Question, queued_run_s: float | None = None) -> Floats:
    """Expected time from now to the end of the job on each resource, shape (resources,)."""
    job, columns = question.job, question.table.columns
    run_us = expected_run_us(job, columns)
    ahead_us = run_us if queued_run_s is None else queued_run_s * SECOND_US
    lacking = np.maximum(question.table.lacking(job), 0.0)
    finish: Floats = run_us + lacking / columns.cpus * ahead_us
    return finish + question.distances.hops_us(columns.vo, job.input_mb, job.data)


def stay(local: Choice) -> Destination:
    """A free resource of this VO, or the queue of the best one."""
    return Destination(local.free, False) if local.free >= 0 else Destination(local.own, True)


def stay_or_leave(question: Question, local: Choice) -> Destination:
    """This VO or, if it has no eligible resource, the best one of another VO."""
    if local.own >= 0:
        return stay(local)
    choice = question.choice
    if choice.free >= 0:
        return Destination(choice.free, False)
    return Destination(choice.others, True) if choice.others >= 0 else NO_DESTINATION


def _least_loaded(question: Question, rows: Ints, loads: Floats, utilities: Floats) -> int:
    """Of `rows` of the least loaded VO: a free one, then the best, then the first."""
    table = question.table
    lacking = table.lacking(question.job)[rows] > 0.0
    order = np.lexsort((rows, -utilities[rows], lacking, loads[rows]))
    return int(rows[order[0]])
