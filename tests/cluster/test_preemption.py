"""What a preemption costs, and machines that take one job at a time."""

from __future__ import annotations

import pytest

from grid.cluster import ClusterState
from grid.model.job import Job, JobState
from grid.model.platform import Cluster, License, Machine, PreemptionOverheads
from grid.model.time import NEVER, Time
from grid.policies.interface import Plan
from tests.cluster.clusters import Timed, general, general_cluster, play

SLOW, FAST = Machine("slow", 2, 100.0), Machine("fast", 2, 200.0)


def job(number: int = 0, submit: int = 0, **more: object) -> Job:
    """10,000 microseconds on a machine of 100 MIPS, half of it on the fast one."""
    more = {"processors": 1, "estimate_us": 10_000, "run_us": 10_000, **more}
    return Job(number=number, vo="vo", user=0, submit_us=submit, reference_mips=100.0, **more)  # type: ignore[arg-type]


def played(
    jobs: list[Job],
    plans: dict[Time, Plan],
    overheads: PreemptionOverheads | None = None,
    **more: object,
) -> tuple[ClusterState, list[tuple[int, ...]]]:
    """The cluster, and a row a job: start, end, preemptions, restarts, lost, held."""
    platform = Cluster(
        "c",
        (SLOW, FAST),
        preemption=overheads or PreemptionOverheads(),
        **more,  # type: ignore[arg-type]
    )
    cluster = general_cluster(platform, Timed(plans))
    for one in jobs:
        cluster.submit(one, -1, one.submit_us)
    cluster.advance(NEVER)
    ended = [outcome for _, outcome in sorted(cluster.take_ended())]
    assert all(one.state == JobState.COMPLETED for one in ended)
    return cluster, [
        (e.start_us, e.end_us, e.preemptions, e.restarts, e.lost_us, e.held_us) for e in ended
    ]


def start(machine: int, slot: int = 0) -> Plan:
    return Plan(start=[(slot, machine)])


def stop(slot: int = 0) -> Plan:
    return Plan(preempt=[slot])


def test_suspended_and_resumed_where_it_was() -> None:
    """4,000 done, 1,000 away, 6,000 left."""
    plans = {0: start(0), 4_000: stop(), 5_000: start(0)}
    cluster, rows = played([job()], plans)
    assert rows == [(0, 11_000, 1, 0, 0, 10_000)]
    assert cluster.figures()["migrations_local"] == 0


def test_stopped_and_started_again_elsewhere() -> None:
    """4,000 are lost; all of it takes 5,000 on the fast machine."""
    plans = {0: start(0), 4_000: stop(), 5_000: start(1)}
    cluster, rows = played([job()], plans)
    assert rows == [(0, 10_000, 1, 1, 4_000, 9_000)]
    assert cluster.figures()["migrations_local"] == 1


def test_a_checkpoint_goes_on_anywhere() -> None:
    """6,000 are left, which the fast machine does in 3,000."""
    plans = {0: start(0), 4_000: stop(), 5_000: start(1)}
    _, rows = played([job(checkpointable=True)], plans)
    assert rows == [(0, 8_000, 1, 0, 0, 7_000)]


def test_overheads_of_suspending_and_resuming() -> None:
    """200 + 300 before it gets on again."""
    plans = {0: start(0), 4_000: stop(), 5_000: start(0)}
    _, rows = played([job()], plans, PreemptionOverheads(0.0002, 0.0003, 0.005))
    assert rows == [(0, 11_500, 1, 0, 500, 10_500)]


def test_preempted_before_it_gets_on() -> None:
    """Stopped 100 into an overhead of 500, it has done nothing; the overhead begins again."""
    plans = {0: start(0), 4_000: stop(), 5_000: start(0), 5_100: stop(), 6_000: start(0)}
    _, rows = played([job()], plans, PreemptionOverheads(0.0002, 0.0003))
    assert rows == [(0, 12_500, 2, 0, 600, 10_600)]


def test_one_job_per_machine() -> None:
    """Two small jobs that would fit on one machine together do not share it."""
    cluster = general(Cluster("c", (SLOW,), one_job_per_machine=True), "fcfs")
    assert [row[2:] for row in play(cluster, [job(0), job(1)])] == [(0, 10_000), (10_000, 20_000)]
    figures = cluster.figures()
    assert figures["machine_usage.part"] == figures["machine_usage.whole"] == 0.02


def test_load_and_occupancy_of_one_job_per_machine_are_of_cpus() -> None:
    """Three jobs of 1, 2 and 2 CPUs; there are 4 in two machines, so that the last job waits."""
    cluster = general(Cluster("c", (SLOW, FAST), one_job_per_machine=True), "fcfs")
    for number, processors in enumerate((1, 2, 2)):
        cluster.submit(job(number, processors=processors), -1, 0)
    assert cluster.load() == 5 / 4
    cluster.advance(1)
    assert cluster.load() == 5 / 4
    assert cluster.occupancy() == (3, 2, 1)


def test_equations_15_to_18_usage() -> None:
    """Machines of 3 CPUs and 1, a license of 2 copies.

    From 0 on a job of 1 CPU runs, from 10 to 20 a second and a third, of 2 CPUs each: the second
    runs, the third waits until 20, and then runs for 10. CPUs: 1 of 1, 3 of min(4, 5), 2 of 2.
    Licenses: the first two jobs share a copy: 1 of 1, 1 of min(2, 2), then none is asked for.
    """
    usable = ("l",)
    machines = (Machine("a", 3, 100.0, licenses=usable), Machine("b", 1, 100.0, licenses=usable))
    jobs = [
        job(0, 0, licenses=1, estimate_us=20_000_000, run_us=20_000_000),
        job(1, 10_000_000, processors=2, licenses=1, estimate_us=10_000_000, run_us=10_000_000),
        job(2, 10_000_000, processors=2, estimate_us=10_000_000, run_us=10_000_000),
    ]
    platform = Cluster("c", machines, licenses=(License("l", 2),))
    plans = {0: start(0, 0), 10_000_000: start(0, 1), 20_000_000: start(0, 2)}
    cluster = general_cluster(platform, Timed(plans))
    for one in jobs:
        cluster.submit(one, -1, one.submit_us)
    cluster.advance(NEVER)
    figures = cluster.figures()
    assert figures["machine_usage.part"] == pytest.approx(10 * 1 + 10 * 3 / 4 + 10 * 1)
    assert figures["machine_usage.whole"] == 30
    assert figures["license_usage.part"] == pytest.approx(10 * 1 + 10 * 1 / 2)
    assert figures["license_usage.whole"] == 20
    # The last job came at 10.
    assert figures["machine_usage_arriving.part"] == figures["machine_usage_arriving.whole"] == 10
    assert figures["license_usage_arriving.whole"] == 10
    levels = cluster.take_history()
    # At 10 the license is shared, at 20 the first two jobs have ended.
    rows = list(zip(levels.time_us.tolist(), levels.busy.tolist(), strict=True))
    assert rows == [(0, 1), (10_000_000, 3), (20_000_000, 2), (30_000_000, 0)]
    assert levels.licenses is not None
    assert (levels.licenses.tolist(), levels.copies) == ([1, 1, 0, 0], 2)
    assert len(cluster.take_history().time_us) == 0
