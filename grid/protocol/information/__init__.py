"""Information overlays, which decide how status spreads, and corrections of stale status. Each
Information Service has its own overlay object, which makes its decisions. The service keeps the
newest entry of each VO and sends the messages. Overlays and corrections are pure: random numbers
come from the stream that they are given, and the time is in the view or table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats
from grid.model.resources import ResourceTable
from grid.model.time import SECOND_US, Time


class View(NamedTuple):
    """The state of the Information Service of VO number `vo` at `now`.

    `peers` are the other VOs known to be in the grid, in ascending order. `confirmed_us`
    has the VOs of its entries, its own included, and until when each status is confirmed.
    """

    vo: int
    now: Time
    peers: tuple[int, ...]
    confirmed_us: Mapping[int, Time]


class GossipMessage(NamedTuple):
    """To the Information Service of VO number `to`: the current entries of these VOs.

    With `asks`, the receiver sends its own: see `Overlay.answer`.
    """

    to: int
    entries: tuple[int, ...] = ()
    asks: bool = False


PeerLists = Sequence[Sequence[int]]
"""For each VO by its number, the numbers of other VOs, in ascending order."""


class Overlay:
    """An overlay without any exchange. Overlays inherit from it and override what differs.

    - `period_us`: how often `every_period` is called; None: never. See `wait_us`, too.
    - `view_size`: the number of other VOs whose entries are kept, confirmed last; None: all.
    - `starts_known`: VOs that are in the grid at the beginning count as idle.
    - `probes_first`: `probes` is called for every job, and replies are awaited for
      `timeout_us`. With `keeps_probes` later jobs use them, too.
    """

    period_us: Time | None = None
    view_size: int | None = None
    starts_known: bool = False
    probes_first: bool = False
    timeout_us: Time = SECOND_US
    keeps_probes: bool = False

    def subscribers(self, vos: int, rng: np.random.Generator) -> PeerLists:
        """The VOs that receive the snapshots of each of the `vos` VOs; the same for all callers."""
        return [()] * vos

    def known_peers(self, subscribers: PeerLists) -> PeerLists:
        """The VOs that know each VO as a member, and may send it jobs."""
        return all_others(len(subscribers))

    def rounds(self, peers: int) -> int:
        """How often `every_period` is called after new status, once all jobs are submitted."""
        return 0

    def wait_us(self, now: Time, rng: np.random.Generator) -> Time:
        """Time from a round at `now` to the next, at least a microsecond."""
        assert self.period_us is not None
        return self.period_us

    def every_period(self, view: View, rng: np.random.Generator) -> Iterable[GossipMessage]:
        """What to send in a round."""
        return ()

    def answer(self, view: View, sender: int, rng: np.random.Generator) -> Iterable[GossipMessage]:
        """What to send when VO number `sender` asks; its own entries are in the view."""
        return (GossipMessage(sender, tuple(view.confirmed_us)),)

    def probes(self, view: View, rng: np.random.Generator) -> Sequence[int]:
        """Which VOs to probe before a resource is selected for a job."""
        return ()


def all_others(vos: int) -> PeerLists:
    """All other VOs, for each VO."""
    return [tuple(other for other in range(vos) if other != vo) for vo in range(vos)]


# Corrections of stale status


def no_correction(table: ResourceTable, _: int) -> Floats:
    """Status is used as observed, regardless of its age."""
    return table.assigned_cpus


def drained(table: ResourceTable, vo: int) -> Floats:
    """Assigned CPUs decrease by the work that must have been completed since the observation.

    The correction assumes that all assigned CPUs are busy, up to the number of CPUs, and that no
    jobs arrive. A resource whose jobs should all have ended counts as idle. Without a backlog,
    status is used as observed.
    """
    assigned, backlog_s = table.assigned_cpus, table.backlog_s
    since_s = (table.now - table.observed_at_us) / SECOND_US
    known = (table.columns.vo != vo) & np.isfinite(assigned) & np.isfinite(backlog_s)
    left: Floats = assigned.copy()
    at_work = np.minimum(assigned[known], table.columns.cpus[known])
    # A job that exceeds its estimate has no work left, and still holds its CPUs.
    some = backlog_s[known] > 0.0
    done = np.divide(at_work * since_s[known], backlog_s[known], out=np.ones(len(some)), where=some)
    left[known] *= np.maximum(1.0 - done, 0.0)
    return left


drained.needs_backlog = True  # type: ignore[attr-defined]


def own_dispatches(table: ResourceTable, _: int) -> Floats:
    """Status plus the jobs that this VO has sent since, minus those known to have ended since.

    Without it, a VO that decides on many jobs between two snapshots sends all of them to the same
    resource. The Local Scheduler adds and subtracts them (`grid.protocol.dispatches`), also for its
    own VO. Among busy resources of equal utility, the less loaded one is chosen.
    """
    return table.assigned_cpus


own_dispatches.counts_dispatches = True  # type: ignore[attr-defined]


def by_age(
    table: ResourceTable,
    vo: int,
    *,
    horizon_s: Annotated[
        float, Field(gt=0, le=1e9, description="age at which the weight of a status is 1/e")
    ] = 60.0,
) -> Floats:
    """Old status is shrunk towards the mean: m + (observed - m) exp(-age / horizon).

    m is the resource's CPUs times the share of assigned CPUs over all other VOs with known status.
    After M. Dahlin, Interpreting stale load information, 1999: old status has little weight, and
    without information all resources are equal. The loads of resources of different sizes may
    differ in the last bit. If other VOs are busy, no resource with old status counts as idle, so
    none is free for a job that needs all of its CPUs.
    """
    columns, assigned = table.columns, table.assigned_cpus
    known = (columns.vo != vo) & np.isfinite(assigned)
    if not known.any():
        return assigned
    cpus = columns.cpus[known]
    mean = assigned[known].sum() / cpus.sum() * cpus
    trust = np.exp(-np.maximum(table.age_us[known], 0.0) / (horizon_s * SECOND_US))
    corrected: Floats = assigned.copy()
    corrected[known] = mean + (assigned[known] - mean) * trust
    return corrected
