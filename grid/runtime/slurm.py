"""Real Slurm clusters of a live run: their jobs are submitted, followed and cancelled here.

A job is known by its name in Slurm, which has the run, the VO and the number of the job. Each step
lists the jobs of the user in Slurm and submits those that are neither listed nor recorded as ended.
So a job is submitted once, also if this process, or slurmctld, dies at any time; one that slurmctld
has lost is submitted again. One process at a time, with its children, holds the lock of a cluster.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from math import ceil
from pathlib import Path
from typing import NamedTuple

from grid.cluster.external import OpenJob
from grid.config.build import Grid
from grid.config.wrapped import real_clusters
from grid.model.errors import input_error
from grid.model.job import Job, JobKey, JobState
from grid.model.messages import BatchStatus, OtherUsers
from grid.model.platform import Cluster
from grid.model.time import SECOND_US, Time

POLL_SECONDS = 0.25
OTHERS_SECONDS = 5.0
"""Between two queries for jobs of other users."""
COMMAND_SECONDS = 60.0
"""After this time a command is killed, and tried again."""
FORMAT = "%i|%T|%S|%j"
TRANSIENT = ("contact", "timed out", "temporarily", "Zero Bytes", "standby", "authentication")
"""Parts of messages after which sbatch is tried again."""
STATES = {"COMPLETED": JobState.COMPLETED, "CANCELLED": JobState.CANCELLED} | dict.fromkeys(
    ("FAILED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE", "PREEMPTED"),
    JobState.FAILED,
)
"""By the final states of Slurm."""
VARIABLES = ("PATH", "HOME", "USER", "LANG", "TMPDIR")
"""Those of this process that its jobs have, too."""


class SlurmFailed(Exception):
    """A job cannot be submitted, or not be followed."""


class _Listed(NamedTuple):
    """A job that Slurm still lists, in any state."""

    number: str
    is_pending: bool
    start_s: float


class _Ended(NamedTuple):
    """A job that Slurm has recorded as ended; `start_s` is -1 if it never ran."""

    state: JobState
    start_s: float
    end_s: float


class SlurmJobs:
    """The jobs of a real cluster, `run` being the name of the run in Slurm.

    `time_at` gives the virtual time of a time of the real clock, `speedup` virtual seconds per real
    one. Methods wait for Slurm's commands.
    """

    def __init__(
        self,
        cluster: Cluster,
        run: str,
        lock: Path,
        speedup: float,
        time_at: Callable[[float], Time],
    ) -> None:
        assert cluster.slurm is not None
        self._slurm = cluster.slurm
        self._factor = cluster.estimate_factor
        (self._machine,) = cluster.machines
        self._run = run
        self._lock = lock
        self._held: int | None = None
        self._speedup = speedup
        self._time_at = time_at
        self._record: Path | None = None
        self._read = 0
        self._others = 0
        self._ended: dict[str, _Ended] = {}

    def step(self, open_jobs: Sequence[OpenJob], now: Time) -> list[BatchStatus]:
        """Submit and cancel what is due; what has changed. Raises SlurmFailed."""
        if self._held is None:
            self._hold_lock()
        listed = self._list()
        if listed is None:
            return []
        self._read_record()
        changed = []
        for one in open_jobs:
            name = self._name(one.job.key)
            ended, found = self._ended.get(name), listed.get(name)
            if ended is not None:
                start_us = -1 if ended.start_s < 0 else self._time_at(ended.start_s)
                end_us = self._time_at(ended.end_s)
                changed.append(BatchStatus(one.job.key, int(ended.state), start_us, end_us))
            elif found is None and one.cancel_us <= now:
                changed.append(BatchStatus(one.job.key, int(JobState.CANCELLED), -1, now))
            elif found is None:
                self._submit(one.job, name)
            elif not found.is_pending and one.start_us < 0:
                start_us = self._time_at(found.start_s)
                changed.append(BatchStatus(one.job.key, int(JobState.RUNNING), start_us))
            elif one.cancel_us <= now and (found.is_pending or one.running):
                only = [] if one.running else ["--state=PENDING"]
                self._call("scancel", *only, found.number)
        return changed

    def others(self) -> list[OtherUsers]:
        """The CPUs that running jobs of others hold, if they are known and have changed."""
        if self._held is None:
            self._hold_lock()
        only = [] if self._slurm.partition is None else [f"--partition={self._slurm.partition}"]
        done = self._call("squeue", "--states=RUNNING", "--noheader", "--format=%C|%j", *only)
        if done is None or done.returncode:
            return []
        jobs = (line.split("|", 1) for line in done.stdout.splitlines())
        cpus = sum(int(cpus) for cpus, name in jobs if not name.startswith(f"{self._run}/"))
        if cpus == self._others:
            return []
        self._others = cpus
        return [OtherUsers(-1, cpus)]

    def cancel_all(self) -> None:
        """Cancel all jobs of the run."""
        self._hold_lock()
        if listed := self._list():
            self._call("scancel", *(one.number for one in listed.values()))

    def _hold_lock(self) -> None:
        """Wait until neither an earlier process of this cluster nor its sbatch is left."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self._held = descriptor

    def _name(self, key: JobKey) -> str:
        return f"{self._run}/{key[0]}/{key[1]}"

    def _list(self) -> dict[str, _Listed] | None:
        """The jobs of the run in Slurm, by name; None if slurmctld does not answer."""
        done = self._call("squeue", "--me", "--states=all", "--noheader", f"--format={FORMAT}")
        if done is None or done.returncode:
            return None
        listed = {}
        for line in done.stdout.splitlines():
            number, state, start, name = line.split("|", 3)
            if name.startswith(f"{self._run}/"):
                is_pending = state in ("PENDING", "CONFIGURING") or not start.isdecimal()
                listed[name] = _Listed(number, is_pending, -1.0 if is_pending else float(start))
        return listed

    def _read_record(self) -> None:
        """Read which jobs of the run have ended since the last call."""
        if self._record is None:
            self._record = self._find_record()
            if self._record is None:
                return
        with self._record.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._note(line.decode(errors="replace"))

    def _find_record(self) -> Path | None:
        """The file in which Slurm records jobs that have ended; None if slurmctld is silent."""
        done = self._call("scontrol", "show", "config")
        if done is None or done.returncode:
            return None
        values = dict(text.partition("=")[::2] for text in done.stdout.splitlines())
        found = {key.strip(): value.strip() for key, value in values.items()}
        kind, place = found.get("JobCompType", ""), Path(found.get("JobCompLoc", ""))
        if kind != "jobcomp/filetxt" or not os.access(place, os.R_OK):
            expected = "jobcomp/filetxt with a readable JobCompLoc"
            raise SlurmFailed(f"found JobCompType={kind}, expected {expected}")
        return place

    def _note(self, record: str) -> None:
        fields = dict(word.partition("=")[::2] for word in record.split())
        name, state = fields.get("Name", ""), STATES.get(fields.get("JobState", ""))
        if state is not None and name.startswith(f"{self._run}/"):
            ran = fields["NodeList"] not in ("", "(null)")
            start_s = _seconds(fields["StartTime"]) if ran else -1.0
            self._ended.setdefault(name, _Ended(state, start_s, _seconds(fields["EndTime"])))

    def _submit(self, job: Job, name: str) -> None:
        """Submit a job, unless Slurm is busy or away. Raises SlurmFailed."""
        run_s = self._real_s(job, job.run_us)
        minutes = max(1, ceil(self._real_s(job, job.estimate_us) * self._factor / 60.0))
        options = [f"--job-name={name}", f"--ntasks={job.processors}", f"--time={minutes}"]
        if self._slurm.partition is not None:
            options.append(f"--partition={self._slurm.partition}")
        options += ["--no-requeue", "--output=/dev/null"]
        command = self._slurm.command or f"exec sleep {run_s:.3f}"
        about = {"VO": job.vo, "JOB": job.number, "CPUS": job.processors, "RUN_S": f"{run_s:.3f}"}
        variables = {f"GRID_{key}": str(value) for key, value in about.items()}
        done = self._call("sbatch", *options, script=f"#!/bin/sh\n{command}\n", **variables)
        if done is not None and done.returncode:
            message = done.stderr.strip().splitlines()[-1:] or [f"code {done.returncode}"]
            if not any(part in done.stderr for part in TRANSIENT):
                raise SlurmFailed(f"job {job.number} of {job.vo}: {message[0]}")

    def _real_s(self, job: Job, time_us: Time) -> float:
        """A run time of a job on the machine's CPUs, in seconds of the real clock."""
        return time_us * job.reference_mips / self._machine.mips / SECOND_US / self._speedup

    def _call(
        self, program: str, *options: str, script: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str] | None:
        """The outcome of one of Slurm's commands; None if it had to be killed."""
        environment = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        environment |= {"SLURM_CONF": self._slurm.conf, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
        assert self._held is not None
        try:
            return subprocess.run(
                [program, *options],
                input=script,
                env=environment | variables,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                pass_fds=(self._held,),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise SlurmFailed(f"{program}: {error.strerror}") from None


def _seconds(text: str) -> float:
    """Seconds since the epoch of a time that slurmctld has written."""
    return datetime.fromisoformat(text).timestamp()


def check_real_clusters(grid: Grid, *, live: bool) -> None:
    """Raises InputError if the run cannot have a real cluster of the grid."""
    for v, c, _, cluster in real_clusters(grid):
        place = f"vos.{v}.clusters.{c}.backend"
        if not live:
            raise input_error(place, "slurm in virtual time", "a live run (--live), or simulated")
        if grid.direct[v] is not None:
            raise input_error(place, "slurm with `entry_point: cluster`", "jobs that enter the VO")
        if cluster.reservations or grid.outages_of(grid.vos[v], cluster):
            raise input_error(place, "slurm with outages of machines", "none, or simulated")


def cancel_real_jobs(grid: Grid, run: str, folder: Path) -> None:
    """Cancel the jobs that the run has left in Slurm; `folder` has its journals."""
    for *_, name, cluster in real_clusters(grid):
        with suppress(SlurmFailed):
            SlurmJobs(cluster, run, lock_of(grid, folder, name), 1.0, int).cancel_all()


def lock_of(grid: Grid, folder: Path, name: str) -> Path:
    """The lock of the cluster of a Local Dispatcher."""
    return folder / f"{grid.names.index(name):06d}.lock"
