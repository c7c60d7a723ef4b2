"""Jobs that their users cancel while they wait, on every engine and under every policy."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import ClusterState, make_cluster
from grid.model.job import Job, JobState
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine, MachineOutage
from grid.model.time import NEVER, SECOND_US
from grid.policies.features import JobFeatures
from grid.policies.registry import make_policy, policy_names
from tests.cluster.clusters import Outcome, job, play, pool

CANCELS = JobFeatures(cancellations=True)
POLICIES = sorted(set(policy_names()) - {"batsim"})


def cluster_of(
    platform: Cluster, policy: str, outages: tuple[MachineOutage, ...] = ()
) -> ClusterState:
    given = {"iterations": 5} if policy == "tabu" else {}
    made = make_policy(policy, given)
    return make_cluster(replace(platform, policy=policy), made, None, outages, jobs=CANCELS)


@st.composite
def jobs(draw: Any, cpus: int = 4) -> list[Job]:
    made, now = [], 0
    for number in range(draw(st.integers(1, 12))):
        now += draw(st.integers(0, 6))
        run = draw(st.integers(1, 20))
        patience = draw(st.none() | st.integers(1, 30))
        made.append(
            job(number, now, draw(st.integers(1, cpus)), run + draw(st.integers(0, 9)), run,
                cancel_us=NEVER if patience is None else now + patience)
        )  # fmt: skip
    return made


def slow_fcfs(jobs: list[Job], cpus: int) -> list[Outcome]:
    """First come, first served, instant by instant; cancellations go before starts."""
    outcomes: dict[int, Outcome] = {}
    waiting, running, now, left = [], [], 0, list(jobs)
    while left or waiting or running:
        running = [one for one in running if outcomes[one.number][3] > now]
        for one in waiting:
            if one.cancel_us <= now:
                outcomes[one.number] = (-1, JobState.CANCELLED, -1, now)
        waiting = [one for one in waiting if one.number not in outcomes]
        waiting += [one for one in left if one.submit_us == now]
        left = [one for one in left if one.submit_us > now]
        while waiting and waiting[0].processors + sum(one.processors for one in running) <= cpus:
            one = waiting.pop(0)
            outcomes[one.number] = (0, JobState.COMPLETED, now, now + one.run_us)
            running.append(one)
        now += 1
    return [outcomes[one.number] for one in jobs]


@given(jobs=jobs())
def test_fcfs_with_cancellations_equals_a_slow_oracle(jobs: list[Job]) -> None:
    assert play(cluster_of(pool(4), "fcfs"), jobs) == slow_fcfs(jobs, 4)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=10)
@given(jobs=jobs(), down=st.booleans())
def test_a_job_starts_before_its_cancellation_or_is_cancelled_then(
    policy: str, jobs: list[Job], down: bool
) -> None:
    machines = tuple(Machine(f"m{number}", 4) for number in range(2))
    outages = (MachineOutage(0, 20, 30),) * down
    cluster = cluster_of(Cluster("c", machines), policy, outages)
    for one, (_, state, start, end) in zip(jobs, play(cluster, jobs), strict=True):
        if state == JobState.CANCELLED:
            assert (start, end) == (-1, one.cancel_us)
        else:
            assert state == JobState.COMPLETED and one.submit_us <= start < one.cancel_us
    assert not list(cluster.broken_limits()) and not cluster._has_jobs()


@pytest.mark.parametrize("policy", ["conservative", "selective", "flexible", "eg_edf"])
def test_jobs_behind_a_cancelled_one_move_up(policy: str) -> None:
    """The second has the whole pool reserved from 10 on; without it, the third can start at 5."""
    first, wide = job(0, 0, 2, 10, 10), job(1, 0, 4, 10, 10, cancel_us=5)
    third = job(2, 1, 2, 10, 10)
    assert [one[2] for one in play(cluster_of(pool(4), policy), [first, wide, third])][2] in (1, 5)


def test_a_job_that_was_preempted_has_started_and_is_not_cancelled() -> None:
    cluster = cluster_of(pool(1), "fcfs", (MachineOutage(0, 5, 50),))
    assert play(cluster, [job(0, 0, 1, 10, 10, cancel_us=20)]) == [(0, 3, 0, 60)]


def test_a_queue_with_a_constant_patience_is_as_barrer_computed() -> None:
    """M/M/1+D at a load of 1.2 and a patience of two service times: the share that is cancelled.

    D. Y. Barrer, "Queuing with impatient customers and ordered service", Operations Research 5(5),
    1957: the share is P0 rho exp(-(mu - lambda) tau), where P0 is that of an empty system.
    """
    rate, patience, count = 1.2, 2.0, 40_000
    rng = np.random.default_rng(5)
    submit_us = np.cumsum(rng.exponential(SECOND_US / rate, count)).astype(np.int64)
    run_us = np.maximum(rng.exponential(SECOND_US, count), 1).astype(np.int64)
    cluster = cluster_of(pool(1), "fcfs")
    cluster.submit_rows(
        JobTable.of(
            number=np.arange(count), submit_us=submit_us, processors=np.ones(count, np.int64),
            estimate_us=run_us, run_us=run_us, cancel_us=submit_us + int(patience * SECOND_US),
        )
    )  # fmt: skip
    cluster.advance(NEVER)
    cancelled = (cluster.take_ended_rows().outcome.state == JobState.CANCELLED).mean()
    beyond = exp(-(1.0 - rate) * patience)
    empty = 1.0 / (1.0 + rate * (1.0 - beyond) / (1.0 - rate) + rate * beyond)
    assert cancelled == pytest.approx(empty * rate * beyond, rel=0.03)
