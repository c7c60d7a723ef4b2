"""Machines of gang clusters that go down: by hand, and the compiled cluster against a slow one."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grid.cluster import ClusterState
from grid.cluster.gang.processor_choices import ProcessorChoice, ProcessorQueues, ld
from grid.kernel.faults import Outage, disjoint
from grid.model.job import Amounts, Job, cancelled
from grid.model.messages import NEVER_RAN, GangProgress
from grid.model.platform import MachineOutage
from grid.model.records import ClusterHistory
from grid.model.time import NEVER, SECOND_US
from grid.results.series import loss_of_capacity, lost_processors
from tests.cluster.gang.slow_gangs import SlowGangs
from tests.cluster.gang.test_gangs import (
    CLOCKS,
    afcfs,
    cluster_of,
    fates_s,
    gang,
    play,
    random_choice,
    random_jobs,
    random_policy,
    reservations,
)
from tests.examples import examples

S = SECOND_US


def own_choice(tasks: int, queues: ProcessorQueues, start: int) -> list[int]:
    """One that is plugged in, and asked."""
    return [int(p) for p in ld(tasks, queues, start)]


def singles(count: int, *outages: tuple[int, float, float], **rules: object) -> ClusterState:
    """One processor a machine, `outages` as (machine, from, until) in seconds."""
    down = [MachineOutage(m, round(start * S), round(end * S)) for m, start, end in outages]
    return cluster_of([1000.0] * count, afcfs(rules), outages=down)


def test_a_running_gang_restarts_on_processors_that_are_up() -> None:
    """The other task stops, too."""
    cluster = singles(3, (0, 4, 100))
    assert fates_s(cluster, [gang(0, 2, 10.0)]) == {0: (0, 14, 1, 1, 4, 14)}
    assert cluster.figures()["interruptions"] == 0


def test_a_gang_that_is_wider_than_what_is_up_waits_and_others_pass_it() -> None:
    jobs = [gang(0, 2, 10.0), gang(1, 3, 5.0, 5.0), gang(2, 2, 3.0, 6.0)]
    fates = fates_s(singles(3, (0, 4, 20)), jobs)
    # The second could have all three only at 20 s.
    assert fates == {0: (0, 14, 1, 1, 4, 14), 1: (20, 25, 0, 0, 0, 5), 2: (14, 17, 0, 0, 0, 3)}


def test_the_queue_of_a_processor_that_goes_down_is_given_to_others() -> None:
    """The gang waits for processors 2 and 0; with 0 down, it is behind the job that ran there."""
    jobs = [gang(0, 1, 10.0), gang(1, 1, 5.0), gang(2, 2, 4.0, 2.0)]
    rules = {"priority_jobs": False}
    assert fates_s(singles(3, **rules), jobs)[2][:2] == (10, 14)
    fates = fates_s(singles(3, (0, 3, 100), **rules), jobs)
    assert fates == {0: (0, 15, 1, 1, 3, 13), 1: (0, 5, 0, 0, 0, 5), 2: (15, 19, 0, 0, 0, 4)}


def test_the_tasks_of_a_checkpointed_gang_go_on_from_where_the_slowest_was() -> None:
    """10 s of work at 1000 MIPS; until 4 s the fast task does 8 s of it and the slow one 4 s."""
    job = Job(
        number=0,
        vo="v",
        user=0,
        submit_us=0,
        processors=2,
        estimate_us=10 * S,
        run_us=10 * S,
        checkpointable=True,
    )
    down = [MachineOutage(1, 4 * S, 50 * S)]
    cluster = cluster_of([2000.0, 1000.0, 500.0], afcfs({}), outages=down)
    # 6 s are left: 3 s on the first machine and 12 s on the third. 4 s of the first's 8 are lost,
    # in 2 s, and so 1 s a task; held are (4 + 4) / 2 and (3 + 12) / 2 s.
    assert fates_s(cluster, [job]) == {0: (0, 16, 1, 0, 1, 11.5)}


def test_a_priority_job_restarts_before_later_ones() -> None:
    jobs = [gang(0, 1, 6.0), gang(1, 1, 1.0, 5.0), gang(2, 1, 1.0, 9.0)]
    fates = fates_s(singles(1, (0, 4, 8)), jobs)
    assert {number: fate[:3] for number, fate in fates.items()} == {
        0: (0, 14, 1),
        1: (14, 15, 0),
        2: (15, 16, 0),
    }


def test_what_ends_when_its_machine_goes_down_has_ended() -> None:
    assert fates_s(singles(2, (0, 6, 9)), [gang(0, 2, 6.0)]) == {0: (0, 6, 0, 0, 0, 6)}


def test_a_reservation_ends_with_an_outage() -> None:
    cluster = singles(3, (0, 2, 5), migration="full", external_migration_s=1)
    reservation = cluster.reserve(3, 0)
    assert reservation is not None
    cluster.advance(3 * S)
    assert list(cluster.broken_limits()) == []
    # Its other processors are free for others, and it can still be cancelled.
    assert cluster.reserve(2, 0) is not None
    assert not cluster.receive(gang(0, 3, 1.0), NEVER_RAN, reservation, 3 * S)
    cluster.cancel(reservation, 3 * S)
    assert list(cluster.broken_limits()) == []
    assert reservations(cluster) == 1


def test_a_gang_received_after_an_unobserved_outage_starts_no_earlier() -> None:
    cluster = singles(2, (0, 2, 5), (1, 20, 21), migration="full", external_migration_s=1)
    reservation = cluster.reserve(1, 0)
    assert reservation is not None
    assert cluster.next_instant() == NEVER == cluster.horizon()
    # The round begins at 0, so the reservation has gone with the first outage.
    assert not cluster.receive(gang(0, 2, 1.0), NEVER_RAN, reservation, 10 * S)
    cluster.cancel(reservation, 10 * S)
    reservation = cluster.reserve(2, 0)
    assert reservation is not None
    assert cluster.receive(gang(0, 2, 1.0), NEVER_RAN, reservation, 10 * S)
    assert play(cluster, [])[0] == {0: (11 * S, 12 * S, 0, 0, 0, S)}
    times = cluster.take_history().time_us
    assert (np.diff(times) > 0).all()


@pytest.mark.parametrize("choice", [ld, own_choice])
def test_an_outage_does_not_bring_a_gang_that_is_under_way_earlier(choice: ProcessorChoice) -> None:
    """It comes at 10 s to two of four processors, its tasks at 12 s. One goes down meanwhile, and
    others are idle."""
    down = [MachineOutage(0, 11 * S, 99 * S), MachineOutage(1, 11 * S + 1, 99 * S)]
    rules = {"migration": "full", "external_migration_s": 2}
    cluster = cluster_of([1000.0] * 4, afcfs(rules), choice, down)
    cluster.advance(10 * S)
    reservation = cluster.reserve(2, 0)
    assert reservation is not None
    assert cluster.receive(gang(0, 2, 1.0), NEVER_RAN, reservation, 10 * S)
    assert fates_s(cluster, [])[0][:2] == (12, 13)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("checkpointable", [False, True])
def test_a_gang_takes_what_it_has_behind_it_to_another_cluster(
    checkpointable: bool, is_late: bool
) -> None:
    """It runs from 0 until a machine goes down at 4 s, waits behind a job, leaves at 5 s, and goes
    on, or begins anew, at 6 s elsewhere; there it meets the same again at 8 s, and leaves at 9 s.
    """
    job = replace(gang(0, 2, 10.0), checkpointable=checkpointable)
    rules = {"migration": "full", "external_migration_s": 1, "priority_jobs": False}
    moved, progress, here_s = job, NEVER_RAN, 0
    for down_s in (4, 8):
        cluster = singles(3, (1, down_s, 99), **rules)
        cluster.submit(gang(1, 1, 99.0), -1, 0)
        _come(cluster, moved, progress, here_s, is_late)
        cluster.advance((down_s + 1) * S)
        waiting = cluster.waiting_gang()
        assert waiting is not None
        left = cluster.send_away(waiting, (down_s + 1) * S)
        assert left is not None
        (moved, progress), here_s = pickle.loads(pickle.dumps(left)), down_s + 1
    cluster = singles(2, **rules)
    _come(cluster, moved, progress, here_s, is_late)
    # It has run for 4 and 2 s, and goes on at 10 s.
    expected = (0, 14, 2, 0, 0, 10) if checkpointable else (0, 20, 2, 2, 6, 16)
    assert fates_s(cluster, []) == {0: expected}


def _come(
    cluster: ClusterState, job: Job, progress: GangProgress, at_s: int, is_late: bool
) -> None:
    """The gang comes to the cluster at that time: by its users, or from another one."""
    cluster.advance(at_s * S)
    if at_s == 0:
        cluster.submit(job, -1, 0)
    elif is_late:
        cluster.receive_late(job, progress, (at_s + 1) * S)
    else:
        reservation = cluster.reserve(2, 0)
        assert reservation is not None
        assert cluster.receive(job, progress, reservation, at_s * S)


MIGRATING = {"migration": "local", "local_migration_s": 1, "priority_jobs": False}


@pytest.mark.parametrize(
    ("cluster", "jobs"),
    [
        (singles(1), [gang(0, 1, 9.0), gang(1, 1, 1.0)]),
        (singles(2, (0, 0, 20)), [gang(0, 1, 9.0), gang(1, 2, 1.0)]),
        (singles(3, **MIGRATING), [gang(0, 1, 9.0), gang(2, 2, 1.5), gang(1, 2, 1.0)]),
    ],
)
def test_a_gang_that_has_not_started_is_cancelled(cluster: ClusterState, jobs: list[Job]) -> None:
    """A priority job, one wider than what is up, and one that migrates at 1.5 s."""
    jobs[-1] = replace(jobs[-1], cancel_us=2 * S)
    for job in jobs:
        cluster.submit(job, -1, 0)
    cluster.advance(3 * S)
    ended = {one.key[1]: one.outcome for one in cluster.take_ended()}
    assert ended[1] == cancelled(2 * S)
    assert list(cluster.broken_limits()) == []
    cluster.submit(gang(3, 1, 4.0), -1, 4 * S)
    assert play(cluster, [])[0][0][:2] == (0, 9 * S)


def test_a_processor_that_is_down_does_not_idle() -> None:
    """Three of five run until 10 s, one is down until 6 s, and a gang waits for one of the three.

    From 3 s to 6 s there is one idle processor, too few for the gang; then there are two.
    """
    cluster = singles(5, (4, 2, 6))
    assert fates_s(cluster, [gang(0, 3, 10.0), gang(1, 2, 5.0, 3.0)])[1][:2] == (10, 15)
    history = ClusterHistory(0, 5, cluster.take_history())
    assert loss_of_capacity([history]) == 100 * (2 * 4) / (5 * 15)
    times, lost = lost_processors(history)
    assert dict(zip((times // S).tolist(), lost.tolist(), strict=True)) == {
        **{0: 0, 2: 0, 3: 0},
        **{6: 2, 10: 0, 15: 0},
    }


def random_amounts(chance: random.Random, machines: int) -> list[dict[str, int]]:
    """Of two resources of machines, and one that these share."""
    own = [{"gpus": chance.randint(0, 3), "disks": chance.choice((1, 4))} for _ in range(machines)]
    return [*own, {"licenses": chance.randint(1, 4)}]


def random_requests(
    chance: random.Random, job: Job, amounts: Sequence[Mapping[str, int]]
) -> Amounts:
    """Per task or per job, or nothing."""
    if not amounts or chance.random() < 0.3:
        return ()
    scale = chance.choice((1, job.processors))
    return tuple(
        (name, float(scale * chance.choice((0.5, 1, 1, 2))))
        for name in ("disks", "gpus", "licenses")
        if chance.random() < 0.4
    )


def compare(seed: int) -> None:
    """One random stream and random outages, in the compiled cluster and in the slow one."""
    chance = random.Random(seed)
    machines = [[chance.choice(CLOCKS)] * chance.randint(1, 3) for _ in range(chance.randint(1, 5))]
    count = sum(map(len, machines))
    policy, choice = random_policy(chance), random_choice(chance)
    jobs = [
        replace(job, checkpointable=chance.random() < 0.3) for job in random_jobs(chance, count)
    ]
    last = 1 + max(job.submit_us + 4 * job.run_us for job in jobs)
    outages, failures = [], chance.choice((0, 0, 1, 3))
    for machine in range(len(machines)):
        times = [sorted(chance.sample(range(last + 2), 2)) for _ in range(failures)]
        for one in disjoint([Outage(*pair) for pair in times]):
            outages.append(MachineOutage(machine, one.start_us, one.end_us))
    mips, cpus = [of[0] for of in machines], [len(of) for of in machines]
    amounts = random_amounts(chance, len(machines)) if chance.random() < 0.6 else []
    jobs = [replace(job, resources=random_requests(chance, job, amounts)) for job in jobs]
    cluster = cluster_of(mips, policy, choice, outages, cpus, amounts)
    slow = SlowGangs(machines, policy, choice, outages, amounts)
    rejected = [job for job in jobs if not slow.can_ever_run(job)]
    for job in rejected:
        cluster.submit(job, -1, 0)
    cluster.advance(1)
    assert [ended.key[1] for ended in cluster.take_ended()] == [job.number for job in rejected]
    jobs = [replace(job, submit_us=job.submit_us + 1) for job in jobs if job not in rejected]
    fates, cluster = play(cluster, jobs, chance.randint(0, 30))
    slow.play(sorted(jobs, key=lambda job: job.submit_us))
    assert sorted(fates) == [job.number for job in jobs]
    assert fates == {
        one.job.number: (one.start, one.end, one.interruptions, one.restarts, one.lost, one.held)
        for one in slow.ended
    }
    figures = cluster.figures()
    assert figures["migrations_local"] == slow.migrations
    assert figures["tasks_migrated_local"] == slow.moved
    assert figures["interruptions"] == slow.interruptions
    for name in amounts[0] | amounts[-1] if amounts else ():
        assert figures[f"held.{name}"] == pytest.approx(slow.held_s[name] / S)
    levels = cluster.take_history()
    columns = (levels.time_us, levels.busy, levels.smallest)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == slow.history


@settings(max_examples=examples(200))
@given(seed=st.integers(0, 2**32))
@example(seed=10853)
def test_the_compiled_cluster_and_the_slow_one_agree_at_every_instant(seed: int) -> None:
    compare(seed)
