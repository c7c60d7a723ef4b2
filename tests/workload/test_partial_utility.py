"""The generator of PU section 4.2: what the paper says of jobs and resources, and what follows."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grid.model.fields import ARCHITECTURES, OPERATING_SYSTEMS
from grid.model.job import Job, Requirement, RequirementKind
from grid.model.job_table import JobTable
from grid.model.platform import Machine
from grid.workload.generators import generate_machines
from grid.workload.partial_utility import (
    PartialUtilityJobs,
    PartialUtilityMachines,
    partial_utility_jobs,
    partial_utility_machines,
)

VOS = ("one", "two", "three", "four")
SIGNIFICANCE = 1e-6
"""Of the tests of fit; the seeds are fixed, so a test that passes goes on passing."""


def jobs_of(seed: int, **settings: object) -> dict[str, JobTable]:
    return partial_utility_jobs(
        VOS, (), np.random.default_rng(seed), PartialUtilityJobs.model_validate(settings)
    )


def all_jobs(tables: dict[str, JobTable]) -> list[Job]:
    return [table.job(row, vo) for vo, table in tables.items() for row in range(len(table))]


def requirements_of(seed: int, kind: RequirementKind) -> list[Requirement]:
    return [job.requirements[kind] for job in all_jobs(jobs_of(seed, users=300))]


def is_uniform(counts: Counter[object]) -> bool:
    return bool(stats.chisquare(list(counts.values())).pvalue > SIGNIFICANCE)


def test_1400_jobs_of_70_users_each_in_one_vo() -> None:
    tables = jobs_of(1)
    assert tuple(tables) == VOS
    jobs = all_jobs(tables)
    assert Counter(job.user for job in jobs) == dict.fromkeys(range(70), 20)
    assert len({(job.user, job.vo) for job in jobs}) == 70
    assert sorted(job.number for job in jobs) == list(range(1400))
    for table in tables.values():
        assert (np.diff(table.submit_us) >= 0).all()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (RequirementKind.OPERATING_SYSTEM, set(range(len(OPERATING_SYSTEMS)))),
        (RequirementKind.ARCHITECTURE, set(range(len(ARCHITECTURES)))),
        (RequirementKind.EXECUTION_TIME, {5.0, 10.0, 15.0, 20.0}),
        (RequirementKind.SPEED, {500.0, 1000.0, 1500.0, 2000.0}),
    ],
)
def test_options_are_equally_probable_in_number_and_value(
    kind: RequirementKind, values: set[float]
) -> None:
    requirements = requirements_of(4, kind)
    assert {requirement.kind for requirement in requirements} == {kind}
    numbers = Counter(len(requirement.options) for requirement in requirements)
    assert set(numbers) == set(range(1, len(values) + 1))
    assert is_uniform(Counter(numbers))
    chosen = Counter(option.value for r in requirements for option in r.options)
    assert set(chosen) == values
    assert is_uniform(Counter(chosen))
    # The preferred one is as likely to be any value as any other.
    assert is_uniform(Counter(requirement.options[0].value for requirement in requirements))


@given(
    seed=st.integers(0, 2**32),
    users=st.integers(1, 12),
    each=st.integers(1, 6),
    speeds=st.lists(st.floats(1, 1e5), min_size=1, max_size=4, unique=True),
)
def test_every_job_is_well_formed(seed: int, users: int, each: int, speeds: list[float]) -> None:
    tables = jobs_of(seed, users=users, jobs_per_user=each, speeds_mips=speeds)
    jobs = all_jobs(tables)
    assert len(jobs) == users * each
    for job in jobs:
        assert job.processors == 1
        assert job.run_us == job.estimate_us
        assert 2_500_000 <= job.run_us <= 12_500_000
        assert [r.kind for r in job.requirements] == [0, 1, 2, 3]
        for requirement in job.requirements:
            values = [option.value for option in requirement.options]
            utilities = [option.utility for option in requirement.options]
            assert len(set(values)) == len(values)
            assert utilities == sorted(utilities, reverse=True)
            assert 0 <= utilities[-1] <= utilities[0] <= 1
            assert requirement.weight == 1.0


def machines_of(count: int, **settings: object) -> tuple[Machine, ...]:
    chosen = PartialUtilityMachines.model_validate(settings)
    return partial_utility_machines(count, np.random.default_rng(8), chosen)


def test_resources_are_drawn_from_their_options_evenly() -> None:
    machines = machines_of(2000)
    assert [machine.name for machine in machines[:3]] == ["m0", "m1", "m2"]
    for values, options in (
        ([machine.operating_system for machine in machines], set(OPERATING_SYSTEMS)),
        ([machine.architecture for machine in machines], set(ARCHITECTURES)),
        ([machine.cpus for machine in machines], {1, 2, 4, 8}),
        ([machine.mips for machine in machines], {500.0, 1000.0, 1500.0, 2000.0}),
    ):
        counts: Counter[object] = Counter(values)
        assert set(counts) == options
        assert is_uniform(counts)


def test_the_default_load_is_seven_tenths_as_the_module_says() -> None:
    machines = machines_of(4000)
    capacity_mips = sum(machine.cpus * machine.mips for machine in machines) / 4000 * 80
    jobs = all_jobs(jobs_of(9, users=700))
    work_mi_per_second = np.mean([job.run_us / 1e6 * job.reference_mips for job in jobs]) * 70 / 2
    assert work_mi_per_second / capacity_mips == pytest.approx(0.7, abs=0.03)


def test_memory_does_not_change_other_draws() -> None:
    def machines(**settings: object) -> list[Machine]:
        stream = np.random.default_rng(1)
        return list(generate_machines("partial_utility", 20, settings, stream)[0])

    plain, drawn = machines(), machines(ram_mb=[1024.0, 2048.0])
    assert {one.ram_mb for one in plain} == {0.0}
    assert {one.ram_mb for one in drawn} == {1024.0, 2048.0}
    assert plain == [replace(one, ram_mb=0.0) for one in drawn]


def test_one_option_is_one_of_those_that_the_job_would_have_drawn_at_random() -> None:
    jobs, alone = all_jobs(jobs_of(3, users=300)), all_jobs(jobs_of(3, users=300, one_option=True))
    best = 0
    for job, one in zip(jobs, alone, strict=True):
        assert replace(one, requirements=job.requirements) == job
        for many, single in zip(job.requirements, one.requirements, strict=True):
            (option,) = single.options
            assert single.kind is many.kind and option in many.options
            best += option == many.options[0]
    # Of 1, 2, 3 or 4 options, each as probable: 25/48; of 1 or 2: 3/4.
    share = (3 * 25 / 48 + 3 / 4) / 4
    assert best / (4 * len(jobs)) == pytest.approx(share, abs=0.01)
