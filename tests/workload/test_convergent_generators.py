"""The machines and jobs of the Convergent Scheduling and EG-EDF papers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.kernel.entity import random_stream
from grid.model.job_table import COLUMNS, JobTable
from grid.model.platform import Cluster, License, Machine, VirtualOrganization
from grid.model.time import NEVER, SECOND_US
from grid.workload.convergent import (
    ConvergentJobs,
    ConvergentMachines,
    EgEdfJobs,
    EgEdfMachines,
    convergent_jobs,
    convergent_licenses,
    convergent_machines,
    eg_edf_jobs,
    eg_edf_machines,
)

MACHINES, JOBS = ConvergentMachines(), ConvergentJobs(jobs=20_000)


def farm(seed: int = 1, count: int = 150, settings: ConvergentMachines = MACHINES) -> Cluster:
    rng = random_stream(seed, "machines")
    machines = convergent_machines(count, rng, settings)
    return Cluster("c", machines, licenses=convergent_licenses(machines, settings, rng))


def organization(*clusters: Cluster) -> VirtualOrganization:
    return VirtualOrganization("v", clusters)


def jobs_of(cluster: Cluster, settings: ConvergentJobs = JOBS, seed: int = 1):  # type: ignore[no-untyped-def]
    return convergent_jobs(["v"], [organization(cluster)], random_stream(seed, "jobs"), settings)[
        "v"
    ]


def test_machines_are_uniform_in_the_papers_ranges() -> None:
    machines = farm(count=4000).machines
    cpus = np.array([machine.cpus for machine in machines])
    mips = np.array([machine.mips for machine in machines])
    assert (cpus.min(), cpus.max()) == (1, 8)
    assert (mips.min(), mips.max()) == (200, 600)
    assert np.bincount(cpus)[1:] == pytest.approx(np.full(8, 500), rel=0.15)
    assert mips.mean() == pytest.approx(400, rel=0.02)
    usable = np.mean([len(machine.licenses) for machine in machines]) / MACHINES.licenses
    assert usable == pytest.approx(0.9, abs=0.01)


def test_copies_are_a_share_of_the_machines_that_can_run_the_license() -> None:
    platform = farm()
    assert len(platform.licenses) == 20
    for license_ in platform.licenses:
        usable = sum(license_.name in machine.licenses for machine in platform.machines)
        assert np.floor(0.55 * usable) <= license_.copies <= 0.65 * usable


def test_jobs_are_uniform_in_the_papers_ranges() -> None:
    jobs = jobs_of(farm())
    estimate_s = jobs.estimate_us / SECOND_US
    assert (estimate_s.min(), estimate_s.max()) == pytest.approx((500, 3000), rel=0.01)
    assert estimate_s.mean() == pytest.approx(1750, rel=0.02)
    assert (jobs.processors.min(), jobs.processors.max()) == (1, 8)
    assert (jobs.reference_mips.min(), jobs.reference_mips.max()) == (200, 600)
    assert (jobs.input_mb.min(), jobs.input_mb.max()) == pytest.approx((100, 800), rel=0.01)
    assert jobs.checkpointable.mean() == pytest.approx(0.02, abs=0.005)
    assert (jobs.run_us == jobs.estimate_us).all()
    assert (jobs.user >= 0).all()
    assert (jobs.user < 150).all()


def test_a_deadline_is_a_percentage_of_the_estimate() -> None:
    jobs = jobs_of(farm())
    due = jobs.deadline_us < NEVER
    assert due.mean() == pytest.approx(0.7, abs=0.01)
    allowance = (jobs.deadline_us - jobs.submit_us)[due] / jobs.estimate_us[due] - 1
    assert (allowance.min(), allowance.max()) == pytest.approx((0.25, 1.5), abs=0.01)
    assert allowance.mean() == pytest.approx(0.875, abs=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_every_job_can_run_somewhere(seed: int) -> None:
    """On a farm where many draws could not."""
    platform = farm(seed, 3, ConvergentMachines(licenses=10, license_suitability=0.5))
    jobs = jobs_of(platform, ConvergentJobs(jobs=200, license_needs=0.3), seed)
    numbers = {license_.name: n for n, license_ in enumerate(platform.licenses)}
    for processors, mask in zip(jobs.processors.tolist(), jobs.licenses.tolist(), strict=True):
        asked = {name for name, n in numbers.items() if mask >> n & 1}
        assert any(
            machine.cpus >= processors and asked <= set(machine.licenses)
            for machine in platform.machines
        )
        assert all(platform.licenses[numbers[name]].copies for name in asked)


def test_a_farm_that_can_run_no_such_job() -> None:
    small = Cluster("c", (Machine("m0", 2),), licenses=(License("l0", 0),))
    with pytest.raises(ValueError, match="no machine of v can run"):
        jobs_of(small, ConvergentJobs(jobs=5, cpus=(3, 8)))


def test_deadlines_have_their_other_readings() -> None:
    """The same draws give slack beyond the estimate, a share of it, or seconds."""
    readings = {}
    for deadline in ("beyond_estimate", "of_estimate", "seconds"):
        settings = ConvergentJobs(jobs=500, deadline=deadline, without_deadline=0.0)
        jobs = jobs_of(farm(), settings)
        readings[deadline] = (jobs.deadline_us - jobs.submit_us, jobs.estimate_us)
    beyond, estimate = readings["beyond_estimate"]
    alone, _ = readings["of_estimate"]
    assert (beyond - alone == estimate).mean() > 0.99
    percent = 100 * alone / estimate
    assert 24.9 < percent.min() < 30 and 145 < percent.max() < 150.1
    seconds = (readings["seconds"][0] - estimate) / SECOND_US
    assert seconds == pytest.approx(percent, abs=0.01)


# EG-EDF


def eg_machines(count: int = 150, seed: int = 1) -> tuple[Machine, ...]:
    return eg_edf_machines(count, random_stream(seed, "machines"), EgEdfMachines())


def eg_jobs(seed: int = 1, **settings: Any) -> JobTable:
    vo = VirtualOrganization("vo", (Cluster("c", eg_machines()),))
    checked = EgEdfJobs.model_validate(settings)
    return eg_edf_jobs(["vo"], (vo,), random_stream(seed, "jobs"), checked)["vo"]


def test_section_4_jobs_are_drawn_from_the_ranges_of_the_paper() -> None:
    stream = eg_jobs(jobs=20_000)
    assert np.array_equal(np.unique(stream.processors), np.arange(1, 9))
    seconds = stream.estimate_us / SECOND_US
    assert 500 <= seconds.min() < 501 and 2999 < seconds.max() <= 3000
    assert seconds.mean() == pytest.approx(1750, rel=0.02)
    due = stream.deadline_us < NEVER
    assert due.mean() == pytest.approx(0.7, abs=0.02)
    slack = (stream.deadline_us - stream.submit_us)[due] / stream.estimate_us[due]
    assert 1.25 <= slack.min() < 1.26 and 2.49 < slack.max() <= 2.5
    assert np.array_equal(stream.run_us, stream.estimate_us)
    assert np.array_equal(stream.number, np.arange(20_000))


def test_streams_that_differ_in_arrivals_or_estimates_are_alike_in_all_else() -> None:
    stream, denser = eg_jobs(jobs=500), eg_jobs(jobs=500, mean_interarrival_s=1.0)
    wrong = eg_jobs(jobs=500, estimate_per_run=[0.5, 1.9])
    for column in COLUMNS:
        if column not in ("submit_us", "deadline_us"):
            assert np.array_equal(getattr(stream, column), getattr(denser, column))
        if column != "estimate_us":
            assert np.array_equal(getattr(stream, column), getattr(wrong, column))
    assert np.allclose(stream.submit_us / 5, denser.submit_us, atol=500)
    due = stream.deadline_us < NEVER
    assert np.array_equal(due, denser.deadline_us < NEVER)
    slack, dense_slack = (
        stream.deadline_us - stream.submit_us,
        denser.deadline_us - denser.submit_us,
    )
    assert np.array_equal(slack[due], dense_slack[due])
    share = wrong.estimate_us / wrong.run_us
    assert 0.5 <= share.min() < 0.52 and 1.88 < share.max() <= 1.9


def test_several_vos_share_a_stream_and_no_job_is_wider_than_its_vo() -> None:
    vos = tuple(
        VirtualOrganization(name, (Cluster("c", (Machine("m", cpus),)),))
        for name, cpus in (("small", 3), ("large", 64))
    )
    tables = eg_edf_jobs(["small", "large"], vos, random_stream(1, "jobs"), EgEdfJobs(jobs=1000))
    numbers = np.sort(np.concatenate([table.number for table in tables.values()]))
    assert np.array_equal(numbers, np.arange(1000))
    assert tables["small"].processors.max() == 3
    assert tables["large"].processors.max() == 8
