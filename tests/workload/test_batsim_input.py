"""Batsim's workloads and platforms as input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grid.model.errors import InputError
from grid.workload.batsim import BatsimMachines, batsim_machines
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import read_log

S = 1_000_000
PROFILES: dict[str, Any] = {
    "short": {"type": "delay", "delay": 10.5},
    "flops": {"type": "parallel_homogeneous", "cpu": 5e9, "com": 0},
    "uneven": {"type": "parallel", "cpu": [1e9, 3e9], "com": [0, 0, 0, 0]},
    "both": {"type": "composed", "repeat": 2, "seq": ["short", "uneven"]},
}


def workload(folder: Path, profile: str, **job: Any) -> Path:
    one = {"id": "w0!7", "subtime": 2, "walltime": 40, "res": 2, "profile": profile} | job
    path = folder / "workload.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": [one], "profiles": PROFILES}))
    return path


@pytest.mark.parametrize(
    ("profile", "run_s"), [("short", 10.5), ("flops", 5.0), ("uneven", 3.0), ("both", 27.0)]
)
def test_profiles_have_the_run_time_of_their_delay(
    tmp_path: Path, profile: str, run_s: float
) -> None:
    log = read_log(workload(tmp_path, profile))
    (job,) = jobs_from_log(log)[0].jobs(0, 1, "vo")
    assert (job.number, job.submit_us, job.processors) == (7, 2 * S, 2)
    assert (job.run_us, job.estimate_us) == (run_s * S, 40 * S)
    assert log.header == {"MaxProcs": "4"}


@pytest.mark.parametrize(
    ("profile", "changes", "field"),
    [
        ("mpi", {}, "profiles.mpi"), ("talk", {}, "profiles.talk"),
        ("none", {}, "profiles.none"), ("short", {"res": 0}, "jobs.0.res"),
        ("short", {"subtime": "x"}, "jobs.0.subtime"),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, changes: Any, field: str
) -> None:
    monkeypatch.setitem(PROFILES, "mpi", {"type": "smpi", "trace": "x"})
    monkeypatch.setitem(PROFILES, "talk", {"type": "parallel", "cpu": [1], "com": [5]})
    with pytest.raises(InputError) as caught:
        read_log(workload(tmp_path, profile, **changes))
    assert [error.field for error in caught.value.errors] == [field]


PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="AS0" routing="Full">
  <host id="master_host" speed="100Mf"/>
  <host id="big" speed="2Gf, 1Gf" core="8"><prop id="watt_per_state" value="95:190"/></host>
  <cluster id="c" prefix="n" suffix=".x" radical="0-1,5" speed="500Mf" bw="1GBps" lat="0"/>
  <link id="l" bandwidth="1GBps" latency="0"/>{more}
</zone></platform>"""


def test_hosts_of_a_platform_become_machines(tmp_path: Path) -> None:
    path = tmp_path / "platform.xml"
    path.write_text(PLATFORM.format(more=""))
    made = batsim_machines(4, np.random.default_rng(), BatsimMachines(platform=str(path)))
    assert [(one.name, one.cpus, one.mips) for one in made] == [
        ("big", 8, 2000.0), ("n0.x", 1, 500.0), ("n1.x", 1, 500.0), ("n5.x", 1, 500.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, "<storage id='s'/>")])
def test_other_counts_and_storage_are_refused(tmp_path: Path, count: int, more: str) -> None:
    path = tmp_path / "platform.xml"
    path.write_text(PLATFORM.format(more=more))
    with pytest.raises(InputError):
        batsim_machines(count, np.random.default_rng(), BatsimMachines(platform=str(path)))
