"""Rules by which a Local Scheduler asks others first: reservations, auctions."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.forwarding.interface import Answer, Ask, Award, Destination, Question, rows_elsewhere
from grid.forwarding.local_rules import expected_finish_us, stay_if_possible
from grid.model.messages import Bid
from grid.model.time import Time, from_seconds

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
    home = question.at_home()
    if home.free >= 0:
        return Destination(home.free, False)
    held = [number for number, bid in enumerate(question.bids) if bid.held]
    if held:
        return Award(max(held, key=lambda number: question.bids[number].utility))
    left = tries - len(question.asked)
    vos = _best_vos(question)[: min(left, at_once)]
    if left > 0 and vos:
        return Ask(vos, from_seconds(wait_s), enough=1, lease_us=from_seconds(lease_s))
    return stay_if_possible(question, home)


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
    home = question.at_home()
    if home.free >= 0 and when == "busy":
        return Destination(home.free, False)
    if not question.asked and not question.own_only:
        vos = _vos_elsewhere(question)
        if bidders is not None and bidders < len(vos):
            drawn = question.rng.choice(len(vos), bidders, replace=False)
            vos = tuple(vos[place] for place in sorted(drawn.tolist()))
        if vos:
            return Ask(vos, from_seconds(wait_s), lease_us=round(lease_s * 1e6))
    useful = [number for number, bid in enumerate(question.bids) if bid.resource >= 0]
    if useful:
        ends = {number: _end_us(question, question.bids[number]) for number in useful}
        best = min(useful, key=lambda number: (ends[number], question.bids[number].vo))
        own = home.free if home.free >= 0 else home.own
        if own < 0 or ends[best] < expected_finish_us(question)[own]:
            return Award(best)
    return stay_if_possible(question, home)


def _end_us(question: Question, bid: Bid) -> Time:
    """When the job would end at the bidder, its own way there included, from now."""
    hop = question.distances.hops_us(np.array([bid.vo]), question.job.input_mb)
    return int(hop[0]) + bid.finish_us


def _vos_elsewhere(question: Question) -> tuple[int, ...]:
    """The other VOs with a resource that would do, in order."""
    rows = rows_elsewhere(question, question.worth())
    return tuple(np.unique(question.table.columns.vo[rows]).tolist())


def _best_vos(question: Question) -> tuple[int, ...]:
    """Other VOs that were not asked yet, the best first: free by what is known, then of worth."""
    worth, table = question.worth(), question.table
    rows = rows_elsewhere(question, worth)
    lacking = table.assigned_cpus[rows] + question.job.processors > table.columns.cpus[rows]
    load = table.assigned_cpus[rows] / table.columns.cpus[rows]
    order = rows[np.lexsort((rows, load, -worth[rows], lacking))]
    vos = dict.fromkeys(table.columns.vo[order].tolist())
    return tuple(vo for vo in vos if vo not in question.asked)
