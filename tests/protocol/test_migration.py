"""External migration: transcripts, and invariants under random faults.

Messages take 1 ms, and the tasks of a gang a second from one cluster to another.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import grid
from grid.cluster import ClusterState, make_cluster
from grid.cluster.gang.core import GangCluster
from grid.kernel.crash_injector import CrashInjector, MemoryStorage
from grid.kernel.entity import Context
from grid.kernel.faults import Faults, LinkFaults, Outage, disjoint
from grid.kernel.network import Network
from grid.kernel.process import LogicalProcess
from grid.kernel.reliable import Reliable, ResendRules
from grid.model.job import Job, JobKey
from grid.model.messages import AskMigration, ClusterChosen, JobEnded, MoveGang, RunJob
from grid.model.platform import Cluster, GangLimits, Machine, MachineOutage
from grid.model.records import word_of
from grid.model.time import NEVER, SECOND_US
from grid.policies.gang_policy import GangPolicy
from grid.protocol.local_dispatcher import LocalDispatcher
from grid.protocol.migration import Migration, Peer
from tests.cluster.gang.test_gangs import afcfs, reservations

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "migration"
LATENCY = 1000
MANAGER = "manager"


def gang_job(number: int, processors: int, run_s: float, submit_s: float = 0.0) -> Job:
    run_us = round(run_s * SECOND_US)
    return Job(
        number=number, vo="v", user=0, submit_us=round(submit_s * SECOND_US),
        processors=processors, estimate_us=run_us, run_us=run_us,
    )  # fmt: skip


def policy(**settings: Any) -> GangPolicy:
    return afcfs({"migration": "full", **settings})


@dataclass
class Record:
    """A transcript, how often each job has ended, and a check after every step."""

    lines: list[str] = field(default_factory=list)
    ended: Counter[JobKey] = field(default_factory=Counter)
    reported: Counter[JobKey] = field(default_factory=Counter)
    """Ends that have arrived at the Resource Manager."""
    check: Callable[[Context], None] = lambda _: None

    def received(self, ctx: Context, sender: str, message: Any) -> None:
        words = [word_of(type(message)), str(message.number)]
        if isinstance(message, AskMigration | MoveGang):
            last = message.job.number if isinstance(message, MoveGang) else message.processors
            words.append(str(last))
        self.lines.append(f"{ctx.now / SECOND_US:g} {sender} -> {ctx.name}: {' '.join(words)}")

    def handled(self, ctx: Context) -> None:
        for _, message, _ in ctx.effects.sent:
            if isinstance(message, JobEnded):
                self.ended[message.key] += 1
                start = message.outcome.start_us / SECOND_US
                self.lines.append(
                    f"{ctx.now / SECOND_US:g} {ctx.name}: {message.key[1]} ran from {start:g}"
                )
        self.check(ctx)


class Manager:
    """A Resource Manager that counts the ends that it receives."""

    def __init__(self, record: Record) -> None:
        self.record = record

    def start(self, ctx: Context) -> None: ...

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if isinstance(message, JobEnded):
            self.record.reported[message.key] += 1

    def timeout(self, ctx: Context, timer: str) -> None: ...


class WithJobs:
    """A Local Dispatcher to which jobs arrive at their own times, recorded and checked."""

    def __init__(self, jobs: Sequence[Job], record: Record, inner: LocalDispatcher):
        self.jobs, self.record, self.inner = jobs, record, inner

    def start(self, ctx: Context) -> None:
        self.inner.start(ctx)
        for place, job in enumerate(self.jobs):
            ctx.set_timer(job.submit_us, f"job {place}")

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if not isinstance(message, ClusterChosen):
            self.record.received(ctx, sender, message)
        self.inner.handle(ctx, sender, message)
        self.record.handled(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer.startswith("job "):
            self.inner.handle(ctx, "", RunJob(self.jobs[int(timer[4:])], 0, -1))
        else:
            self.inner.timeout(ctx, timer)
        self.record.handled(ctx)


@dataclass
class Vo:
    """The dispatchers of one VO, and how they are made, also after a crash."""

    sizes: dict[str, int]
    jobs: dict[str, Sequence[Job]]
    rules: GangPolicy
    mips: Sequence[float]
    record: Record = field(default_factory=Record)
    clusters: dict[str, ClusterState] = field(default_factory=dict)
    reserved: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """The first time of each reservation, by taker, giver and number."""
    crashing: bool = False
    down: dict[str, Sequence[MachineOutage]] = field(default_factory=dict)
    gpus: dict[str, Sequence[int]] = field(default_factory=dict)
    """Of each machine; default: none."""

    def platform(self, name: str) -> Cluster:
        gpus = self.gpus.get(name, [0] * self.sizes[name])
        machines = [
            Machine(f"m{p}", 1, self.mips[p % len(self.mips)], resources={"gpus": gpus[p]})
            for p in range(self.sizes[name])
        ]
        return Cluster(name, tuple(machines))

    def entity(self, name: str) -> Any:
        """The Resource Manager, or the dispatcher of that name."""
        if name == MANAGER:
            return Manager(self.record)
        platform, number = self.platform(name), list(self.sizes).index(name)
        cluster = make_cluster(platform, self.rules, None, self.down.get(name, ()))
        self.clusters[name] = cluster
        peers = tuple(
            Peer(other, GangLimits.of(self.platform(other)))
            for other in self.sizes
            if other != name
        )
        assert isinstance(cluster, GangCluster)
        migration = Migration(cluster, number, peers)
        dispatcher = LocalDispatcher(
            cluster, vo=0, number=number, position=number,
            limits=(GangLimits.of(platform),), policy="afcfs", resource_manager=MANAGER,
            direct=None, migration=migration,
        )  # fmt: skip
        record = replace(self.record, check=partial(self.check, cluster, migration))
        return WithJobs(self.jobs.get(name, ()), record, dispatcher)

    def check(self, cluster: ClusterState, migration: Migration, ctx: Context) -> None:
        assert list(cluster.broken_limits()) == []
        assert list(cluster.broken_limits()) == []
        held = [
            (ctx.name, giver, attempts.number)
            for giver, attempts in migration._attempts.items()
            if attempts.reservation is not None
        ]
        assert reservations(cluster) == len(held), "a reservation without a migration"
        for one in held:
            age = ctx.now - self.reserved.setdefault(one, ctx.now)
            # An entity that is down cancels nothing before it is up again.
            assert self.crashing or age <= self.rules.answer_within_us, "a reservation is too old"


def simulate(
    sizes: dict[str, int],
    jobs: dict[str, Sequence[Job]],
    rules: GangPolicy,
    faults: Faults | None = None,
    mips: Sequence[float] = (1000.0,),
    outages: dict[str, Sequence[Outage]] | None = None,
    down: dict[str, Sequence[MachineOutage]] | None = None,
    gpus: dict[str, Sequence[int]] | None = None,
) -> tuple[Record, dict[str, ClusterState]]:
    """Simulate clusters with those numbers of processors until nothing is left to do.

    With `faults` or `outages` of dispatchers all entities are reliable. `down` are machines, by
    cluster, as are `gpus`.
    """
    is_crashing = faults is not None
    vo = Vo(sizes, jobs, rules, mips, crashing=is_crashing, down=down or {}, gpus=gpus or {})
    names = sorted([*sizes, MANAGER])
    # All inputs are replayed after a crash; there is no checkpoint.
    resend = ResendRules(4 * LATENCY, 64 * LATENCY, inputs_a_state=10**9)
    entities = {
        name: vo.entity(name)
        if faults is None
        else CrashInjector(
            lambda saved, name=name: Reliable(name, vo.entity(name), 1, resend, saved),
            (outages or {}).get(name, ()),
            MemoryStorage(),
        )
        for name in names
    }
    network = Network(names, [0] * len(names), LATENCY, LATENCY, faults=faults)
    process = LogicalProcess(entities, network, seed=1)
    process.start()
    process.advance(NEVER, 1_000_000)
    assert process.idle, "the run does not end"
    return vo.record, vo.clusters


SETTINGS = {"external_migration_s": 1, "ask_every_s": 60, "answer_within_s": 0.05}
RULES = policy(**SETTINGS)
IDLE_HEADS = policy(**SETTINGS, migrates="idle_heads")
HASTY = policy(**(SETTINGS | {"answer_within_s": 0.0015}))
SIZES = {"a": 2, "b": 2}
BUSY = (gang_job(0, 2, 10.0), gang_job(1, 2, 4.0, 1.0))
"""The first gang takes both processors, so the second one waits, and a asks at once."""
TWO_GPUS = (("gpus", 2.0),)
CASES: dict[str, dict[str, Any]] = {
    "granted": {},
    "idle_heads": {"rules": IDLE_HEADS},
    "refused": {"b": [gang_job(2, 2, 70.0)]},
    "answer_late": {"rules": HASTY, "sizes": {**SIZES, "c": 2}},
    "priority_job": {"b": [gang_job(2, 1, 3.0, 1.0015), gang_job(3, 2, 1.0, 1.5)]},
    "starts_locally": {"a": (gang_job(0, 2, 1.0015), BUSY[1])},
    "resources": {
        "a": [replace(one, resources=TWO_GPUS) for one in BUSY],
        "b": [replace(gang_job(2, 2, 3.0), resources=TWO_GPUS)],
        "sizes": {"a": 2, "b": 4, "c": 4},
        "rules": policy(**(SETTINGS | {"ask_every_s": 2})),
        "gpus": {"a": [1, 1], "b": [1, 1, 0, 0]},
    },
    "two_requests": {"b": [gang_job(2, 2, 10.0), gang_job(3, 2, 4.0, 1.0)]},
}


def messages(
    a: Sequence[Job] = BUSY,
    b: Sequence[Job] = (),
    sizes: dict[str, int] = SIZES,
    rules: GangPolicy = RULES,
    **more: Any,
) -> list[str]:
    record, clusters = simulate(sizes, {"a": a, "b": b}, rules, **more)
    assert not any(reservations(cluster) for cluster in clusters.values())
    assert set(record.ended.values()) == {1}
    return record.lines


def test_gangs_stay_that_exceed_limits_of_the_other_cluster() -> None:
    """Their own cluster does not limit memory."""
    policy = {"name": "afcfs", "settings": {"migration": "full"}}
    first = {"name": "c", "machines": [{"cpus": 8}], "policy": policy}
    second = {"name": "d", "machines": [{"cpus": 3, "ram_mb": 1}], "policy": policy}
    jobs = [{"cpus": 6, "run_s": 1}, {"cpus": 3, "run_s": 1, "ram_mb": 10}]
    vo = {"name": "v", "clusters": [first, second], "workload": {"jobs": jobs}}
    assert list(grid.run({"vos": [vo]}).jobs()["cluster"]) == ["c", "c"]


@pytest.mark.parametrize("name", CASES)
def test_messages_equal_the_transcript(name: str) -> None:
    expected = (TRANSCRIPTS / f"{name}.txt").read_text().splitlines()
    assert messages(**CASES[name]) == expected[1:]


@pytest.mark.parametrize(
    ("down_us", "start"),
    [
        # Before the gang arrives, until its tasks are there: nothing is reserved any more.
        ((1_002_500, 1_600_000), "6.003 b: 1 ran from 2.003"),
        # Before it arrives, and for longer.
        ((1_002_500, 3_000_000), "7 b: 1 ran from 3"),
        # During the transfer of its tasks.
        ((1_003_500, 3_000_000), "7 b: 1 ran from 3"),
    ],
)
def test_a_machine_of_a_reservation_goes_down(down_us: tuple[int, int], start: str) -> None:
    down = {"b": [MachineOutage(1, *down_us)]}
    record, clusters = simulate(SIZES, {"a": BUSY}, RULES, down=down)
    assert "1.003 a -> b: move_gang 2 1" in record.lines
    assert start in record.lines
    assert clusters["b"].figures()["migrations_external"] == 1
    assert not reservations(clusters["b"])


Streams = dict[str, list[Job]]


def random_streams(chance: random.Random) -> tuple[dict[str, int], Streams]:
    """Two or three clusters, most of the work in the first."""
    sizes = {name: chance.randint(2, 5) for name in "abc"[: chance.randint(2, 3)]}
    jobs: Streams = {name: [] for name in sizes}
    for number in range(chance.randint(5, 15)):
        name = chance.choice([*sizes, "a", "a"])
        size = chance.randint(1, sizes[name])
        submit_s = chance.choice((0.0, 0.5, 1.0, 2.0, 3.0, 6.0)) + chance.randint(0, 3) / 1000
        jobs[name].append(gang_job(number, size, chance.randint(1, 30) / 10, submit_s))
    return sizes, jobs


def random_rules(chance: random.Random):  # type: ignore[no-untyped-def]
    """The time-out is about the time of an answer, so that either may come first."""
    return policy(
        migrates=chance.choice(("heads", "queued", "idle_heads")),
        local_migration_s=chance.choice((0, 0.3)),
        external_migration_s=chance.choice((0, 0.001, 0.5)),
        ask_every_s=chance.choice((0.05, 0.3, 1)),
        answer_within_s=chance.choice((0.001, 0.003, 0.02)),
        aging=chance.choice((0, 1, 64)),
        release=chance.choice(("task", "gang")),
    )


def random_link(chance: random.Random) -> LinkFaults:
    share = (0.0, 0.1, 0.5)
    return LinkFaults(
        chance.choice(share), chance.choice(share), chance.choice(share), 10 * LATENCY / SECOND_US
    )


def random_outages(chance: random.Random, machines: int) -> list[MachineOutage]:
    down = []
    for machine in range(machines):
        starts = [int(chance.uniform(0, 8 * SECOND_US)) for _ in range(chance.randint(0, 2))]
        for one in disjoint([Outage(at, at + 10 ** chance.randint(0, 6)) for at in starts]):
            down.append(MachineOutage(machine, one.start_us, one.end_us))
    return down


def survive(seed: int, *, crashes: bool) -> int:
    """A random VO under random faults: every job ends once. Returns how many gangs moved."""
    chance = random.Random(seed)
    sizes, jobs = random_streams(chance)
    faults = Faults(seed, random_link(chance), heal_us=10 * SECOND_US)
    outages = None
    if crashes:
        instants = [int(chance.uniform(0, 8 * SECOND_US)) for _ in range(chance.randint(1, 8))]
        down = [Outage(at, at + int(chance.uniform(1, SECOND_US))) for at in instants]
        outages = {name: disjoint(down[place :: len(sizes)]) for place, name in enumerate(sizes)}
    rules, mips = random_rules(chance), (1000.0, 750.0, 1500.0)
    machines = {name: random_outages(chance, size) for name, size in sizes.items()}
    gpus = {name: [chance.randint(0, 1)] * size for name, size in sizes.items()}
    for name, stream in jobs.items():
        jobs[name] = [
            replace(job, resources=(("gpus", float(chance.randint(1, job.processors))),))
            if gpus[name][0] and chance.random() < 0.5
            else job
            for job in stream
        ]
    record, clusters = simulate(sizes, jobs, rules, faults, mips, outages, machines, gpus)
    submitted = Counter(job.key for stream in jobs.values() for job in stream)
    assert record.reported == submitted
    assert not any(reservations(cluster) for cluster in clusters.values())
    return sum(int(cluster.figures()["migrations_external"]) for cluster in clusters.values())


@pytest.mark.parametrize("crashes", [False, True])
def test_no_gang_is_lost_or_duplicated_and_no_reservation_is_left(crashes: bool) -> None:
    """Messages are lost, delayed and duplicated, machines go down, and dispatchers crash."""
    assert sum(survive(seed, crashes=crashes) for seed in range(40)) > 20
