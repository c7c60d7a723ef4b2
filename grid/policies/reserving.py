"""Policies that promise starts: conservative and selective backfilling.

Both keep an `AvailabilityProfile` from plan to plan. Compiled code is imported when the first plan
is asked for, so that a scenario can be checked without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from grid.model.time import NEVER, Time
from grid.policies.columns import packed_view
from grid.policies.interface import ClusterView, Plan
from grid.policies.queue import pairs

if TYPE_CHECKING:
    from grid.policies.profile import AvailabilityProfile
    from grid.policies.reservations import Reservations


class ReservingBackfilling:
    """Jobs whose expected slowdown is above a limit get a reservation that no other may delay.

    With limit 0 all do, as they come: conservative backfilling. With more, it is the selective
    backfilling of Srinivasan, Kettimuthu, Subramani and Sadayappan (JSSPP 2002), which C07,
    section 2 describes: reservations only for jobs that others have delayed.
    """

    ignores = ("memory",)

    def __init__(self, slowdown_limit: float) -> None:
        self.slowdown_limit = slowdown_limit
        self._profile: AvailabilityProfile | None = None
        self._reserved: Reservations | None = None

    def plan(self, view: ClusterView, now: Time) -> Plan:
        from grid.policies.profile import all_free
        from grid.policies.reserving_kernels import plan_reserving

        reserved = self._reservations(len(view.jobs.processors), len(view.free))
        if self._profile is None:
            self._profile = all_free(view.free, view.license_copies_free)
        started, promised, self._profile = plan_reserving(
            packed_view(view), self.slowdown_limit, self._profile, reserved
        )
        wake = int(promised[:, 2].min(initial=NEVER))
        return Plan(start=pairs(started), reserve=promised, wake_us=wake)

    def _reservations(self, slots: int, machines: int) -> Reservations:
        """The reservations by slot, with room for all slots."""
        from grid.policies.reservations import Reservations, no_reservations

        old = self._reserved
        if old is None or len(old.start) < slots:
            new = no_reservations(slots, machines)
            for column, before in zip(new, old or (), strict=False):
                column[: len(before)] = before
            self._reserved = old = Reservations(*new)
        return old


def conservative() -> ReservingBackfilling:
    """Conservative backfilling: a reservation for every job."""
    return ReservingBackfilling(slowdown_limit=0.0)


def selective(
    *,
    slowdown_limit: Annotated[
        float, Field(ge=0, description="jobs whose expected slowdown is above it get a reservation")
    ] = 2.0,
) -> ReservingBackfilling:
    """Selective backfilling: a reservation for jobs that have waited long."""
    return ReservingBackfilling(slowdown_limit)
