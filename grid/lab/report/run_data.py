"""The folder of a run, read for a report."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from grid.config.text_file import read_mapping, read_text, reason
from grid.model.arrays import Floats, Ints
from grid.model.errors import input_error
from grid.results.tables import CPUS

EXPECTED = "a file that a run wrote"
MAX_BYTES = 1 << 26
UNITS = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "s"))


@dataclass(frozen=True)
class RunData:
    """The files of a run: manifest and metrics, jobs and series, the scenario as text."""

    manifest: dict[str, Any]
    metrics: dict[str, Any]
    scenario: str
    jobs: pa.Table
    series: pa.Table

    @cached_property
    def vos(self) -> list[str]:
        return list(self.metrics["vos"])

    @cached_property
    def meanings(self) -> dict[str, str]:
        given = self.manifest.get("meanings")
        given = given if isinstance(given, dict) else {}
        return {name: text for name, text in given.items() if isinstance(text, str)}

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
        """How many jobs of each VO (rows) were executed by each (columns)."""
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
        """VO/NAME of each cluster; only the VO if each VO has one cluster."""
        is_one_each = len(self.clusters) == len(self.vos)
        return [vo if is_one_each else f"{vo}/{name}" for vo, name in self.clusters]

    @cached_property
    def cluster_cpus(self) -> list[int]:
        """CPUs of each cluster. Raises ValueError if the series are of other clusters."""
        cpus = [int(one) for one in json.loads(self.series.schema.metadata[CPUS.encode()])]
        if len(cpus) != len(self.clusters):
            raise ValueError("CPUs of other clusters")
        return cpus

    @cached_property
    def time_unit(self) -> tuple[float, str]:
        """The seconds and the name of the unit of times: the run has at least three of them."""
        times = self.series["time_s"].to_numpy()
        length_s = float(times.max() - times.min()) if len(times) else 0.0
        return next((one for one in UNITS if length_s >= 3 * one[0]), UNITS[-1])


def read_run(folder: Path) -> RunData:
    """The run in `folder`. Raises InputError if a file is missing or broken."""
    return RunData(
        read_mapping(folder / "manifest.json", MAX_BYTES, EXPECTED),
        read_metrics(folder / "metrics.json"),
        read_text(folder / "scenario.yaml", MAX_BYTES, EXPECTED),
        _table(folder / "jobs.parquet"),
        _table(folder / "series.parquet"),
    )


def read_metrics(path: Path) -> dict[str, Any]:
    """The metrics of a run. Raises InputError."""
    metrics = read_mapping(path, MAX_BYTES, EXPECTED)
    whole, vos = metrics.get("grid"), metrics.get("vos")
    scopes = [whole, *vos.values()] if isinstance(vos, dict) else [None]
    if not vos or not all(isinstance(scope, dict) for scope in scopes):
        raise input_error("", "no metrics of VOs", EXPECTED, str(path))
    return metrics


def _table(path: Path) -> pa.Table:
    try:
        if not path.is_file():
            raise ValueError("no such file")
        return pyarrow.parquet.read_table(path)
    except pa.ArrowException:
        found = "a corrupt file"
    except (OSError, ValueError) as error:
        found = reason(error)
    raise input_error("", found, EXPECTED, str(path))
