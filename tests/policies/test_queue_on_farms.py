"""Queue policies on several machines with licenses: slow versions, and schedules by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import ClusterState
from grid.model.job import Job, JobState, Size, amounts
from grid.model.platform import Cluster, License, Machine, Reservation
from grid.model.time import NEVER, SECOND_US
from grid.policies.registry import make_policy
from tests.cluster.clusters import general_cluster, job, play, with_sizes
from tests.cluster.slow_farm import (
    SlowEasy,
    SlowEdf,
    SlowFcfs,
    SlowFlexible,
    SlowKept,
    SlowPreemptiveEdf,
    SlowSjf,
)

NAMES = ("a", "b", "c")
SLOW: dict[str, Any] = {
    "fcfs": SlowFcfs,
    "sjf": SlowSjf,
    "edf": SlowEdf,
    "easy": SlowEasy,
    "easy_sjbf": lambda: SlowEasy(shortest=True),
    "flexible": SlowFlexible,
    "flexible, kept": SlowKept,
    "edf, preemptive": SlowPreemptiveEdf,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "flexible, kept": {"reservation": "kept"},
    "edf, preemptive": {"preemptive": True},
}


def policy_named(name: str) -> Any:
    return make_policy(name.partition(",")[0], SETTINGS.get(name, {}))


@st.composite
def farms(draw: st.DrawFn) -> Cluster:
    machines = tuple(
        Machine(
            f"m{number}",
            draw(st.sampled_from((1, 2, 4, 8))),
            draw(st.sampled_from((500.0, 1000.0, 1000.0, 1500.0))),
            licenses=tuple(draw(st.lists(st.sampled_from(NAMES), unique=True))),
            ram_mb=draw(st.sampled_from((0.0, 3.0))),
            resources={"gpus": draw(st.sampled_from((0.0, 2.0, 4.0)))},
        )
        for number in range(draw(st.integers(1, 5)))
    )
    copies = tuple(License(name, draw(st.integers(0, 2))) for name in NAMES)
    shared: dict[str, float] = draw(st.sampled_from(({}, {"io": 2.5})))
    windows: tuple[Reservation, ...] = ()
    if draw(st.booleans()):
        named = draw(st.lists(st.sampled_from([one.name for one in machines]), unique=True))
        begin = draw(st.integers(0, 15))
        chosen = [one for one in machines if one.name in named or not named]
        cpus = draw(st.none() | st.integers(1, min(one.cpus for one in chosen)))
        users = draw(st.sampled_from(((), (1,))))
        window = Reservation(begin, begin + draw(st.integers(1, 9)), tuple(named), cpus, users)
        windows = (window, *draw(st.sampled_from(((), (Reservation(5, 9, users=(2,)),)))))
    return Cluster("farm", machines, licenses=copies, resources=shared, reservations=windows)


MOLDABLE = ("easy", "easy_sjbf")


@st.composite
def job_lists(draw: st.DrawFn, moldable: bool = False) -> list[Job]:
    jobs, now = [], 0
    for number in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from((0, 0, 1, 3))) * SECOND_US
        estimate = draw(st.integers(1, 12)) * SECOND_US
        run = estimate if draw(st.booleans()) else draw(st.integers(1, 14)) * SECOND_US
        mask = draw(st.sampled_from((0, 0, *range(2 ** len(NAMES)))))
        held = {"gpus": (0, 0, 1, 2), "io": (0, 0, 0.5, 1, 2), "ram_mb": (0, 0, 1, 2)}
        drawn = {name: draw(st.sampled_from(values)) for name, values in held.items()}
        jobs.append(
            job(
                number,
                now,
                draw(st.integers(1, 8)),
                estimate,
                run,
                user=draw(st.integers(1, 2)),
                licenses=mask,
                resources=amounts(drawn),
                deadline_us=now + draw(st.sampled_from((5, 20, 40))) * SECOND_US
                if draw(st.booleans())
                else NEVER,
                reference_mips=draw(st.sampled_from((500.0, 1000.0))),
                checkpointable=draw(st.booleans()),
            )
        )
        if moldable and draw(st.booleans()):
            jobs[-1].sizes = (
                Size(jobs[-1].processors, 1.0, jobs[-1].resources),
                *(
                    Size(
                        cpus,
                        draw(st.sampled_from((0.3, 0.5, 1.0, 1.7, 2.0))),
                        amounts({"gpus": draw(st.integers(0, 2)), "io": draw(st.integers(0, 2))}),
                    )
                    for cpus in draw(st.lists(st.integers(1, 8), max_size=3, unique=True))
                    if cpus != jobs[-1].processors
                ),
            )
    return jobs


def play_bound(cluster: ClusterState, jobs: list[Job], machines: list[int]) -> list[Any]:
    """What came of the jobs, each submitted at its time and bound to its machine (-1: to none)."""
    for one, machine in zip(jobs, machines, strict=True):
        cluster.advance(one.submit_us)
        cluster.submit(one, machine, one.submit_us)
    cluster.advance(NEVER)
    ended = cluster.take_ended()
    assert sorted(one.key[1] for one in ended) == [one.number for one in jobs]
    return [outcome for _, outcome in sorted(ended)]


@pytest.mark.parametrize("name", SLOW)
@given(farm=farms(), data=st.data())
@settings(max_examples=20, deadline=None)
def test_schedules_are_those_of_the_slow_policy(
    name: str, farm: Cluster, data: st.DataObject
) -> None:
    """Most jobs are bound to no machine, and half of them are moldable if they may be."""
    jobs = data.draw(job_lists(name in MOLDABLE))
    places = st.sampled_from((-1, -1, -1, *range(len(farm.machines))))
    machines = [data.draw(places) for _ in jobs]
    played = play_bound(with_sizes(farm, policy_named(name)), jobs, machines)
    assert played == play_bound(with_sizes(farm, SLOW[name]()), jobs, machines)
    for one, machine in zip(played, machines, strict=True):
        assert one.state == JobState.REJECTED or machine in (-1, one.machine)


def test_flexible_by_hand() -> None:
    """EG 3.1: the long job's age is worth less than the short one's length and deadline.

    At 100 s the CPU is freed. A (60 s, waits since 1 s): 0.99 + 0.1 + 2 * 30 / 60 = 2.09. B (30 s,
    waits since 90 s, deadline at 150 s): t = 150 - 60 = 90 < 130, so 19.9 / 60 * 40 + 0.1 = 13.37;
    with 0.1 for its age and 2.0 for its length 15.47. With an age factor of 1, A has 100.1.
    """
    s = SECOND_US
    jobs = [
        job(0, 0, 1, 100 * s, 100 * s),
        job(1, 1 * s, 1, 60 * s, 60 * s),
        job(2, 90 * s, 1, 30 * s, 30 * s, deadline_us=150 * s),
    ]
    for chosen, starts in (({}, [0, 130, 100]), ({"age_factor": 1.0}, [0, 100, 160])):
        policy = make_policy("flexible", chosen)
        played = play(general_cluster(Cluster("c", (Machine("m", 1),)), policy), jobs)
        assert [start // s for _, _, start, _ in played] == starts


@pytest.mark.parametrize("policy", ["easy", "flexible"])
def test_a_license_that_a_machine_holds_at_the_reserved_start_can_be_shared(policy: str) -> None:
    """The only copy of a license is held on the small machine by a job that runs until 100. A wide
    job is reserved at 10 on the other. A job of 50 with that license outlasts that start, and goes
    at once: it shares the copy."""
    machines = (Machine("small", 2, licenses=("a",)), Machine("large", 4))
    cluster = Cluster("c", machines, licenses=(License("a", 1),))
    jobs = [
        job(0, 0, 1, 100, 100, licenses=1),
        job(1, 0, 4, 10, 10),
        job(2, 1, 4, 10, 10),
        job(3, 2, 1, 50, 50, licenses=1),
    ]
    played = play(general_cluster(cluster, make_policy(policy, {})), jobs)
    assert [start for _, _, start, _ in played] == [0, 0, 10, 2]


def test_a_kept_reservation_is_not_lost_to_an_urgent_job() -> None:
    """C07, section 6, BF-rm and BF-unrm. Two CPUs are busy until 10 s and until 15 s.

    W wants both and waits from 1 s on; U, too, from 2 s on. At 15 s U is urgent: its deadline is
    at 20 s, when it will just end. W gave its place up if it had to.
    """
    s = SECOND_US
    jobs = [
        job(0, 0, 1, 10 * s, 10 * s),
        job(1, 0, 1, 15 * s, 15 * s),
        job(2, 1 * s, 2, 10 * s, 10 * s),
        job(3, 2 * s, 2, 5 * s, 5 * s, deadline_us=20 * s),
    ]
    for reservation, starts in (("remade", [0, 0, 20, 15]), ("kept", [0, 0, 15, 25])):
        policy = make_policy("flexible", {"reservation": reservation})
        played = play(general_cluster(Cluster("c", (Machine("m", 2),)), policy), jobs)
        assert [start // s for _, _, start, _ in played] == starts


def test_preemptive_edf_by_hand() -> None:
    """C07, section 6: the new job with the earlier deadline runs first, the other goes on after.

    One CPU. A (10 s, deadline 40) runs; B (3 s, deadline 8) comes at 2 and has the CPU until 5.
    """
    s = SECOND_US
    jobs = [
        job(0, 0, 1, 10 * s, 10 * s, deadline_us=40 * s),
        job(1, 2 * s, 1, 3 * s, 3 * s, deadline_us=8 * s),
    ]
    for preemptive, ends in ((True, [13, 5]), (False, [10, 13])):
        policy = make_policy("edf", {"preemptive": preemptive})
        cluster = general_cluster(Cluster("c", (Machine("m", 1),)), policy)
        assert [end // s for _, _, _, end in play(cluster, jobs)] == ends


def test_edf_on_arrival_lets_no_job_that_was_preempted_preempt() -> None:
    """Two machines of one CPU, m0 twice as fast as m1, on which a job of 10 s takes 10 s.

    A (10 s, deadline 20) has m0 from 0, B (10 s, deadline 90) m1 from 1. C (2 s, deadline 8) comes
    at 2 and takes the place of A, which has 6 s left there. If A may preempt, it takes that of B,
    and B has m0 from 3, when C ends; both begin anew on another machine. If A may not, it waits
    for C itself.
    """
    s = SECOND_US
    jobs = [
        job(0, 0, 1, 10 * s, 10 * s, deadline_us=20 * s),
        job(1, 1 * s, 1, 10 * s, 10 * s, deadline_us=90 * s),
        job(2, 2 * s, 1, 2 * s, 2 * s, deadline_us=8 * s),
    ]
    farm = Cluster("c", (Machine("m0", 1, mips=2000.0), Machine("m1", 1)))
    for preemptive, ends in ((True, [12, 8, 3]), ("on_arrival", [6, 11, 3])):
        cluster = general_cluster(farm, make_policy("edf", {"preemptive": preemptive}))
        assert [end / s for _, _, _, end in play(cluster, jobs)] == ends


def test_edf_orders_deadlines_and_jobs_without_one_by_its_settings() -> None:
    """One CPU, taken until 10; behind it wait jobs 1 (deadline 40), 2 (deadline 20), 3 (none)."""
    s = SECOND_US
    deadlines = (15 * s, 40 * s, 20 * s, NEVER)
    jobs = [
        job(number, number * s, 1, length * s, length * s, deadline_us=deadline)
        for number, (length, deadline) in enumerate(zip((10, 1, 1, 1), deadlines, strict=True))
    ]
    one = Cluster("c", (Machine("m", 1),))
    for without_deadline, order, expected, preemptive_end in (
        ("last", "earliest_first", [0, 2, 1, 3], 10),
        ("first", "earliest_first", [0, 3, 2, 1], 11),
        ("last", "latest_first", [0, 1, 2, 3], 12),
        ("first", "latest_first", [0, 3, 1, 2], 13),
    ):
        given = {"without_deadline": without_deadline, "order": order}
        ends = [end for *_, end in play(general_cluster(one, make_policy("edf", given)), jobs)]
        assert sorted(range(4), key=ends.__getitem__) == expected
        # Those that come before job 0 take its place, a second each.
        policy = make_policy("edf", {**given, "preemptive": True})
        assert play(general_cluster(one, policy), jobs)[0][3] == preemptive_end * s
