"""Rules by which a Local Scheduler asks others first: one after the other, or several at once."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.messages import Bid
from grid.model.time import Time, from_seconds
from grid.protocol.forwarding import (
    Answer,
    Ask,
    Award,
    Destination,
    Question,
    remote_rows,
)
from grid.protocol.forwarding.local import expected_finish_us, stay_or_leave

Lease = Annotated[
    float, Field(ge=1e-6, le=1e9, description="how long a place is held that nobody takes")
]
Wait = Annotated[float, Field(ge=1e-6, le=1e9, description="how long to wait for answers")]


def reserve(
    question: Question,
    *,
    lease_s: Lease = 60.0,
    wait_s: Wait = 30.0,
    tries: Annotated[int, Field(ge=1, le=1000, description="VOs that are asked at most")] = 3,
    at_once: Annotated[int, Field(ge=1, le=1000, description="how many of them together")] = 1,
) -> Answer:
    """A job that finds nothing free here has a place reserved elsewhere before it goes there.

    The VO that seems best is asked for its place, which it holds under a lease; when the answer
    comes the job follows, and otherwise the next VO is asked. If none has a place, it queues here.
    Advance reservation as in GARA (Foster et al. 1999), and leases as Gray and Cheriton (1989).
    """
    home = question.local_choice()
    if home.free >= 0:
        return Destination(home.free, False)
    held = _held(question)
    if held:
        return Award(max(held, key=lambda number: question.bids[number].utility))
    left = tries - len(question.asked)
    vos = _best_vos(question)[: min(left, at_once)]
    if left > 0 and vos:
        return Ask(vos, from_seconds(wait_s), enough=1, lease_us=from_seconds(lease_s))
    return stay_or_leave(question, home)


def auction(
    question: Question,
    *,
    wait_s: Wait = 10.0,
    bidders: Annotated[
        int | None, Field(ge=1, le=20_000, description="VOs drawn by lot to be called; none: all")
    ] = None,
    lease_s: Annotated[
        float, Field(ge=0, le=1e9, description="how long bidders hold a free place; 0: they don't")
    ] = 0.0,
    when: Annotated[
        Literal["busy", "always"],
        Field(description="call if nothing is free here, or for every job"),
    ] = "busy",
) -> Answer:
    """A job that finds nothing free here is offered to other VOs, and goes to the best bid.

    The contract net of Smith (1980): a call, bids until a time, an award. A bid says when the job
    would end there, by its user's estimate; with what the way takes it is held against the
    expected end at home.
    """
    home = question.local_choice()
    if home.free >= 0 and when == "busy":
        return Destination(home.free, False)
    if not question.asked and not question.own_only:
        vos = _vos_elsewhere(question)
        if bidders is not None and bidders < len(vos):
            drawn = question.rng.choice(len(vos), bidders, replace=False)
            vos = tuple(vos[place] for place in sorted(drawn.tolist()))
        if vos:
            return Ask(vos, from_seconds(wait_s), lease_us=from_seconds(lease_s))
    useful = [number for number, bid in enumerate(question.bids) if bid.resource >= 0]
    if useful:
        ends = {number: _end_us(question, question.bids[number]) for number in useful}
        best = min(useful, key=lambda number: (ends[number], question.bids[number].vo))
        own = home.free if home.free >= 0 else home.own
        if own < 0 or ends[best] < expected_finish_us(question)[own]:
            return Award(best)
    return stay_or_leave(question, home)


def redundant(
    question: Question,
    *,
    copies: Annotated[
        int, Field(ge=2, le=1000, description="VOs in whose queues it stands, its own is one")
    ] = 3,
    wave: Annotated[
        int | None, Field(ge=1, le=1000, description="how many copies at once; none: all")
    ] = None,
    wave_s: Annotated[
        float, Field(ge=1e-6, le=1e9, description="time from one wave to the next")
    ] = 600.0,
    others: Annotated[
        Literal["best", "random"], Field(description="which other VOs: the best known, or by lot")
    ] = "best",
    lease_s: Lease = 60.0,
) -> Answer:
    """A job that finds nothing free here stands in the queues of several VOs; the first one wins.

    Redundant requests of Casanova (2007), bound late as in Sparrow (Ousterhout et al. 2013): what
    stands in a queue is a place. When its turn comes, its CPUs are held and the job's scheduler is
    told, which sends the job to the first that says so and cancels the others. So it starts once.
    """
    held = _held(question)
    if held:
        return Award(held[0])
    home = question.local_choice()
    if home.free >= 0:
        return Destination(home.free, False)
    if question.own_only:
        return stay_or_leave(question, home)
    lease_us = from_seconds(lease_s)
    left = copies - len(question.asked)
    vos = _queues(question, home.own >= 0, others)[: max(0, left)]
    now = vos[: wave or copies]
    if now:
        wait_us = from_seconds(wave_s) if len(vos) > len(now) else None
        return Ask(now, wait_us, enough=1, lease_us=lease_us, queue=True)
    if question.pending:
        return Ask((), None, enough=1, lease_us=lease_us, queue=True)
    return stay_or_leave(question, home)


def _queues(question: Question, home: bool, others: str) -> tuple[int, ...]:
    """VOs that were not asked yet: its own, then others in order."""
    vos = _best_vos(question)
    if others == "random":
        vos = tuple(vos[place] for place in question.rng.permutation(len(vos)).tolist())
    own = (question.vo,) if home and question.vo not in question.asked else ()
    return own + vos


def delegated(
    question: Question,
    *,
    children: Annotated[
        int,
        Field(ge=2, le=20_000, description="VOs or groups of VOs below one site of the tree"),
    ] = 4,
    wait_s: Wait = 30.0,
    lease_s: Lease = 60.0,
) -> Answer:
    """A job that finds nothing free here borrows a resource along a hierarchy, the nearest first.

    Delegated matchmaking of Iosup et al. (2007). VOs are the leaves of a tree, in the order in
    which the scenario has them. All below the parent are asked, then all below its parent, and so
    on up to the root; the first group that has a free place lends it under a lease.
    """
    home = question.local_choice()
    if home.free >= 0:
        return Destination(home.free, False)
    held = _held(question)
    if held:
        return Award(max(held, key=lambda number: question.bids[number].utility))
    left = () if question.own_only else _best_vos(question)
    group = children
    while left:
        near = tuple(vo for vo in left if vo // group == question.vo // group)
        if near:
            return Ask(near, from_seconds(wait_s), enough=1, lease_us=from_seconds(lease_s))
        group *= children
    return stay_or_leave(question, home)


def _held(question: Question) -> list[int]:
    """The numbers of the bids under which a place is held, in order of arrival."""
    return [number for number, bid in enumerate(question.bids) if bid.held]


def _end_us(question: Question, bid: Bid) -> Time:
    """When the job would end at the bidder, its own way there included, from now."""
    hop = question.distances.hops_us(np.array([bid.vo]), question.job.input_mb)
    return int(hop[0]) + bid.finish_us


def _vos_elsewhere(question: Question) -> tuple[int, ...]:
    """The other VOs with a resource that would do, in order."""
    rows = remote_rows(question, question.utilities())
    return tuple(np.unique(question.table.columns.vo[rows]).tolist())


def _best_vos(question: Question) -> tuple[int, ...]:
    """Other VOs that were not asked yet, the best first: free by what is known, then of worth."""
    utilities, table = question.utilities(), question.table
    rows = remote_rows(question, utilities)
    lacking = table.lacking_cpus(question.job.processors)[rows] > 0.0
    load = table.assigned_cpus[rows] / table.columns.cpus[rows]
    order = rows[np.lexsort((rows, load, -utilities[rows], lacking))]
    vos = dict.fromkeys(table.columns.vo[order].tolist())
    return tuple(vo for vo in vos if vo not in question.asked)
