"""Forwarding by calls for bids: the policies, and how Local Schedulers call, bid and reserve.

A scheduler that has a job calls other VOs for bids, each call under its own number (`CallId`). A
scheduler that is called selects its best resource, requests a reservation there from its Resource
Manager if the call asks for one, and bids. The caller awards the job to one bid at most, and
releases all other reservations. A reservation that is neither used nor released expires with its
lease.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.kernel.entity import Context
from grid.model.job import Job, JobKey
from grid.model.messages import (
    Bid,
    CallForBids,
    CallId,
    QueryResources,
    ReleaseReservation,
    RequestReservation,
    ReservationReply,
)
from grid.model.resources import ResourceTable
from grid.model.time import Time, from_seconds
from grid.protocol.forwarding import (
    Answer,
    Ask,
    Award,
    Destination,
    Question,
    expected_run_us,
    remote_rows,
)
from grid.protocol.forwarding.local import expected_finish_us, stay_or_leave
from grid.protocol.names import Peers
from grid.protocol.selection import Selection
from grid.protocol.settings import count, seconds

ROUNDS_BEFORE_BACK_OFF = 2000
"""Rounds of a job after which the next ones take longer and longer. No built-in policy has more."""
MOST_DOUBLINGS = 32
ROUND = "round "
"""The timers of rounds begin with this."""
Lease = Annotated[float, seconds("how long an unused reservation is held")]
Wait = Annotated[float, seconds("how long to wait for replies")]


# Policies


def reserve(
    question: Question,
    *,
    lease_s: Lease = 60.0,
    wait_s: Wait = 30.0,
    tries: Annotated[int, count("maximum number of VOs that are asked")] = 3,
    at_once: Annotated[int, count("number of VOs that are asked at the same time")] = 1,
) -> Answer:
    """If nothing is free here, a job reserves CPUs in another VO before it goes there.

    The best VO by known state is asked for a reservation under a lease. If it grants one, the job
    follows; otherwise the next VO is asked. If none has free CPUs, the job queues here. Advance
    reservation as in GARA (Foster et al. 1999), with leases of Gray and Cheriton (1989).
    """
    local = question.local_choice()
    if local.free >= 0:
        return Destination(local.free, False)
    held = _held(question)
    if held:
        return Award(max(held, key=lambda number: question.bids[number].utility))
    left = tries - len(question.asked)
    vos = _best_vos(question)[: min(left, at_once)]
    if left > 0 and vos:
        return Ask(vos, from_seconds(wait_s), enough=1, lease_us=from_seconds(lease_s))
    return stay_or_leave(question, local)


def auction(
    question: Question,
    *,
    wait_s: Wait = 10.0,
    bidders: Annotated[
        int | None,
        count("number of VOs, drawn at random, that receive the call; none: all", 1, 20_000),
    ] = None,
    lease_s: Annotated[
        float, seconds("time for which bidders reserve free CPUs; 0: no reservation", 0)
    ] = 0.0,
    when: Annotated[
        Literal["busy", "always"],
        Field(
            description=("when bids are requested: if no local resource is free, or for every job")
        ),
    ] = "busy",
) -> Answer:
    """If nothing is free here, a job is offered to other VOs, and goes to the best bidder.

    The contract net of Smith (1980): a call, bids until a deadline, and an award. A bid contains
    the expected end of the job there, based on its estimate. This end, plus the transfer, is
    compared with the expected end in this VO.
    """
    local = question.local_choice()
    if local.free >= 0 and when == "busy":
        return Destination(local.free, False)
    if not question.asked and not question.own_only:
        rows = remote_rows(question, question.utilities())
        vos = tuple(np.unique(question.table.columns.vo[rows]).tolist())
        if bidders is not None and bidders < len(vos):
            drawn = question.rng.choice(len(vos), bidders, replace=False)
            vos = tuple(vos[place] for place in sorted(drawn.tolist()))
        if vos:
            return Ask(vos, from_seconds(wait_s), lease_us=from_seconds(lease_s))
    useful = [number for number, bid in enumerate(question.bids) if bid.resource >= 0]
    if useful:
        ends = {number: _end_us(question, question.bids[number]) for number in useful}
        best = min(useful, key=lambda number: (ends[number], question.bids[number].vo))
        own = local.free if local.free >= 0 else local.own
        if own < 0 or ends[best] < expected_finish_us(question)[own]:
            return Award(best)
    return stay_or_leave(question, local)


def redundant(
    question: Question,
    *,
    copies: Annotated[
        int, count("number of VOs in which the job queues, including its own", 2)
    ] = 3,
    wave: Annotated[
        int | None, count("number of copies that are sent at the same time; none: all")
    ] = None,
    wave_s: Annotated[float, seconds("time between two waves of copies")] = 600.0,
    others: Annotated[
        Literal["best", "random"],
        Field(
            description=(
                "choice of the other VOs: the best according to their known states, or random ones"
            )
        ),
    ] = "best",
    lease_s: Lease = 60.0,
) -> Answer:
    """If nothing is free here, a job queues in several VOs, and starts in the first with free CPUs.

    Redundant requests of Casanova (2007) with the late binding of Sparrow (Ousterhout et al. 2013):
    only a reservation is queued. When its turn comes, its CPUs are held and the job's scheduler is
    notified. The scheduler sends the job to the first such VO and cancels the other reservations,
    so the job starts once.
    """
    held = _held(question)
    if held:
        return Award(held[0])
    local = question.local_choice()
    if local.free >= 0:
        return Destination(local.free, False)
    if question.own_only:
        return stay_or_leave(question, local)
    lease_us = from_seconds(lease_s)
    left = copies - len(question.asked)
    vos = _queues(question, local.own >= 0, others)[: max(0, left)]
    now = vos[: wave or copies]
    if now:
        wait_us = from_seconds(wave_s) if len(vos) > len(now) else None
        return Ask(now, wait_us, enough=1, lease_us=lease_us, queue=True)
    if question.pending:
        return Ask((), None, enough=1, lease_us=lease_us, queue=True)
    return stay_or_leave(question, local)


def delegated(
    question: Question,
    *,
    children: Annotated[int, count("number of children of each node of the tree", 2, 20_000)] = 4,
    wait_s: Wait = 30.0,
    lease_s: Lease = 60.0,
) -> Answer:
    """If nothing is free here, a job borrows a resource through a hierarchy, nearest VOs first.

    Delegated matchmaking of Iosup et al. (2007). VOs are the leaves of a tree, in the scenario's
    order. All VOs under the parent node are asked, then all under the next node up, and so on up to
    the root. The first group with free CPUs lends them under a lease.
    """
    local = question.local_choice()
    if local.free >= 0:
        return Destination(local.free, False)
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
    return stay_or_leave(question, local)


def _queues(question: Question, has_own: bool, others: str) -> tuple[int, ...]:
    """VOs that were not asked yet: its own, then others in order."""
    vos = _best_vos(question)
    if others == "random":
        vos = tuple(vos[place] for place in question.rng.permutation(len(vos)).tolist())
    own = (question.vo,) if has_own and question.vo not in question.asked else ()
    return own + vos


def _held(question: Question) -> list[int]:
    """The numbers of the bids with a reservation, in order of arrival."""
    return [number for number, bid in enumerate(question.bids) if bid.held]


def _end_us(question: Question, bid: Bid) -> Time:
    """Time from now to the end of the job at the bidder, including the transfer."""
    hop = question.distances.hops_us(np.array([bid.vo]), question.job.input_mb, question.job.data)
    return int(hop[0]) + bid.finish_us


def _best_vos(question: Question) -> tuple[int, ...]:
    """Eligible other VOs that were not asked yet: free by the known state, then by utility."""
    utilities, table = question.utilities(), question.table
    rows = remote_rows(question, utilities)
    lacking = table.lacking(question.job)[rows] > 0.0
    load = table.assigned_for(question.job)[rows] / table.columns.cpus[rows]
    order = rows[np.lexsort((rows, load, -utilities[rows], lacking))]
    vos = dict.fromkeys(table.columns.vo[order].tolist())
    return tuple(vo for vo in vos if vo not in question.asked)


# The protocol


@dataclass(slots=True)
class _Negotiation:
    """The calls for one job, round by round."""

    job: Job
    open: dict[int, int] = field(default_factory=dict)
    """VO by number of each call that may still be answered or has a reservation."""
    asked: list[int] = field(default_factory=list)
    bids: list[Bid] = field(default_factory=list)
    rounds: int = 0
    round_number: int = 0
    """The number of this round; its calls have the ones after it."""
    missing: int = 0
    """Calls of this round without an answer."""
    enough: int = 0
    """Free bids of this round and reservations that end the round."""
    free: int = 0
    """Free bids of this round without a reservation."""
    held: int = 0
    """Bids of all rounds with a reservation."""
    is_waiting: bool = False


class Caller:
    """Calls for bids, and keeps the answers until the job has a resource."""

    def __init__(self, schedulers: tuple[str, ...]) -> None:
        self._schedulers = schedulers
        self._calls = 0
        self._negotiations: dict[JobKey, _Negotiation] = {}
        self._job_of: dict[int, JobKey] = {}
        """The job of each open call and each open round."""

    def so_far(self, key: JobKey) -> tuple[tuple[int, ...], tuple[Bid, ...], int]:
        """The VOs asked about that job, their bids, and how many calls are without an answer."""
        talk = self._negotiations.get(key)
        if talk is None:
            return (), (), 0
        return tuple(talk.asked), tuple(talk.bids), len(talk.open) - talk.held

    def ask(self, ctx: Context, job: Job, ask: Ask) -> None:
        """Begin a round.

        A policy that asks repeatedly without end meets an exponential back-off, so that virtual
        time advances until the run is found to make no progress.
        """
        talk = self._negotiations.setdefault(job.key, _Negotiation(job))
        talk.rounds += 1
        doublings = talk.rounds - ROUNDS_BEFORE_BACK_OFF
        if doublings > 0:
            least_us = 1 << min(doublings, MOST_DOUBLINGS)
            ask = ask._replace(wait_us=max(ask.wait_us or 0, least_us), enough=0)
        self._calls += 1
        talk.round_number = self._calls
        self._job_of[self._calls] = job.key
        talk.missing, talk.enough, talk.is_waiting = len(ask.vos), ask.enough, True
        talk.missing += doublings > 0
        talk.free = 0
        for vo in ask.vos:
            self._calls += 1
            self._job_of[self._calls] = job.key
            talk.open[self._calls] = vo
            talk.asked.append(vo)
            call = CallForBids(job, (ctx.name, self._calls), ask.lease_us, ask.queue)
            ctx.send(self._schedulers[vo], call)
        if ask.wait_us is not None:
            ctx.set_timer(ask.wait_us, f"{ROUND}{talk.round_number}")

    def on_bid(self, ctx: Context, sender: str, bid: Bid) -> JobKey | None:
        """Returns the job whose round ends with this bid."""
        number = bid.call[1]
        key = self._job_of.get(number)
        if key is None:
            if bid.held:
                ctx.send(sender, ReleaseReservation(bid.call))
            return None
        talk = self._negotiations[key]
        talk.bids.append(bid)
        if not bid.held:
            del talk.open[number], self._job_of[number]
        is_new = number > talk.round_number
        talk.missing -= is_new
        talk.held += bid.held
        talk.free += is_new and bid.free and not bid.held
        if talk.missing == 0 or 0 < talk.enough <= talk.free + talk.held:
            return self._close(ctx, talk)
        return None

    def timeout(self, ctx: Context, timer: str) -> JobKey | None:
        """The time of a round is over. Returns its job, if the round is still open."""
        key = self._job_of.get(int(timer.removeprefix(ROUND)))
        return None if key is None else self.close(ctx, key)

    def close(self, ctx: Context, key: JobKey) -> JobKey | None:
        """The open round for that job ends. Returns the job, None if no round is open."""
        talk = self._negotiations.get(key)
        return None if talk is None else self._close(ctx, talk)

    def settle(self, ctx: Context, key: JobKey, taken: Bid | None) -> None:
        """The job goes to the bid `taken`, or elsewhere: release all other reservations."""
        talk = self._negotiations.pop(key, None)
        if talk is None:
            return
        self._close(ctx, talk)
        for number, vo in talk.open.items():
            del self._job_of[number]
            call = (ctx.name, number)
            if taken is None or call != taken.call:
                ctx.send(self._schedulers[vo], ReleaseReservation(call))

    def _close(self, ctx: Context, talk: _Negotiation) -> JobKey | None:
        if not talk.is_waiting:
            return None
        talk.is_waiting = False
        ctx.cancel_timer(f"{ROUND}{talk.round_number}")
        del self._job_of[talk.round_number]
        return talk.job.key


@dataclass(slots=True)
class _OpenCall:
    """A call of another scheduler that has no answer yet."""

    call: CallForBids
    caller: str
    resource: int = -1
    utility: float = 0.0
    run_us: float = 0.0
    """Expected run time of the job on the resource."""
    cpus: float = 1.0


class Bidder:
    """Answers calls for bids for its VO."""

    def __init__(self, selection: Selection, peers: Peers) -> None:
        self._vo = peers.distances.vo
        self._selection = selection
        self._information, self._manager = peers.information, peers.resource_manager
        self._calls: dict[CallId, _OpenCall] = {}

    def on_call_for_bids(self, ctx: Context, caller: str, call: CallForBids) -> None:
        self._calls[call.call] = _OpenCall(call, caller)
        ctx.send(self._information, QueryResources(call.call))

    def on_resources(self, ctx: Context, call: CallId, table: ResourceTable) -> None:
        """Select a resource, and request a reservation. The call may be cancelled already."""
        open_call = self._calls.get(call)
        if open_call is None:
            return
        job = open_call.call.job
        choice = self._selection.choose(job, table, self._vo, True, ctx.rng)
        row = choice.free if choice.free >= 0 else choice.own
        if row < 0:
            self._bid(ctx, call, Bid(call, self._vo, -1, 0.0, False, False, 0))
            return
        resource = open_call.resource = int(table.columns.number[row])
        open_call.utility = self._selection.utility(job, table, row)
        open_call.run_us = float(expected_run_us(job, table.columns)[row])
        open_call.cpus = float(table.columns.cpus[row])
        lease_us, queue = open_call.call.lease_us, open_call.call.queue
        ctx.send(self._manager, RequestReservation(call, job, resource, lease_us, queue))

    def on_reservation_reply(self, ctx: Context, _: str, reply: ReservationReply) -> None:
        call = self._calls.get(reply.call)
        if call is None:
            return
        lacking = max(0.0, reply.assigned + call.call.job.processors - call.cpus)
        wait_us = 0.0 if reply.free else lacking / call.cpus * call.run_us
        bid = Bid(
            reply.call, self._vo, call.resource if reply.admitted else -1, call.utility,
            reply.free, reply.held, round(call.run_us + wait_us),
        )  # fmt: skip
        self._bid(ctx, reply.call, bid)

    def on_release_reservation(self, ctx: Context, _: str, release: ReleaseReservation) -> None:
        self._calls.pop(release.call, None)
        ctx.send(self._manager, release)

    def _bid(self, ctx: Context, call: CallId, bid: Bid) -> None:
        ctx.send(self._calls.pop(call).caller, bid)
