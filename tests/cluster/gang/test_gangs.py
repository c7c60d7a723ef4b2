"""A cluster with a queue a processor, by hand."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from grid.cluster import ClusterState, make_cluster
from grid.cluster.gang.processor_choices import ProcessorChoice, ald, ld
from grid.cluster.gang.state import RESERVED, STATE
from grid.model.job import Job, JobState
from grid.model.platform import Cluster, Machine, MachineOutage
from grid.model.plugins.calls import WithSettings
from grid.model.time import NEVER, SECOND_US
from grid.policies.gang_policy import (
    AdaptedFirstComeFirstServed,
    GangPolicy,
    LargestGangFirstServed,
)
from tests.cluster.clusters import table

CLOCKS = (1000.0, 750.0, 1500.0)
"""2000, 1500 and 3000 MHz of the paper."""


def afcfs(settings: Mapping[str, Any]) -> GangPolicy:
    return AdaptedFirstComeFirstServed(**settings)


def lgfs(settings: Mapping[str, Any]) -> GangPolicy:
    return LargestGangFirstServed(**settings)


Fate = tuple[int, int, int, int, int, int]
"""(start, end, preemptions, restarts, lost, held)."""


def gang(number: int, processors: int, run_s: float, submit_s: float = 0.0) -> Job:
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


def cluster_of(
    mips: list[float],
    policy: GangPolicy,
    choice: ProcessorChoice = ld,
    outages: Sequence[MachineOutage] = (),
    cpus: Sequence[int] = (),
    amounts: Sequence[Mapping[str, int]] = (),
) -> ClusterState:
    """Machines of one processor each, or of so many `cpus`.

    `amounts` of resources are those of each machine, and then what they share.
    """
    sizes, amounts = cpus or [1] * len(mips), amounts or [{}] * (len(mips) + 1)
    machines = [Machine(f"m{n}", *of) for n, of in enumerate(zip(sizes, mips, strict=True))]
    each = [replace(one, resources=dict(of)) for one, of in zip(machines, amounts, strict=False)]
    platform = Cluster("c", tuple(each), resources=dict(amounts[-1]))
    return make_cluster(platform, policy, None, outages, choice=choice)


def play(
    cluster: ClusterState, jobs: list[Job], journal: int = 0
) -> tuple[dict[int, Fate], ClusterState]:
    """How jobs ended, and the cluster then. Everything is looked at, at every instant.

    At the instant of number `journal` the cluster is written as text, and goes on as it is read.
    """
    left = sorted(jobs, key=lambda job: job.submit_us)
    fates: dict[int, Fate] = {}
    while (now := min(cluster.next_instant(), left[0].submit_us if left else NEVER)) < NEVER:
        journal -= 1
        if journal == 0:
            cluster = pickle.loads(pickle.dumps(cluster))
        while left and left[0].submit_us == now:
            cluster.submit(left.pop(0), -1, now)
        cluster.advance(now + 1)
        assert list(cluster.broken_limits()) == []
        for key, (_, state, start, end, *how, _, _, _) in cluster.take_ended():
            assert state == JobState.COMPLETED
            assert key[1] not in fates, "a job ends twice"
            fates[key[1]] = (start, end, *how)
    return fates, cluster


ASKED_ALD = WithSettings(ald, {})
"""The same as `ald`, as a choice that is asked, for it is not known as ours."""


def reservations(cluster: Any) -> int:
    """How many gangs of other clusters have processors reserved."""
    return int((cluster.state.gangs[STATE] == RESERVED).sum())


def random_choice(chance: random.Random) -> ProcessorChoice:
    return chance.choice((ld, ald, ASKED_ALD))


def random_policy(chance: random.Random) -> GangPolicy:
    return chance.choice((afcfs, lgfs))(
        {
            "migration": chance.choice(("none", "local")),
            "migrates": chance.choice(("heads", "queued")),
            "local_migration_s": chance.choice((0, 1e-6, 3e-6, 1)),
            "aging": chance.choice((0, 1, 2, 64)),
            "release": chance.choice(("task", "gang")),
            "priority_jobs": chance.random() < 0.8,
            "priority_limit": chance.choice((1, 2, 64)),
            "interrupted": chance.choice(("goes_on", "begins_again")),
        }
    )


def random_jobs(chance: random.Random, processors: int) -> list[Job]:
    """Few sizes and few times, in microseconds or in seconds, so that jobs meet."""
    unit = chance.choice((1, SECOND_US // 2))
    jobs, now = [], 0
    for number in range(chance.randint(1, 40)):
        now += unit * chance.choice((0, 0, 1, 2, 5, 30))
        size = 1 if chance.random() < 0.3 else chance.randint(1, processors)
        run_us = unit * chance.randint(1, 12)
        jobs.append(
            Job(
                number=number,
                vo="v",
                user=0,
                submit_us=now,
                processors=size,
                estimate_us=run_us,
                run_us=run_us,
            )
        )
    return jobs


def fates_s(cluster: ClusterState, jobs: list[Job]) -> dict[int, tuple[float, ...]]:
    """Start and end in seconds, preemptions and restarts, lost and held time in seconds."""
    return {
        number: (start / SECOND_US, end / SECOND_US, *counts, lost / SECOND_US, held / SECOND_US)
        for number, (start, end, *counts, lost, held) in play(cluster, jobs)[0].items()
    }


def times_s(cluster: ClusterState, jobs: list[Job]) -> dict[int, tuple[float, ...]]:
    """Start and end in seconds, and interruptions."""
    return {number: fate[:3] for number, fate in fates_s(cluster, jobs).items()}


def same(count: int, policy: GangPolicy) -> ClusterState:
    return cluster_of([1000.0] * count, policy)


def test_tasks_start_together_and_end_by_the_clock_of_their_processors() -> None:
    """Eq. 1: 6 s at 2000 MHz take 8 s at 1500 and 4 s at 3000."""
    cluster = cluster_of([1000.0, 750.0, 1500.0], afcfs({}))
    assert play(cluster, [gang(0, 3, 6.0)])[0] == {0: (0, 8_000_000, 0, 0, 0, 6_000_000)}
    levels = cluster.take_history()
    busy = zip(levels.time_us.tolist(), levels.busy.tolist(), strict=True)
    assert list(busy) == [(0, 3), (4_000_000, 2), (6_000_000, 1), (8_000_000, 0)]


def test_small_gangs_pass_a_large_one_that_is_blocked() -> None:
    jobs = [gang(0, 2, 10.0), gang(1, 4, 5.0, 1.0), gang(2, 2, 3.0, 2.0)]
    assert times_s(same(4, afcfs({})), jobs) == {0: (0, 10, 0), 1: (10, 15, 0), 2: (2, 5, 0)}


@pytest.mark.parametrize(("policy", "starts"), [(afcfs, {1: 10, 2: 15}), (lgfs, {1: 15, 2: 10})])
def test_the_largest_gang_goes_first_under_lgfs(policy: Any, starts: dict[int, float]) -> None:
    jobs = [gang(0, 2, 10.0), gang(1, 1, 5.0, 1.0), gang(2, 2, 5.0, 2.0)]
    fates = times_s(same(2, policy({"priority_jobs": False})), jobs)
    assert {number: fates[number][0] for number in (1, 2)} == starts


@pytest.mark.parametrize(("choice", "start"), [(ld, 10), (ald, 3), (ASKED_ALD, 3)])
def test_ald_counts_the_running_task(choice: ProcessorChoice, start: float) -> None:
    """Eq. 3: after the second job both queues are empty, and the first job still runs."""
    jobs = [gang(0, 1, 10.0), gang(1, 1, 1.0, 1.0), gang(2, 1, 1.0, 3.0)]
    cluster = cluster_of([1000.0] * 2, afcfs({"priority_jobs": False}), choice)
    assert times_s(cluster, jobs)[2][0] == start


def test_the_load_of_a_cluster_is_what_its_processors_have_to_do() -> None:
    """Eq. 2: the mean over processors of tasks in the queue, plus one where a task runs."""
    cluster = same(4, afcfs({}))
    assert cluster.load() == 0.0
    for job in (gang(0, 3, 10.0), gang(1, 4, 10.0), gang(2, 1, 10.0)):
        cluster.submit(job, -1, 0)
    assert cluster.load() == 8 / 4
    cluster.advance(1)
    # The first gang and the priority job run, the second gang has a task in each queue.
    assert cluster.load() == (4 + 4) / 4
    cluster.advance(10 * SECOND_US + 1)
    assert cluster.load() == 4 / 4


def test_a_priority_job_stops_a_gang_with_all_its_tasks_where_nothing_idles() -> None:
    jobs = [gang(0, 2, 10.0), gang(1, 1, 3.0, 4.0)]
    assert times_s(same(2, afcfs({})), jobs) == {0: (0, 13, 1), 1: (4, 7, 0)}
    assert times_s(same(3, afcfs({})), jobs) == {0: (0, 10, 0), 1: (4, 7, 0)}


@pytest.mark.parametrize(
    ("interrupted", "first", "second"),
    [("goes_on", (0, 12, 1), (12, 16, 0)), ("begins_again", (0, 17, 1), (3, 7, 0))],
)
def test_section_3_an_interrupted_gang_goes_on_or_begins_again(
    interrupted: str, first: tuple[float, ...], second: tuple[float, ...]
) -> None:
    """Three processors. A gang of three (10 s) runs from 0, one of two (4 s) waits from 1 on.

    At 3 a priority job of 2 s takes the processor for which nothing waits. Either the first gang
    keeps the other two until 5 and then has 7 s left; or it gives them back, and the second one
    runs there from 3 to 7, before the first begins anew.
    """
    jobs = [gang(0, 3, 10.0), gang(1, 2, 4.0, 1.0), gang(2, 1, 2.0, 3.0)]
    cluster = same(3, afcfs({"interrupted": interrupted}))
    assert times_s(cluster, jobs) == {0: first, 1: second, 2: (3, 5, 0)}
    assert cluster.figures()["interruptions"] == 1


def test_priority_jobs_never_interrupt_each_other() -> None:
    """The second takes the processor that the stopped gang keeps, the third waits for the first."""
    jobs = [gang(0, 2, 10.0), gang(1, 1, 3.0, 4.0), gang(2, 1, 3.0, 5.0), gang(3, 1, 3.0, 5.5)]
    fates = times_s(same(2, afcfs({})), jobs)
    assert fates == {0: (0, 16, 1), 1: (4, 7, 0), 2: (5, 8, 0), 3: (7, 10, 0)}


def test_64_priority_jobs_start_in_a_time_unit_at_most() -> None:
    fates = times_s(same(200, afcfs({})), [gang(number, 1, 5.0, 0.25) for number in range(130)])
    starts = [fates[number][0] for number in range(130)]
    assert starts == [0.25] * 64 + [1.0] * 64 + [2.0] * 2


MIGRATES = [gang(0, 1, 10.0), gang(1, 1, 1.0, 1.0), gang(2, 2, 4.0, 3.0)]
"""Of the third, one task is first in the queue of an idle processor, the other behind the first."""


@pytest.mark.parametrize(("release", "start", "held"), [("task", 6, 7.5), ("gang", 10, 10)])
def test_a_gang_frees_each_processor_or_holds_all_until_its_last_task_ends(
    release: str, start: float, held: float
) -> None:
    """Two tasks on processors of 500 and 1000 MIPS end after 10 s and 5 s; another comes at 6."""
    policy = afcfs({"release": release, "priority_jobs": False})
    cluster = cluster_of([500.0, 1000.0], policy, ald)
    fates, _ = play(cluster, [gang(0, 2, 5.0), gang(1, 1, 1.0, 6.0)])
    assert fates[0][:2] == (0, 10 * SECOND_US)
    # The mean time that the gang held its processors.
    assert fates[0][5] == held * SECOND_US
    assert fates[1][0] == start * SECOND_US


def test_a_gang_migrates_to_idle_processors_which_are_kept_while_it_moves() -> None:
    rules = {"migration": "local", "local_migration_s": 1, "priority_jobs": False}
    cluster = same(3, afcfs(rules))
    assert times_s(cluster, MIGRATES)[2] == (4, 8, 0)
    assert cluster.figures()["migrations_local"] == cluster.figures()["tasks_migrated_local"] == 1
    assert times_s(same(3, afcfs({**rules, "migration": "none"})), MIGRATES)[2] == (10, 14, 0)
    # A gang that comes meanwhile must not take what is kept.
    late = gang(3, 2, 1.0, 3.5)
    assert times_s(same(3, afcfs(rules)), [*MIGRATES, late])[2] == (4, 8, 0)


@pytest.mark.parametrize(("aging", "start"), [(64, 3.5), (0, 20)])
def test_aging_ends_the_passing(aging: int, start: float) -> None:
    """A gang of three waits for all processors; one of two could migrate past it."""
    jobs = [gang(0, 1, 10.0), gang(1, 3, 10.0, 1.0), gang(2, 1, 0.5, 1.5), gang(3, 2, 2.0, 2.5)]
    rules = {"migration": "local", "migrates": "queued", "aging": aging, "priority_jobs": False}
    assert times_s(same(3, afcfs(rules)), jobs)[3][0] == start


def holding(job: Job, **amounts: float) -> Job:
    return replace(job, resources=tuple(sorted(amounts.items())))


@pytest.mark.parametrize(("release", "start"), [("task", 5), ("gang", 10)])
def test_a_task_holds_its_share_until_its_processor_is_free(release: str, start: float) -> None:
    """Tasks of 10 and 5 s hold one disk each of the two that all share; another waits for one."""
    policy = afcfs({"release": release, "priority_jobs": False})
    cluster = cluster_of([500.0, 1000.0, 1000.0], policy, amounts=[{}, {}, {}, {"disks": 2}])
    jobs = [holding(gang(0, 2, 5.0), disks=2), holding(gang(1, 1, 1.0, 1.0), disks=1)]
    assert times_s(cluster, jobs)[1][0] == start
    held = 10 + 5 + 1 if release == "task" else 10 + 10 + 1
    assert cluster.figures()["held.disks"] == held
    assert cluster.figures()["amount.disks"] == 2


@pytest.mark.parametrize(
    ("interrupted", "fates"),
    [
        ("goes_on", {0: (0, 11, 1), 1: (11, 14, 0), 2: (3, 4, 0)}),
        ("begins_again", {0: (0, 15, 1), 1: (2, 5, 0), 2: (3, 4, 0)}),
    ],
)
def test_an_interrupted_gang_keeps_its_resources_unless_it_leaves(
    interrupted: str, fates: dict[int, tuple[float, ...]]
) -> None:
    """A gang of two holds both GPUs. Priority jobs come at 2 s, with a GPU, and at 3 s, without."""
    cluster = cluster_of(
        [1000.0], afcfs({"interrupted": interrupted}), cpus=[2], amounts=[{"gpus": 2}, {}]
    )
    jobs = [holding(gang(0, 2, 10.0), gpus=2), holding(gang(1, 1, 3.0, 2.0), gpus=1)]
    assert times_s(cluster, [*jobs, gang(2, 1, 1.0, 3.0)]) == fates


@pytest.mark.parametrize(("gpus", "start"), [((1, 1, 1), 4), ((1, 1, 0), 10)])
def test_a_gang_migrates_only_to_machines_with_enough_free(
    gpus: Sequence[int], start: float
) -> None:
    amounts = [*({"gpus": one} for one in gpus), {}]
    rules = {"migration": "local", "local_migration_s": 1, "priority_jobs": False}
    cluster = cluster_of([1000.0] * 3, afcfs(rules), amounts=amounts)
    jobs = [*MIGRATES[:2], holding(MIGRATES[2], gpus=2)]
    assert times_s(cluster, jobs)[2] == (start, start + 4, 0)


def test_a_request_of_a_job_is_divided_among_its_tasks() -> None:
    """Three tasks share one GPU on one machine, and none of two machines has enough for two."""
    cluster = cluster_of([1000.0] * 2, afcfs({}), cpus=[3, 1], amounts=[{"gpus": 1}, {}, {}])
    assert times_s(cluster, [holding(gang(0, 3, 1.0), gpus=1)])[0] == (0, 1, 0)
    assert cluster.figures()["held.gpus"] == 1
    cluster.submit(holding(gang(1, 4, 1.0), gpus=1), -1, 2 * SECOND_US)
    cluster.submit(holding(gang(2, 1, 1.0), gpus=1.5), -1, 2 * SECOND_US)
    cluster.advance(NEVER)
    assert {ended.outcome.state for ended in cluster.take_ended()} == {JobState.REJECTED}


def test_fed_jobs_are_played_like_submitted_ones() -> None:
    chance = random.Random(5)
    for _ in range(20):
        mips = [chance.choice(CLOCKS) for _ in range(6)]
        policy, jobs = random_policy(chance), random_jobs(chance, 6)
        cluster = cluster_of(mips, policy)
        cluster.submit_rows(table(jobs))
        cluster.advance(NEVER)
        rows, ended = cluster.take_ended_rows()
        columns = (rows, *ended[2:8])
        fed = {row: tuple(fate) for row, *fate in zip(*(c.tolist() for c in columns), strict=True)}
        assert fed == play(cluster_of(mips, policy), jobs)[0]


def test_a_gang_over_its_estimate_is_killed_where_the_cluster_does_so() -> None:
    machines = (Machine("m", 2, 1000.0),)
    job = Job(number=0, vo="v", user=0, submit_us=0, processors=2, estimate_us=3, run_us=5)
    for overrun, fate in (("kill", (JobState.FAILED, 3)), ("extend", (JobState.COMPLETED, 5))):
        cluster = make_cluster(Cluster("c", machines, overrun=overrun), afcfs({}))
        cluster.submit(job, -1, 0)
        cluster.advance(NEVER)
        (ended,) = cluster.take_ended()
        assert (ended.outcome.state, ended.outcome.end_us) == fate
