"""External migration: a protocol between the Local Dispatchers of gang clusters (GM V-A).

A dispatcher with a gang that waits asks one other after the other whether it has idle processors
for it. One that has, keeps them and says so; the gang leaves its queues only then, and is sent
until the other confirms. What holds however messages are lost, delayed or doubled:

- From the moment it leaves its queues until the confirmation, a gang is with its giver, which does
  nothing but send it. A taker takes the gang of a number once, and confirms it each time it is
  asked to. So no gang is lost or doubled.
- A giver has one attempt under way, and counts them. A taker keeps processors for the last attempt
  of each giver only, and no longer than `answer_within_us`. So no reservation is left behind. A
  gang that comes when its reservation has been given up, or was ended by an outage, joins the
  queues, like any other, when its tasks have been transferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from grid.kernel.entity import Context
from grid.model.job import Job
from grid.model.migration_messages import (
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

TIMERS = "migration"
"""The timers of this protocol begin with this."""
_ASK_AGAIN = f"{TIMERS}/ask"
_NO_ANSWER = f"{TIMERS}/answer"
_RESERVED = f"{TIMERS}/reserved/"
_LATE = f"{TIMERS}/late/"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another Local Dispatcher, and how many processors it has."""

    name: str
    processors: int


class Stage(Enum):
    """Where an attempt to give a gang away stands."""

    NONE = "none"
    ASKED = "asked"
    SENT = "sent"


class GangGiver:
    """Gives gangs of `cluster`, which is number `number` of the VO's that migrate, to the others.

    After a round in which nobody had a place it pauses for the policy's `ask_every_us`.
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
        # With steps as long as there are dispatchers, no two of them use the same number.
        self._number = number
        self._stage = Stage.NONE
        self._pausing = False
        self._gang: WaitingGang | None = None
        self._left: list[Peer] = []
        self._taker = ""
        self._sent: tuple[Job, GangProgress] | None = None

    def consider(self, ctx: Context) -> None:
        """After a plan: if no attempt is under way, and a gang waits, ask the first of all."""
        if self._stage is not Stage.NONE or self._pausing:
            return
        self._gang = self._cluster.waiting_gang()
        if self._gang is not None:
            size = self._gang.processors
            self._left = [peer for peer in self._peers if peer.processors >= size]
            self._ask_next(ctx)

    def granted(self, ctx: Context, taker: str, number: int) -> bool:
        """Processors are kept there for the gang: send it. Returns whether it has left."""
        if number != self._number or self._stage is Stage.NONE:
            # The answer of an attempt that is over.
            ctx.send(taker, CancelMigration(number))
            return False
        if self._stage is Stage.SENT:
            return False
        assert self._gang is not None
        self._sent = self._cluster.send_away(self._gang, ctx.now)
        if self._sent is None:
            # It has started meanwhile.
            ctx.send(taker, CancelMigration(number))
            self._end(ctx)
            return False
        self._stage = Stage.SENT
        self._send(ctx)
        return True

    def refused(self, ctx: Context, number: int) -> None:
        """No place there: ask the next."""
        if number == self._number and self._stage is Stage.ASKED:
            self._ask_next(ctx)

    def moved(self, ctx: Context, number: int) -> None:
        """The gang has arrived."""
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
class _Guest:
    """What a taker knows of one giver."""

    number: int = -1
    """The last attempt that has come; -1: none."""
    wanted: int = 0
    """Processors that it asked for and has no answer on."""
    reservation: int | None = None
    taken: int = -1
    """The last attempt whose gang was taken."""


class Taker:
    """Takes gangs of others into `cluster`."""

    def __init__(self, cluster: GangExchange) -> None:
        self._cluster = cluster
        self._guests: dict[str, _Guest] = {}
        self._late: dict[int, MoveGang] = {}

    def asked(self, ctx: Context, giver: str, number: int, processors: int) -> None:
        """Note what is asked for; it is answered after the plan of this instant."""
        guest = self._guest(giver)
        if number > guest.number:
            self._turn_to(ctx, giver, number)
            guest.wanted = processors
        elif number == guest.number and guest.reservation is not None:
            ctx.send(giver, MigrationGranted(number))

    def answer(self, ctx: Context) -> None:
        """After a plan, which has the first right to idle processors: answer who has asked."""
        for giver, guest in self._guests.items():
            if guest.wanted == 0:
                continue
            guest.reservation = self._cluster.reserve(guest.wanted)
            guest.wanted = 0
            if guest.reservation is None:
                ctx.send(giver, MigrationRefused(guest.number))
            else:
                ctx.send(giver, MigrationGranted(guest.number))
                ctx.set_timer(self._cluster.policy.answer_within_us, _RESERVED + giver)

    def cancelled(self, ctx: Context, giver: str, number: int) -> None:
        """Keep nothing for that attempt, nor for one that is older."""
        if number >= self._guest(giver).number:
            self._turn_to(ctx, giver, number)

    def comes(self, ctx: Context, giver: str, moved: MoveGang) -> bool:
        """A gang is here: take it, unless it was taken before. Returns whether it was not."""
        guest, number = self._guest(giver), moved.number
        ctx.send(giver, GangMoved(number))
        if number <= guest.taken:
            return False
        guest.taken = number
        kept = guest.reservation if number == guest.number else None
        if kept is not None and self._cluster.receive(moved.job, moved.progress, kept, ctx.now):
            guest.reservation = None
            ctx.cancel_timer(_RESERVED + giver)
        else:
            self._late[number] = moved
            ctx.set_timer(self._cluster.policy.external_overhead_us, f"{_LATE}{number}")
        return True

    def timeout(self, ctx: Context, timer: str) -> None:
        """A late gang is all here, or that of a reservation has not come in time."""
        if timer.startswith(_LATE):
            moved = self._late.pop(int(timer.removeprefix(_LATE)))
            self._cluster.receive_late(moved.job, moved.progress, ctx.now)
            return
        giver = timer.removeprefix(_RESERVED)
        self._turn_to(ctx, giver, self._guest(giver).number)

    def _turn_to(self, ctx: Context, giver: str, number: int) -> None:
        """All that was before `number` is over."""
        guest = self._guest(giver)
        guest.number, guest.wanted = number, 0
        if guest.reservation is not None:
            self._cluster.cancel(guest.reservation, ctx.now)
            guest.reservation = None
            ctx.cancel_timer(_RESERVED + giver)

    def _guest(self, giver: str) -> _Guest:
        return self._guests.setdefault(giver, _Guest())


class Migration:
    """Both parts of one Local Dispatcher; see `GangGiver` for the arguments."""

    def __init__(
        self,
        cluster: GangExchange,
        number: int,
        peers: tuple[Peer, ...],
    ) -> None:
        self._giver = GangGiver(cluster, number, peers)
        self._taker = Taker(cluster)

    def handle(self, ctx: Context, sender: str, message: Any) -> int:
        """Returns by how many jobs there are more here after it: 1, 0 or -1."""
        match message:
            case AskMigration(number, processors):
                self._taker.asked(ctx, sender, number, processors)
            case MigrationGranted(number):
                return -int(self._giver.granted(ctx, sender, number))
            case MigrationRefused(number):
                self._giver.refused(ctx, number)
            case MoveGang():
                return int(self._taker.comes(ctx, sender, message))
            case GangMoved(number):
                self._giver.moved(ctx, number)
            case CancelMigration(number):
                self._taker.cancelled(ctx, sender, number)
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")
        return 0

    def timeout(self, ctx: Context, timer: str) -> None:
        part = self._taker if timer.startswith((_RESERVED, _LATE)) else self._giver
        part.timeout(ctx, timer)

    def after_plan(self, ctx: Context) -> None:
        """Others' questions first: what a gang of this cluster could use, its plan has had."""
        self._taker.answer(ctx)
        self._giver.consider(ctx)
