"""The twin of a Slurm site: its slurm.conf, the scenario, and the comparison with sacct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import grid
from grid.integrations.twin import compare, expand, queue_svg, read_slurm_conf, twin_scenario
from grid.model.errors import InputError

CONF = """\
# A site of two pools.
SchedulerParameters=bf_interval=1,bf_resolution=1,bf_continue  # a comment
PriorityWeightAge=1000
PriorityMaxAge=1-12:00:00
PriorityDecayHalfLife=7-0
PriorityCalcPeriod=5
PriorityFlags=NO_FAIR_TREE
NodeName=DEFAULT CPUs=2 Gres=gpu:a100:2(S:0-1),nic
NodeName=n[1-2]
NodeName=big Sockets=1 CPUs=4
PartitionName=main Nodes=n[1-2]
PartitionName=debug Nodes=n2 Default=YES
PartitionName=large Nodes=big
"""
SACCT = """\
JobIDRaw|User|Partition|Submit|Start|End|AllocCPUS|TimelimitRaw|State
7|a|large|2024-03-01T08:00:00|2024-03-01T08:00:00|2024-03-01T08:01:40|4|2|COMPLETED
8|a|large|2024-03-01T08:00:10|2024-03-01T08:01:50|2024-03-01T08:02:00|4|1|COMPLETED
9|b|debug|2024-03-01T08:00:20|2024-03-01T08:00:20|2024-03-01T08:00:30|2|1|COMPLETED
10|b|main|2024-03-01T08:00:30|None|2024-03-01T08:00:40|2|1|CANCELLED by 1
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "sacct.txt").write_text(SACCT)
    return tmp_path


def test_lists_of_nodes() -> None:
    assert expand("n[1-3,07],login") == ["n1", "n2", "n3", "n07", "login"]
    assert expand("r[1-2]n[08-09]") == ["r1n08", "r1n09", "r2n08", "r2n09"]


def test_slurm_conf(site: Path) -> None:
    conf = read_slurm_conf(site / "slurm.conf")
    assert conf.cpus == {"n1": 2, "n2": 2, "big": 4}
    assert list(conf.pools()) == [(["main", "debug"], ["n1", "n2"]), (["large"], ["big"])]
    assert conf.gres["n1"] == {"gpu": 2, "nic": 1}
    assert conf.scheduling == {
        "bf_interval": 1, "bf_resolution": 1, "age_weight": 1000.0, "max_age_s": 129_600.0,
        "half_life_s": 604_800.0, "calc_period_s": 300.0, "algorithm": "classic",
    }  # fmt: skip
    assert conf.ignored == ["bf_continue"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("CPUs=2", "CPUs=two", 9),
        ("Nodes=big", "Nodes=huge", 13),
        ("bf_interval=1", "bf_interval=x", 2),
        ("CPUs=4", "\\\n  CPUs=many", 11),
    ],
)
def test_errors_have_the_line(site: Path, old: str, new: str, line: int) -> None:
    file = site / "slurm.conf"
    file.write_text(CONF.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_slurm_conf(file)
    assert [(one.file, one.line) for one in caught.value.errors] == [(str(file), line)]


def test_an_unknown_partition_is_refused(site: Path) -> None:
    records = site / "sacct.txt"
    records.write_text(SACCT.replace("|main|", "|gpu|"))
    with pytest.raises(InputError) as caught:
        twin_scenario(read_slurm_conf(site / "slurm.conf"), records)
    assert [(one.field, one.found) for one in caught.value.errors] == [("Partition", "gpu")]


def test_gres_of_nodes_and_jobs(site: Path) -> None:
    """Job 8 holds all GPUs of two nodes with two each, and job 9 waits. Job 10 fits on no nodes."""
    (site / "sacct.txt").write_text(
        "JobIDRaw|User|Partition|Submit|ElapsedRaw|ReqCPUS|TimelimitRaw|ReqTRES|State\n"
        "8|a|main|2024-03-01T08:00:05|100|2|2|cpu=2,gres/gpu:a100=4,gres/gpu=4|COMPLETED\n"
        "9|a|main|2024-03-01T08:00:07|100|1|2|cpu=1,gres/gpu=1|COMPLETED\n"
        "10|a|main|2024-03-01T08:00:09|100|1|2|cpu=1,gres/gpu=3|COMPLETED\n"
    )
    text = twin_scenario(read_slurm_conf(site / "slurm.conf"), site / "sacct.txt")
    (site / "twin.yaml").write_text(text)
    jobs = grid.run(site / "twin.yaml").jobs().sort_values("job_id")
    assert jobs["final_state"].str.contains("COMPLETED").tolist() == [True, True, False]
    assert jobs["starting_time"].iloc[1] == pytest.approx(
        jobs["starting_time"].iloc[0] + 101, abs=2
    )


def test_a_twin_is_compared_with_the_records(site: Path) -> None:
    """Job 8 waited for 100 s at the site, 10 s of them on free CPUs, and for 90.5 s in the twin."""
    text = twin_scenario(read_slurm_conf(site / "slurm.conf"), site / "sacct.txt")
    assert text.count("resolution_s: 1") == 1
    (site / "twin.yaml").write_text(re.sub(r"\n.*attributes:\n.*resolution_s: 1", "", text))
    grid.run(site / "twin.yaml", out=site / "run")
    found = compare(site / "run", site / "sacct.txt")
    rows = {one.jobs_of: one for one in found.rows}
    assert (rows["all jobs"].jobs, found.only_real, found.only_twin) == (3, 0, 0)
    assert rows["all jobs"].real_wait_s == pytest.approx(100 / 3)
    large = rows["partition large"]
    assert (large.real_wait_s, large.twin_wait_s, large.close) == (50.0, 45.25, 0.5)
    assert large.error == pytest.approx(-0.095)
    # 400 + 40 + 20 CPU seconds on 8 CPUs in 120 and 110.5 s.
    assert found.real_utilization == pytest.approx(460 / 960)
    assert found.twin_utilization == pytest.approx(460 / 884)
    assert (found.real_queue.max(), found.twin_queue.max()) == (1.0, 1.0)
    assert queue_svg(found).startswith(b"<svg")
