"""Conservative and selective backfilling: hand-worked schedules, a slow version, and promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import make_cluster
from grid.model.job import Amounts, Job, Size, amounts
from grid.model.platform import Cluster, License, Machine, MachineOutage, Reservation
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, Plan
from grid.policies.queue import selective
from tests.cluster.clusters import (
    compiled,
    general_cluster,
    job,
    outcomes,
    play,
    pool,
    table,
    with_sizes,
)
from tests.examples import examples
from tests.policies.slow_reserving import SlowJob, SlowMachine, SlowReserving

LIMITS = (0.0, 1.0, 2.5)
SPEED_MIPS = 1000.0
LICENSES = ("a", "b")


class Watched:
    """A policy that remembers the first start it promised to each job, by serial number."""

    def __init__(self, limit: float) -> None:
        self._policy = selective(slowdown_limit=limit)
        self.promised: dict[int, Time] = {}

    def plan(self, view: ClusterView, now: Time) -> Plan:
        plan = self._policy.plan(view, now)
        for slot, _, start in plan.reserve:
            self.promised.setdefault(int(view.jobs.serial[slot]), start)
        return plan


def starts(cpus: int, limit: float, *jobs: Job) -> list[int]:
    cluster = general_cluster(pool(cpus), selective(slowdown_limit=limit))
    return [start for _, _, start, _ in play(cluster, list(jobs))]


def test_a_job_passes_if_it_delays_no_reservation() -> None:
    """Four CPUs. 1 holds two until 10, 2 wants all four, 3 and 4 one each. 3 ends by 10 and goes
    at once; EASY would let 4 go too if it ended by 10, but it does not, and delays 2."""
    jobs = (job(1, 0, 2, 10, 10), job(2, 1, 4, 10, 10), job(3, 2, 1, 8, 8), job(4, 3, 1, 8, 8))
    assert starts(4, 0.0, *jobs) == [0, 10, 2, 20]


def test_every_job_has_a_reservation_not_only_the_head() -> None:
    """Mu'alem and Feitelson, section 1: 4 would delay the third job, which EASY permits.

    Four CPUs; 1 holds three until 10; 2 (two CPUs, 5 long) is reserved at 10, 3 (four CPUs) at
    15. 4 (one CPU, 20 long) fits now beside 1 and 2: EASY starts it, conservative does not.
    """
    jobs = (job(1, 0, 3, 10, 10), job(2, 1, 2, 5, 5), job(3, 2, 4, 10, 10), job(4, 3, 1, 20, 20))
    assert starts(4, 0.0, *jobs) == [0, 10, 15, 25]


def test_reservations_move_forward_when_a_job_ends_early() -> None:
    """1 ends at 4 instead of 10: 2, reserved at 10, starts then, and 3 behind it at 9."""
    jobs = (job(1, 0, 4, 10, 4), job(2, 1, 3, 5, 5), job(3, 2, 4, 5, 5))
    assert starts(4, 0.0, *jobs) == [0, 4, 9]


def test_selective_reserves_only_for_those_that_have_waited() -> None:
    """Two CPUs, narrow jobs of 10 keep coming, so that the wide one of 10 never fits. It gets its
    reservation at the first plan at which it has waited more than 10 with limit 2, that is at 14,
    and starts at the end of the job that runs then."""
    narrow = [job(2 + n, 7 * n, 1, 10, 10) for n in range(8)]
    jobs = sorted([job(1, 1, 2, 10, 10), *narrow], key=lambda one: one.submit_us)
    conservative = starts(2, 0.0, *jobs)
    selective = starts(2, 2.0, *jobs)
    never = starts(2, 1e9, *jobs)
    wide = [one.number for one in jobs].index(1)
    assert conservative[wide] == 10
    assert selective[wide] == 17
    assert never[wide] >= 59


@st.composite
def streams(
    draw: st.DrawFn, machines: list[SlowMachine], copies: int, moldable: bool = False
) -> list[SlowJob]:
    jobs, now = [], 0
    for _ in range(draw(st.integers(1, 22))):
        now += draw(st.sampled_from((0, 0, 1, 3)))
        estimate = 2 * draw(st.integers(1, 8))
        run = estimate if draw(st.booleans()) else 2 * draw(st.integers(1, 8))
        licenses = frozenset(n for n in range(copies) if draw(st.integers(0, 3)) == 0)
        gpus, io = draw(st.sampled_from((0, 0, 1, 2))), draw(st.sampled_from((0, 0, 1, 3)))
        able = [
            m for m, one in enumerate(machines) if licenses <= one.licenses and gpus <= one.gpus
        ]
        if not able:
            continue
        bound = draw(st.sampled_from((-1, -1, -1, *able)))
        reach = [bound] if bound >= 0 else able
        processors = draw(st.integers(1, max(machines[m].cpus for m in reach)))
        one = SlowJob(now, processors, estimate, run, licenses, bound, gpus, io * (copies > 0))
        if moldable and draw(st.booleans()):
            one.estimate, one.run = 2 * estimate, 2 * run
            one.sizes = tuple(
                {
                    "processors": cpus,
                    "estimate": int(one.estimate * factor),
                    "run": int(one.run * factor),
                    "gpus": draw(st.sampled_from((gpus, 0, 1))),
                    "io": draw(st.sampled_from((0, one.io))),
                }
                for cpus in draw(st.lists(st.integers(1, 8), max_size=3, unique=True))
                if cpus != processors
                for factor in [draw(st.sampled_from((0.5, 1.5, 2.0)))]
            )
        jobs.append(one)
    return jobs


def cluster_of(
    machines: list[SlowMachine], copies: list[int], windows: list[tuple[int, int, int, int]]
) -> Cluster:
    return Cluster(
        "cluster",
        tuple(
            Machine(
                f"m{number}",
                one.cpus,
                SPEED_MIPS * one.speed,
                licenses=tuple(LICENSES[n] for n in sorted(one.licenses)),
                resources={"gpus": one.gpus},
            )
            for number, one in enumerate(machines)
        ),
        licenses=tuple(License(name, count) for name, count in zip(LICENSES, copies, strict=False)),
        resources={"io": IO},
        reservations=tuple(
            Reservation(begin / 1e6, end / 1e6, (f"m{machine}",), cpus)
            for machine, begin, end, cpus in windows
        ),
    )


def compare(
    slow_jobs: list[SlowJob],
    machines: list[SlowMachine],
    copies: list[int],
    limit: float,
    windows: list[tuple[int, int, int, int]],
):
    policy = Watched(limit)
    cluster = with_sizes(cluster_of(machines, copies, windows), policy)
    made_of = [made(number, one) for number, one in enumerate(slow_jobs)]
    SlowReserving(machines, copies, limit, IO, windows).play(slow_jobs)
    for made_one, one in zip(made_of, slow_jobs, strict=True):
        cluster.advance(one.submit)
        cluster.submit(made_one, one.bound, one.submit)
        assert list(cluster.broken_limits()) == []
    cluster.advance(NEVER)
    ended = {key[1]: outcome for key, outcome in cluster.take_ended()}
    assert len(ended) == len(slow_jobs)
    for number, one in enumerate(slow_jobs):
        found = ended[number]
        assert (found.machine, found.start_us, found.end_us) == (one.machine, one.start, one.end)
        assert found.processors == (one.processors if one.sizes else 0)
        if number in policy.promised:
            assert policy.promised[number] == one.promised
            assert one.sizes or found.start_us <= one.promised


def made(number: int, one: SlowJob) -> Job:
    """The job, of which the requested size is the first."""

    def held(shape: dict[str, int]) -> Amounts:
        return amounts({name: shape.get(name, getattr(one, name)) for name in ("gpus", "io")})

    own = Size(one.processors, 1.0, held({}))
    others = [Size(s["processors"], s["estimate"] / one.estimate, held(s)) for s in one.sizes]
    return job(
        number, one.submit, one.processors, one.estimate, one.run,
        licenses=sum(1 << n for n in one.licenses), resources=held({}),
        sizes=(own, *others) if others else (),
    )  # fmt: skip


ONE_POOL = [SlowMachine(8)]
IO = 4
FARM = [
    SlowMachine(2, 1, frozenset({0, 1}), 2),
    SlowMachine(4, 2, frozenset({0}), 2),
    SlowMachine(4, 2, frozenset({0, 1})),
    SlowMachine(3, 1),
]


@pytest.mark.parametrize("limit", LIMITS)
@given(data=st.data(), first=st.integers(0, 40))
@settings(max_examples=examples(90), deadline=None)
def test_the_compiled_loop_as_the_slow_version(limit: float, data: Any, first: int) -> None:
    """In two windows, wherever they part."""
    slow_jobs = data.draw(streams(ONE_POOL, 0))
    SlowReserving(ONE_POOL, [], limit).play(slow_jobs)
    cluster = compiled(pool(8), "selective", slowdown_limit=limit)
    cluster.submit_rows(
        table(
            [
                job(number, one.submit, one.processors, one.estimate, one.run)
                for number, one in enumerate(slow_jobs)
            ]
        )
    )
    cluster.advance(first)
    cluster.advance(NEVER)
    played = outcomes(cluster, len(slow_jobs))
    assert [(start, end) for _, _, start, end in played] == [(o.start, o.end) for o in slow_jobs]


@pytest.mark.parametrize("limit", LIMITS)
@given(seed=st.integers(0, 10**6), alike=st.sampled_from((1, 2, 3)), others=st.sampled_from((0, 9)))
@settings(max_examples=examples(60), deadline=None)
def test_jobs_that_are_alike_as_the_slow_version(
    limit: float, seed: int, alike: int, others: int
) -> None:
    """Most jobs ask for equally many of 7 processors, so that the loop needs no reservations for
    them, until `others` of a hundred ask for more or fewer. The queue fills and empties again."""
    stream = np.random.default_rng(seed)
    slow_jobs, now = [], 0
    for _ in range(120):
        now += int(stream.choice((0, 1, 2, 40), p=(0.4, 0.3, 0.27, 0.03)))
        processors = int(stream.integers(1, 8)) if stream.integers(100) < others else alike
        estimate = 2 * int(stream.integers(1, 9))
        run = estimate if stream.integers(2) else int(stream.integers(1, estimate + 2))
        slow_jobs.append(SlowJob(now, processors, estimate, run, frozenset(), -1))
    machines = [SlowMachine(7)]
    SlowReserving(machines, [], limit).play(slow_jobs)
    jobs = [
        job(number, one.submit, one.processors, one.estimate, one.run)
        for number, one in enumerate(slow_jobs)
    ]
    fast, plain = (
        compiled(pool(7), "selective", slowdown_limit=limit),
        general_cluster(pool(7), selective(slowdown_limit=limit)),
    )
    played = play(fast, jobs)
    assert [(start, end) for _, _, start, end in played] == [(o.start, o.end) for o in slow_jobs]
    assert play(plain, jobs) == played
    assert fast.figures() == plain.figures()


@pytest.mark.parametrize("limit", LIMITS)
@given(data=st.data())
@settings(max_examples=examples(90), deadline=None)
def test_machines_licenses_and_resources_as_the_slow_version(limit: float, data: Any) -> None:
    begin, length = data.draw(st.integers(0, 30)), data.draw(st.integers(1, 20))
    named = data.draw(st.lists(st.integers(0, len(FARM) - 1), unique=True, max_size=2))
    windows = [
        (machine, begin, begin + length, data.draw(st.integers(1, FARM[machine].cpus)))
        for machine in sorted(named)
    ]
    jobs = data.draw(streams(FARM, 2, moldable=limit == 0))
    compare(jobs, FARM, [1, 2], limit, windows)


def test_a_machine_that_comes_up_is_reserved_in_order_of_arrival() -> None:
    """Machine a is down until 10. Only there can 1 run, while 2 waits for b, until 100."""
    farm = Cluster("c", (Machine("a", 4), Machine("b", 2)))
    cluster = make_cluster(farm, selective(slowdown_limit=0.0), None, (MachineOutage(0, 0, 10),))
    jobs = [job(0, 0, 2, 100, 100), job(1, 1, 4, 10, 10), job(2, 2, 2, 10, 10)]
    assert [start for _, _, start, _ in play(cluster, jobs)] == [0, 10, 20]


def test_a_job_that_outlives_its_estimate_moves_reservations_back() -> None:
    """1 was to end at 10 and ends at 35; it is expected at 20, then at 40. 2 is promised 10."""
    cluster = general_cluster(
        Cluster("cluster", (Machine("pool", 4),), overrun="extend"), policy := Watched(0.0)
    )
    jobs = [job(1, 0, 4, 10, 35), job(2, 1, 4, 5, 5), job(3, 2, 1, 5, 5)]
    assert [start for _, _, start, _ in play(cluster, jobs)] == [0, 35, 40]
    assert policy.promised[1] == 10
