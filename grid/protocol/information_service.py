"""The Grid Information Service of a VO: the directory of VOs, and the last known status of each.

VOs join and leave by messages. The status of its own VO comes from its Resource Manager. The
information overlay decides how that of other VOs arrives (`grid.protocol.information`): as
snapshots on the board, which are read when a query comes (`grid.kernel.board`), or as entries of
gossip messages and probe replies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from grid.kernel.entity import Context, MessageHandler
from grid.model.arrays import Floats, Ints
from grid.model.job import JobKey
from grid.model.messages import (
    Entry,
    JoinVo,
    LeaveVo,
    LocalStatus,
    Probe,
    ProbeReply,
    QueryResources,
    QueuedReservations,
    Resources,
    StatusUpdate,
)
from grid.model.platform import ALWAYS, Membership
from grid.model.resources import ResourceTable, status_rows
from grid.model.time import Time
from grid.protocol.counters import Counters
from grid.protocol.information import GossipMessage, Overlay, View
from grid.protocol.known_state import KnownState, ResourceClasses

ROUND, PROBE = "round", "probe"


@dataclass(frozen=True, slots=True)
class InformationSettings:
    """How an Information Service receives status, and what it derives from it.

    `services` are all Information Services, by VO. With `reads_board` it subscribes to snapshots.
    Since a snapshot without changes is omitted, status published before the last multiple of
    `period_us` is confirmed until then, `delay_us` later. `delays_us` has that delay for each VO,
    shape (VOs,), NEVER without a subscription; None: all have the same. Gossip continues until
    `last_submission_us`, and then while there is new status. With `classes` it answers with the
    best resource of each class instead of all.
    """

    overlay: Overlay
    services: tuple[str, ...]
    reads_board: bool
    summary: bool = False
    discount: Callable[[ResourceTable, int], Floats] | None = None
    period_us: Time | None = None
    delay_us: Time = 0
    delays_us: Ints | None = None
    last_submission_us: Time = 0
    classes: ResourceClasses | None = None


@dataclass(slots=True)
class _ProbedQuery:
    """A query that waits for probe replies of the VOs `missing`."""

    key: JobKey
    scheduler: str
    missing: list[int]
    replies: list[Entry] = field(default_factory=list)


class InformationService(MessageHandler):
    """Directory and last status, for the Local Scheduler of VO number `vo`.

    The VOs `known` at first count as idle if the overlay's `starts_known` is set. A VO that joins
    later may have been busy before: its status is unknown until it arrives.
    """

    def __init__(
        self,
        vo: int,
        known: KnownState,
        settings: InformationSettings,
        membership: Membership = ALWAYS,
    ) -> None:
        self._vo = vo
        self._membership = membership
        self._known = known
        self._name = settings.services[vo].partition("/")[0]
        self._counters = Counters(vo, settings.services[vo])
        self._settings = settings
        self._overlay = settings.overlay
        self._rounds_left = 0
        self._is_resting = True
        """No round of gossip is scheduled."""
        self._probes = 0
        self._queries: dict[int, _ProbedQuery] = {}
        if settings.overlay.starts_known:
            for other in known.peers:
                resources = known.members[other]
                idle = known.nothing(resources)
                known.take(Entry(other, 0, 0, status_rows(resources, idle, idle[0], 0)))

    def start(self, ctx: Context) -> None:
        period_us = self._overlay.period_us
        if period_us is not None:
            # Rounds of different VOs are not synchronized, as clocks are not.
            self._is_resting = False
            ctx.set_timer(1 + int(ctx.rng.integers(period_us)), ROUND)

    def timeout(self, ctx: Context, timer: str) -> None:
        kind, _, number = timer.partition(" ")
        if kind == ROUND:
            self._begin_round(ctx)
        else:
            self._reply(ctx, int(number))

    def finish(self, ctx: Context) -> None:
        self._counters.finish(ctx)

    # Status and members

    def on_local_status(self, ctx: Context, sender: str, status: LocalStatus) -> None:
        self._known.set_own_status(status.assigned, status.backlog_s, ctx.now)
        self._status_changed(ctx)

    def on_queued_reservations(self, ctx: Context, sender: str, queued: QueuedReservations) -> None:
        self._known.set_own_queue(queued)

    def on_join_vo(self, ctx: Context, sender: str, joins: JoinVo) -> None:
        self._known.join(joins.vo, joins.resources)

    def on_leave_vo(self, ctx: Context, sender: str, leaves: LeaveVo) -> None:
        self._known.leave(leaves.vo)

    # Queries

    def on_query_resources(self, ctx: Context, scheduler: str, query: QueryResources) -> None:
        key = query.key
        probed: list[int] = []
        if not self._membership.holds(ctx.now):
            # A VO outside the grid uses its own resources alone.
            ctx.send(scheduler, Resources(key, self._table(ctx, (), key).of(self._vo)))
            return
        if self._overlay.probes_first:
            probed += self._overlay.probes(self._view(ctx), ctx.rng)
        if not probed:
            ctx.send(scheduler, Resources(key, self._table(ctx, (), key)))
            return
        self._probes += 1
        self._queries[self._probes] = _ProbedQuery(key, scheduler, probed)
        for vo in probed:
            ctx.send(self._settings.services[vo], Probe(self._probes))
        self._counters.sent(ctx)
        ctx.set_timer(self._overlay.timeout_us, f"{PROBE} {self._probes}")

    def on_probe(self, ctx: Context, sender: str, probe: Probe) -> None:
        entry = self._known.own_entry(ctx.now, self._settings.summary)
        ctx.send(sender, ProbeReply(probe.number, entry))
        self._counters.sent(ctx)

    def on_probe_reply(self, ctx: Context, sender: str, reply: ProbeReply) -> None:
        number, entry = reply
        if self._overlay.keeps_probes:
            self._known.take(entry)
        query = self._queries.get(number)
        if query is None or entry.vo not in query.missing:
            return
        query.missing.remove(entry.vo)
        query.replies.append(entry)
        if not query.missing:
            ctx.cancel_timer(f"{PROBE} {number}")
            self._reply(ctx, number)

    def _reply(self, ctx: Context, number: int) -> None:
        """Answer a query with the probe replies so far."""
        query = self._queries.pop(number)
        table = self._table(ctx, query.replies, query.key)
        ctx.send(query.scheduler, Resources(query.key, table))

    def _table(self, ctx: Context, replies: Iterable[Entry], key: JobKey) -> ResourceTable:
        """The known state for a job or a call; of another VO, it is that of a guest."""
        settings = self._settings
        table = self._received(ctx, replies, key[0].partition("/")[0] != self._name)
        if settings.period_us is not None and settings.delays_us is not None:
            seen_us = np.maximum(0, ctx.now - settings.delays_us)
            known_us = (seen_us - seen_us % settings.period_us)[table.columns.vo]
            known_us = np.where(np.isfinite(table.confirmed_us), known_us, -np.inf)
            table = replace(table, confirmed_us=np.maximum(table.confirmed_us, known_us))
        if settings.discount is None:
            return table
        return replace(table, assigned_cpus=settings.discount(table, self._vo))

    def _received(self, ctx: Context, replies: Iterable[Entry], is_guest: bool) -> ResourceTable:
        """Status as received, confirmed until the last snapshot of the farthest VO."""
        settings = self._settings
        confirmed_us = 0
        if settings.period_us is not None:
            seen_us = max(0, ctx.now - settings.delay_us)
            confirmed_us = seen_us - seen_us % settings.period_us
        classes = settings.classes
        if classes is not None and self._known.has_all(classes):
            best = ctx.read_least(classes.classes)
            if best is not None:
                return self._known.best_of(classes, ctx.now, *best, confirmed_us, is_guest=is_guest)
        board = ctx.read_board() if settings.reads_board else None
        return self._known.table(ctx.now, board, replies, confirmed_us, is_guest=is_guest)

    # Gossip

    def on_status_update(self, ctx: Context, sender: str, update: StatusUpdate) -> None:
        new = [self._known.take(entry) for entry in update.entries]
        if any(new):
            self._status_changed(ctx)
        if update.asks:
            sending_vo = self._settings.services.index(sender)
            self._gossip(ctx, self._overlay.answer(self._view(ctx), sending_vo, ctx.rng))

    def _view(self, ctx: Context) -> View:
        confirmed_us = {vo: entry.confirmed_us for vo, entry in self._known.entries.items()}
        confirmed_us[self._vo] = ctx.now
        return View(self._vo, ctx.now, self._known.peers, confirmed_us)

    def _begin_round(self, ctx: Context) -> None:
        self._rounds_left = max(0, self._rounds_left - 1)
        self._gossip(ctx, self._overlay.every_period(self._view(ctx), ctx.rng))
        self._is_resting = not self._rounds_left and ctx.now >= self._settings.last_submission_us
        if not self._is_resting:
            self._schedule_round(ctx)

    def _status_changed(self, ctx: Context) -> None:
        if self._overlay.period_us is None:
            return
        self._rounds_left = self._overlay.rounds(len(self._known.members) - 1)
        if self._is_resting and self._rounds_left:
            self._is_resting = False
            self._schedule_round(ctx)

    def _schedule_round(self, ctx: Context) -> None:
        ctx.set_timer(self._overlay.wait_us(ctx.now, ctx.rng), ROUND)

    def _gossip(self, ctx: Context, messages: Iterable[GossipMessage]) -> None:
        if not self._membership.holds(ctx.now):
            return
        own = self._known.own_entry(ctx.now, self._settings.summary)
        known = {**self._known.entries, self._vo: own}
        for one in messages:
            entries = tuple(known[vo] for vo in one.entries if vo in known)
            if entries or one.asks:
                ctx.send(self._settings.services[one.to], StatusUpdate(entries, one.asks))
        self._counters.sent(ctx)
