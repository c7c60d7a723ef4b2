"""Moldable jobs: hand-worked schedules, all possible ones of few jobs, speed-ups, and scenarios."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import grid
from grid.cluster import ClusterState, make_cluster
from grid.model.errors import InputError
from grid.model.job import Job, JobState, Size
from grid.model.platform import Cluster, Machine, MachineOutage
from grid.model.time import NEVER
from grid.model.workload import DrawnMoldableSection, MoldableSection
from grid.policies.features import JobFeatures
from grid.policies.registry import make_policy, policy_names
from grid.workload.moldable import amdahl, downey, sizes_of
from tests.cluster.clusters import job
from tests.config.test_annotations import given as annotated
from tests.examples import examples

MOLDABLE = ["conservative", "easy", "easy_sjbf"]


def cluster(cpus: int, policy: str, *outages: MachineOutage, **more: Any) -> ClusterState:
    platform = Cluster("c", (Machine("m", cpus),), **more)
    return make_cluster(platform, make_policy(policy, {}), None, outages, jobs=JobFeatures(sizes=4))


def moldable(number: int, submit: int, cpus: int, run: int, **factors: float) -> Job:
    """A job of `run` on its CPUs; `factors` of its times on others, such as n4=2."""
    others = [Size(int(name[1:]), factor) for name, factor in factors.items()]
    return job(number, submit, cpus, run, run, sizes=(Size(cpus, 1.0), *others))


def played(made: ClusterState, *jobs: Job) -> list[tuple[int, int, int]]:
    """Start, end and CPUs of each job."""
    for one in jobs:
        made.submit(one, -1, one.submit_us)
    made.advance(NEVER)
    ended = [one.outcome for one in sorted(made.take_ended())]
    assert all(one.state == JobState.COMPLETED for one in ended)
    assert all(
        (one.processors > 0) == bool(job.sizes) for one, job in zip(ended, jobs, strict=True)
    )
    return [
        (one.start_us, one.end_us, one.processors or job.processors)
        for one, job in zip(ended, jobs, strict=True)
    ]


@pytest.mark.parametrize("policy", MOLDABLE)
def test_a_job_takes_fewer_cpus_at_once_if_it_then_ends_first(policy: str) -> None:
    """Eight CPUs, four in use until 100. On 8 CPUs the job of 100 would end at 200, on 4 at 190;
    with 210 on 4 CPUs, it waits for all eight."""
    first = job(0, 0, 4, 100, 100)
    assert played(cluster(8, policy), first, moldable(1, 0, 8, 100, n4=1.9))[1] == (0, 190, 4)
    assert played(cluster(8, policy), first, moldable(1, 0, 8, 100, n4=2.1))[1] == (100, 200, 8)


@pytest.mark.parametrize("policy", MOLDABLE)
def test_of_equal_ends_the_fewest_cpus(policy: str) -> None:
    assert played(cluster(8, policy), moldable(0, 0, 8, 50, n2=1.0, n4=1.0)) == [(0, 50, 2)]


@pytest.mark.parametrize("policy", MOLDABLE)
def test_times_are_rounded_up(policy: str) -> None:
    assert played(cluster(8, policy), moldable(0, 0, 1, 10, n8=0.101)) == [(0, 2, 8)]


def test_a_job_that_passes_delays_no_reservation() -> None:
    """Eight CPUs: job 0 holds 6 until 10, job 1 waits for all. Job 2 has 2 CPUs at most, on which
    it would end at 11; its 8 end in time only on 2, and on 1 too late."""
    jobs = job(0, 0, 6, 10, 10), job(1, 0, 8, 10, 10)
    assert played(cluster(8, "easy"), *jobs, moldable(2, 1, 1, 18, n2=0.5))[2] == (1, 10, 2)
    assert played(cluster(8, "easy"), *jobs, moldable(2, 1, 1, 20, n2=0.5))[2] == (20, 30, 2)


def test_a_reservation_may_move_to_more_cpus() -> None:
    """Four CPUs until 100 by the estimate, in fact until 10: then the job has all eight, and not
    four from 0 on that the third held."""
    jobs = job(0, 0, 8, 100, 10), moldable(1, 0, 4, 100, n8=0.5), job(2, 0, 4, 60, 60)
    assert played(cluster(8, "conservative"), *jobs)[1:] == [(10, 60, 8), (60, 120, 4)]


@pytest.mark.parametrize("policy", MOLDABLE)
def test_a_job_takes_cpus_that_become_free_as_it_starts(policy: str) -> None:
    """At 10, when it is to start on four CPUs, the others become free too, and not at 100."""
    jobs = job(0, 0, 4, 100, 10), job(1, 0, 4, 10, 10), moldable(2, 0, 4, 100, n8=0.5)
    assert played(cluster(8, policy), *jobs)[2] == (10, 60, 8)


def test_a_job_keeps_its_size_after_an_outage() -> None:
    """It starts on 4 of 8 CPUs, and again on 4 when all are free."""
    jobs = job(0, 0, 4, 15, 15), moldable(1, 0, 8, 10, n4=2.0)
    found = played(cluster(8, "easy", MachineOutage(0, 16, 18)), *jobs)
    assert found[1] == (0, 38, 4)


def test_waiting_jobs_count_with_the_cpus_that_they_request() -> None:
    made = cluster(8, "easy")
    for one in (job(0, 0, 8, 10, 10), moldable(1, 0, 8, 10, n2=1.5)):
        made.submit(one, -1, 0)
    made.advance(1)
    assert made.load() == 2.0
    made.advance(11)
    assert made.load() == 1.0
    assert made.occupancy() == (8, 1, 0)


@st.composite
def few_jobs(draw: st.DrawFn) -> list[Job]:
    jobs = []
    for number in range(draw(st.integers(1, 3))):
        cpus, run = draw(st.integers(1, 6)), draw(st.integers(1, 9))
        others = draw(st.lists(st.integers(1, 6), max_size=3, unique=True))
        sizes = [Size(n, draw(st.integers(1, 18)) / run) for n in others if n != cpus]
        moldable = (Size(cpus, 1.0), *sizes) if sizes else ()
        jobs.append(job(number, 0, cpus, run, run, sizes=moldable))
    return jobs


@given(jobs=few_jobs())
@settings(max_examples=examples(100), deadline=None)
def test_conservative_has_the_best_of_all_starts_and_sizes(jobs: list[Job]) -> None:
    """Job by job; six CPUs, times below 60."""
    used, expected = [0] * 60, []
    for one in jobs:
        shapes = [(s.cpus, round(one.run_us * s.factor)) for s in one.sizes]
        ends = [
            (start + run, cpus, start)
            for cpus, run in shapes or [(one.processors, one.run_us)]
            for start in range(31)
            if all(used[at] + cpus <= 6 for at in range(start, start + run))
        ]
        end, cpus, start = min(ends)
        used[start:end] = [n + cpus for n in used[start:end]]
        expected.append((start, end, cpus))
    assert played(cluster(6, "conservative"), *jobs) == expected


@pytest.mark.parametrize("policy", sorted({*policy_names()} - {"batsim", *MOLDABLE}))
def test_other_policies_refuse_moldable_jobs(policy: str) -> None:
    with pytest.raises(InputError, match="does not support moldable jobs"):
        cluster(8, policy)


def test_speedups() -> None:
    """Amdahl's law; Downey's equations of both variances at their corners (HPDC 1997, 3)."""
    assert [amdahl(n, 0.25) for n in (1, 3, 9)] == pytest.approx([1, 2, 3])
    assert [downey(n, 8, 0) for n in (1, 4, 8, 16)] == [1, 4, 8, 8]
    assert [downey(n, 8, 0.5) for n in (1, 8, 15, 20)] == pytest.approx([1, 64 / 9.75, 8, 8])
    assert [downey(n, 8, 2.0) for n in (1, 8, 22, 30)] == pytest.approx([1, 192 / 38, 8, 8])
    for n in range(1, 40):
        assert downey(n, 8, 1.0) == pytest.approx(downey(n, 8, 1.0 + 1e-12))


def test_sizes_of_a_job() -> None:
    section = MoldableSection(cpus=(8, 2, 4), serial_fraction=0.25)
    found = sizes_of(section, 4, {"io": 1.0}, {"gpus": 2.0})
    assert [one.cpus for one in found] == [4, 2, 8]
    assert [one.resources for one in found] == [
        (("gpus", gpus), ("io", 1.0)) for gpus in (8.0, 4.0, 16.0)
    ]
    assert found[1].factor == pytest.approx(amdahl(4, 0.25) / amdahl(2, 0.25))
    assert sizes_of(MoldableSection(cpus=(4,)), 4, {}, {}) == ()
    between = DrawnMoldableSection(factors=(0.25, 0.5, 3.0), speedup="downey")
    assert [one.cpus for one in sizes_of(between, 2, {}, {})] == [2, 1, 6]


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"cpus": [2], "min_cpus": 1, "max_cpus": 2}, {"min_cpus": 1},
        {"min_cpus": 3, "max_cpus": 2}, {"min_cpus": 1, "max_cpus": 65},
        {"cpus": [2], "sigma": 2.0},
        {"cpus": [2], "speedup": "downey", "serial_fraction": 0.1},
    ],
)  # fmt: skip
def test_wrong_sections(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MoldableSection.model_validate(wrong)


def test_a_share_of_drawn_jobs_is_moldable() -> None:
    jobs = annotated(
        moldable={"share": 0.25, "factors": [2, 4]},
        resources={"gpus": {"amounts": [1.0], "per_task": True}, "io": {"amounts": [1.0]}},
    )
    sizes = [one for one in jobs.sizes if one]
    assert len(sizes) / len(jobs) == pytest.approx(0.25, abs=0.02)
    assert sizes[0][2] == Size(4, 0.25, (("gpus", 4.0), ("io", 1.0)))


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_grid_is_the_same_in_one_process_and_on_actors() -> None:
    changes = {"policy": "easy", "share": 0.7, "jobs": 150, "load": 1.0}
    runs = [grid.run("moldable", set=changes, ray=on_actors) for on_actors in (False, True)]
    assert runs[0].manifest["digest"] == runs[1].manifest["digest"]
    jobs = runs[0].jobs()
    changed = jobs["cpus"] != jobs["requested_number_of_resources"]
    assert 0 < changed.mean() < 0.7
