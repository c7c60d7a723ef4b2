"""Maintenance and advance reservations: no other job is started that would run into them."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.job import Job, JobState
from grid.model.platform import Cluster, Machine, Reservation
from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import ClusterView, Plan
from grid.policies.registry import make_policy
from tests.cluster.clusters import Asking, general_cluster

S = SECOND_US
POLICIES = (
    "fcfs", "sjf", "edf", "easy", "easy_sjbf", "conservative", "selective", "flexible",
    "multifactor", "eg_edf", "tabu", "python",
)  # fmt: skip
PREEMPTIVE = ("cs2", "cs2_cs_td", "cs_i_p", "cs_ni_np")

MACHINES = (Machine("a", 4, 2000.0), Machine("b", 2), Machine("c", 4, 500.0))


def first_fit(view: ClusterView) -> Plan:
    plan = Plan()
    for slot in view.queue.tolist():
        machine = view.fastest(slot)
        if machine >= 0:
            view.take(slot, machine)
            plan.start.append((slot, machine))
    return plan


class Checked:
    """The policy of that name; each start of its plans has to fit."""

    def __init__(self, policy: str) -> None:
        self._policy = make_policy(policy, {})

    def plan(self, view: ClusterView, now: int) -> Plan:
        plan = self._policy.plan(view, now)
        for slot in plan.preempt:
            view.give_back(slot)
        for slot, machine in plan.start:
            assert view.fits(slot, machine)
            view.take(slot, machine)
        return plan


def outcomes(platform: Cluster, policy: str, jobs: list[Job]) -> list[Any]:
    made = Asking(first_fit) if policy == "python" else make_policy(policy, {})
    return outcomes_under(platform, made, jobs)


def outcomes_under(platform: Cluster, policy: Any, jobs: list[Job]) -> list[Any]:
    cluster = general_cluster(platform, policy)
    for one in jobs:
        cluster.advance(one.submit_us)
        assert list(cluster.broken_limits()) == []
        cluster.submit(one, -1, one.submit_us)
    cluster.advance(NEVER)
    return [one.outcome for one in sorted(cluster.take_ended(), key=lambda one: one.key[1])]


def job(
    number: int,
    cpus: int,
    estimate_s: int,
    submit_s: int = 0,
    run_s: int = 0,
    *,
    user: int = 1,
    vo: str = "v",
) -> Job:
    return Job(
        number=number, vo=vo, user=user, processors=cpus, submit_us=submit_s * S,
        estimate_us=estimate_s * S, run_us=(run_s or estimate_s) * S,
    )  # fmt: skip


def allowed(job: Job, one: Reservation) -> bool:
    if not one.users and not one.vos:
        return False
    return (not one.users or job.user in one.users) and (not one.vos or job.vo in one.vos)


def within_limits(machine: Machine, at_s: float, there: list[Job], platform: Cluster) -> bool:
    """Whether these jobs may run on the machine then, next to what is reserved."""
    active = [
        one
        for one in platform.reservations
        if one.from_s <= at_s < one.to_s and (not one.machines or machine.name in one.machines)
    ]
    every = chain.from_iterable(combinations(active, size) for size in range(len(active) + 1))
    return all(
        not others
        or sum(job.processors for job in others) + sum(one.cpus or machine.cpus for one in some)
        <= machine.cpus
        for some in every
        for others in [[job for job in there if not any(allowed(job, one) for one in some)]]
    )


@st.composite
def reservations(draw: st.DrawFn) -> tuple[Reservation, ...]:
    """At most three, for maintenance or for some."""
    begins = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
    return tuple(
        Reservation(
            begin,
            begin + draw(st.integers(1, 15)),
            tuple(draw(st.sampled_from((("a",), ("b", "c"), ())))),
            draw(st.sampled_from((None, 1, 2))),
            draw(st.sampled_from(((), (1,), (1, 2)))),
            draw(st.sampled_from(((), ("v",)))),
        )
        for begin in begins
    )


@st.composite
def streams(draw: st.DrawFn, *, exact: bool) -> list[Job]:
    """At most 20 jobs of three users of two VOs, whose times come out even on each machine."""
    jobs, now = [], 0
    for number in range(draw(st.integers(1, 20))):
        now += draw(st.sampled_from((0, 0, 3)))
        estimate_s = 2 * draw(st.integers(1, 6))
        run_s = estimate_s if exact else 2 * draw(st.integers(1, estimate_s // 2))
        who = {"user": draw(st.integers(1, 3)), "vo": draw(st.sampled_from("vw"))}
        jobs.append(job(number, draw(st.integers(1, 4)), estimate_s, now, run_s, **who))
    return jobs


@pytest.mark.parametrize("policy", POLICIES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_no_other_job_runs_on_reserved_machines(policy: str, data: st.DataObject) -> None:
    """By its estimate, so that none is interrupted; and all run in the end."""
    alone = data.draw(st.booleans())
    reserved = data.draw(reservations())
    platform = Cluster("c", MACHINES, reservations=reserved, one_job_per_machine=alone)
    jobs = data.draw(streams(exact=False))
    ran = outcomes(platform, policy, jobs)
    for outcome in ran:
        assert (outcome.state, outcome.preemptions) == (JobState.COMPLETED, 0)
    edges = {one.from_s for one in platform.reservations} | {one.start_us / S for one in ran}
    for number, machine in enumerate(MACHINES):
        for at_s in sorted(edges):
            there = [
                job
                for job, one in zip(jobs, ran, strict=True)
                if one.machine == number and one.start_us <= at_s * S < one.end_us
            ]
            assert within_limits(machine, at_s, there, platform)
            assert len(there) <= 1 or not alone


@pytest.mark.parametrize("policy", (*POLICIES[:-1], *PREEMPTIVE))
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_start_fits_next_to_reservations(policy: str, data: st.DataObject) -> None:
    platform = Cluster("c", MACHINES, reservations=data.draw(reservations()))
    jobs = data.draw(streams(exact=False))
    ran = outcomes_under(platform, Checked(policy), jobs)
    assert {one.state for one in ran} == {JobState.COMPLETED}


def one_by_one(platform: Cluster, jobs: list[Job], *, in_turn: bool) -> list[tuple[int, int]]:
    """Machine and start in seconds of each job: the earliest next to those before it.

    The fastest of several machines; `in_turn`, not before the start of the job before.
    """
    fastest = sorted(range(len(MACHINES)), key=lambda number: -MACHINES[number].mips)
    runs: list[tuple[Job, int, int, int]] = []
    for job in jobs:
        start = max([job.submit_us // S, *(one[2] for one in runs[-1:] if in_turn)])
        found = None
        while found is None:
            for number in fastest:
                end = start + int(job.run_us * 1000 / MACHINES[number].mips) // S
                machine, here = MACHINES[number], [one for one in runs if one[1] == number]
                there = [
                    [job, *(one[0] for one in here if one[2] <= at_s < one[3])]
                    for at_s in range(start, end)
                ]
                if all(
                    sum(one.processors for one in each) <= machine.cpus
                    and within_limits(machine, at_s, each, platform)
                    for at_s, each in zip(range(start, end), there, strict=True)
                ):
                    found = (job, number, start, end)
                    break
            start += 1
        runs.append(found)
    return [(number, start) for _, number, start, _ in runs]


@pytest.mark.parametrize("policy", ["fcfs", "conservative"])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_jobs_start_where_they_can_one_by_one(policy: str, data: st.DataObject) -> None:
    platform = Cluster("c", MACHINES, reservations=data.draw(reservations()))
    jobs = data.draw(streams(exact=True))
    expected = one_by_one(platform, jobs, in_turn=policy == "fcfs")
    ran = outcomes(platform, policy, jobs)
    assert [(one.machine, one.start_us // S) for one in ran] == expected


# User 1 has the machine from 10 s to 20 s. Jobs 1 and 3 are of user 2.
@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        # 1 would run into the reservation, and delays the others.
        ("fcfs", [0, 20, 20, 32, 40]),
        # 2 begins before it and ends in it; 4 runs in it; 3 has to wait for 1.
        ("easy", [0, 20, 0, 32, 12]),
        ("conservative", [0, 20, 0, 32, 12]),
        ("eg_edf", [0, 20, 0, 32, 12]),
        # In order of estimates, 3 waits for the end of the reservation, and delays the others.
        ("sjf", [0, 36, 36, 20, 28]),
        ("cs2", [0, 28, 0, 20, 12]),
        ("cs_i_p", [0, 36, 16, 28, 8]),
    ],
)
def test_jobs_of_those_that_have_the_reservation_run_in_it(policy: str, starts: list[int]) -> None:
    reserved = (Reservation(10, 20, users=(1,)),)
    platform = Cluster("c", (Machine("m", 4),), reservations=reserved)
    jobs = [
        job(0, 2, 8), job(1, 2, 12, user=2), job(2, 2, 12), job(3, 4, 8, user=2), job(4, 4, 8),
    ]  # fmt: skip
    assert [one.start_us // S for one in outcomes(platform, policy, jobs)] == starts


def test_other_jobs_that_outlive_their_estimates_are_interrupted() -> None:
    reserved = (Reservation(10, 20, cpus=4, users=(1,)), Reservation(10, 20, users=(1, 3)))
    platform = Cluster("c", (Machine("m", 4),), reservations=reserved, overrun="extend")
    jobs = [job(0, 1, 9, run_s=15, user=2), job(1, 1, 9, run_s=15), job(2, 1, 9, 0, 15, user=3)]
    ran = outcomes(platform, "easy", jobs)
    assert [(one.end_us // S, one.preemptions) for one in ran] == [(35, 1), (15, 0), (35, 1)]


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        # 1 would run into the maintenance from 10 s to 20 s, and delays the others.
        ("fcfs", [0, 20, 26, 26]),
        # 2 fits before the maintenance, 3 does not.
        ("easy", [0, 20, 0, 26]),
        ("conservative", [0, 20, 0, 26]),
        ("eg_edf", [0, 20, 0, 26]),
        # 1 is the shortest.
        ("sjf", [20, 0, 20, 28]),
        ("cs2", [20, 0, 20, 28]),
        # One job at a time.
        ("cs_i_p", [20, 0, 28, 38]),
    ],
)
def test_the_gap_before_maintenance_is_backfilled(policy: str, starts: list[int]) -> None:
    platform = Cluster("c", (Machine("m", 4),), reservations=(Reservation(10, 20),))
    jobs = [job(0, 2, 8), job(1, 4, 6), job(2, 2, 10), job(3, 2, 12)]
    assert [one.start_us // S for one in outcomes(platform, policy, jobs)] == starts


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        # 1 needs the two CPUs that are reserved from 10 s to 20 s, and delays the others.
        ("fcfs", [0, 20, 26, 26]),
        # 3 runs next to the reserved CPUs once 0 has ended, but not beyond 20 s.
        ("easy", [0, 20, 0, 26]),
        ("conservative", [0, 20, 0, 26]),
        ("tabu", [0, 20, 0, 26]),
        # After 1, 0 and 3 run next to the reserved CPUs.
        ("sjf", [6, 0, 20, 14]),
        ("cs2", [6, 0, 20, 14]),
        ("cs_ni_np", [6, 0, 27, 14]),
    ],
)
def test_narrow_jobs_fit_next_to_reserved_cpus(policy: str, starts: list[int]) -> None:
    reserved = (Reservation(10, 20, cpus=2),)
    platform = Cluster("c", (Machine("m", 4),), reservations=reserved)
    jobs = [job(0, 2, 8), job(1, 4, 6), job(2, 2, 20), job(3, 2, 13)]
    assert [one.start_us // S for one in outcomes(platform, policy, jobs)] == starts


@pytest.mark.parametrize("policy", ["easy", "conservative", "selective", "eg_edf"])
def test_a_job_that_outlives_its_estimate_is_interrupted_as_by_an_outage(policy: str) -> None:
    platform = Cluster(
        "c", (Machine("m", 4),), reservations=(Reservation(10, 20),), overrun="extend"
    )
    (outcome,) = outcomes(platform, policy, [job(0, 1, 9, run_s=15)])
    assert (outcome.end_us // S, outcome.preemptions, outcome.lost_us // S) == (35, 1, 10)


def test_a_plan_may_preempt_all_jobs_that_hold_cpus_of_a_window() -> None:
    def newest_only(view: ClusterView) -> Plan:
        plan = Plan()
        for slot in view.arrived.tolist():
            for running in view.running.tolist():
                view.give_back(running)
                plan.preempt.append(running)
            assert view.fits(slot, 0)
            plan.start.append((slot, 0))
        return plan

    platform = Cluster("c", (Machine("m", 4),), reservations=(Reservation(10, 20, cpus=2),))
    cluster = general_cluster(platform, Asking(newest_only))
    for one in (job(0, 2, 15), job(1, 2, 15, submit_s=1)):
        cluster.submit(one, -1, one.submit_us)
        cluster.advance(one.submit_us)
    cluster.advance(17 * S)
    (outcome,) = cluster.take_ended()
    assert (outcome.key[1], outcome.outcome.end_us // S) == (1, 16)
