"""The twin of a site: a scenario from its slurm.conf and sacct records, and how close a run is.

`grid init twin` writes the scenario, `grid twin compare` compares a run of it with the records.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml  # type: ignore[import-untyped]

from grid.integrations.export.schedule import read_schedule
from grid.model.arrays import Bools, Floats, Ints
from grid.model.errors import input_error, shorten
from grid.model.time import SECOND_US
from grid.policies.slurm import SlurmSettings
from grid.results.run_folder import earlier_run
from grid.workload.jobs import processors_of
from grid.workload.logs import Log, SwfField, log_error
from grid.workload.sacct import read_sacct

SIZES = (
    ("1 CPU", 1, 1), ("2 to 4 CPUs", 2, 4), ("5 to 16 CPUs", 5, 16), ("17 to 64 CPUs", 17, 64),
    ("over 64 CPUs", 65, 10**9),
)  # fmt: skip
"""Classes of jobs by CPUs: name, least, most."""
CLOSE_S = 5.0
STEPS = 400
"""The most points of a curve."""
_PRIORITY = {
    "PriorityWeightAge": "age_weight",
    "PriorityWeightFairshare": "fair_share_weight",
    "PriorityWeightJobSize": "job_size_weight",
    "PriorityMaxAge": "max_age_s",
    "PriorityDecayHalfLife": "half_life_s",
    "PriorityCalcPeriod": "calc_period_s",
}
_GRES = re.compile(r"(?:^|,)([^:,(]+)(?::[^:,(]*[^:,(\d][^:,(]*)?(?::(\d+))?(?:\([^)]*\))?(?=,|$)")
"""Name and amount of gpu, gpu:2 and gpu:a100:2(S:0)."""
_SECONDS = {"max_age_s": 1, "half_life_s": 1, "calc_period_s": 60}
"""Settings that are times, and the seconds of their unit if only a number is given."""


@dataclass
class SlurmConf:
    """Nodes, partitions and scheduling of slurm.conf."""

    cpus: dict[str, int] = field(default_factory=dict)
    """CPUs of each node."""
    gres: dict[str, Counter[str]] = field(default_factory=dict)
    """Amounts of generic resources of each node, by name."""
    partitions: dict[str, list[str]] = field(default_factory=dict)
    """The nodes of each partition."""
    scheduling: dict[str, Any] = field(default_factory=dict)
    """Settings of the policy `slurm`."""
    ignored: list[str] = field(default_factory=list)
    """Parameters of scheduling that the policy does not have."""

    def pools(self) -> Iterator[tuple[list[str], list[str]]]:
        """The names of partitions that share nodes, with the names of these."""
        left = dict(self.partitions)
        while left:
            pool = [next(iter(left))]
            nodes = dict.fromkeys(left.pop(pool[0]))
            while sharing := [one for one in left if nodes.keys() & left[one]]:
                pool += sharing
                nodes |= dict.fromkeys(node for one in sharing for node in left.pop(one))
            yield pool, list(nodes)


def read_slurm_conf(path: Path) -> SlurmConf:
    """Nodes, partitions and scheduling of a slurm.conf. Raises InputError with the line."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise input_error("", error.strerror or "an error", "a slurm.conf", str(path)) from error
    conf = SlurmConf()
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    number = 0
    for joined in text.replace("\\\n", "\0").splitlines():
        number += 1 + joined.count("\0")
        line = joined.replace("\0", " ")
        given = re.findall(r'[^\s="]+=(?:"[^"]*"|\S*)', line.partition("#")[0])
        words = (word.partition("=") for word in given)
        pairs = {key.lower(): value.strip('"') for key, _, value in words}
        if not pairs:
            continue
        kind = next(iter(pairs))
        if kind in defaults and pairs[kind].upper() == "DEFAULT":
            defaults[kind] |= pairs
            continue
        try:
            if kind == "nodename":
                _add_nodes(conf, {**defaults[kind], **pairs})
            elif kind == "partitionname":
                _add_partition(conf, {**defaults[kind], **pairs})
            else:
                _add_scheduling(conf, line)
        except ValueError as error:
            found, expected = error.args
            raise log_error(path, shorten(found), expected, number) from error
    if not conf.partitions or not conf.cpus:
        raise input_error("", "no nodes or partitions", "NodeName and PartitionName", str(path))
    return conf


def _add_nodes(conf: SlurmConf, pairs: Mapping[str, str]) -> None:
    if "cpus" in pairs:
        cpus = _whole(pairs["cpus"])
    else:
        sizes = "boards", "socketsperboard", "sockets", "corespersocket", "threadspercore"
        cpus = math.prod(_whole(pairs.get(size, "1")) for size in sizes)
    for node in expand(pairs["nodename"]):
        conf.cpus[node] = cpus
        if "gres" in pairs:
            conf.gres[node] = Counter()
            for name, amount in _GRES.findall(pairs["gres"]):
                conf.gres[node][name] += int(amount or 1)


def _add_partition(conf: SlurmConf, pairs: Mapping[str, str]) -> None:
    nodes = pairs.get("nodes", "")
    named = list(conf.cpus) if nodes.upper() == "ALL" else expand(nodes)
    unknown = [node for node in named if node not in conf.cpus]
    if unknown:
        raise ValueError(unknown[0], "nodes defined by an earlier NodeName")
    conf.partitions[pairs["partitionname"]] = named


def _add_scheduling(conf: SlurmConf, line: str) -> None:
    key, _, value = line.partition("#")[0].strip().partition("=")
    key, value = key.strip(), value.strip()
    if key == "SchedulerParameters":
        for one in value.split(","):
            name, _, amount = one.partition("=")
            if name in SlurmSettings.model_fields:
                conf.scheduling[name] = _whole(amount)
            elif name:
                conf.ignored.append(one)
    elif key in _PRIORITY:
        name = _PRIORITY[key]
        unit = _SECONDS.get(name)
        conf.scheduling[name] = float(_whole(value) if unit is None else _seconds(value, unit))
    elif key == "PriorityFavorSmall":
        conf.scheduling["favor_small"] = value.upper() in ("YES", "1", "TRUE")
    elif key == "PriorityFlags" and "NO_FAIR_TREE" in value.upper():
        conf.scheduling["algorithm"] = "classic"


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise ValueError(text, "an integer")
    return int(text)


def _seconds(text: str, unit: int) -> int:
    """The seconds of a time such as 5, 10:00:00, 7-0 or 7-00:00:00."""
    days, dash, rest = text.partition("-")
    if not dash:
        if ":" not in text:
            return _whole(text) * unit
        days, rest = "0", text
    hours, minutes, seconds = [*map(_whole, rest.split(":")), 0, 0][:3]
    return 86_400 * _whole(days) + 3600 * hours + 60 * minutes + seconds


def expand(names: str) -> list[str]:
    """The names of a list such as n[1-3,07],login."""
    found: list[str] = []
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", names):
        head, bracket, rest = name.partition("[")
        if not bracket:
            found.append(name)
            continue
        inner, _, tail = rest.partition("]")
        for part in inner.split(","):
            low, dash, high = part.partition("-")
            last = _whole(high) if dash else _whole(low)
            found += [
                one
                for number in range(_whole(low), last + 1)
                for one in expand(f"{head}{number:0{len(low)}d}{tail}")
            ]
    return found


def twin_scenario(conf: SlurmConf, records: Path, name: str = "twin") -> str:
    """The scenario in YAML: a cluster with a machine for each pool of nodes, and its jobs.

    Raises InputError if the records have other partitions.
    """
    log = read_sacct(records)
    numbers = _partition_numbers(log)
    unknown = [one for one in numbers if one not in conf.partitions]
    if unknown:
        expected = f"partitions of slurm.conf: {', '.join(conf.partitions)}"
        raise input_error("Partition", unknown[0], expected, str(records))
    pools = list(conf.pools())
    machines: list[dict[str, Any]] = []
    for names, nodes in pools:
        cpus = sum(conf.cpus[node] for node in nodes)
        machines.append({"name": re.sub(r"[^A-Za-z0-9_-]", "-", "-".join(names)), "cpus": cpus})
        if gres := sum((conf.gres.get(node, Counter()) for node in nodes), Counter[str]()):
            machines[-1]["resources"] = dict(gres)
    workload: dict[str, Any] = {
        "trace": str(records.resolve()), "entry_point": "cluster",
        "shift_s": datetime.strptime(log.header["StartTime"], "%a %b %d %H:%M:%S %Y").second,
        "attributes": {"resolution_s": 1},
    }  # fmt: skip
    known = {name for machine in machines for name in machine.get("resources", ())}
    if held := sorted(known & log.gres.keys()):
        workload["gres"] = held
    settings = {"cpus_per_node": statistics.mode(conf.cpus.values()), **conf.scheduling}
    cluster: dict[str, Any] = {
        "name": "nodes", "machines": machines, "policy": {"name": "slurm", "settings": settings},
    }  # fmt: skip
    if numbers and len(pools) > 1:
        cluster["resource"] = "machine"
        workload["route"] = "partition"
        workload["bound_machines"] = {
            numbers[one]: machine
            for machine, (names, _) in enumerate(pools)
            for one in names
            if one in numbers
        }
    lines = [
        "# The twin of a site, made from its slurm.conf and the records of sacct.",
        "#",
        "# Partitions that share nodes are one machine with all their CPUs and GRES.",
        "# Times of sacct are truncated to seconds: each seed draws different fractions.",
        "# Time 0 is a full minute, since backfill rounds job end times to half minutes.",
    ]
    if conf.ignored:
        lines.append(f"# Not modelled, SchedulerParameters: {', '.join(conf.ignored)}")
    vo = {"name": "site", "clusters": [cluster], "workload": workload}
    text: str = yaml.safe_dump({"name": name, "seed": 1, "vos": [vo]}, sort_keys=False, width=100)
    return "\n".join(lines) + "\n" + text


def _partition_numbers(log: Log) -> dict[str, int]:
    """The number of each partition in the log."""
    lines = log.header.get("Partition", "").splitlines()
    each = (line.partition(" ") for line in lines if line)
    return {name: int(number) for number, _, name in each}


# Comparison


class Row(NamedTuple):
    """Some jobs of both: waits in seconds, and the share of starts within CLOSE_S."""

    jobs_of: str
    jobs: int
    real_wait_s: float
    twin_wait_s: float
    close: float

    @property
    def error(self) -> float:
        """Of the mean wait, relative to the real one; nan if that is 0."""
        return self.twin_wait_s / self.real_wait_s - 1 if self.real_wait_s else float("nan")


class Comparison(NamedTuple):
    """A run next to the records of the site, over the jobs that started in both."""

    rows: tuple[Row, ...]
    real_wait_s: Floats
    """Of each job, shape (jobs,)."""
    twin_wait_s: Floats
    real_utilization: float
    twin_utilization: float
    only_real: int
    only_twin: int
    times_s: Floats
    real_queue: Ints
    twin_queue: Ints


def compare(run: Path, records: Path) -> Comparison:
    """Compare a run of the twin with the records. Raises InputError."""
    log, twin, manifest = read_sacct(records), read_schedule(run), earlier_run(run)
    has_run = (log[SwfField.WAIT_TIME] >= 0) & (log[SwfField.RUN_TIME] > 0)
    real, jobs = log.columns[has_run], twin.jobs.take(twin.ran)
    numbers = real[:, SwfField.JOB_NUMBER]
    _, at_real, at_twin = np.intersect1d(numbers, jobs.number, return_indices=True)
    if manifest is None or not len(at_real):
        raise input_error("", "no job from the records", "a run of the twin", str(run))
    only_real, only_twin = len(real) - len(at_real), len(jobs) - len(at_twin)
    real, jobs = real[at_real], jobs.take(at_twin)
    submit, run_us = real[:, SwfField.SUBMIT_TIME], real[:, SwfField.RUN_TIME]
    cpus, partition = processors_of(real, "requested"), real[:, SwfField.PARTITION]
    waits = real[:, SwfField.WAIT_TIME], jobs.outcome.start_us - jobs.submit_us
    is_close = np.abs(waits[0] - waits[1]) <= CLOSE_S * SECOND_US

    def row(name: str, of: Bools) -> Row:
        here, there = (float(wait[of].mean()) / SECOND_US for wait in waits)
        return Row(name, int(of.sum()), here, there, float(is_close[of].mean()))

    groups = [("all jobs", np.ones(len(cpus), np.bool_))]
    groups += [
        (f"partition {name}", partition == number)
        for name, number in _partition_numbers(log).items()
    ]
    groups += [(name, (cpus >= low) & (cpus <= high)) for name, low, high in SIZES]
    # Time 0 is the first submission in the records, and a full minute in the twin.
    later_us = (int(jobs.submit_us.min()) - int(submit.min())) // SECOND_US * SECOND_US
    submits = submit, jobs.submit_us - later_us
    starts = submit + waits[0], jobs.outcome.start_us - later_us
    ends = [int((start + run_us).max()) for start in starts]
    times = np.linspace(int(submit.min()), max(ends), STEPS)
    work = int((run_us * cpus).sum()) / manifest["cpus"]
    used = [work / (end - int(submit.min())) for end in ends]
    queues = [
        np.searchsorted(np.sort(came), times, "right")
        - np.searchsorted(np.sort(began), times, "right")
        for came, began in zip(submits, starts, strict=True)
    ]
    return Comparison(
        tuple(row(name, of) for name, of in groups if of.any()),
        waits[0] / SECOND_US, waits[1] / SECOND_US, used[0], used[1], only_real, only_twin,
        times / SECOND_US, queues[0], queues[1],
    )  # fmt: skip


def lines_of(found: Comparison) -> Sequence[Sequence[str]]:
    """The rows of a table: jobs, number, real and emulated mean wait, error, close starts."""
    head = ["jobs", "number", "real wait (s)", "twin wait (s)", "error (%)",
            f"within {CLOSE_S:g} s (%)"]  # fmt: skip
    rows = [
        [one.jobs_of, f"{one.jobs:,}", f"{one.real_wait_s:,.1f}", f"{one.twin_wait_s:,.1f}",
         f"{100 * one.error:+.1f}", f"{100 * one.close:.1f}"]
        for one in found.rows
    ]  # fmt: skip
    return [head, *rows]


def queue_svg(found: Comparison) -> bytes:
    """The number of waiting jobs over time, real and emulated, as SVG."""
    from grid.lab.report.charts import series, time_axis
    from grid.lab.report.picture import Picture

    names = ("real", "twin")
    hours = (found.times_s / 3600).tolist()
    columns = {
        "time": hours * 2,
        "value": [*found.real_queue.tolist(), *found.twin_queue.tolist()],
        "series": [name for name in names for _ in hours],
    }
    y = {"field": "value", "type": "quantitative", "title": "waiting jobs"}
    specification = {
        "data": {"name": "queue"}, "width": "container", "height": 240,
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {"x": time_axis("time", "hours"), "y": y, **series(names, "strokeDash")},
    }  # fmt: skip
    return Picture("queue", "Waiting jobs.", specification, {"queue": columns}).svg
