"""Metrics that others plug in: of a job, of a VO, of a cluster over time.

Each is a function of the table of jobs and the directory of the grid, with its settings by
keyword. What it gives goes where the emulator's own figures are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grid.model.arrays import Floats
from grid.model.errors import InvalidPlugin, kind_of, shorten
from grid.model.job_results import JobResults
from grid.model.plugins.calls import Call
from grid.model.plugins.registry import Kind, WithSettings, function_kind
from grid.results.machines import Directory
from grid.results.metrics import Metrics
from grid.results.series import edges_of

Metric = Callable[..., Any]
"""A metric: its answers have been looked at."""


def _job_problem(column: Any, results: JobResults, _: Directory) -> str | None:
    return _column_problem(column, len(results), "jobs")


def _cluster_problem(column: Any, *given: Any) -> str | None:
    edges_us = given[-1]
    return _column_problem(column, len(edges_us) - 1, "intervals")


def _column_problem(column: Any, rows: int, of: str) -> str | None:
    expected = f"expected an array of {rows} numbers, one for each of the {of}"
    if np.iscomplexobj(column):
        return f"gave complex numbers, {expected}"
    try:
        numbers = np.asarray(column, np.float64)
    except (TypeError, ValueError):
        of_type = f" of {column.dtype}" if isinstance(column, np.ndarray) else ""
        return f"gave {kind_of(column)}{of_type}, {expected}"
    if numbers.shape != (rows,):
        return f"gave an array of shape {numbers.shape}, {expected}"
    is_infinite = np.isinf(numbers).any()
    return f"gave an infinite number, {expected} (NaN: it has none)" if is_infinite else None


def declared_bounds(metric: Any) -> tuple[float | None, float | None]:
    """The least and the largest figure of a metric of a VO, by its `bounds`; None, there is none.

    Raises InvalidPlugin.
    """
    function = metric.function if isinstance(metric, WithSettings) else metric
    given = getattr(function, "bounds", (None, None))
    if isinstance(given, tuple | list) and len(given) == 2:
        least, most = given
        right = all(one is None or _is_finite(one) for one in given)
        if right and (least is None or most is None or least < most):
            return least, most
    expected = "a metric whose `bounds` are the least and the largest figure, None: there is none"
    raise InvalidPlugin(f"bounds = {shorten(given)}", expected)


def _is_finite(figure: Any) -> bool:
    number = isinstance(figure, int | float | np.integer | np.floating)
    return number and not isinstance(figure, bool) and math.isfinite(figure)


def _vo_calls(metric: Any) -> Mapping[str, Call]:
    least, most = declared_bounds(metric)

    def problem(figure: Any, *_: object) -> str | None:
        if figure is None:
            return None
        if not _is_finite(figure):
            return f"gave {shorten(figure)}, expected a finite number or None"
        if least is not None and figure < least:
            return f"gave {figure:g}, expected at least {least:g}, by its bounds"
        if most is not None and figure > most:
            return f"gave {figure:g}, expected at most {most:g}, by its bounds"
        return None

    return {"__call__": Call("its metric", ("results", "directory"), problem)}


JOB_METRICS = function_kind(
    "job_metrics",
    "metric of a job",
    "gives a number for each job, a column of jobs.csv and jobs.parquet",
    {},
    ("results", "directory"),
    _job_problem,
    "metrics.job",
)
VO_METRICS = Kind(
    "vo_metrics",
    "metric of a VO",
    "gives a figure of metrics.json for each VO and for the grid",
    {},
    _vo_calls,
    given=("results", "directory"),
    place="metrics.vo",
)
CLUSTER_METRICS = function_kind(
    "cluster_metrics",
    "metric of a cluster over time",
    "gives a column of series.parquet",
    {},
    ("results", "directory", "cluster", "edges_us"),
    _cluster_problem,
    "metrics.cluster",
)


@dataclass(frozen=True)
class MoreColumns:
    """What metrics of jobs and clusters gave: columns of the table of jobs and of the series."""

    job: Mapping[str, Floats] = field(default_factory=dict)
    cluster: Mapping[str, Floats] = field(default_factory=dict)


def more_columns(
    job: Mapping[str, Metric],
    cluster: Mapping[str, Metric],
    results: JobResults,
    directory: Directory,
) -> MoreColumns:
    """The columns by name; those of clusters have the rows of `grid.results.series.series`."""
    if not job and not cluster:
        return MoreColumns()
    results, edges = results.to_read(), edges_of(results)
    edges.flags.writeable = False
    numbers = range(len(directory.clusters))
    return MoreColumns(
        {name: np.asarray(metric(results, directory), float) for name, metric in job.items()},
        {
            name: np.concatenate(
                [metric(results, directory, one, edges) for one in numbers], dtype=float
            )
            for name, metric in cluster.items()
        },
    )


def add_figures(
    vo: Mapping[str, Metric], figures: Metrics, results: JobResults, directory: Directory
) -> None:
    """Add what metrics of VOs give to `figures`, of each VO's jobs and of all."""
    results = results.to_read()
    for name, metric in vo.items():
        figures["grid"][name] = _number(metric(results, directory))
        for position, own in enumerate(directory.vos):
            jobs = results.take(results.vo == position).to_read()
            figures["vos"][own][name] = _number(metric(jobs, directory))


def _number(figure: Any) -> float | None:
    return None if figure is None else float(figure)
