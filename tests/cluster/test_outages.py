"""Outages of machines, and their jobs, under every policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grid.cluster import ClusterState, make_cluster
from grid.model.job import Job, JobState
from grid.model.platform import GANG_POLICIES, Cluster, Machine, MachineOutage
from grid.model.time import NEVER, SECOND_US, Time
from grid.policies.interface import ClusterView, Plan
from grid.policies.registry import make_policy, policy_names
from tests.cluster.clusters import Outcome, job, play, pool, table

S = SECOND_US
# What `batsim` decides is decided elsewhere.
POLICIES = [name for name in policy_names() if name not in (*GANG_POLICIES, "batsim")]


def cluster_of(
    platform: Cluster, outages: list[tuple[int, int, int]], policy: str = "fcfs"
) -> ClusterState:
    """`outages` are (machine, start, end) in seconds."""
    down = [MachineOutage(machine, start * S, end * S) for machine, start, end in outages]
    return make_cluster(platform, make_policy(policy, {}), None, down)


def farm(*machines: tuple[int, float]) -> Cluster:
    """Machines of so many CPUs and MIPS each."""
    made = tuple(Machine(f"m{n}", cpus, mips) for n, (cpus, mips) in enumerate(machines))
    return Cluster("cluster", made)


def one(number: int, submit: int, processors: int, run: int, **more: Any) -> Job:
    return job(number, submit * S, processors, run * S, run * S, **more)


def seconds(played: list[Outcome]) -> list[tuple[int, float, float]]:
    """(machine, start, end)."""
    return [(machine, start / S, end / S) for machine, _, start, end in played]


def test_a_job_restarts_when_its_machine_is_up_again() -> None:
    cluster = cluster_of(pool(2), [(0, 4, 10)])
    played = play(cluster, [one(0, 0, 1, 6), one(1, 5, 2, 1)])
    # The first keeps its place ahead of the second, and its first start.
    assert seconds(played) == [(0, 0, 16), (0, 16, 17)]


@pytest.mark.parametrize("checkpointable", [False, True])
def test_to_begin_again_on_another_machine_is_a_migration(checkpointable: bool) -> None:
    """To begin again on the same one, as the second job does, is none."""
    jobs = [one(0, 0, 2, 6, checkpointable=checkpointable), one(1, 0, 1, 6)]
    cluster = cluster_of(farm((2, 2000.0), (2, 1000.0)), [(0, 1, 20), (1, 1, 2)])
    played = play(cluster, jobs)
    end = 6 if checkpointable else 8
    assert seconds(played) == [(1, 0, end), (1, 0, end + 6)]
    assert cluster.figures()["migrations_local"] == 1


class StartsOnce:
    """Starts jobs on machine 0 when they come, and rejects those that wait again."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        again = [slot for slot in view.queue.tolist() if slot not in view.arrived]
        return Plan(start=[(slot, 0) for slot in view.arrived.tolist()], reject=again)


def test_a_job_that_is_rejected_after_it_ran_failed_where_it_ran() -> None:
    cluster = make_cluster(pool(1), StartsOnce(), None, [MachineOutage(0, 4 * S, 10 * S)])
    assert play(cluster, [one(0, 0, 1, 6)]) == [(0, int(JobState.FAILED), 0, 4 * S)]


def test_lost_time_and_restarts_are_reported() -> None:
    cluster = cluster_of(pool(1), [(0, 4, 10), (0, 11, 12)])
    cluster.submit_rows(table([one(0, 0, 1, 6)]))
    cluster.advance(NEVER)
    ended = cluster.take_ended_rows().outcome
    columns = (ended.end_us, ended.preemptions, ended.restarts, ended.lost_us, ended.held_us)
    assert [column.tolist() for column in columns] == [[18 * S], [2], [2], [5 * S], [11 * S]]


def test_a_job_that_has_outlived_its_estimate_does_not_pass_the_head() -> None:
    """The third job takes 10 s by its estimate on the fast machine, runs there from 0 until it goes
    down at 25, and is expected at 40 then: it still needs 30 s on the slow one, where the second
    job can start at 50."""
    platform = replace(farm((3, 1000.0), (1, 2000.0)), overrun="extend")
    jobs = [one(0, 0, 2, 50), one(1, 0, 3, 10), job(2, 0, 1, 20 * S, 400 * S, checkpointable=True)]
    cluster = cluster_of(platform, [(1, 25, 999)], "easy")
    assert seconds(play(cluster, jobs)) == [(0, 0, 50), (0, 50, 60), (0, 0, 410)]


def test_a_job_that_ends_when_its_machine_goes_down_has_ended() -> None:
    cluster = cluster_of(pool(1), [(0, 6, 10)])
    played = play(cluster, [one(0, 0, 1, 6), one(1, 6, 1, 2)])
    assert seconds(played) == [(0, 0, 6), (0, 10, 12)]


def test_outages_that_no_job_sees_do_not_keep_a_run_going() -> None:
    cluster = cluster_of(pool(1), [(0, 7, 10), (0, 50, 60)])
    cluster.submit(one(0, 0, 1, 6), -1, 0)
    cluster.advance(6 * S + 1)
    assert cluster.next_instant() == NEVER == cluster.horizon()


def random_jobs(rng: np.random.Generator, count: int) -> list[Job]:
    jobs = []
    submits = np.sort(rng.integers(0, 3 * count, count))
    for number, submit in enumerate(submits.tolist()):
        run = int(rng.integers(1, 20))
        jobs.append(
            job(
                number,
                submit * S,
                int(rng.integers(1, 4)),
                int(run * rng.choice([1, 2, 5])) * S,
                run * S,
                deadline_us=(submit + 40) * S if rng.random() < 0.5 else NEVER,
                checkpointable=bool(rng.random() < 0.3),
            )
        )
    return jobs


@pytest.mark.parametrize("policy", POLICIES)
def test_under_any_policy_all_jobs_end_and_none_runs_on_a_machine_that_is_down(policy: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        jobs = random_jobs(rng, 30)
        outages = []
        for machine in range(3):
            times = np.sort(rng.choice(150, 6, replace=False)).tolist()
            outages += [(machine, *times[n : n + 2]) for n in (0, 2, 4)]
        cluster = cluster_of(farm((4, 1000.0), (3, 500.0), (3, 2000.0)), outages, policy)
        cluster.submit_rows(table(jobs))
        cluster.advance(NEVER)
        rows, ended = cluster.take_ended_rows()
        assert sorted(rows.tolist()) == list(range(len(jobs)))
        assert JobState.COMPLETED in ended.state
        for machine, start, end, stops in zip(
            ended.machine, ended.start_us, ended.end_us, ended.preemptions, strict=True
        ):
            for where, down, up in outages:
                if stops == 0 and where == machine:
                    assert end <= down * S or start >= up * S


@pytest.mark.parametrize("policy", ["fcfs", "conservative", "afcfs"])
def test_a_machine_taken_down_by_a_user_is_as_one_with_a_given_outage(policy: str) -> None:
    """Also if it overlaps given outages; all machines are repaired at once."""
    machines = [(1, 1000.0)] * 6 if policy in GANG_POLICIES else [(4, 1000.0), (3, 500.0)]
    platform = replace(farm(*machines), policy=policy)
    jobs = [one(number, 2 * number, 1 + number % 3, 3 + 5 * number % 11) for number in range(12)]
    given = [MachineOutage(0, 10 * S, 14 * S), MachineOutage(1, 12 * S, 17 * S)]
    expected = cluster_of(platform, [(0, 8, 21), (1, 12, 21)], policy)
    made = make_policy(policy, {})
    found = make_cluster(platform, made, None, given, may_break=True)
    ends = []
    for cluster in (expected, found, cluster_of(platform, [(0, 10, 14), (1, 12, 17)], policy)):
        cluster.submit_rows(table(jobs))
        if cluster is found:
            for machine, at in ((0, 8), (1, 15)):
                found.advance(at * S)
                found.take_down(machine, at * S)
            found.advance(21 * S)
            assert not list(found.broken_limits())
            found.repair(21 * S)
        cluster.advance(NEVER)
        outcome = cluster.take_ended_rows().outcome
        ends.append([outcome.start_us.tolist(), outcome.end_us.tolist()])
    assert ends[0] == ends[1] != ends[2]
