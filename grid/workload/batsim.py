"""Workloads (JSON) and platforms (SimGrid's XML) of Batsim: jobs with delays, hosts with speeds.

Batsim documents both under "Inputs". Profiles of type `delay` have a run time, and those of type
`parallel` and `parallel_homogeneous` the flops of each CPU, at 1 Gflop/s, which is a CPU of 1,000
MIPS. A sequence is the sum of its parts. Communication, MPI traces and storage are not modelled:
profiles that have them are errors. Links and routes of a platform are ignored, since no profile
that can be read communicates.
"""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from grid.model.errors import shorten
from grid.model.fields import REFERENCE_MIPS
from grid.model.platform import Machine
from grid.model.time import SECOND_US
from grid.workload.generators import GeneratorSettings
from grid.workload.lines import PROCESSOR_LIMIT, TIME_LIMIT_S, UNKNOWN, line_blocks, log_error
from grid.workload.logs import Log, SwfField

FLOPS = 1e9
"""Of a second on a CPU of `REFERENCE_MIPS`."""
_PARALLEL = ("parallel", "parallel_homogeneous", "ParallelProfile", "ParallelHomogeneousProfile")
_SEQUENCES = ("composed", "sequence", "SequentialCompositionProfile")
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_IGNORED = {
    "platform", "AS", "zone", "config", "prop", "link", "backbone", "router", "route", "ASroute",
    "zoneRoute", "bypassRoute", "link_ctn", "host_link", "host", "cluster",
}  # fmt: skip
"""Elements that are read, or that concern networks alone."""


def read_batsim(path: Path) -> Log:
    """The jobs of a workload in JSON. Raises InputError, with the place in the file as field."""
    try:
        read = json.loads(b"".join(line_blocks(path)))
    except (ValueError, RecursionError) as error:
        raise log_error(path, f"invalid JSON ({error})", "a workload of Batsim") from None
    profiles, jobs = (_get(path, read, key) for key in ("profiles", "jobs"))
    if not isinstance(jobs, list) or not jobs:
        raise log_error(path, shorten(jobs), "a list of jobs", field="jobs")
    rows = np.full((len(jobs), len(SwfField)), UNKNOWN)
    for place, job in enumerate(jobs):
        at = f"jobs.{place}"
        name = str(_get(path, job, "profile", at))
        rows[place, SwfField.SUBMIT_TIME] = _time_us(path, job, "subtime", at)
        rows[place, SwfField.RUN_TIME] = round(_delay_s(path, profiles, name) * SECOND_US)
        rows[place, SwfField.REQUESTED_PROCESSORS] = _cpus(path, job, at)
        if isinstance(job.get("walltime"), int | float) and job["walltime"] >= 0:
            rows[place, SwfField.REQUESTED_TIME] = _time_us(path, job, "walltime", at)
    names = [
        str(_get(path, job, "id", f"jobs.{n}")).rpartition("!")[2] for n, job in enumerate(jobs)
    ]
    are_numbers = all(name.isdecimal() and len(name) < 16 for name in names)
    rows[:, SwfField.JOB_NUMBER] = names if are_numbers else range(1, len(names) + 1)
    resources = read.get("nb_res")
    header = {"MaxProcs": str(resources)} if isinstance(resources, int) else {}
    return Log(path, rows, np.arange(1, len(rows) + 1), header)


def _get(path: Path, parent: Any, key: str, at: str = "") -> Any:
    if not isinstance(parent, Mapping) or key not in parent:
        raise log_error(path, shorten(parent), f"a {key}", field=at or key)
    return parent[key]


def _time_us(path: Path, job: Any, key: str, at: str) -> int:
    value = _get(path, job, key, at)
    if not isinstance(value, int | float) or not 0 <= value < TIME_LIMIT_S:
        raise log_error(path, shorten(value), "a time in seconds", field=f"{at}.{key}")
    return round(value * SECOND_US)


def _cpus(path: Path, job: Any, at: str) -> int:
    cpus = _get(path, job, "res", at)
    if not isinstance(cpus, int) or not 0 < cpus < PROCESSOR_LIMIT:
        raise log_error(path, shorten(cpus), "a number of CPUs", field=f"{at}.res")
    return cpus


def _delay_s(path: Path, profiles: Any, name: str, depth: int = 0) -> float:
    """The run time of a profile on CPUs of `REFERENCE_MIPS`."""
    at = f"profiles.{name}"
    profile = _get(path, profiles, name, at)
    kind = _get(path, profile, "type", at)
    if kind in ("delay", "DelayProfile"):
        return _time_us(path, profile, "delay", at) / SECOND_US
    if kind in _SEQUENCES and depth < 100:
        parts = [_delay_s(path, profiles, str(one), depth + 1) for one in profile.get("seq", ())]
        return float(profile.get("repeat", profile.get("nb", 1))) * sum(parts)
    if kind not in _PARALLEL:
        expected = "delay, parallel or parallel_homogeneous, or a sequence of these"
        raise log_error(path, f"a profile of type {kind}", expected, field=at)
    cpu, com = (np.ravel(np.array(profile.get(key, 0.0), float)) for key in ("cpu", "com"))
    if com.any():
        raise log_error(
            path, "communication, which is not modelled", "only zeros", field=f"{at}.com"
        )
    if not (np.isfinite(cpu).all() and len(cpu) and (cpu >= 0).all()):
        raise log_error(path, shorten(profile.get("cpu")), "flops of each CPU", field=f"{at}.cpu")
    return float(cpu.max()) / FLOPS


class BatsimMachines(GeneratorSettings):
    """Settings of the machines."""

    platform: str = Field(description="path of a SimGrid platform (XML)")


def batsim_machines(
    count: int, rng: np.random.Generator, settings: BatsimMachines
) -> tuple[Machine, ...]:
    """The hosts of a SimGrid platform, as Batsim uses them; the master host is none of them.

    Raises InputError for a file that is not a platform, and for what is not modelled.
    """
    del rng
    path = Path(settings.platform)
    try:
        root = ET.fromstring(b"".join(line_blocks(path)))
    except ET.ParseError as error:
        raise log_error(path, f"invalid XML ({error})", "a platform of SimGrid") from None
    found: list[Machine] = []
    for element in root.iter():
        if element.tag not in _IGNORED:
            raise log_error(path, f"<{element.tag}>, which is not modelled", "hosts and networks")
        if element.tag == "cluster":
            for number in _radical(path, element.get("radical", "")):
                name = f"{element.get('prefix', '')}{number}{element.get('suffix', '')}"
                found.append(_machine(path, element, name))
        elif element.tag == "host" and not _is_master(element):
            found.append(_machine(path, element, element.get("id", "")))
    if len(found) != count:
        raise log_error(path, f"{len(found)} hosts", f"{count}, the `count` of the machines")
    return tuple(found)


def _is_master(host: ET.Element) -> bool:
    roles = [one.get("value", "") for one in host.iter("prop") if one.get("id") == "role"]
    return host.get("id") == "master_host" or "master" in roles


def _machine(path: Path, element: ET.Element, name: str) -> Machine:
    """The machine of a host, at the speed of its first power state."""
    text = element.get("speed", element.get("power", "")).split(",")[0].strip()
    speed = re.fullmatch(r"([0-9.eE+]+)([kMGTP]?)f?", text)
    cores = element.get("core", "1")
    if not speed or not cores.isdecimal() or not math.isfinite(float(speed[1])):
        raise log_error(path, f"speed {text!r}, core {cores!r}", "such as 100Mf and 4", field=name)
    mips = float(speed[1]) * _UNITS[speed[2]] / FLOPS * REFERENCE_MIPS
    return Machine(name, int(cores), mips)


def _radical(path: Path, text: str) -> list[int]:
    """The numbers of intervals such as "0-3,7"."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise log_error(path, f"radical {text!r}", "intervals such as 0-3,7")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
