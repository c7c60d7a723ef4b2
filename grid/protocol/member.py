"""A VO as a member of the grid: the Information Services of others hear that it joins and leaves.

In the papers all VOs are there from the beginning to the end, and know each other: no message tells
of that. Here one may join later and leave. A job that has a place then keeps it, and whoever is not
in the grid neither shares nor uses anything: its users' jobs have its own resources alone, and jobs
of others that are still on their way are turned away.
"""

from __future__ import annotations

from grid.kernel.entity import Context
from grid.model.messages import JoinVo, LeaveVo, table_values
from grid.model.platform import Membership
from grid.model.resources import ResourceColumns
from grid.model.time import NEVER, Time
from grid.protocol.counters import ManagerTally

JOIN, LEAVE = "join", "leave"


class Member:
    """VO number `vo` with its resources, of which those in the `directory` are told."""

    def __init__(
        self,
        vo: int,
        resources: ResourceColumns,
        directory: tuple[str, ...],
        membership: Membership,
        tally: ManagerTally,
    ) -> None:
        self._vo = vo
        self._resources = resources
        self._directory = directory
        self._membership = membership
        self._tally = tally

    def start(self, ctx: Context) -> None:
        """Wait for the times to join and to leave."""
        if self._membership.joins_us > 0:
            ctx.set_background_timer(self._membership.joins_us, JOIN)
        if self._membership.leaves_us < NEVER:
            ctx.set_background_timer(self._membership.leaves_us, LEAVE)

    def timeout(self, ctx: Context, timer: str) -> None:
        """The time to join or to leave has come."""
        if timer == JOIN:
            self._join(ctx)
            return
        for information in self._directory:
            ctx.send(information, LeaveVo(self._vo))
        self._tally.sent(ctx)

    def is_in(self, now: Time) -> bool:
        """Whether the VO is in the grid."""
        return self._membership.holds(now)

    def _join(self, ctx: Context) -> None:
        joins = JoinVo(self._vo, self._resources)
        for information in self._directory:
            ctx.send(information, joins)
        # All are alike, and of many VOs there are many.
        told = len(self._directory)
        if told:
            self._tally.messages(JoinVo.__name__, told, told * table_values(joins))
