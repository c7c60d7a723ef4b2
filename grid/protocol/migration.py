"""External migration: a protocol between the Local Dispatchers of gang clusters (GM V-A).

A dispatcher with a waiting gang (the giver) asks the others in turn for idle processors. A taker
that has them reserves and grants them; only then does the gang leave its queues, and the giver
sends it until the taker confirms. Invariants, even if messages are lost, delayed or duplicated:

- From leaving its queues until the confirmation, a gang is with its giver, which only resends it.
  A taker accepts the gang of an attempt once, and confirms it each time. So no gang is lost or
  duplicated.
- A giver has one attempt at a time, under a number. A taker reserves processors for the last
  attempt of each giver only, and no longer than `answer_within_us`. So no reservation is left
  over. A gang whose reservation has ended, also by an outage, is queued when its tasks have been
  transferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from grid.kernel.entity import Context
from grid.model.job import Job
from grid.model.messages import (
    AskMigration,
    CancelMigration,
    GangMoved,
    GangProgress,
    MigrationGranted,
    MigrationRefused,
    MoveGang,
)

if TYPE_CHECKING:
    from grid.cluster.gang.core import GangExchange, WaitingGang

_ASK_AGAIN = "migration/ask"
_NO_ANSWER = "migration/answer"
_RESERVED = "migration/reserved/"
_LATE = "migration/late/"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another Local Dispatcher, and its number of processors."""

    name: str
    processors: int


class Stage(Enum):
    """State of an attempt to give a gang to another cluster."""

    NONE = "none"
    ASKED = "asked"
    SENT = "sent"


class GangGiver:
    """Gives gangs of `cluster`, number `number` of the VO's that migrate, to the others.

    After a round without a grant it pauses for the policy's `ask_every_us`.
    """

    def __init__(
        self,
        cluster: GangExchange,
        number: int,
        peers: tuple[Peer, ...],
    ) -> None:
        self._cluster = cluster
        self._peers = peers
        cluster.send_only(max(peer.processors for peer in peers))
        # Incremented by the number of dispatchers, so that no two use the same number.
        self._number = number
        self._stage = Stage.NONE
        self._pausing = False
        self._gang: WaitingGang | None = None
        self._left: list[Peer] = []
        self._taker = ""
        self._sent: tuple[Job, GangProgress] | None = None

    def consider(self, ctx: Context) -> None:
        """After a plan: begin an attempt, if there is none and a gang waits."""
        if self._stage is not Stage.NONE or self._pausing:
            return
        self._gang = self._cluster.waiting_gang()
        if self._gang is not None:
            size = self._gang.processors
            self._left = [peer for peer in self._peers if peer.processors >= size]
            self._ask_next(ctx)

    def on_migration_granted(self, ctx: Context, taker: str, number: int) -> bool:
        """Send the gang. Returns whether it has left its queues now."""
        if number != self._number or self._stage is Stage.NONE:
            # An answer to an earlier attempt.
            ctx.send(taker, CancelMigration(number))
            return False
        if self._stage is Stage.SENT:
            return False
        assert self._gang is not None
        self._sent = self._cluster.send_away(self._gang, ctx.now)
        if self._sent is None:
            # It has started in the meantime.
            ctx.send(taker, CancelMigration(number))
            self._end(ctx)
            return False
        self._stage = Stage.SENT
        self._send(ctx)
        return True

    def on_migration_refused(self, ctx: Context, number: int) -> None:
        if number == self._number and self._stage is Stage.ASKED:
            self._ask_next(ctx)

    def on_gang_moved(self, ctx: Context, number: int) -> None:
        if number == self._number and self._stage is Stage.SENT:
            self._sent = None
            self._end(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == _ASK_AGAIN:
            self._pausing = False
        elif self._stage is Stage.SENT:
            self._send(ctx)
        elif self._stage is Stage.ASKED:
            ctx.send(self._taker, CancelMigration(self._number))
            self._ask_next(ctx)

    def _ask_next(self, ctx: Context) -> None:
        """Ask the next peer of this round, under a new number; after the last, pause."""
        assert self._gang is not None
        if not self._left:
            self._end(ctx)
            self._pausing = True
            ctx.set_timer(self._cluster.policy.ask_every_us, _ASK_AGAIN)
            return
        self._number += len(self._peers) + 1
        self._stage = Stage.ASKED
        self._taker = self._left.pop(0).name
        ctx.send(self._taker, AskMigration(self._number, self._gang.processors))
        ctx.set_timer(self._cluster.policy.answer_within_us, _NO_ANSWER)

    def _send(self, ctx: Context) -> None:
        assert self._sent is not None
        job, progress = self._sent
        ctx.send(self._taker, MoveGang(self._number, job, progress), job.input_mb)
        ctx.set_timer(self._cluster.policy.answer_within_us, _NO_ANSWER)

    def _end(self, ctx: Context) -> None:
        self._stage = Stage.NONE
        self._gang = None
        ctx.cancel_timer(_NO_ANSWER)


@dataclass(slots=True)
class _Attempts:
    """The attempts of one giver at a taker."""

    number: int = -1
    """The last attempt; -1: none."""
    wanted: int = 0
    """Processors of a request without an answer."""
    reservation: int | None = None
    taken: int = -1
    """The last attempt whose gang was accepted."""


class Taker:
    """Takes gangs of other clusters into `cluster`."""

    def __init__(self, cluster: GangExchange) -> None:
        self._cluster = cluster
        self._attempts: dict[str, _Attempts] = {}
        self._late: dict[int, MoveGang] = {}

    def on_ask_migration(self, ctx: Context, giver: str, number: int, processors: int) -> None:
        """Note the request, which is answered after the plan of this instant."""
        attempts = self._attempts_of(giver)
        if number > attempts.number:
            self._begin(ctx, giver, number)
            attempts.wanted = processors
        elif number == attempts.number and attempts.reservation is not None:
            ctx.send(giver, MigrationGranted(number))

    def answer(self, ctx: Context) -> None:
        """After a plan, which goes first: answer requests with the processors left idle."""
        for giver, attempts in self._attempts.items():
            if attempts.wanted == 0:
                continue
            attempts.reservation = self._cluster.reserve(attempts.wanted)
            attempts.wanted = 0
            if attempts.reservation is None:
                ctx.send(giver, MigrationRefused(attempts.number))
            else:
                ctx.send(giver, MigrationGranted(attempts.number))
                ctx.set_timer(self._cluster.policy.answer_within_us, _RESERVED + giver)

    def on_cancel_migration(self, ctx: Context, giver: str, number: int) -> None:
        """End that attempt and all earlier ones."""
        if number >= self._attempts_of(giver).number:
            self._begin(ctx, giver, number)

    def on_move_gang(self, ctx: Context, giver: str, moved: MoveGang) -> bool:
        """Accept the gang, unless it was accepted before. Returns whether it was not."""
        attempts, number = self._attempts_of(giver), moved.number
        ctx.send(giver, GangMoved(number))
        if number <= attempts.taken:
            return False
        attempts.taken = number
        kept = attempts.reservation if number == attempts.number else None
        if kept is not None and self._cluster.receive(moved.job, moved.progress, kept, ctx.now):
            attempts.reservation = None
            ctx.cancel_timer(_RESERVED + giver)
        else:
            self._late[number] = moved
            ctx.set_timer(self._cluster.policy.external_overhead_us, f"{_LATE}{number}")
        return True

    def timeout(self, ctx: Context, timer: str) -> None:
        """All tasks of a late gang are here, or a gang did not arrive within its reservation."""
        if timer.startswith(_LATE):
            moved = self._late.pop(int(timer.removeprefix(_LATE)))
            self._cluster.receive_late(moved.job, moved.progress, ctx.now)
            return
        giver = timer.removeprefix(_RESERVED)
        self._begin(ctx, giver, self._attempts_of(giver).number)

    def _begin(self, ctx: Context, giver: str, number: int) -> None:
        """End all attempts before `number`."""
        attempts = self._attempts_of(giver)
        attempts.number, attempts.wanted = number, 0
        if attempts.reservation is not None:
            self._cluster.cancel(attempts.reservation, ctx.now)
            attempts.reservation = None
            ctx.cancel_timer(_RESERVED + giver)

    def _attempts_of(self, giver: str) -> _Attempts:
        return self._attempts.setdefault(giver, _Attempts())


class Migration:
    """Giver and taker of one Local Dispatcher; see `GangGiver` for the arguments."""

    def __init__(self, cluster: GangExchange, number: int, peers: tuple[Peer, ...]) -> None:
        self._giver = GangGiver(cluster, number, peers)
        self._taker = Taker(cluster)

    def handle(self, ctx: Context, sender: str, message: Any) -> int:
        """Returns 1 if a gang has arrived with the message, -1 if one has left, else 0."""
        match message:
            case AskMigration(number, processors):
                self._taker.on_ask_migration(ctx, sender, number, processors)
            case MigrationGranted(number):
                return -int(self._giver.on_migration_granted(ctx, sender, number))
            case MigrationRefused(number):
                self._giver.on_migration_refused(ctx, number)
            case MoveGang():
                return int(self._taker.on_move_gang(ctx, sender, message))
            case GangMoved(number):
                self._giver.on_gang_moved(ctx, number)
            case CancelMigration(number):
                self._taker.on_cancel_migration(ctx, sender, number)
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")
        return 0

    def timeout(self, ctx: Context, timer: str) -> None:
        part = self._taker if timer.startswith((_RESERVED, _LATE)) else self._giver
        part.timeout(ctx, timer)

    def after_plan(self, ctx: Context) -> None:
        """Answer other clusters first: the plan has already used what gangs here could use."""
        self._taker.answer(ctx)
        self._giver.consider(ctx)
