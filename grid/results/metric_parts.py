"""Metrics that others plug in: of a job, of a VO, of a cluster over time.

Each is a function of the table of jobs and the directory of the grid, with its settings by
keyword. What it gives goes where the emulator's own figures are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job_results import JobResults
from grid.parts.kind import Kind
from grid.parts.origin import Origin, ask
from grid.results.directory import Directory
from grid.results.metrics import Metrics
from grid.results.series import edges_of


class JobMetric:
    """A metric of a job: a number for each row of the table, NaN where there is none."""

    def __init__(self, origin: Origin, function: Any) -> None:
        self.origin = origin
        self._function = function

    def __call__(self, results: JobResults, directory: Directory) -> Floats:
        def check(column: Any) -> str | None:
            return _column_problem(column, len(results), "jobs")

        column = ask(self.origin, "its metric", self._function, check, results, directory)
        return np.asarray(column, np.float64)


class VoMetric:
    """A metric of a VO: a number, or None, of a table that has the jobs of its users only."""

    def __init__(self, origin: Origin, function: Any) -> None:
        self.origin = origin
        self._function = function

    def __call__(self, results: JobResults, directory: Directory) -> float | None:
        answer = ask(self.origin, "its metric", self._function, _figure_problem, results, directory)
        return None if answer is None else float(answer)


class ClusterMetric:
    """A metric of a cluster over time: a number for each interval between two of the `edges_us`."""

    def __init__(self, origin: Origin, function: Any) -> None:
        self.origin = origin
        self._function = function

    def __call__(
        self, results: JobResults, directory: Directory, cluster: int, edges_us: Ints
    ) -> Floats:
        def check(column: Any) -> str | None:
            return _column_problem(column, len(edges_us) - 1, "intervals")

        given = (results, directory, cluster, edges_us)
        return np.asarray(ask(self.origin, "its metric", self._function, check, *given), np.float64)


def _column_problem(column: Any, rows: int, of: str) -> str | None:
    expected = f"expected an array of {rows} numbers, one for each of the {of}"
    try:
        shape = np.asarray(column, np.float64).shape
    except (TypeError, ValueError):
        return f"gave {type(column).__name__}, {expected}"
    return None if shape == (rows,) else f"gave an array of shape {shape}, {expected}"


def _figure_problem(figure: Any) -> str | None:
    if figure is None:
        return None
    number = isinstance(figure, int | float | np.integer | np.floating)
    if number and not isinstance(figure, bool) and math.isfinite(figure):
        return None
    return f"gave {figure!r}, expected a finite number or None"


JOB_METRICS = Kind(
    "job_metrics",
    "metric of a job",
    "gives a number for each job, a column of jobs.csv and jobs.parquet",
    {},
    JobMetric,
    given=("results", "directory"),
    place="metrics.job",
)
VO_METRICS = Kind(
    "vo_metrics",
    "metric of a VO",
    "gives a figure of metrics.json for each VO and for the grid",
    {},
    VoMetric,
    given=("results", "directory"),
    place="metrics.vo",
)
CLUSTER_METRICS = Kind(
    "cluster_metrics",
    "metric of a cluster over time",
    "gives a column of series.parquet",
    {},
    ClusterMetric,
    given=("results", "directory", "cluster", "edges_us"),
    place="metrics.cluster",
)


@dataclass(frozen=True)
class MoreColumns:
    """What metrics of jobs and clusters gave: columns of the table of jobs and of the series."""

    job: Mapping[str, Floats] = field(default_factory=dict)
    cluster: Mapping[str, Floats] = field(default_factory=dict)


def more_columns(
    job: Mapping[str, JobMetric],
    cluster: Mapping[str, ClusterMetric],
    results: JobResults,
    directory: Directory,
) -> MoreColumns:
    """The columns by name; those of clusters have the rows of `grid.results.series.series`."""
    edges = edges_of(results)
    numbers = range(len(directory.clusters))
    return MoreColumns(
        {name: metric(results, directory) for name, metric in job.items()},
        {
            name: np.concatenate([metric(results, directory, one, edges) for one in numbers])
            for name, metric in cluster.items()
        },
    )


def add_figures(
    vo: Mapping[str, VoMetric], figures: Metrics, results: JobResults, directory: Directory
) -> None:
    """Add what metrics of VOs give to `figures`, of each VO's jobs and of all."""
    for name, metric in vo.items():
        figures["grid"][name] = metric(results, directory)
        for position, own in enumerate(directory.vos):
            jobs = results.take(results.vo == position)
            figures["vos"][own][name] = metric(jobs, directory)
