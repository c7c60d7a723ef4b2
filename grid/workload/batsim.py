"""Workloads (JSON) and platforms (SimGrid's XML) of Batsim: jobs with delays, hosts with speeds.

Batsim documents both under "Inputs". Profiles of type `delay` have a run time, and those of type
`parallel` and `parallel_homogeneous` the flops of each CPU, at 1 Gflop/s, which is a CPU of 1,000
MIPS. A sequence is the sum of its parts. Communication, MPI traces and storage are not modelled:
profiles that have them are errors. Links and routes of a platform are ignored, since no profile
that can be read communicates.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from grid.model.errors import shorten
from grid.model.fields import REFERENCE_MIPS
from grid.model.platform import Machine
from grid.model.time import SECOND_US
from grid.workload.generators import GeneratorSettings
from grid.workload.lines import read_json, read_whole
from grid.workload.logs import PROCESSOR_LIMIT, TIME_LIMIT_S, UNKNOWN, Log, SwfField, log_error

FLOPS = 1e9
"""Of a second on a CPU of `REFERENCE_MIPS`."""
MOST_DEPTH = 100
"""Of sequences in sequences."""
_DELAYS = ("delay", "DelayProfile")
_PARALLEL = ("parallel", "parallel_homogeneous", "ParallelProfile", "ParallelHomogeneousProfile")
_SEQUENCES = ("composed", "sequence", "SequentialCompositionProfile")
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_IGNORED = {
    "platform", "AS", "zone", "config", "prop", "link", "backbone", "router", "route", "ASroute",
    "zoneRoute", "bypassRoute", "link_ctn", "host_link", "host", "cluster",
}  # fmt: skip
"""Elements that are read, or that concern networks alone."""


class _Job(BaseModel):
    id: int | str
    subtime: float = Field(ge=0, lt=TIME_LIMIT_S)
    res: int = Field(ge=1, lt=PROCESSOR_LIMIT)
    profile: str
    walltime: float = Field(default=-1.0, lt=TIME_LIMIT_S)


class _Workload(BaseModel):
    jobs: list[_Job] = Field(min_length=1)
    profiles: dict[str, dict[str, Any]]
    nb_res: int | None = None


def read_batsim(path: Path, text: bytes) -> Log:
    """The jobs of a workload in JSON. Raises InputError, with the place in the file as field."""
    read = read_json(path, text, _Workload)
    rows = np.full((len(read.jobs), len(SwfField)), UNKNOWN)
    for row, job in zip(rows, read.jobs, strict=True):
        row[SwfField.SUBMIT_TIME] = round(job.subtime * SECOND_US)
        row[SwfField.RUN_TIME] = round(_delay_s(path, read.profiles, job.profile) * SECOND_US)
        row[SwfField.REQUESTED_PROCESSORS] = job.res
        if job.walltime >= 0:
            row[SwfField.REQUESTED_TIME] = round(job.walltime * SECOND_US)
    names = [str(job.id).rpartition("!")[2] for job in read.jobs]
    are_numbers = all(name.isdecimal() and len(name) < 16 for name in names)
    rows[:, SwfField.JOB_NUMBER] = names if are_numbers else range(1, len(names) + 1)
    header = {} if read.nb_res is None else {"MaxProcs": str(read.nb_res)}
    return Log(path, rows, np.arange(1, len(rows) + 1), header)


def _delay_s(
    path: Path, profiles: Mapping[str, Mapping[str, Any]], name: str, depth: int = 0
) -> float:
    """The run time of a profile on CPUs of `REFERENCE_MIPS`."""
    at, profile = f"profiles.{name}", profiles.get(name, {})
    kind = profile.get("type")
    try:
        if kind in _DELAYS:
            return min(float(profile["delay"]), TIME_LIMIT_S - 1.0)
        if kind in _SEQUENCES and depth < MOST_DEPTH:
            parts = [_delay_s(path, profiles, str(one), depth + 1) for one in profile["seq"]]
            return float(profile.get("repeat", profile.get("nb", 1))) * sum(parts)
        if kind in _PARALLEL:
            cpu, com = (np.ravel(np.array(profile.get(key, 0.0), float)) for key in ("cpu", "com"))
            if com.any():
                raise log_error(path, "communication", "none, since it is not modelled", field=at)
            return min(float(cpu.max()) / FLOPS, TIME_LIMIT_S - 1.0)
    except (KeyError, TypeError, ValueError):
        raise log_error(path, shorten(dict(profile)), f"the keys of a {kind}", field=at) from None
    expects = "delay, parallel or parallel_homogeneous, or a sequence of these"
    raise log_error(path, f"a profile of type {kind}", expects, field=at)


class BatsimMachines(GeneratorSettings):
    """Settings of the machines."""

    platform: str = Field(description="path of a SimGrid platform (XML)")


def batsim_machines(
    count: int, rng: np.random.Generator, settings: BatsimMachines
) -> tuple[Machine, ...]:
    """The hosts of a SimGrid platform, as Batsim uses them, without the master host.

    Raises InputError if the file is not a platform or has elements that are not modelled.
    """
    del rng
    path = Path(settings.platform)
    try:
        root = ET.fromstring(read_whole(path))
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
        raise log_error(
            path, f"speed {text!r}, core {cores!r}", "values such as 100Mf and 4", field=name
        )
    mips = float(speed[1]) * _UNITS[speed[2]] / FLOPS * REFERENCE_MIPS
    return Machine(name, int(cores), mips)


def _radical(path: Path, text: str) -> list[int]:
    """The numbers of intervals such as "0-3,7"."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise log_error(path, f"radical {text!r}", "intervals like 0-3,7")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
