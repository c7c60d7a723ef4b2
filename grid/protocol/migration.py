"""External migration: a protocol between the Local Dispatchers of gang clusters (GM V-A).

A dispatcher with a waiting gang (the giver) asks the others in turn for idle processors. A taker
that has them reserves and grants them; only then does the gang leave its queues and is sent.

Messages between two dispatchers arrive once and in order (`grid.kernel.reliable`), but any of them
may be late. A giver has one attempt at a time, under a number. An attempt ends when it is refused,
when the gang has arrived, or when the giver cancels it, since no answer has come within
`answer_within_us`. A taker keeps a reservation no longer than that. A gang whose reservation has
ended, also by an outage, is queued when its tasks have been transferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grid.kernel.entity import Context, MessageHandler
from grid.model.job import Amounts
from grid.model.messages import (
    AskMigration,
    CancelMigration,
    GangMoved,
    MigrationGranted,
    MigrationRefused,
    MoveGang,
)
from grid.model.platform import GangLimits

if TYPE_CHECKING:
    from grid.cluster.gang.core import GangCluster, WaitingGang

_ASK_AGAIN = "migration/ask"
_NO_ANSWER = "migration/answer"
_RESERVED = "migration/reserved/"
_LATE = "migration/late/"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another Local Dispatcher, and the most that a gang may hold there."""

    name: str
    limits: GangLimits


@dataclass(slots=True)
class _Attempt:
    """The current attempt of a giver at a taker."""

    number: int
    wanted: int
    """Processors of a request without an answer."""
    resources: Amounts
    reservation: int | None = None


class Migration(MessageHandler):
    """Gives gangs of `cluster`, number `number` of the VO's that migrate, and takes others' gangs.

    After a round without a grant a giver pauses for the policy's `ask_every_us`.
    """

    def __init__(self, cluster: GangCluster, number: int, peers: tuple[Peer, ...]) -> None:
        self._cluster = cluster
        self._peers = peers
        cluster.send_to([peer.limits for peer in peers])
        # Incremented by the number of dispatchers, so that no two use the same number.
        self._number = number
        self._gang: WaitingGang | None = None
        """The gang of this attempt as a giver."""
        self._is_sent = False
        """It is on its way to the taker."""
        self._is_pausing = False
        self._left: list[Peer] = []
        self._taker = ""
        self._attempts: dict[str, _Attempt] = {}
        """As a taker, by giver."""
        self._late: dict[int, MoveGang] = {}

    def after_plan(self, ctx: Context) -> None:
        """Answer other clusters first: the plan has already used what gangs here could use."""
        self._answer(ctx)
        self._consider(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == _ASK_AGAIN:
            self._is_pausing = False
        elif timer == _NO_ANSWER:
            ctx.send(self._taker, CancelMigration(self._number))
            self._ask_next(ctx)
        elif timer.startswith(_LATE):
            # All tasks of a late gang are here.
            moved = self._late.pop(int(timer.removeprefix(_LATE)))
            self._cluster.receive_late(moved.job, moved.progress, ctx.now)
        else:
            # A gang did not arrive within its reservation.
            self._end(ctx, timer.removeprefix(_RESERVED))

    # Giving

    def _consider(self, ctx: Context) -> None:
        """After a plan: begin an attempt, if there is none and a gang waits."""
        if self._gang is None and not self._is_pausing:
            self._gang = self._cluster.waiting_gang()
            if self._gang is not None:
                _, _, size, requests = self._gang
                self._left = [peer for peer in self._peers if peer.limits.hold(size, requests)]
                self._ask_next(ctx)

    def on_migration_granted(self, ctx: Context, _: str, granted: MigrationGranted) -> None:
        """Send the gang."""
        number = granted.number
        if not self._is_asked(number):
            return
        assert self._gang is not None
        sent = self._cluster.send_away(self._gang, ctx.now)
        ctx.cancel_timer(_NO_ANSWER)
        if sent is None:
            # It has started in the meantime.
            ctx.send(self._taker, CancelMigration(number))
            self._gang = None
            return
        job, progress = sent
        self._is_sent = True
        ctx.send(self._taker, MoveGang(number, job, progress), job.input_mb)

    def on_migration_refused(self, ctx: Context, _: str, refused: MigrationRefused) -> None:
        if self._is_asked(refused.number):
            self._ask_next(ctx)

    def on_gang_moved(self, ctx: Context, _: str, moved: GangMoved) -> None:
        del ctx, moved
        self._gang, self._is_sent = None, False

    def _is_asked(self, number: int) -> bool:
        """Whether that attempt waits for an answer; it may have been cancelled."""
        return self._gang is not None and not self._is_sent and number == self._number

    def _ask_next(self, ctx: Context) -> None:
        """Ask the next peer of this round, under a new number; after the last, pause."""
        assert self._gang is not None
        ctx.cancel_timer(_NO_ANSWER)
        if not self._left:
            self._gang = None
            self._is_pausing = True
            ctx.set_timer(self._cluster.policy.ask_every_us, _ASK_AGAIN)
            return
        self._number += len(self._peers) + 1
        self._taker = self._left.pop(0).name
        _, _, size, requests = self._gang
        ctx.send(self._taker, AskMigration(self._number, size, requests))
        ctx.set_timer(self._cluster.policy.answer_within_us, _NO_ANSWER)

    # Taking

    def on_ask_migration(self, _: Context, giver: str, ask: AskMigration) -> None:
        """Note the request, which is answered after the plan of this instant."""
        self._attempts[giver] = _Attempt(ask.number, ask.processors, ask.resources)

    def _answer(self, ctx: Context) -> None:
        """After a plan, which goes first: answer requests with the processors left idle."""
        for giver, attempt in list(self._attempts.items()):
            if attempt.wanted == 0:
                continue
            wanted, requests = attempt.wanted, attempt.resources
            attempt.reservation = self._cluster.reserve(wanted, ctx.now, requests)
            attempt.wanted = 0
            if attempt.reservation is None:
                del self._attempts[giver]
                ctx.send(giver, MigrationRefused(attempt.number))
            else:
                ctx.send(giver, MigrationGranted(attempt.number))
                ctx.set_timer(self._cluster.policy.answer_within_us, _RESERVED + giver)

    def on_cancel_migration(self, ctx: Context, giver: str, _: CancelMigration) -> None:
        self._end(ctx, giver)

    def _end(self, ctx: Context, giver: str) -> None:
        """End the attempt, if it has not been refused and its reservation has not ended."""
        attempt = self._attempts.pop(giver, None)
        if attempt is not None and attempt.reservation is not None:
            self._cluster.cancel(attempt.reservation, ctx.now)
            ctx.cancel_timer(_RESERVED + giver)

    def on_move_gang(self, ctx: Context, giver: str, moved: MoveGang) -> None:
        """Accept the gang; without its reservation, when all its tasks are here."""
        ctx.send(giver, GangMoved(moved.number))
        attempt = self._attempts.pop(giver, None)
        kept = None if attempt is None else attempt.reservation
        if kept is not None:
            ctx.cancel_timer(_RESERVED + giver)
            if self._cluster.receive(moved.job, moved.progress, kept, ctx.now):
                return
            # An outage has ended the reservation.
            self._cluster.cancel(kept, ctx.now)
        self._late[moved.number] = moved
        ctx.set_timer(self._cluster.policy.external_overhead_us, f"{_LATE}{moved.number}")
