"""The grid and the streams of the EG-EDF and tabu search study."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.kernel.entity import random_stream
from grid.model.job_table import COLUMNS, JobTable
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.time import NEVER, SECOND_US
from grid.workload.convergent import EgEdfJobs, EgEdfMachines, eg_edf_jobs, eg_edf_machines


def machines(count: int = 150, seed: int = 1) -> tuple[Machine, ...]:
    return eg_edf_machines(count, random_stream(seed, "machines"), EgEdfMachines())


def jobs(seed: int = 1, **settings: Any) -> JobTable:
    vo = VirtualOrganization("vo", (Cluster("c", machines()),))
    checked = EgEdfJobs.model_validate(settings)
    return eg_edf_jobs(["vo"], (vo,), random_stream(seed, "jobs"), checked)["vo"]


def test_section_4_machines_have_1_to_16_cpus_and_speeds_of_200_to_600() -> None:
    grid = machines(4000)
    cpus = np.array([machine.cpus for machine in grid])
    mips = np.array([machine.mips for machine in grid])
    assert np.array_equal(np.unique(cpus), np.arange(1, 17))
    assert cpus.mean() == pytest.approx(8.5, abs=0.3)
    assert 200 <= mips.min() < 205 and 595 < mips.max() <= 600
    assert mips.mean() == pytest.approx(400, abs=8)


def test_section_4_jobs_are_drawn_from_the_ranges_of_the_paper() -> None:
    stream = jobs(jobs=20_000)
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


def test_section_4_only_at_5_s_between_jobs_is_there_more_capacity_than_work() -> None:
    seconds_for_a_job = []
    for seed in range(20):
        capacity = sum(machine.cpus * machine.mips for machine in machines(seed=seed))
        stream = jobs(seed)
        work = stream.estimate_us * stream.processors * stream.reference_mips / SECOND_US
        seconds_for_a_job.append(work.mean() / capacity)
    assert 4 < np.mean(seconds_for_a_job) < 5


def test_streams_that_differ_in_arrivals_or_estimates_are_alike_in_all_else() -> None:
    stream, denser = jobs(jobs=500), jobs(jobs=500, mean_interarrival_s=1.0)
    wrong = jobs(jobs=500, estimate_per_run=[0.5, 1.9])
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


def test_jobs_that_fit_on_no_machine_are_an_error() -> None:
    with pytest.raises(ValueError, match="no machine of vo has 20 CPUs"):
        jobs(cpus=[20, 30])
