"""Two or three gang clusters that move gangs between each other, and all that they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from grid.cluster.gang import GangCluster
from grid.entities.local_dispatcher import LocalDispatcher
from grid.entities.migration import Migration, Peer
from grid.kernel.entity import Context
from grid.kernel.faults import Faults
from grid.kernel.network import Network
from grid.kernel.process import LogicalProcess
from grid.model.job import Job, JobKey
from grid.model.messages import JobEnded, Placed, RunJob
from grid.model.migration_messages import (
    AskMigration,
    CancelMigration,
    GangMoved,
    MigrationGranted,
    MigrationRefused,
    MoveGang,
)
from grid.model.platform import Cluster, Machine
from grid.model.time import NEVER, SECOND_US
from grid.policies.gang_policy import GangPolicy, afcfs

LATENCY = 1000
MANAGER = "manager"


def gang_job(number: int, processors: int, run_s: float, submit_s: float = 0.0) -> Job:
    run_us = round(run_s * SECOND_US)
    return Job(number, "v", 0, round(submit_s * SECOND_US), processors, run_us, run_us)


def policy(**settings: Any) -> GangPolicy:
    return afcfs({"migration": "full", "dispatch": "ald", **settings})


class Arriving:
    """A Local Dispatcher to which jobs come at their own times, heard and looked at."""

    def __init__(self, name: str, jobs: Sequence[Job], here: Hearing, inner: LocalDispatcher):
        self.name, self.jobs, self.here, self.inner = name, jobs, here, inner

    def start(self, ctx: Context, saved: Any) -> None:
        self.inner.start(ctx, saved)
        for place, job in enumerate(self.jobs):
            ctx.set_timer(job.submit_us, f"job {place}")

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self.here.hear(ctx, sender, message)
        self.inner.handle(ctx, sender, message)
        self.here.look(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer.startswith("job "):
            job = self.jobs[int(timer[4:])]
            self.here.hear(ctx, "", RunJob(job, 0, -1))
            self.inner.handle(ctx, "", RunJob(job, 0, -1))
        else:
            self.inner.timeout(ctx, timer)
        self.here.look(ctx)


class Deaf:
    """A Resource Manager that minds nothing."""

    def start(self, ctx: Context, saved: Any) -> None: ...
    def handle(self, ctx: Context, sender: str, message: Any) -> None: ...
    def timeout(self, ctx: Context, timer: str) -> None: ...


@dataclass
class Hearing:
    """A transcript, how often each job has ended, and what is looked at after every step."""

    lines: list[str] = field(default_factory=list)
    ended: Counter[JobKey] = field(default_factory=Counter)
    check: Callable[[Context], None] = lambda _: None

    def hear(self, ctx: Context, sender: str, message: Any) -> None:
        words = _words(message)
        self.lines.append(f"{ctx.now / SECOND_US:g} {sender or 'user'} -> {ctx.name}: {words}")

    def look(self, ctx: Context) -> None:
        for _, message, _ in ctx.sent:
            if isinstance(message, JobEnded):
                self.ended[message.key] += 1
                start = message.start_us / SECOND_US
                self.lines.append(
                    f"{ctx.now / SECOND_US:g} {ctx.name}: {message.key[1]} ran from {start:g}"
                )
        self.check(ctx)


def play(
    sizes: dict[str, int],
    jobs: dict[str, Sequence[Job]],
    rules: GangPolicy,
    faults: Faults | None = None,
    mips: Sequence[float] = (1000.0,),
) -> tuple[Hearing, dict[str, GangCluster]]:
    """Clusters of so many processors by name, until nothing is left to do."""
    hearing = Hearing()
    clusters: dict[str, GangCluster] = {}
    entities: dict[str, Any] = {MANAGER: Deaf()}
    for number, (name, size) in enumerate(sizes.items()):
        machines = tuple(Machine(f"m{p}", 1, mips[p % len(mips)]) for p in range(size))
        clusters[name] = GangCluster(Cluster(name, machines), rules)
        peers = tuple(Peer(other, sizes[other]) for other in sizes if other != name)
        dispatcher = LocalDispatcher(
            clusters[name],
            vo=0,
            vo_name="v",
            number=number,
            position=number,
            processors=size,
            policy="afcfs",
            resource_manager=MANAGER,
            fed=None,
            migration=Migration(clusters[name], number, peers),
        )
        entities[name] = Arriving(name, jobs.get(name, ()), hearing, dispatcher)
    network = Network(sorted(entities), [0] * len(entities), LATENCY, LATENCY, faults=faults)
    process = LogicalProcess(entities, network, seed=1)
    process.start()
    hearing.check = lambda ctx: _check(clusters, ctx)
    process.advance(NEVER)
    return hearing, clusters


def _check(clusters: dict[str, GangCluster], ctx: Context) -> None:
    from gang_checks import check_cluster

    check_cluster(clusters[ctx.name])


def _words(message: Any) -> str:  # noqa: PLR0911
    match message:
        case RunJob(job):
            return f"run {job.number} with {job.processors}"
        case AskMigration(number, processors):
            return f"({number}) room for {processors}?"
        case MigrationGranted(number):
            return f"({number}) kept"
        case MigrationRefused(number):
            return f"({number}) no"
        case MoveGang(number, job):
            return f"({number}) here is {job.number}"
        case GangMoved(number):
            return f"({number}) I have it"
        case CancelMigration(number):
            return f"({number}) never mind"
        case Placed(key):
            return f"{key[1]} is here now"
    raise AssertionError(message)
