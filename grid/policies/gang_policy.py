"""Gang policies and their settings: AFCFS and LGFS, with and without migration.

GM (Pinto et al., ICNS 2014), sections III to V; what the names mean is Karatza's (Simulation
Modelling Practice and Theory 17, 2009). Every processor has a queue, and every task of a gang waits
in a queue of its own. AFCFS starts, in order of arrival, every gang whose processors are all idle:
small ones behind a large one that is blocked, too. LGFS does the same by falling size.

Such a policy is no `Policy` that plans a cluster of machines: its decisions are in
`grid.cluster.gang.decisions`, and what carries them out is `grid.cluster.gang`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grid.model.time import Time, from_seconds
from grid.policies.settings import Settings

LARGEST_GANG = 2**22
_SERIALS = 2**40


@dataclass(frozen=True, slots=True)
class GangPolicy:
    """A gang policy with its settings; one serves any number of clusters, it remembers nothing.

    `adaptive` is GM's aLD: queues are compared with the running task counted (Eq. 3). The two
    overheads are how long the tasks of a gang that migrates are under way. With `whole_queues`
    local migration looks at all gangs in the queue of an idle processor, not just at the first, as
    GM has it. Aging, which GM names and does not define, is here: a gang at the head of a queue is
    passed by at most `aging` later gangs that migrate; then none of their tasks gets its processor
    before it has started.

    With `holds_together` all processors of a gang are held until its last task ends: GM Eq. 5
    counts p_j x te_j, and the state of Eq. 6 changes when a job terminates. Without it each is
    free when its own task ends. In both a gang ends at the same time after it began.

    `priority_jobs` makes every job of one task a priority job, of which at most `priority_limit`
    start in any second (GM's time unit). GM limits the system to 64; here it is each cluster, since
    no dispatcher knows how many another one has started. A dispatcher whose gangs nobody takes asks
    again after `ask_every_us`; an answer that is not there within `answer_within_us` is taken for
    lost.
    """

    largest_first: bool
    adaptive: bool
    local_migration: bool
    external_migration: bool
    local_overhead_us: Time
    external_overhead_us: Time
    whole_queues: bool
    aging: int
    holds_together: bool
    priority_jobs: bool
    priority_limit: int
    ask_every_us: Time
    answer_within_us: Time

    def rank(self, size: int, serial: int) -> int:
        """The place of a gang of `size` tasks, the `serial`th to arrive, in the policy's order."""
        return serial if not self.largest_first else (LARGEST_GANG - size) * _SERIALS + serial


def afcfs(settings: Mapping[str, Any]) -> GangPolicy:
    """Adapted first come first served. Raises ValueError for a wrong setting."""
    return _gang_policy(False, settings)


def lgfs(settings: Mapping[str, Any]) -> GangPolicy:
    """Largest gang first served. Raises ValueError for a wrong setting."""
    return _gang_policy(True, settings)


def _gang_policy(largest_first: bool, settings: Mapping[str, Any]) -> GangPolicy:
    """Settings: `dispatch` (ld, ald), `migration` (none, local, full), `migrates` (heads, queued),
    `local_migration_s`, `external_migration_s`, `aging`, `release` (task, gang), `priority_jobs`,
    `priority_limit`, `ask_every_s`, `answer_within_s`."""
    given = Settings(settings)
    migration = given.choice("migration", ("none", "local", "full"))
    policy = GangPolicy(
        largest_first,
        adaptive=given.choice("dispatch", ("ld", "ald")) == "ald",
        local_migration=migration != "none",
        external_migration=migration == "full",
        local_overhead_us=from_seconds(given.number("local_migration_s", 1.0, 0.0)),
        external_overhead_us=from_seconds(given.number("external_migration_s", 10.0, 0.0)),
        whole_queues=given.choice("migrates", ("heads", "queued")) == "queued",
        aging=int(given.number("aging", 64, 0)),
        holds_together=given.choice("release", ("task", "gang")) == "gang",
        priority_jobs=given.switch("priority_jobs", True),
        priority_limit=int(given.number("priority_limit", 64, 1)),
        ask_every_us=from_seconds(given.number("ask_every_s", 60.0, 0.001)),
        answer_within_us=from_seconds(given.number("answer_within_s", 60.0, 0.001)),
    )
    given.end()
    return policy
