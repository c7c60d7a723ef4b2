"""How Local Schedulers ask each other for a place for a job: calls, bids, places that are held.

A scheduler that has a job calls for bids, each under a number of its own (`CallId`). A scheduler
that is called looks for its best resource and has its Resource Manager hold a place there, if the
call asks for that; then it bids. Whoever called takes one bid at most, and releases all other
places. A place that nobody takes or releases falls back when its lease is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
from grid.model.plugins.calls import failed
from grid.model.resources import ResourceTable
from grid.protocol.forwarding import Ask, expected_run_us
from grid.protocol.selection import Selection


@dataclass(slots=True)
class Conversation:
    """What other VOs were asked about one job, round by round.

    `open` are the calls that may still be answered or have a place held, with their VOs.
    """

    job: Job
    open: dict[int, int] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    bids: list[Bid] = field(default_factory=list)
    rounds: int = 0
    round_number: int = 0
    """The number of this round; its calls have the ones after it."""
    missing: int = 0
    """How many have not answered in this round."""
    enough: int = 0
    """With so many free bids of this round or held places, the round is over."""
    free: int = 0
    """Free bids of this round under which no place is held."""
    held: int = 0
    """Bids of all rounds under which a place is held."""
    is_waiting: bool = False


MOST_ROUNDS = 10_000


class Caller:
    """Calls for bids, and keeps what comes of it until the job has a place."""

    def __init__(self, schedulers: tuple[str, ...]) -> None:
        self._schedulers = schedulers
        self._calls = 0
        self._conversations: dict[JobKey, Conversation] = {}
        self._job_of: dict[int, JobKey] = {}
        """Of each call that is open and each round that is waited for, the job."""

    def so_far(self, key: JobKey) -> tuple[tuple[int, ...], tuple[Bid, ...], int]:
        """Who was asked about that job, what they bid, and how many calls are still open."""
        talk = self._conversations.get(key)
        if talk is None:
            return (), (), 0
        return tuple(talk.asked), tuple(talk.bids), len(talk.open) - talk.held

    def ask(self, ctx: Context, job: Job, ask: Ask, rule: object) -> None:
        """Begin a round, for `rule`."""
        talk = self._conversations.setdefault(job.key, Conversation(job))
        talk.rounds += 1
        if talk.rounds > MOST_ROUNDS:
            raise failed(rule, f"asks {MOST_ROUNDS:,} times for job {job.number} of {job.vo}")
        self._calls += 1
        talk.round_number = self._calls
        self._job_of[self._calls] = job.key
        talk.missing, talk.enough, talk.is_waiting = len(ask.vos), ask.enough, True
        talk.free = 0
        for vo in ask.vos:
            self._calls += 1
            self._job_of[self._calls] = job.key
            talk.open[self._calls] = vo
            talk.asked.append(vo)
            call = CallForBids(job, (ctx.name, self._calls), ask.lease_us, ask.queue)
            ctx.send(self._schedulers[vo], call)
        if ask.wait_us is not None:
            ctx.set_timer(ask.wait_us, _timer(talk))

    def hear(self, ctx: Context, sender: str, bid: Bid) -> JobKey | None:
        """A bid has come. Returns the job for which a round is over by that."""
        number = bid.call[1]
        key = self._job_of.get(number)
        if key is None:
            if bid.held:
                ctx.send(sender, ReleaseReservation(bid.call))
            return None
        talk = self._conversations[key]
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
        """The time for a round is over. Returns its job, if it still waits."""
        key = self._job_of.get(int(timer.removeprefix(_TIMER)))
        return None if key is None else self._close(ctx, self._conversations[key])

    def settle(self, ctx: Context, key: JobKey, taken: Bid | None) -> None:
        """The job has a place, or none: what other VOs hold for it is released."""
        talk = self._conversations.pop(key, None)
        if talk is None:
            return
        self._close(ctx, talk)
        for number, vo in talk.open.items():
            del self._job_of[number]
            call = (ctx.name, number)
            if taken is None or call != taken.call:
                ctx.send(self._schedulers[vo], ReleaseReservation(call))

    def _close(self, ctx: Context, talk: Conversation) -> JobKey | None:
        if not talk.is_waiting:
            return None
        talk.is_waiting = False
        ctx.cancel_timer(_timer(talk))
        del self._job_of[talk.round_number]
        return talk.job.key


_TIMER = "round "


def _timer(talk: Conversation) -> str:
    return f"{_TIMER}{talk.round_number}"


@dataclass(slots=True)
class _Inquiry:
    """A call that is being answered."""

    call: CallForBids
    caller: str
    resource: int = -1
    utility: float = 0.0
    run_us: float = 0.0
    """How long the job is expected to run there."""
    cpus: float = 1.0


class Bidder:
    """Answers calls of other schedulers for VO number `vo`."""

    def __init__(self, vo: int, selection: Selection, information: str, manager: str) -> None:
        self._vo = vo
        self._selection = selection
        self._information = information
        self._manager = manager
        self._inquiries: dict[CallId, _Inquiry] = {}

    def called(self, ctx: Context, caller: str, call: CallForBids) -> None:
        """First see what there is."""
        self._inquiries[call.call] = _Inquiry(call, caller)
        ctx.send(self._information, QueryResources(call.call))

    def look(self, ctx: Context, call: CallId, table: ResourceTable) -> None:
        """This is what there is; nobody may want to know any more."""
        inquiry = self._inquiries.get(call)
        if inquiry is None:
            return
        job = inquiry.call.job
        choice = self._selection.choose(job, table, self._vo, True, ctx.rng)
        row = choice.free if choice.free >= 0 else choice.own
        if row < 0:
            self._bid(ctx, call, Bid(call, self._vo, -1, 0.0, False, False, 0))
            return
        inquiry.resource = int(table.columns.number[row])
        inquiry.utility = self._selection.utility(job, table, row)
        inquiry.run_us = float(expected_run_us(job, table.columns)[row])
        inquiry.cpus = float(table.columns.cpus[row])
        hold = RequestReservation(
            call, job, inquiry.resource, inquiry.call.lease_us, inquiry.call.queue
        )
        ctx.send(self._manager, hold)

    def place(self, ctx: Context, answer: ReservationReply) -> None:
        """The Resource Manager has said what it can do."""
        inquiry = self._inquiries.get(answer.call)
        if inquiry is None:
            return
        lacking = max(0.0, answer.assigned + inquiry.call.job.processors - inquiry.cpus)
        wait_us = 0.0 if answer.free else lacking / inquiry.cpus * inquiry.run_us
        bid = Bid(
            answer.call, self._vo, inquiry.resource if answer.admitted else -1, inquiry.utility,
            answer.free, answer.held, round(inquiry.run_us + wait_us),
        )  # fmt: skip
        self._bid(ctx, answer.call, bid)

    def released(self, ctx: Context, release: ReleaseReservation) -> None:
        """The caller does not want it any more."""
        self._inquiries.pop(release.call, None)
        ctx.send(self._manager, release)

    def _bid(self, ctx: Context, call: CallId, bid: Bid) -> None:
        ctx.send(self._inquiries.pop(call).caller, bid)
