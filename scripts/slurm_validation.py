"""How close the emulator comes to real Slurm clusters; see scripts/slurm-validation."""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet

import grid
from grid.integrations.twin import CLOSE_S, compare, expand, read_slurm_conf, twin_scenario
from grid.lab.report.picture import Picture
from grid.lab.statistics import mean_interval
from grid.model.time import SECOND_US
from grid.policies.interface import Plan
from grid.policies.slurm import Nodes, Placement, Slurm, SlurmSettings, Starts, placed

ROOT = Path(__file__).parents[1]
FEDERATION = ROOT / "scenarios" / "slurm-federation.yaml"
NODES, CPUS_OF_NODE = 8, 4
NODES_OF_SITE = 2
"""Of each site of the federation."""
SIZES = {1: 30, 2: 20, 4: 20, 8: 15, 16: 10, 32: 5}
"""CPUs of jobs, with their weights."""
POLICIES = ("slurm", "easy", "conservative")


PARTITIONS = {"main": NODES}
SITE = {"main": 6, "debug": 2}
"""Nodes of the partitions of a cluster."""
DETAILS = "SlurmctldDebug=debug", "DebugFlags=Backfill,BackfillMap"


class Submission(NamedTuple):
    """A job for `sbatch`."""

    at_s: float
    cpus: int
    run_s: float
    limit_minutes: int
    partition: str = "main"


def workload(
    load: float, seed: int, jobs: int, seconds: float, nodes: int = NODES, partition: str = "main"
) -> list[Submission]:
    """Jobs submitted at random within `seconds`, with a share `load` of the partition's CPUs.

    Run times are log-normal, time limits 1 to 4 times as long, in whole minutes.
    """
    rng = random.Random(f"{load} {seed}")
    sizes = [cpus for cpus in SIZES if cpus <= nodes * CPUS_OF_NODE]
    weights = [SIZES[cpus] for cpus in sizes]
    drawn = sorted(
        (
            rng.uniform(0.0, seconds),
            rng.choices(sizes, weights)[0],
            rng.lognormvariate(0.0, 0.8),
            rng.uniform(1.0, 4.0),
        )
        for _ in range(jobs)
    )
    scale = load * nodes * CPUS_OF_NODE * seconds / sum(cpus * run for _, cpus, run, _ in drawn)
    submissions = []
    for at_s, cpus, run, factor in drawn:
        run_s = round(max(1.0, run * scale), 3)
        minutes = math.ceil(run_s * factor / 60.0)
        submissions.append(Submission(at_s, cpus, run_s, minutes, partition))
    return submissions


@contextmanager
def clusters(count: int, nodes: int, conf: Sequence[str] = DETAILS[:1]) -> Iterator[list[Path]]:
    """Real clusters; their slurm.conf files, with the lines of `conf`."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        home = f"{folder}/s"
        sizes = ["--clusters", str(count), "--nodes", str(nodes), "--cpus", str(CPUS_OF_NODE)]
        started = slurm("start", home, *sizes, *(f"--conf={line}" for line in conf))
        try:
            yield [Path(line) for line in started.split()]
        finally:
            slurm("stop", home)


def slurm(*arguments: str) -> str:
    """The output of scripts/slurm. Raises CalledProcessError."""
    command = [sys.executable, str(ROOT / "scripts" / "slurm"), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def call(conf: Path, *command: str) -> str:
    """The output of a Slurm command. Raises CalledProcessError."""
    environment = os.environ | {"SLURM_CONF": str(conf)}
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def submit(conf: Path, jobs: Sequence[Submission]) -> None:
    """Submit the jobs in time, and wait until they have ended."""
    start = time.monotonic()
    for at_s, cpus, run_s, minutes, partition in jobs:
        time.sleep(max(0.0, start + at_s - time.monotonic()))
        options = [f"--ntasks={cpus}", f"--time={minutes}", "--output=/dev/null"]
        options.append(f"--partition={partition}")
        call(conf, "sbatch", *options, f"--wrap=exec sleep {run_s}")
    while call(conf, "squeue", "--noheader"):
        time.sleep(1.0)


class Times(NamedTuple):
    """When jobs were submitted, started and ended, by number, in seconds of a slurmctld's log.

    An iteration of backfill, which begins a little more than a second after the last, is a second.
    """

    submitted: dict[int, float]
    started: dict[int, float]
    ended: dict[int, float]


def times_of(log: Path) -> Times:
    """The times in a log, since Slurm's records have whole seconds."""
    patterns = (
        r"_slurm_rpc_submit_batch_job: JobId=(\d+) ",
        r"(?:Started|sched: Allocate) JobId=(\d+) ",
        r"_job_complete: JobId=(\d+) done",
    )
    found: tuple[dict[int, float], ...] = ({}, {}, {})
    iterations: list[float] = []
    for line in log.read_text(errors="replace").splitlines():
        time_of, _, text = line.removeprefix("[").partition("] ")
        if "_attempt_backfill: beginning" in text:
            iterations.append(datetime.fromisoformat(time_of).timestamp())
        for times, pattern in zip(found, patterns, strict=True):
            if match := re.search(pattern, text):
                times[int(match[1])] = datetime.fromisoformat(time_of).timestamp()
    known = np.array(iterations)
    step = float(np.median(np.diff(known)))
    # Backfill aligns what it counts as one with the half minutes of the clock.
    numbers = np.floor(known[0]) % 60 + np.round((known - known[0]) / step)
    # No iteration begins while nothing waits.
    known = np.array([known[0] - 100 * step, *known, known[-1] + 1e5 * step])
    numbers = np.array([numbers[0] - 100, *numbers, numbers[-1] + 1e5])
    return Times(*({job: float(np.interp(at, known, numbers)) for job, at in times.items()}
                   for times in found))  # fmt: skip


def emulated(times: Times, jobs: Sequence[Submission], policy: str) -> dict[int, float]:
    """The start of each job in virtual time; run times are those of the real cluster."""
    first = min(times.submitted.values()) // 60 * 60
    conf = {"bf_interval": 1, "bf_resolution": 1, "cpus_per_node": CPUS_OF_NODE}
    cluster = {
        "cpus": NODES * CPUS_OF_NODE,
        "policy": {"name": policy, "settings": conf} if policy == "slurm" else policy,
    }
    order = sorted(times.submitted)
    workload = {
        "entry_point": "cluster",
        "jobs": [
            {
                "submit_s": round(times.submitted[number] - first, 6),
                "run_s": round(times.ended[number] - times.started[number], 6),
                "estimate_s": 60 * jobs[number - 1].limit_minutes,
                "cpus": jobs[number - 1].cpus,
                "user": 1,
            }
            for number in order
        ],
    }
    run = grid.run({"vos": [{"name": "site", "clusters": [cluster], "workload": workload}]})
    starts = run.jobs().sort_values("job_id")["starting_time"]
    return {number: first + start for number, start in zip(order, starts, strict=True)}


def validate_cluster(given: argparse.Namespace) -> None:
    """Submit jobs to real clusters; print and draw waits there and in virtual time."""
    for seed in [] if given.report else given.seeds:
        with clusters(len(given.loads), NODES, DETAILS) as confs, ThreadPoolExecutor() as pool:
            jobs = [workload(load, seed, given.jobs, given.seconds) for load in given.loads]
            list(pool.map(submit, confs, jobs))
            given.out.mkdir(parents=True, exist_ok=True)
            for load, conf in zip(given.loads, confs, strict=True):
                log = (conf.parent / "controller.log").read_bytes()
                (given.out / f"{load:g}-{seed}.log").write_bytes(log)
    report_clusters(given)


def report_clusters(given: argparse.Namespace) -> None:
    """Print the table and draw the figure of the logs in a folder."""
    head = ["load", "policy", "real wait (s)", "emulated (s)", "error (%)",
            f"starts within {CLOSE_S:g} s (%)"]  # fmt: skip
    print(_row(head), _row(["---"] * len(head)), sep="\n")
    points: dict[str, list[Any]] = {"load": [], "real": [], "emulated": []}
    for load in given.loads:
        for policy in POLICIES:
            real, virtual = [], []
            for seed in given.seeds:
                times = times_of(given.out / f"{load:g}-{seed}.log")
                jobs = workload(load, seed, given.jobs, given.seconds)
                for number, start in emulated(times, jobs, policy).items():
                    real.append(times.started[number] - times.submitted[number])
                    virtual.append(start - times.submitted[number])
            waits, others = np.array(real), np.array(virtual)
            error = 100 * (others.mean() / waits.mean() - 1)
            close = 100 * np.mean(np.abs(waits - others) <= CLOSE_S)
            means = f"{waits.mean():.1f}", f"{others.mean():.1f}"
            print(_row([f"{load:g}", policy, *means, f"{error:+.1f}", f"{close:.1f}"]))
            if policy == "slurm":
                points["load"] += [f"load {load:g}"] * len(real)
                points["real"] += real
                points["emulated"] += virtual
    specification = {
        "data": {"name": "jobs"},
        "mark": {"type": "circle", "opacity": 0.4},
        "encoding": {
            "x": {"field": "real", "type": "quantitative", "title": "wait in the real cluster (s)"},
            "y": {"field": "emulated", "type": "quantitative", "title": "emulated wait (s)"},
            "column": {"field": "load", "type": "nominal", "title": None},
        },
        "resolve": {"scale": {"x": "independent"}},
        "width": 300,
        "height": 300,
    }
    picture = Picture("slurm", "Real and emulated waits.", specification, {"jobs": points})
    (given.out / "slurm.png").write_bytes(picture.png)


def partition_jobs(seed: int, jobs: int, seconds: float) -> list[Submission]:
    """Jobs of all partitions of `SITE`, in order of submission."""
    loads = {"main": 0.8, "debug": 0.7}
    each = [
        workload(loads[name], seed, jobs * nodes // NODES, seconds, nodes, name)
        for name, nodes in SITE.items()
    ]
    return sorted(itertools.chain(*each))


def validate_twin(given: argparse.Namespace) -> None:
    """Submit jobs to the partitions of real sites; compare the twins of these with them."""
    if not given.report:
        nodes = iter(range(1, NODES + 1))
        each = {name: [f"n{next(nodes)}" for _ in range(count)] for name, count in SITE.items()}
        lines = [f"PartitionName={name} Nodes={','.join(own)}" for name, own in each.items()]
        sites = [partition_jobs(seed, given.jobs, given.seconds) for seed in given.seeds]
        conf = [*DETAILS, *lines]
        with clusters(len(sites), NODES, conf) as confs, ThreadPoolExecutor() as pool:
            list(pool.map(submit, confs, sites))
            for seed, one, jobs in zip(given.seeds, confs, sites, strict=True):
                folder = given.out / str(seed)
                folder.mkdir(parents=True)
                for name in ("slurm.conf", "controller.log"):
                    (folder / name).write_bytes((one.parent / name).read_bytes())
                (folder / "sacct.txt").write_text(sacct(one.parent / "jobcomp.txt", jobs))
    head = ["site", "jobs", "real wait (s)", "twin (s)", "error (%)",
            f"starts within {CLOSE_S:g} s (%)"]  # fmt: skip
    print(_row(head), _row(["---"] * len(head)), sep="\n")
    for seed in given.seeds:
        folder = given.out / str(seed)
        records, twin = folder / "sacct.txt", folder / "twin.yaml"
        twin.write_text(twin_scenario(read_slurm_conf(folder / "slurm.conf"), records))
        runs = []
        for draw in range(1, 7):
            grid.run(twin, set=[f"seed={draw}"], out=folder / "run", force=True)
            runs.append(compare(folder / "run", records).rows)
        for rows in zip(*runs, strict=True):
            real, name = rows[0].real_wait_s, rows[0].jobs_of
            wait, close = (np.mean([row[at] for row in rows]) for at in (3, 4))
            means = f"{real:.1f}", f"{wait:.1f}", f"{100 * (wait / real - 1):+.1f}"
            print(_row([str(seed), name, *means, f"{100 * close:.1f}"]))


def sacct(completed: Path, jobs: Sequence[Submission]) -> str:
    """The records of completed jobs, as sacct prints them."""
    rows = ["JobID|User|Partition|Submit|Start|End|State|ReqCPUS|TimelimitRaw"]
    each = (dict(word.partition("=")[::2] for word in line.split())
            for line in completed.read_text().splitlines())  # fmt: skip
    for one in sorted(each, key=lambda one: int(one["JobId"])):
        job = jobs[int(one["JobId"]) - 1]
        times = one["SubmitTime"], one["StartTime"], one["EndTime"]
        cells = (one["JobId"], "user", job.partition, *times, one["JobState"])
        rows.append("|".join((*cells, str(job.cpus), str(job.limit_minutes))))
    return "\n".join(rows) + "\n"


class Planned(Starts):
    """Starts that also records when and on which nodes each job starts, by number."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.found: dict[int, tuple[float, list[int]]] = {}

    def add(self, slot: int, place: Placement, now: int) -> None:
        super().add(slot, place, now)
        self.reserve(slot, place)

    def reserve(self, slot: int, place: Placement) -> None:
        self.found[slot] = (place.start_us / SECOND_US, np.flatnonzero(place.cpus).tolist())


class Shadow:
    """The state of slurmctld as its log reports it, and the plans of the policy in that state."""

    def __init__(self, jobs: Sequence[Submission], partitions: Mapping[str, int]) -> None:
        count = len(jobs) + 1
        settings = SlurmSettings(bf_interval=1, bf_resolution=1, cpus_per_node=CPUS_OF_NODE)
        self._policy, machines = Slurm(settings), len(partitions)
        self.machines = SimpleNamespace(
            cpus=CPUS_OF_NODE * np.array([*partitions.values()]), mips=np.ones(machines),
            speed_order=np.arange(machines), resources=np.empty((0, machines)), shared=0,
            windows=np.empty((0, 5)),
        )  # fmt: skip
        self.jobs = SimpleNamespace(
            processors=np.array([0, *(job.cpus for job in jobs)]),
            estimate_us=60 * SECOND_US * np.array([1, *(job.limit_minutes for job in jobs)]),
            bound_machine=np.array([0, *([*partitions].index(job.partition) for job in jobs)]),
            resources=np.empty((0, count)), reference_mips=np.ones(count),
            start_us=np.zeros(count, np.int64), arrival_us=np.zeros(count, np.int64),
        )  # fmt: skip
        self.jobs.machine = self.jobs.bound_machine
        self.nodes = Nodes(self.machines, CPUS_OF_NODE)
        self.queue: list[int] = []

    def start(self, number: int, names: str, at_s: float) -> None:
        """A job has started on nodes such as n[1-3]."""
        here = np.isin(np.arange(len(self.nodes.cpus)), nodes_of(names))
        taken = placed(np.where(here, self.nodes.free, 0), int(self.jobs.processors[number]))
        self.nodes.run(number, taken, self.jobs)
        self.jobs.start_us[number] = int(at_s) * SECOND_US
        self.queue.remove(number)

    def plans(self, at_s: float) -> dict[int, tuple[float, list[int]]]:
        """The start and nodes of each job by an iteration of backfill at that time."""
        now = int(at_s) * SECOND_US
        view = SimpleNamespace(
            now=now, jobs=self.jobs, machines=self.machines, take=lambda *_: None,
            has_licenses=lambda *_: True, free=np.ones(len(self.machines.cpus)),
            free_resources=np.empty((0, len(self.machines.cpus))),
        )  # fmt: skip
        users, limits = dict.fromkeys(self.queue, 0), np.array([np.inf])
        starts = Planned(view, copy.deepcopy(self.nodes), Plan(), users, limits, limits.copy())
        self._policy.backfill(list(self.queue), starts, now)
        return starts.found


def nodes_of(names: str) -> list[int]:
    return [int(name[1:]) - 1 for name in expand(names)]


def same_plans(log: Path, shadow: Shadow) -> Iterator[bool]:
    """Of each job in each iteration of backfill in a log: whether the policy plans the same.

    That is the same nodes, and the same second: an iteration may begin just before one ends.
    """
    real: dict[int, tuple[float, list[int]]] = {}
    planned: dict[int, tuple[float, list[int]]] = {}
    for line in log.read_text(errors="replace").splitlines():
        time_of, _, text = line.removeprefix("[").partition("] ")
        if "_attempt_backfill: beginning" in text:
            real, planned = {}, shadow.plans(datetime.fromisoformat(time_of).timestamp())
        elif found := re.search(
            r"_dump_job_sched: JobId=(\d+) to start at (\S+), .* on nodes (\S+)", text
        ):
            real[int(found[1])] = (datetime.fromisoformat(found[2]).timestamp(), nodes_of(found[3]))
        elif found := re.search(
            r"(Started|Allocate) JobId=(\d+) (?:in \S+ on |NodeList=)(\S+)", text
        ):
            number, at_s = int(found[2]), datetime.fromisoformat(time_of).timestamp()
            shadow.start(number, found[3], at_s)
            if found[1] == "Started":
                real[number] = (int(at_s), nodes_of(found[3]))
        elif found := re.search(r"_slurm_rpc_submit_batch_job: JobId=(\d+)", text):
            shadow.queue.append(int(found[1]))
        elif found := re.search(r"_job_complete: JobId=(\d+) done", text):
            shadow.nodes.end(int(found[1]))
        elif "reached end of job queue" in text:
            for number, (start_s, nodes) in real.items():
                other_s, others = planned.get(number, (-1, []))
                yield nodes == others and abs(start_s - other_s) <= 1
            real = {}


def report_plans(given: argparse.Namespace) -> None:
    """Compare each backfill plan in the logs of `cluster` and `twin` with that of the policy."""
    for log in sorted(given.out.glob("**/*.log")):
        if log.name == "controller.log":
            jobs = partition_jobs(int(log.parent.name), given.jobs, given.seconds)
            shadow = Shadow(jobs, SITE)
        else:
            load, seed = map(float, log.stem.split("-"))
            shadow = Shadow(workload(load, int(seed), given.jobs, given.seconds), PARTITIONS)
        same = list(same_plans(log, shadow))
        print(f"{log}: {sum(same):,} of {len(same):,} plans are the same")


def validate_federation(given: argparse.Namespace) -> None:
    """Run the federation with real clusters and in virtual time; print both."""
    given.out.mkdir(parents=True)
    runs = []
    for seed in given.seeds:
        options = [*given.settings, f"seed={seed}"]
        virtual = grid.run(FEDERATION, set=options).metrics
        folder = given.out / str(seed)
        with clusters(3, NODES_OF_SITE) as confs:
            options += ["backend=slurm", f"folder={confs[0].parents[1]}"]
            command = [sys.executable, "-m", "grid", "run", str(FEDERATION), "--live"]
            command += ["--placement", "vo", "--out", str(folder)]
            with subprocess.Popen([*command, *(f"--set={one}" for one in options)]) as live:
                if given.kill:
                    kill_twice(confs[0], virtual["grid"]["makespan"])
            if live.returncode:
                sys.exit(live.returncode)
            starts = sum((count_starts(conf) for conf in confs), Counter())
        jobs = pyarrow.parquet.read_table(folder / "jobs.parquet")
        states = Counter(jobs["final_state"].to_pylist())
        again = sum(starts.values()) - len(starts)
        print(f"seed {seed}: {dict(states)}, {again} jobs started again")
        runs.append((json.loads((folder / "metrics.json").read_text()), virtual))
    report_federation(runs)


def kill_twice(conf: Path, seconds: float) -> None:
    """Kill slurmctld after a third and two thirds of the time, and start it again 5 s later."""
    saved = conf.parent / "state" / "job_state"
    start = time.monotonic()
    for part in (1, 2):
        time.sleep(max(0.0, start + part * seconds / 3.0 - time.monotonic()))
        before = saved.stat().st_mtime
        # What slurmctld has not saved is lost, and nodes that run such jobs are drained.
        while saved.stat().st_mtime == before:
            time.sleep(0.01)
        cluster = str(conf.parents[1]), conf.parent.name
        slurm("kill", *cluster)
        time.sleep(5.0)
        slurm("restart", *cluster)
        for node in call(conf, "sinfo", "--noheader", "--states=drain", "--format=%n").split():
            call(conf, "scontrol", "update", f"nodename={node}", "state=resume")


def count_starts(conf: Path) -> Counter[str]:
    """How often each job has started, by its name."""
    records = (conf.parent / "jobcomp.txt").read_text().splitlines()
    each = (dict(word.partition("=")[::2] for word in line.split()) for line in records)
    return Counter(one["Name"] for one in each if one["NodeList"] not in ("", "(null)"))


def report_federation(runs: Sequence[tuple[Any, Any]]) -> None:
    """Print the metrics of pairs of runs, with real clusters and in virtual time."""
    head = ["metric", "real clusters", "virtual time", "difference (%)"]
    print(_row(head), _row(["---"] * len(head)), sep="\n")
    for name, key, vo in (
        ("jobs forwarded", "jobs_forwarded", None),
        ("response time, mean (s)", "response_time_mean", None),
        *((f"utilization of {vo} (%)", "utilization", vo) for vo in runs[0][0]["vos"]),
    ):
        scale = 100.0 if vo else 1.0
        values = [
            [scale * (run["vos"][vo] if vo else run["grid"])[key] for run in pair] for pair in runs
        ]
        real, virtual = (mean_interval(one, 0.95) for one in zip(*values, strict=True))
        error = 100.0 * (virtual.mean / real.mean - 1.0)
        cells = (f"{one.mean:.1f} ± {one.mean - one.low:.1f}" for one in (real, virtual))
        print(_row([name, *cells, f"{error:+.1f}"]))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/slurm-validation")
    commands = parser.add_subparsers(required=True)
    for name, command in (
        ("cluster", validate_cluster), ("twin", validate_twin), ("plans", report_plans),
        ("federation", validate_federation),
    ):  # fmt: skip
        one = commands.add_parser(name, help=command.__doc__)
        one.add_argument("out", type=Path, metavar="OUT")
        one.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
        one.set_defaults(command=command, report=command is report_plans)
        if command is validate_federation:
            one.add_argument("--kill", action="store_true")
            one.add_argument("--set", dest="settings", action="append", default=[])
            continue
        is_twin = command is validate_twin
        one.add_argument("--jobs", type=int, default=240 if is_twin else 300)
        one.add_argument("--seconds", type=float, default=900.0 if is_twin else 1200.0)
        if command is not report_plans:
            one.add_argument("--report", action="store_true", help="of records that OUT has")
        if command is validate_cluster:
            one.add_argument("--loads", type=float, nargs="+", default=[0.6, 0.9])
    given = parser.parse_args()
    if given.out.exists() and not given.report:
        sys.exit(f"{given.out} exists")
    try:
        given.command(given)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)


if __name__ == "__main__":
    main()
