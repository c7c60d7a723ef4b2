"""The Grid Information Service of a VO: who is in the grid, and the last status of each.

Joining and leaving are messages. The VO's own status comes from its Resource Manager at once. How
that of others comes is for the information overlay (see
`grid.protocol.information`): as status snapshots, which are posts on the board that are
looked up when a query comes (see `grid.kernel.board`), or as
entries in gossip messages and replies of other Information Services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from grid.kernel.entity import Context
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
from grid.protocol.counters import Tally
from grid.protocol.information import GossipMessage, Overlay, View
from grid.protocol.known_state import KnownState, ResourceClasses

ROUND, PROBE = "round", "probe"


@dataclass(frozen=True, slots=True)
class Sources:
    """From where an Information Service hears, and how it takes what it hears.

    `services` are all Information Services, by VO. `reads_board`: whether snapshots of anybody are
    heard. A snapshot that could only repeat the last one is not published: what was told before
    the last multiple of `period_us`, seen `delay_us` later, is still true then. `delays_us` has
    that delay for each VO, shape (VOs,), NEVER for one that is not heard; None: all have the same.
    Letters go out in rounds until `last_submission_us`, and then while there is news. With
    `classes`, it tells the best resource of each class in place of all of them.
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
class _Probing:
    """A query that waits for the answers of VOs that were asked."""

    key: JobKey
    scheduler: str
    missing: list[int]
    answers: list[Entry] = field(default_factory=list)


class InformationService:
    """Directory and last status, for the Local Scheduler of VO number `vo`.

    VOs that are `known` at first are taken for idle if the overlay says so. One that joins later
    may have been busy before: nothing is known of it until it tells.
    """

    def __init__(
        self, vo: int, known: KnownState, sources: Sources, membership: Membership = ALWAYS
    ) -> None:
        self._vo = vo
        self._membership = membership
        self._known = known
        self._name = sources.services[vo].partition("/")[0]
        self._tally = Tally(vo, sources.services[vo])
        self._sources = sources
        self._overlay = sources.overlay
        self._rounds_left = 0
        self._rests = True
        self._probes = 0
        self._probing: dict[int, _Probing] = {}
        if sources.overlay.starts_known:
            for other in known.peers:
                resources = known.members[other]
                nothing = np.zeros(len(resources))
                known.take(Entry(other, 0, 0, status_rows(resources, nothing, nothing, 0)))

    def start(self, ctx: Context) -> None:
        period_us = self._overlay.period_us
        if period_us is not None:
            # Rounds of different VOs begin at times of their own, as clocks do.
            self._rests = False
            ctx.set_timer(1 + int(ctx.rng.integers(period_us)), ROUND)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        match message:
            case QueryResources(key):
                self._query(ctx, key, sender)
            case LocalStatus(assigned_cpus, work_s):
                self._known.own_status(assigned_cpus, work_s, ctx.now)
                self._there_is_news(ctx)
            case QueuedReservations():
                self._known.own_line(message)
            case StatusUpdate(entries, asks):
                self._hear(ctx, self._sources.services.index(sender), entries, asks)
            case Probe(number):
                entry = self._known.own_entry(ctx.now, self._sources.summary)
                ctx.send(sender, ProbeReply(number, entry))
                self._tally.sent(ctx)
            case ProbeReply(number, entry):
                self._take_answer(ctx, number, entry)
            case JoinVo(vo, resources):
                self._known.join(vo, resources)
            case LeaveVo(vo):
                self._known.leave(vo)
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        kind, _, number = timer.partition(" ")
        if kind == ROUND:
            self._begin_round(ctx)
        elif kind == PROBE:
            self._reply(ctx, int(number))
        else:
            raise ValueError(f"{ctx.name}: no timer {timer!r}")

    def finish(self, ctx: Context) -> None:
        self._tally.finish(ctx)

    # Queries

    def _query(self, ctx: Context, key: JobKey, scheduler: str) -> None:
        asked: list[int] = []
        if not self._membership.holds(ctx.now):
            # Who is not in the grid has its own resources alone.
            ctx.send(scheduler, Resources(key, self._table(ctx, (), key).of(self._vo)))
            return
        if self._overlay.probes_first:
            asked += self._overlay.probes(self._view(ctx), ctx.rng)
        if not asked:
            ctx.send(scheduler, Resources(key, self._table(ctx, (), key)))
            return
        self._probes += 1
        self._probing[self._probes] = _Probing(key, scheduler, asked)
        for vo in asked:
            ctx.send(self._sources.services[vo], Probe(self._probes))
        self._tally.sent(ctx)
        ctx.set_timer(self._overlay.timeout_us, f"{PROBE} {self._probes}")

    def _take_answer(self, ctx: Context, number: int, entry: Entry) -> None:
        if self._overlay.keeps_probes:
            self._known.take(entry)
        probing = self._probing.get(number)
        if probing is None or entry.vo not in probing.missing:
            return
        probing.missing.remove(entry.vo)
        probing.answers.append(entry)
        if not probing.missing:
            ctx.cancel_timer(f"{PROBE} {number}")
            self._reply(ctx, number)

    def _reply(self, ctx: Context, number: int) -> None:
        """Answer a query with what has come by now."""
        probing = self._probing.pop(number)
        table = self._table(ctx, probing.answers, probing.key)
        ctx.send(probing.scheduler, Resources(probing.key, table))

    def _table(self, ctx: Context, answers: Iterable[Entry], key: JobKey) -> ResourceTable:
        """What is known, for a job or a call: that of another VO is a guest's."""
        sources = self._sources
        table = self._told(ctx, answers, key[0].partition("/")[0] != self._name)
        if sources.period_us is not None and sources.delays_us is not None:
            seen_us = np.maximum(0, ctx.now - sources.delays_us)
            told_us = (seen_us - seen_us % sources.period_us)[table.columns.vo]
            told_us = np.where(np.isfinite(table.confirmed_us), told_us, -np.inf)
            table = replace(table, confirmed_us=np.maximum(table.confirmed_us, told_us))
        if sources.discount is None:
            return table
        return replace(table, assigned_cpus=sources.discount(table, self._vo))

    def _told(self, ctx: Context, answers: Iterable[Entry], is_guest: bool) -> ResourceTable:
        """What was told of all resources, and is surely right until the slowest could be heard."""
        sources = self._sources
        confirmed_us = 0
        if sources.period_us is not None:
            seen_us = max(0, ctx.now - sources.delay_us)
            confirmed_us = seen_us - seen_us % sources.period_us
        classes = sources.classes
        if classes is not None and self._known.has_all(classes):
            best = ctx.read_least(classes.classes)
            if best is not None:
                return self._known.best_of(classes, ctx.now, *best, confirmed_us, is_guest=is_guest)
        board = ctx.read_board() if sources.reads_board else None
        return self._known.table(ctx.now, board, answers, confirmed_us, is_guest=is_guest)

    # Letters

    def _view(self, ctx: Context) -> View:
        confirmed_us = {vo: entry.confirmed_us for vo, entry in self._known.entries.items()}
        confirmed_us[self._vo] = ctx.now
        return View(self._vo, ctx.now, self._known.peers, confirmed_us)

    def _begin_round(self, ctx: Context) -> None:
        self._rounds_left = max(0, self._rounds_left - 1)
        self._write(ctx, self._overlay.every_period(self._view(ctx), ctx.rng))
        self._rests = not self._rounds_left and ctx.now >= self._sources.last_submission_us
        if not self._rests:
            self._wait(ctx)

    def _there_is_news(self, ctx: Context) -> None:
        if self._overlay.period_us is None:
            return
        self._rounds_left = self._overlay.rounds(len(self._known.members) - 1)
        if self._rests and self._rounds_left:
            self._rests = False
            self._wait(ctx)

    def _wait(self, ctx: Context) -> None:
        ctx.set_timer(self._overlay.wait_us(ctx.now, ctx.rng), ROUND)

    def _hear(self, ctx: Context, sender: int, entries: tuple[Entry, ...], asks: bool) -> None:
        # Every entry is taken, whether or not one before it was new.
        new = [self._known.take(entry) for entry in entries]
        if any(new):
            self._there_is_news(ctx)
        if asks:
            self._write(ctx, self._overlay.answer(self._view(ctx), sender, ctx.rng))

    def _write(self, ctx: Context, letters: Iterable[GossipMessage]) -> None:
        if not self._membership.holds(ctx.now):
            return
        own = self._known.own_entry(ctx.now, self._sources.summary)
        known = {**self._known.entries, self._vo: own}
        for letter in letters:
            entries = tuple(known[vo] for vo in letter.entries if vo in known)
            if entries or letter.asks:
                ctx.send(self._sources.services[letter.to], StatusUpdate(entries, letter.asks))
        self._tally.sent(ctx)
