"""Gangs that leave a cluster for another one, or come from there (GM V-A)."""

from __future__ import annotations

from grid.cluster.gang.core import GangCore, WaitingGang
from grid.cluster.shell import ClusterShell
from grid.model.job import Job
from grid.model.migration_messages import GangProgress
from grid.model.time import Time
from grid.policies.gang_policy import GangPolicy


class GangExchange:
    """What the migration protocol may do with a gang cluster."""

    def __init__(self, cluster: ClusterShell) -> None:
        assert isinstance(cluster.core, GangCore)
        self._cluster = cluster
        self._core = cluster.core

    @property
    def policy(self) -> GangPolicy:
        return self._core.policy

    def waiting_gang(self, largest: int) -> WaitingGang | None:
        """The gang to send away next, of at most `largest` tasks, if there is one."""
        return self._core.waiting_gang(largest)

    def send_away(self, gang: WaitingGang, now: Time) -> tuple[Job, GangProgress] | None:
        """Take a gang out of the cluster, with what it has behind it; None if it waits no more."""
        self._cluster.advance(now)
        left = self._core.withdraw(gang, now)
        if left is None:
            return None
        row, progress = left
        return self._cluster.withdrawn(row), progress

    def reserve(self, processors: int) -> int | None:
        """See `GangCore.reserve`."""
        return self._core.reserve(processors)

    def cancel(self, reservation: int, now: Time) -> None:
        """The gang does not come: its processors are free again."""
        self._cluster.advance(now)
        self._core.cancel(reservation, now)

    def take_in(self, job: Job, progress: GangProgress, reservation: int, now: Time) -> bool:
        """The gang of a reservation is here; it starts when its tasks have been transferred.

        False, and nothing is done, where an outage has ended the reservation; it is to be cancelled
        all the same.
        """
        self._cluster.advance(now)
        if not self._core.stands(reservation):
            return False
        self._core.admit(now)
        self._core.expect(self._cluster.submit(job, -1, now), progress)
        self._core.fill_reservation(reservation, now)
        self._core.count_taken_in()
        return True

    def take_in_late(self, job: Job, progress: GangProgress, now: Time) -> None:
        """A gang of another cluster is here with all its tasks, and nothing is kept for it."""
        self._core.expect(self._cluster.submit(job, -1, now), progress)
        self._core.count_taken_in()
