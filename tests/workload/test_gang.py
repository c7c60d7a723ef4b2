"""The processors and the stream of the gang migration study."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from grid.kernel.entity import random_stream
from grid.model.fields import REFERENCE_MIPS, PluginRef
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.workload.gang import GangJobs, GangMachines, gang_jobs, gang_machines


def machines(count: int, seed: int = 1) -> tuple[Machine, ...]:
    return gang_machines(count, random_stream(seed, "machines"), GangMachines())


def papers_vo() -> VirtualOrganization:
    clusters = tuple(Cluster(f"c{n}", machines(n), PluginRef("afcfs")) for n in (32, 64))
    return VirtualOrganization("vo", clusters)


def jobs(seed: int = 1, **settings: Any) -> JobTable:
    checked = GangJobs.model_validate(settings)
    return gang_jobs(["vo"], (papers_vo(),), random_stream(seed, "jobs"), checked)["vo"]


def test_clock_rates_are_between_1500_and_3000_mhz_and_2000_is_the_standard() -> None:
    mhz = np.array([m.mips for m in machines(5000)]) / REFERENCE_MIPS * 2000
    assert {m.cpus for m in machines(100)} == {1}
    assert 1500 <= mhz.min() < 1505 and 2995 < mhz.max() <= 3000
    assert mhz.mean() == pytest.approx(2250, abs=20)
    assert np.allclose(mhz, np.rint(mhz))


@pytest.mark.parametrize("seed", range(5))
def test_1500_jobs_have_24152_tasks_of_1_to_64_a_job(seed: int) -> None:
    stream = jobs(seed)
    assert len(stream) == 1500
    assert stream.processors.sum() == 24152
    assert stream.processors.min() == 1 and stream.processors.max() == 64
    assert (stream.processors == 1).sum() == 150
    assert (np.diff(stream.submit_us) >= 0).all()
    assert (stream.run_us >= 1).all()


def test_arriving_work_equals_the_load() -> None:
    """Work over what all processors do until the last arrival; each job's gap is a chance's."""
    speed = sum(m.mips for c in papers_vo().clusters for m in c.machines) / REFERENCE_MIPS
    loads = []
    for seed in range(20):
        stream = jobs(seed, load=0.6)
        work = float((stream.processors * stream.run_us).sum())
        loads.append(work / speed / int(stream.submit_us[-1]))
    assert np.mean(loads) == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize(
    "settings", [{"tasks": 1600}, {"tasks": 1500 * 64 + 1}, {"priority_share": 1.0}, {"load": 0}]
)
def test_impossible_streams_are_errors(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GangJobs.model_validate(settings)
