"""Live runs whose clusters are real Slurm clusters, on this machine."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from grid.cluster.external import OpenJob
from grid.model.errors import InputError
from grid.model.job import Job, JobState
from grid.model.messages import BatchStatus, OtherUsers
from grid.model.platform import Cluster, Slurm
from grid.model.time import NEVER, SECOND_US, Time
from grid.runtime.slurm import SlurmFailed, SlurmJobs
from tests.slurm.real_slurm import SLURM, members, needs_slurm, script, squeue, start, wait_until

RAN = "ran"
"""In the folder of the clusters: a line for each start of a job."""
SCENARIO = """
seed: 1
protocol: {{ttl: 2, forwarding: queue, snapshots: {{period_s: 1}}}}
vos:
  - name: a
    clusters: [&cluster {{cpus: 4, backend: slurm, slurm: {{conf: {0}/c1/slurm.conf,
      command: &command 'echo $GRID_VO $GRID_JOB $GRID_CPUS >> {0}/ran; exec sleep $GRID_RUN_S'}}}}]
    workload:
      jobs: [{1}]
  - name: b
    clusters: [{{<<: *cluster, slurm: {{conf: {0}/c2/slurm.conf, command: *command}}}}]
"""


def job(number: int, run_s: float = 1.0, cancel_us: Time = NEVER, cpus: int = 1) -> OpenJob:
    run_us = round(run_s * SECOND_US)
    made = Job(
        number=number, vo="a", submit_us=0, processors=cpus, estimate_us=run_us, run_us=run_us,
    )  # fmt: skip
    return OpenJob(made, 0, cancel_us=cancel_us)


def in_slurm(conf: Path, run: str = "run", **slurm: str) -> SlurmJobs:
    """The jobs of a real cluster, in microseconds since the epoch."""
    cluster = Cluster(cpus=2, backend="slurm", slurm=Slurm(str(conf), **slurm)).expanded()
    lock = conf.parent / "lock"
    return SlurmJobs(cluster, run, lock, 1.0, lambda at: round(at * SECOND_US))


def crash(jobs: SlurmJobs) -> None:
    """Close the lock, as the end of the process does."""
    assert jobs._held is not None
    os.close(jobs._held)


def follow(jobs: SlurmJobs, wanted: Sequence[OpenJob], now: Time = 0) -> dict[int, BatchStatus]:
    """Steps until all jobs have ended: the last status of each."""
    ended: dict[int, BatchStatus] = {}

    def step() -> bool:
        left = [one for one in wanted if one.job.number not in ended]
        for status in jobs.step(left, now):
            if status.state != JobState.RUNNING:
                ended[status.key[1]] = status
        return len(ended) == len(wanted)

    wait_until(step)
    return ended


@needs_slurm
def test_processes_in_turn_submit_each_job_once(folder: Path) -> None:
    (conf,) = start(folder, nodes=1, cpus=2)
    ran = folder / RAN
    command = f"echo $GRID_JOB >> {ran}; sleep $GRID_RUN_S; test $GRID_JOB -ne 3"
    wanted = [job(1), job(2, cpus=2), job(3)]
    first = time.time()
    for _ in range(3):
        jobs = in_slurm(conf, command=command)
        jobs.step(wanted, 0)
        assert len(squeue(conf, "--states=all")) == 3
        crash(jobs)
    ended = follow(in_slurm(conf, command=command), wanted)
    states = {number: JobState(status.state).name for number, status in ended.items()}
    assert states == {1: "COMPLETED", 2: "COMPLETED", 3: "FAILED"}
    assert Counter(ran.read_text().split()) == {"1": 1, "2": 1, "3": 1}
    for status in ended.values():
        assert int(first) * SECOND_US <= status.start_us < status.end_us <= time.time() * SECOND_US


@needs_slurm
def test_jobs_are_cancelled_before_and_after_they_start(folder: Path) -> None:
    (conf,) = start(folder, nodes=1, cpus=2)
    jobs, runs, waits = in_slurm(conf), job(1, 60.0, cpus=2), job(2, 60.0, cpus=2)
    wait_until(lambda: jobs.step([runs], 0))
    jobs.step([runs, waits], 0)
    wanted = [runs._replace(running=True), waits, job(3)]
    ended = follow(jobs, [one._replace(cancel_us=5, start_us=0) for one in wanted], now=5)
    assert all(status.state == JobState.CANCELLED for status in ended.values())
    assert [ended[number].start_us >= 0 for number in (1, 2, 3)] == [True, False, False]


@pytest.mark.thorough
@needs_slurm
def test_a_job_that_slurmctld_lost_is_submitted_again(folder: Path) -> None:
    (conf,) = start(folder, nodes=1, cpus=2)
    jobs, wanted = in_slurm(conf), [job(number) for number in range(6)]
    jobs.step(wanted, 0)
    # It saves its state some seconds after a submission.
    assert script("kill", folder, "c1").returncode == 0
    assert jobs.step(wanted, 0) == []
    assert script("restart", folder, "c1").returncode == 0
    ended = follow(jobs, wanted)
    assert all(status.state == JobState.COMPLETED for status in ended.values())


@needs_slurm
def test_cpus_of_other_users_are_reported_when_they_change(folder: Path) -> None:
    (conf,) = start(folder, nodes=1, cpus=4)
    other = in_slurm(conf, "other")
    other.step([job(1, 60.0, cpus=3)], 0)
    crash(other)
    jobs = in_slurm(conf)
    jobs.step([job(2, 60.0)], 0)
    wait_until(lambda: len(squeue(conf, "--states=RUNNING")) == 2)
    assert jobs.others() == [OtherUsers(-1, 3)]
    assert jobs.others() == []


@needs_slurm
def test_the_jobs_of_a_run_are_cancelled_and_no_others(folder: Path) -> None:
    (conf,) = start(folder, nodes=1, cpus=2)
    for run in ("one", "other"):
        jobs = in_slurm(conf, run)
        jobs.step([job(1, 60.0), job(2, 60.0, cpus=2)], 0)
        crash(jobs)
    in_slurm(conf, "one").cancel_all()
    wait_until(lambda: sorted(squeue(conf, "--format=%j")) == ["other/a/1", "other/a/2"])


@needs_slurm
def test_what_cannot_be_submitted_or_followed_is_named(folder: Path) -> None:
    (conf,) = start(folder, nodes=1, cpus=2)
    jobs = in_slurm(conf, partition="nowhere")
    with pytest.raises(SlurmFailed, match=r"job 7 of a: .*partition"):
        jobs.step([job(7)], 0)
    crash(jobs)
    script("stop", folder)
    assert script("start", folder, "--conf", "JobCompType=jobcomp/none").returncode == 0
    with pytest.raises(SlurmFailed, match="JobCompType=jobcomp/none"):
        in_slurm(conf).step([job(7)], 0)


def kill_actors(run: int) -> None:
    """Kill the actors of the run with that process id."""
    running = SLURM["processes"]()
    raylets = [one.pid for one in running if one.parent == run]
    for one in running:
        if one.parent in raylets and one.name.startswith("ray::LiveActor"):
            os.kill(one.pid, signal.SIGKILL)


@pytest.fixture
def live_run(folder: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A live run of twelve jobs on two real clusters."""
    start(folder, clusters=2, nodes=2, cpus=2)
    jobs = [
        f"{{submit_s: {0.2 * number:.1f}, cpus: {1 + number % 4}, run_s: 2, estimate_s: 9}}"
        for number in range(12)
    ]
    scenario = tmp_path / "real.yaml"
    scenario.write_text(SCENARIO.format(folder, ", ".join(jobs)))
    options = ["--live", "--placement", "vo", "--out", tmp_path / "run"]
    command = [sys.executable, "-m", "grid", "run", scenario, *options]
    with subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        yield running
        running.kill()


@needs_slurm
@pytest.mark.ray
@pytest.mark.thorough
@pytest.mark.parametrize("controller_dies", [False, True])
def test_every_job_ends_once_though_actors_and_slurmctld_die(
    folder: Path, tmp_path: Path, live_run: subprocess.Popen[str], controller_dies: bool
) -> None:
    ran = folder / RAN
    wait_until(ran.exists, 200.0)
    kill_actors(live_run.pid)
    if controller_dies:
        # A job whose start slurmctld has not saved is started again, while its node still runs it;
        # Slurm then drains the node.
        saved = folder / "c1/state/job_state"
        wait_until(lambda: saved.exists() and saved.stat().st_mtime > ran.stat().st_mtime)
        script("kill", folder, "c1")
        script("restart", folder, "c1")
    wait_until(lambda: len(ran.read_text().splitlines()) >= 8, 200.0)
    kill_actors(live_run.pid)
    output, _ = live_run.communicate()
    assert live_run.returncode == 0, output
    assert "0 killed, 4 restarted" in output
    with (tmp_path / "run/jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["job_id"] for row in rows] == [str(number) for number in range(1, 13)]
    assert {row["final_state"] for row in rows} == {"COMPLETED_SUCCESSFULLY"}
    assert min(float(row["execution_time"]) for row in rows) > 0
    starts = Counter(ran.read_text().splitlines())
    assert set(starts) == {f"a {number} {1 + (number - 1) % 4}" for number in range(1, 13)}
    if not controller_dies:
        assert set(starts.values()) == {1}
    assert squeue(folder / "c1/slurm.conf") == squeue(folder / "c2/slurm.conf") == []


@needs_slurm
@pytest.mark.ray
@pytest.mark.thorough
def test_an_interrupted_run_leaves_no_job_in_slurm(
    folder: Path, live_run: subprocess.Popen[str]
) -> None:
    wait_until((folder / RAN).exists, 200.0)
    live_run.send_signal(signal.SIGINT)
    output, _ = live_run.communicate()
    assert "interrupted:" in output
    for cluster in ("c1", "c2"):
        conf = folder / cluster / "slurm.conf"
        wait_until(lambda conf=conf: squeue(conf) == [])
    assert members(folder)


def test_virtual_time_and_clusters_of_several_machines_are_refused(tmp_path: Path) -> None:
    import grid

    path = tmp_path / "real.yaml"
    path.write_text(SCENARIO.format("/nowhere", "{run_s: 1}"))
    with pytest.raises(InputError) as caught:
        grid.run(path)
    assert caught.value.errors[0].file == "vos.0.clusters.0.backend"
    for wrong in (
        "cpus: 4, backend: slurm",
        "machines: [{count: 2}], backend: slurm, slurm: {conf: /x}",
    ):
        path.write_text(
            f"vos: [{{name: a, clusters: [{{{wrong}}}], workload: {{jobs: [{{run_s: 1}}]}}}}]"
        )
        with pytest.raises(InputError) as caught:
            grid.run(path)
        assert caught.value.errors[0].field == "vos.0.clusters.0"
