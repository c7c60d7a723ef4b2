"""Two or three gang clusters that move gangs between each other, and all that they say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from grid.cluster import ClusterShell, make_cluster
from grid.cluster.gang.core import GangExchange
from grid.cluster.gang.processor_choices import ProcessorChoice, ald
from grid.kernel.crash_injector import CrashInjector, MemoryStorage
from grid.kernel.entity import Context
from grid.kernel.faults import Faults, Outage
from grid.kernel.network import Network
from grid.kernel.process import LogicalProcess
from grid.kernel.reliable import Reliable, ResendRules
from grid.model.job import Job, JobKey
from grid.model.messages import ClusterChosen, JobEnded, RunJob
from grid.model.migration_messages import (
    AskMigration,
    CancelMigration,
    GangMoved,
    MigrationGranted,
    MigrationRefused,
    MoveGang,
)
from grid.model.platform import Cluster, JobLimits, Machine, MachineOutage
from grid.model.time import NEVER, SECOND_US
from grid.policies.gang_policy import GangPolicy
from grid.protocol.local_dispatcher import LocalDispatcher
from grid.protocol.migration import Migration, Peer
from tests.cluster.gang.gang_checks import check_cluster, reservations
from tests.cluster.gang.gang_policies import afcfs

LATENCY = 1000
MANAGER = "manager"


def gang_job(number: int, processors: int, run_s: float, submit_s: float = 0.0) -> Job:
    run_us = round(run_s * SECOND_US)
    return Job(
        number=number,
        vo="v",
        user=0,
        submit_us=round(submit_s * SECOND_US),
        processors=processors,
        estimate_us=run_us,
        run_us=run_us,
    )


def policy(**settings: Any) -> GangPolicy:
    return afcfs({"migration": "full", **settings})


class Arriving:
    """A Local Dispatcher to which jobs come at their own times, heard and looked at."""

    def __init__(self, name: str, jobs: Sequence[Job], here: Hearing, inner: LocalDispatcher):
        self.name, self.jobs, self.here, self.inner = name, jobs, here, inner

    def start(self, ctx: Context) -> None:
        self.inner.start(ctx)
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


class Manager:
    """A Resource Manager that counts the ends it is told of."""

    def __init__(self, told: Counter[JobKey]) -> None:
        self.told = told

    def start(self, ctx: Context) -> None: ...

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if isinstance(message, JobEnded):
            self.told[message.key] += 1

    def timeout(self, ctx: Context, timer: str) -> None: ...


class Losing:
    """Links that lose what is sent at certain instants, in microseconds, and nothing else."""

    partitions = ()
    longest_cut_us = 0

    def __init__(self, *instants: int) -> None:
        self.instants = instants

    def arrivals(self, now: int, arrival: int, sites: Any, key: Any) -> tuple[int, ...]:
        return () if now in self.instants else (arrival,)


@dataclass
class Hearing:
    """A transcript, how often each job has ended, and what is looked at after every step."""

    lines: list[str] = field(default_factory=list)
    ended: Counter[JobKey] = field(default_factory=Counter)
    told: Counter[JobKey] = field(default_factory=Counter)
    check: Callable[[Context], None] = lambda _: None

    def hear(self, ctx: Context, sender: str, message: Any) -> None:
        words = _words(message)
        self.lines.append(f"{ctx.now / SECOND_US:g} {sender or 'user'} -> {ctx.name}: {words}")

    def look(self, ctx: Context) -> None:
        for _, message, _ in ctx.effects.sent:
            if isinstance(message, JobEnded):
                self.ended[message.key] += 1
                start = message.outcome.start_us / SECOND_US
                self.lines.append(
                    f"{ctx.now / SECOND_US:g} {ctx.name}: {message.key[1]} ran from {start:g}"
                )
        self.check(ctx)


@dataclass
class Vo:
    """The dispatchers of one VO, and what they are made of anew after a crash."""

    sizes: dict[str, int]
    jobs: dict[str, Sequence[Job]]
    rules: GangPolicy
    mips: Sequence[float]
    hearing: Hearing = field(default_factory=Hearing)
    clusters: dict[str, ClusterShell] = field(default_factory=dict)
    reserved: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """When each reservation was first seen, by taker, giver and number."""
    crashing: bool = False
    down: dict[str, Sequence[MachineOutage]] = field(default_factory=dict)
    choice: ProcessorChoice = ald

    def entity(self, name: str) -> Any:
        """The Resource Manager, or the dispatcher of that name."""
        if name == MANAGER:
            return Manager(self.hearing.told)
        size, number = self.sizes[name], list(self.sizes).index(name)
        machines = tuple(Machine(f"m{p}", 1, self.mips[p % len(self.mips)]) for p in range(size))
        platform = Cluster(name, machines)
        cluster = make_cluster(
            platform, self.rules, None, self.down.get(name, ()), choice=self.choice
        )
        self.clusters[name] = cluster
        peers = tuple(Peer(other, self.sizes[other]) for other in self.sizes if other != name)
        migration = Migration(GangExchange(cluster), number, peers)
        dispatcher = LocalDispatcher(
            cluster,
            vo=0,
            number=number,
            position=number,
            limits=(JobLimits(size, math.inf, 0),),
            policy="afcfs",
            resource_manager=MANAGER,
            direct=None,
            migration=migration,
        )
        here = replace(self.hearing, check=partial(self.check, cluster, migration))
        return Arriving(name, self.jobs.get(name, ()), here, dispatcher)

    def check(self, cluster: ClusterShell, migration: Migration, ctx: Context) -> None:
        check_cluster(cluster)
        assert list(cluster.broken_limits()) == []
        kept = [
            (ctx.name, giver, attempts.number)
            for giver, attempts in migration._taker._attempts.items()
            if attempts.reservation is not None
        ]
        assert reservations(cluster) == len(kept), "a reservation without a migration"
        for one in kept:
            age = ctx.now - self.reserved.setdefault(one, ctx.now)
            # An entity that is down cancels nothing before it is up again.
            assert self.crashing or age <= self.rules.answer_within_us, "a reservation is too old"


def play(
    sizes: dict[str, int],
    jobs: dict[str, Sequence[Job]],
    rules: GangPolicy,
    faults: Faults | Losing | None = None,
    mips: Sequence[float] = (1000.0,),
    outages: dict[str, Sequence[Outage]] | None = None,
    down: dict[str, Sequence[MachineOutage]] | None = None,
) -> tuple[Hearing, dict[str, ClusterShell]]:
    """Clusters of so many processors by name, until nothing is left to do.

    With `outages` the entities crash, and are made such that they bear it. `down` are machines,
    by cluster.
    """
    vo = Vo(sizes, jobs, rules, mips, crashing=outages is not None, down=down or {})
    names = sorted([*sizes, MANAGER])
    # All inputs are played again after a crash; the state itself is never saved.
    again = ResendRules(4 * LATENCY, 64 * LATENCY, inputs_a_state=10**9)
    entities = {
        name: vo.entity(name)
        if outages is None
        else CrashInjector(
            lambda saved, name=name: Reliable(name, vo.entity(name), 1, again, saved),
            outages.get(name, ()),
            MemoryStorage(),
        )
        for name in names
    }
    network = Network(names, [0] * len(names), LATENCY, LATENCY, faults=faults)  # type: ignore[arg-type]
    process = LogicalProcess(entities, network, seed=1)
    process.start()
    process.advance(NEVER, 1_000_000)
    assert process.idle, "it goes on and on"
    return vo.hearing, vo.clusters


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
        case ClusterChosen(key):
            return f"{key[1]} is here now"
    raise AssertionError(message)
