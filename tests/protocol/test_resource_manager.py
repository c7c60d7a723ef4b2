"""PU Algorithm 1: a message in, effects out."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.kernel.entity import Context
from grid.kernel.event import BACKGROUND_TIMER
from grid.model.job import Job, JobOutcome, JobState, amounts
from grid.model.messages import (
    Assigned,
    AssignJob,
    JobEnded,
    LocalStatus,
    OtherUsers,
    Refused,
    ReleaseReservation,
    RequestReservation,
    ReservationReply,
    RunJob,
    WithdrawJob,
)
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.resources import ASSIGNED_CPUS, NUMBER, resources_of
from grid.model.time import SECOND_US
from grid.protocol.resource_manager import (
    ADMIT_ALL,
    PERIOD,
    AdmissionSettings,
    ResourceManager,
    SnapshotSettings,
)

SILENT = SnapshotSettings(summary=False, period_us=None, load_limit=None, jobs_limit=None)


def manager(
    rules: SnapshotSettings = SILENT,
    cpus: tuple[int, ...] | Cluster = (2, 4),
    admission: AdmissionSettings = ADMIT_ALL,
) -> ResourceManager:
    if not isinstance(cpus, Cluster):
        machines = tuple(Machine(f"m{i}", n, ram_mb=100.0 * (i + 1)) for i, n in enumerate(cpus))
        cpus = Cluster("c", machines)
    vo = VirtualOrganization("a", (cpus,))
    return ResourceManager(
        0,
        resources_of(vo, 0),
        rules,
        admission,
        scheduler="a/scheduler",
        information="a/information",
        dispatchers=("a/cluster/c",),
        grid_dispatcher=None,
        directory=("b/information",),
        shared=(cpus.resources,),
    )


def job(number: int, processors: int = 1, vo: str = "a") -> Job:
    return Job(
        number=number, vo=vo, user=0, submit_us=0, processors=processors, estimate_us=10, run_us=10
    )


class Desk:
    """A Resource Manager and its context, message by message."""

    def __init__(
        self,
        rules: SnapshotSettings = SILENT,
        cpus: tuple[int, ...] | Cluster = (2, 4),
        admission: AdmissionSettings = ADMIT_ALL,
    ) -> None:
        self.ctx = Context("a/resources", 1, lambda: (None, []))  # type: ignore[arg-type, return-value]
        self.manager = manager(rules, cpus, admission)
        self.manager.start(self.ctx)
        self.ctx.effects.sent.clear()

    def handle(self, message: Any) -> list[Any]:
        self.ctx.effects.sent.clear()
        self.manager.handle(self.ctx, "a/scheduler", message)
        return [sent for _, sent, _ in self.ctx.effects.sent]

    def end(self, number: int) -> list[Any]:
        outcome = JobOutcome(0, JobState.COMPLETED, 0, 10, 0, 0, 0, 10)
        return self.handle(JobEnded(("a", number), 0, outcome))


def test_a_local_reservation_goes_before_queued_guests() -> None:
    """A guest waits for all four CPUs, of which three are free; local jobs have priority."""
    desk = Desk(admission=AdmissionSettings(priority="local"))
    desk.handle(AssignJob(job(1), 1, False))
    assert RunJob not in map(type, desk.handle(AssignJob(job(1, 4, "b"), 1, True)))
    calls = [("a/scheduler", number) for number in (1, 2)]
    held = [
        [one.held for one in desk.handle(RequestReservation(call, job(2, processors), 1, 5, True))
         if isinstance(one, ReservationReply)]
        for call, processors in zip(calls, (3, 1), strict=True)
    ]  # fmt: skip
    assert held == [[True], []]


def test_free_cpus_are_kept_for_a_queued_reservation() -> None:
    """A reservation for a wide job is queued behind a running one. A job for the free CPUs is
    refused, and the own VO knows the queue until the reservation is released."""
    desk = Desk()
    desk.handle(AssignJob(job(1, 2), 1, False))
    call = ("b/scheduler", 1)
    assert desk.handle(RequestReservation(call, job(2, 3, "b"), 1, 5, True))[
        0
    ].before_own.tolist() == [[0, 3]]
    assert desk.handle(AssignJob(job(3), 1, False)) == [Refused(("a", 3))]
    assert Assigned(("a", 4), 0) in desk.handle(AssignJob(job(4), 0, False))
    assert desk.handle(ReleaseReservation(call))[0].before_own.tolist() == [[0, 0]]
    assert Assigned(("a", 3), 0) in desk.handle(AssignJob(job(3), 1, False))


@pytest.mark.parametrize(
    ("priority", "before_own", "before_guests"),
    [("none", [4, 3], [4, 3]), ("local", [4, 0], [4, 3]), ("remote", [4, 3], [0, 3])],
)
def test_queued_reservations_count_for_jobs_behind_them(
    priority: str, before_own: list[int], before_guests: list[int]
) -> None:
    """Two local reservations of two CPUs each at one resource, one of a guest at another."""
    desk = Desk(cpus=(2, 4), admission=AdmissionSettings(priority=priority))
    for number, (resource, processors) in enumerate([(0, 2), (1, 4)]):
        desk.handle(AssignJob(job(number, processors), resource, False))
    for number, (vo, resource, processors) in enumerate([("a", 0, 2), ("a", 0, 2), ("b", 1, 3)]):
        call = (f"{vo}/scheduler", number)
        sent = desk.handle(
            RequestReservation(call, job(9 + number, processors, vo), resource, 5, True)
        )
    assert sent[-1].before_own.tolist() == [before_own]
    assert sent[-1].before_guests.tolist() == [before_guests]


@pytest.mark.parametrize(("limit", "published_at"), [(1, [2, 4]), (2, [3])])
def test_a_snapshot_is_published_after_more_jobs_than_the_limit(
    limit: int, published_at: list[int]
) -> None:
    desk = Desk(SnapshotSettings(False, None, None, limit))
    seen = []
    for number in range(1, 6):
        desk.handle(AssignJob(job(number), 1, True))
        if desk.ctx.effects.posts:
            seen.append(number)
            desk.ctx.effects.posts.clear()
    assert seen == published_at


def test_a_snapshot_is_published_once_when_the_load_passes_the_limit() -> None:
    desk = Desk(SnapshotSettings(False, None, 0.5, None), cpus=(4,))
    loads = []
    for number in range(1, 5):
        desk.handle(AssignJob(job(number), 0, False))
        loads.append(len(desk.ctx.effects.posts))
    assert loads == [0, 0, 1, 1]
    for number in (4, 3, 2):
        desk.end(number)
    desk.handle(AssignJob(job(5, 3), 0, False))
    assert len(desk.ctx.effects.posts) == 2


def test_cpus_that_other_users_hold_are_in_snapshots() -> None:
    desk = Desk(SnapshotSettings(False, None, 0.5, None), cpus=(4,))
    desk.handle(AssignJob(job(1), 0, False))
    desk.handle(OtherUsers(0, 3))
    (post,) = desk.ctx.effects.posts
    assert post[0, ASSIGNED_CPUS] == 4
    desk.handle(OtherUsers(0, 1))
    assert desk.manager.free_cpus(0) == 2


def test_the_load_passes_the_limit_again_after_a_withdrawal_or_release() -> None:
    desk = Desk(SnapshotSettings(False, None, 0.5, None), cpus=(4,))
    desk.handle(AssignJob(job(1, 2), 0, True))
    desk.handle(AssignJob(job(2, 4), 0, True, late=True))
    assert len(desk.ctx.effects.posts) == 1
    desk.handle(WithdrawJob(("a", 2)))
    desk.handle(AssignJob(job(3), 0, True))
    assert len(desk.ctx.effects.posts) == 2
    desk.end(3)
    call = ("a/scheduler", 1)
    desk.handle(RequestReservation(call, job(4), 0, 1000, False))
    assert len(desk.ctx.effects.posts) == 3
    desk.handle(AssignJob(job(5), 0, False))
    assert len(desk.ctx.effects.posts) == 3
    desk.end(5)
    desk.handle(ReleaseReservation(call))
    desk.handle(AssignJob(job(6), 0, False))
    assert len(desk.ctx.effects.posts) == 4


def test_a_withdrawn_job_leaves_no_backlog() -> None:
    desk = Desk(SnapshotSettings(False, None, None, None, include_backlog=True), cpus=(2,))
    before = desk.handle(AssignJob(job(1, 2), 0, True))[-1]
    assert before.backlog_s.tolist() == [2 * 10 / SECOND_US]
    assert desk.handle(AssignJob(job(2), 0, True, late=True))[-1].backlog_s > before.backlog_s
    assert desk.handle(WithdrawJob(("a", 2)))[-1].backlog_s == before.backlog_s
    again = desk.handle(AssignJob(job(2), 0, True))[-1]
    assert again.backlog_s.tolist() == [3 * 10 / SECOND_US]


def test_a_periodic_snapshot_is_published_only_after_a_change() -> None:
    desk = Desk(SnapshotSettings(False, 7_000_000, None, None))
    assert desk.ctx.effects.timers == []
    for now, due in ((1, 7_000_000), (7_000_001, 14_000_000), (14_000_000, 14_000_000)):
        desk.ctx.now = now
        desk.handle(AssignJob(job(now), 1, True))
        desk.handle(AssignJob(job(now + 1), 1, True))
        assert desk.ctx.effects.timers == [(due, PERIOD, BACKGROUND_TIMER)]
        desk.ctx.effects.timers.clear()
        desk.manager.timeout(desk.ctx, PERIOD)
        assert len(desk.ctx.effects.posts) == 1
        desk.ctx.effects.posts.clear()
    desk.manager.timeout(desk.ctx, PERIOD)
    assert desk.ctx.effects.posts == []


def test_a_summary_has_the_least_loaded_resource_and_the_one_with_most_memory() -> None:
    desk = Desk(SnapshotSettings(True, 1, None, None), cpus=(2, 4, 4))
    desk.handle(AssignJob(job(1), 0, False))
    desk.handle(AssignJob(job(2), 2, False))
    desk.manager.timeout(desk.ctx, PERIOD)
    (rows,) = desk.ctx.effects.posts
    # Machine 1 is empty; machine 2 has 300 MB, three quarters of them free of jobs.
    assert rows[:, NUMBER].tolist() == [1.0, 2.0]
    assert rows[:, ASSIGNED_CPUS].tolist() == [0.0, 1.0]


FARM = Cluster(
    "c",
    (Machine("a", 4, resources={"gpus": 4}), Machine("b", 2, ram_mb=100.0)),
    resources={"tapes": 3},
)
STEPS = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 1),
        st.integers(1, 4),
        *(st.sampled_from(values) for values in ((0, 0, 1, 2.5, 5), (0, 0, 60), (0, 0, 1, 2))),
    ),
    max_size=25,
)


@given(steps=STEPS)
def test_resources_are_assigned_as_cpus_are(steps: list[Any]) -> None:
    """Against sums over open jobs: a job without `wait` is refused exactly if something lacks."""
    names = ("gpus", "ram_mb", "tapes")
    free = [{"cpus": 4, "gpus": 4, "ram_mb": inf}, {"cpus": 2, "gpus": 0, "ram_mb": 100}]
    desk = Desk(replace(SILENT, resources=names), FARM)
    open_jobs: dict[int, tuple[int, dict[str, float]]] = {}

    def held(place: int, name: str) -> float:
        jobs = open_jobs.values()
        return sum(of[name] for at, of in jobs if name == "tapes" or at == place)

    for number, (ends, place, cpus, *some) in enumerate(steps):
        if ends and open_jobs:
            last = next(iter(open_jobs))
            del open_jobs[last]
            answers = desk.end(last)
        else:
            asks = dict(zip(names, some, strict=True))
            one = replace(job(number, cpus), resources=amounts(asks))
            limits = {**free[place], "tapes": 3}
            asks["cpus"] = cpus
            fits = all(held(place, name) + asks[name] <= limits[name] for name in asks)
            answers = desk.handle(AssignJob(one, place, False))
            assert isinstance(answers[0], Assigned if fits else Refused)
            if not fits:
                continue
            open_jobs[number] = place, asks
        (status,) = [one for one in answers if isinstance(one, LocalStatus)]
        rows = [[held(place, name) for place in range(2)] for name in ("cpus", *names)]
        assert status.assigned.tolist() == rows


def test_a_late_job_waits_for_a_resource() -> None:
    desk = Desk(replace(SILENT, resources=("gpus",)), FARM)
    first, second = (replace(job(n), resources=(("gpus", 3.0),)) for n in (1, 2))
    assert any(isinstance(one, RunJob) for one in desk.handle(AssignJob(first, 0, True, late=True)))
    late = desk.handle(AssignJob(second, 0, True, late=True))
    assert not any(isinstance(one, RunJob) for one in late)
    assert any(isinstance(one, RunJob) for one in desk.end(1))
