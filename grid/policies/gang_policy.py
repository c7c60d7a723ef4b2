"""Gang policies and their settings: AFCFS and LGFS, with and without migration.

GM (Pinto et al., ICNS 2014), sections III to V; what the names mean is Karatza's (Simulation
Modelling Practice and Theory 17, 2009). Every processor has a queue, and every task of a gang waits
in a queue of its own. AFCFS starts, in order of arrival, every gang whose processors are all idle:
small ones behind a large one that is blocked, too. LGFS does the same by falling size.

Such a policy is no `Policy` that plans a cluster of machines: `grid.cluster.gang` makes and carries
out its decisions. Another one is a class that inherits `GangPolicy` and overrides `rank`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from grid.model.time import from_seconds

LARGEST_GANG = 2**22
SERIALS = 2**40
"""More gangs than ever arrive at a cluster."""

Seconds = Annotated[float, Field(ge=0, le=1e9)]
Wait = Annotated[float, Field(ge=0.001, le=1e9)]


class GangPolicy:
    """A gang policy with its settings; it has no state and serves any number of clusters.

    Aging, which GM names and does not define, is here: a gang at the head of a queue lets `aging`
    gangs that migrate have its processor, whenever they came, and after that none that came later
    than itself, until it has started. GM limits the system to 64 priority jobs a second; here it is
    each cluster, since a dispatcher has no count of starts elsewhere.

    GM Eq. 5 counts p_j x te_j, and the state of Eq. 6 changes when a job terminates: so it is with
    `release: gang`. In both a gang ends at the same time after it began.
    """

    def __init__(
        self,
        *,
        migration: Annotated[
            Literal["none", "local", "full"],
            Field(
                description=(
                    "migration of gangs: within the cluster (local), or also between the clusters "
                    "of the VO (full)"
                )
            ),
        ] = "none",
        migrates: Annotated[
            Literal["heads", "queued", "idle_heads"],
            Field(
                description=(
                    "gangs that local migration considers: the first of each queue, or all "
                    "queued ones; with idle_heads both kinds of migration consider only queues "
                    "of idle processors"
                )
            ),
        ] = "heads",
        local_migration_s: Annotated[
            Seconds, Field(description="transfer time within the cluster")
        ] = 1.0,
        external_migration_s: Annotated[
            Seconds, Field(description="transfer time between clusters")
        ] = 10.0,
        aging: Annotated[
            int,
            Field(
                ge=0,
                le=10**9,
                description="number of migrating gangs that may overtake the first gang of a queue",
            ),
        ] = 64,
        release: Annotated[
            Literal["task", "gang"],
            Field(
                description=(
                    "whether a processor is released when its task ends or when the gang ends"
                )
            ),
        ] = "task",
        priority_jobs: Annotated[
            bool,
            Field(
                description=(
                    "whether one-task jobs have priority: they interrupt gangs and never wait for "
                    "them"
                )
            ),
        ] = True,
        priority_limit: Annotated[
            int,
            Field(
                ge=1,
                le=10**9,
                description="maximum number of priority jobs that start within a second",
            ),
        ] = 64,
        interrupted: Annotated[
            Literal["goes_on", "begins_again"],
            Field(
                description=(
                    "whether a gang that a priority job interrupts keeps its processors and "
                    "continues there, or releases them and restarts"
                )
            ),
        ] = "goes_on",
        ask_every_s: Annotated[
            Wait,
            Field(description="time until other clusters are queried again after all have refused"),
        ] = 60.0,
        answer_within_s: Annotated[
            Wait, Field(description="time after which a reply counts as lost")
        ] = 60.0,
    ) -> None:
        self.local_migration = migration != "none"
        self.external_migration = migration == "full"
        self.local_overhead_us = from_seconds(local_migration_s)
        self.external_overhead_us = from_seconds(external_migration_s)
        self.whole_queues = migrates == "queued"
        self.idle_queues_only = migrates == "idle_heads"
        self.aging = aging
        self.holds_together = release == "gang"
        self.priority_jobs = priority_jobs
        self.priority_limit = priority_limit
        self.begins_again = interrupted == "begins_again"
        self.ask_every_us = from_seconds(ask_every_s)
        self.answer_within_us = from_seconds(answer_within_s)

    def rank(self, size: int, serial: int) -> int:
        """The place of a gang of `size` tasks, the `serial`th to arrive, in the policy's order.

        Lower is earlier. No two gangs may have the same, and it fits into 64 bits.
        """
        return serial


class AdaptedFirstComeFirstServed(GangPolicy):
    """Gangs: adapted first come, first served."""


class LargestGangFirstServed(GangPolicy):
    """Gangs: largest gang first served."""

    def rank(self, size: int, serial: int) -> int:
        return (LARGEST_GANG - size) * SERIALS + serial
