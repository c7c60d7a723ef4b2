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

from grid.model.arrays import Floats, Ints
from grid.model.errors import InputError, Mistake


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


def is_run(folder: Path) -> bool:
    """Did a run leave this folder behind?"""
    return (folder / "manifest.json").is_file()


def read_run(folder: Path) -> RunData:
    """The run in `folder`. Raises InputError where a part of it is missing or broken."""
    file = folder
    try:
        texts = {}
        for name in ("manifest", "metrics"):
            file = folder / f"{name}.json"
            texts[name] = json.loads(file.read_text(encoding="utf-8"))
        file = folder / "scenario.yaml"
        scenario = file.read_text(encoding="utf-8")
        tables = {}
        for name in ("jobs", "series"):
            file = folder / f"{name}.parquet"
            tables[name] = pyarrow.parquet.read_table(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        found = (isinstance(error, OSError) and error.strerror) or "a broken file"
        raise InputError([Mistake(str(file), None, "", found, "a file of a run")]) from None
    return RunData(texts["manifest"], texts["metrics"], scenario, tables["jobs"], tables["series"])
