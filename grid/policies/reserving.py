"""Policies that promise starts: conservative and selective backfilling.

Both keep an `AvailabilityProfile` from plan to plan. Compiled code is imported when the first plan
is asked for, so that a scenario can be checked without it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from grid.model.arrays import Ints
from grid.model.time import Time
from grid.policies.columns import packed_view
from grid.policies.compiled_form import CompiledForm, QueueKernel
from grid.policies.interface import ClusterView, Plan
from grid.policies.queue import pairs

Kept = tuple[tuple[Any, ...], Ints, Ints]
"""What `AvailabilityProfile` has, and what `Reservations` has of slots and of machines; few arrays
and no names, since a compiled call takes those apart faster."""


class ReservingBackfilling:
    """Jobs whose expected slowdown is above a limit get a reservation that no other may delay.

    With limit 0 all do, as they come: conservative backfilling. With more, it is the selective
    backfilling of Srinivasan, Kettimuthu, Subramani and Sadayappan (JSSPP 2002), which C07,
    section 2 describes: reservations only for jobs that others have delayed.
    """

    ignores = ("memory",)

    def __init__(self, slowdown_limit: float, form: CompiledForm | None = None) -> None:
        self.slowdown_limit = slowdown_limit
        self.compiled_form = form
        self._kept: Kept | None = None

    def plan(self, view: ClusterView, now: Time) -> Plan:
        from grid.policies.reservations import with_slots
        from grid.policies.reserving_kernels import plan_reserving

        profile, of_slots, of_machines = self._kept or _nothing_kept(view)
        if of_slots.shape[1] < len(view.jobs.serial):
            of_slots = with_slots(of_slots, len(view.jobs.serial))
        started, promised, wake_us, profile = plan_reserving(
            packed_view(view), self.slowdown_limit, profile, of_slots, of_machines
        )
        self._kept = profile, of_slots, of_machines
        return Plan(start=pairs(started), reserve=promised, wake_us=wake_us)


def _nothing_kept(view: ClusterView) -> Kept:
    from grid.policies.profile import all_free
    from grid.policies.reservations import no_gains, no_reservations

    profile = all_free(view.free, view.license_copies_free)
    return tuple(profile), no_reservations(0), no_gains(len(view.free))


def conservative() -> ReservingBackfilling:
    """Conservative backfilling: a reservation for every job."""
    return selective(slowdown_limit=0.0)


def selective(
    *,
    slowdown_limit: Annotated[
        float, Field(ge=0, description="jobs whose expected slowdown is above it get a reservation")
    ] = 2.0,
) -> ReservingBackfilling:
    """Selective backfilling: a reservation for jobs that have waited long."""
    form = CompiledForm(QueueKernel.RESERVING, slowdown_limit)
    return ReservingBackfilling(slowdown_limit, form)
