"""The folder of a run, read for a report."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import yaml  # type: ignore[import-untyped]

from grid.config.text_file import read_mapping, read_text, reason, refuse_no_file
from grid.lab.report.axes import time_unit
from grid.lab.report.labels import shown
from grid.model.arrays import Floats, Ints
from grid.model.errors import ErrorLine, InputError
from grid.results.tables import CPUS

EXPECTED = "a file of a run"
MAX_BYTES = 1 << 26
MOST_PARSED = 1 << 21
"""A scenario of more letters is not read for the sake of a sentence: it takes seconds."""
_LEAVES = re.compile(r"^ *leaves_s: ", re.MULTILINE)
_JOINS = re.compile(r"^ *joins_s: (?!0\.0$)", re.MULTILINE)
LEAST_BYTES, MOST_TIMES_PACKED = 1 << 20, 100
"""Tables of equal rows are packed well, but no table of a run so well as to fill the memory."""


@dataclass(frozen=True)
class RunData:
    """What a run left behind: two texts as data, two tables, the scenario as text."""

    manifest: dict[str, Any]
    metrics: dict[str, Any]
    scenario: str
    jobs: pa.Table
    series: pa.Table

    @cached_property
    def vos(self) -> list[str]:
        """The names of the VOs, in the scenario's order."""
        return list(self.metrics["vos"])

    @cached_property
    def meanings(self) -> dict[str, str]:
        """What metrics that were plugged in mean, as far as it is known."""
        given = self.manifest.get("meanings")
        given = given if isinstance(given, dict) else {}
        return {name: text for name, text in given.items() if isinstance(text, str)}

    @cached_property
    def places(self) -> dict[str, int]:
        """What the jobs of each VO are called, with the place of its colour in all charts."""
        return {f"jobs of {vo}": place for place, vo in enumerate(self.vos)}

    @cached_property
    def part_time(self) -> list[str]:
        """The VOs that are in the grid for a part of the time, with when that is."""
        told = _LEAVES.search(self.scenario) or _JOINS.search(self.scenario)
        if told is None or len(self.scenario) > MOST_PARSED:
            return []
        found = []
        # Somebody may have changed the file.
        with suppress(
            yaml.YAMLError, AttributeError, KeyError, RecursionError, TypeError, ValueError
        ):
            scenario = yaml.load(self.scenario, Loader=yaml.CSafeLoader)
            for vo in scenario["vos"]:
                joins_s, leaves_s = vo["joins_s"], vo.get("leaves_s")
                since = f" from {shown(joins_s)} s on" if joins_s else ""
                until = "" if leaves_s is None else f" until {shown(leaves_s)} s"
                if since or until:
                    found.append(f"{vo['name']}{since}{until}")
        return found

    def column(self, name: str) -> Floats:
        """A column of jobs as floats, nulls as NaN."""
        column = pyarrow.compute.cast(self.jobs[name], pa.float64())
        values: Floats = column.to_numpy(zero_copy_only=False)
        return values

    def positions(self, name: str, of: list[str]) -> Ints:
        """A column of names as positions in `of`; -1 for null."""
        values = pyarrow.compute.cast(self.jobs[name], pa.string())
        found = pyarrow.compute.index_in(values, pa.array(of, pa.string()))
        positions: Ints = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return positions

    @cached_property
    def moved(self) -> Floats:
        """How many jobs of each VO (rows) ran in each (columns)."""
        owner, executed = self.positions("vo", self.vos), self.positions("executed_vo", self.vos)
        moved = np.zeros((len(self.vos), len(self.vos)))
        np.add.at(moved, (owner[executed >= 0], executed[executed >= 0]), 1)
        return moved

    @cached_property
    def clusters(self) -> list[tuple[str, str]]:
        """The clusters as (VO, name), in the scenario's order."""
        pairs = zip(self.series["vo"].to_pylist(), self.series["cluster"].to_pylist(), strict=True)
        return list(dict.fromkeys(pairs))

    @cached_property
    def cluster_titles(self) -> list[str]:
        """What the clusters are called: as their VOs, where each of these has one."""
        is_one_each = len(self.clusters) == len(self.vos)
        return [vo if is_one_each else f"{vo}/{name}" for vo, name in self.clusters]

    @cached_property
    def cluster_cpus(self) -> list[int | None]:
        """CPUs of each cluster; None where an old run's folder does not tell, for none was busy."""
        with suppress(KeyError, RecursionError, TypeError, ValueError):
            told = list(map(int, json.loads(self.series.schema.metadata[CPUS.encode()])))
            if len(told) == len(self.clusters):
                return [*told]
        shape = len(self.clusters), -1
        busy, use = (
            self.series[name].to_numpy(zero_copy_only=False).reshape(shape)
            for name in ("busy_cpus", "utilization")
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            every = busy / use
        return [
            round(float(np.nanmedian(one))) if np.isfinite(one).any() else None for one in every
        ]

    @cached_property
    def time_unit(self) -> tuple[float, str]:
        """The seconds and the name of the unit in which times of this run are told."""
        times = self.series["time_s"].to_numpy()
        return time_unit(float(times.max() - times.min()) if len(times) else 0.0)


def is_run(folder: Path) -> bool:
    """Did a run leave this folder behind?"""
    return (folder / "manifest.json").is_file()


def read_run(folder: Path) -> RunData:
    """The run in `folder`. Raises InputError where a part of it is missing or broken."""
    return RunData(
        read_mapping(folder / "manifest.json", MAX_BYTES, EXPECTED),
        read_metrics(folder / "metrics.json"),
        read_text(folder / "scenario.yaml", MAX_BYTES, EXPECTED),
        _table(folder / "jobs.parquet"),
        _table(folder / "series.parquet"),
    )


def read_metrics(path: Path) -> dict[str, Any]:
    """The figures of a run. Raises InputError."""
    metrics = read_mapping(path, MAX_BYTES, EXPECTED)
    whole, vos = metrics.get("grid"), metrics.get("vos")
    scopes = [whole, *vos.values()] if isinstance(vos, dict) else [None]
    if not vos or not all(isinstance(scope, dict) for scope in scopes):
        raise InputError([ErrorLine(str(path), None, "", "no figures of VOs", EXPECTED)])
    return metrics


def _table(path: Path) -> pa.Table:
    try:
        refuse_no_file(path)
        metadata = pyarrow.parquet.read_metadata(path)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        most = LEAST_BYTES + MOST_TIMES_PACKED * path.stat().st_size
        if sum(group.total_byte_size for group in groups) > most:
            raise ValueError("a file that unpacks to much more than it is")
        if metadata.num_rows > most:
            raise ValueError(f"{metadata.num_rows} rows")
        return pyarrow.parquet.read_table(path)
    except pa.ArrowException:
        found = "a broken file"
    except (OSError, ValueError) as error:
        found = reason(error)
    raise InputError([ErrorLine(str(path), None, "", found, EXPECTED)])
