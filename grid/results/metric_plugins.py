"""Metrics from plugins: of a job, of a VO, of a cluster over time.

Each is a function of the table of jobs and the directory of the grid, with its settings as keyword
arguments. Its values are stored next to the emulator's own metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from grid.model.arrays import Floats
from grid.model.errors import InvalidPlugin, kind_of, shorten
from grid.model.job_results import JobResults
from grid.model.plugins.calls import Call, WithSettings
from grid.model.plugins.registry import Kind, function_kind

if TYPE_CHECKING:  # these import numba, which a check of a scenario does not need
    from grid.results.machines import Directory
    from grid.results.metrics import Metrics

Metric = Callable[..., Any]
"""A metric whose return values are validated."""


def _column_problem(column: Any, rows: int, of: str) -> str | None:
    expected = f"expected an array of {rows} numbers, one for each of the {of}"
    if np.iscomplexobj(column):
        return f"returned complex numbers, {expected}"
    try:
        numbers = np.asarray(column, np.float64)
    except (TypeError, ValueError):
        of_type = f" of {column.dtype}" if isinstance(column, np.ndarray) else ""
        return f"returned {kind_of(column)}{of_type}, {expected}"
    if numbers.shape != (rows,):
        return f"returned an array of shape {numbers.shape}, {expected}"
    is_infinite = np.isinf(numbers).any()
    return f"returned an infinite number, {expected} (NaN for no value)" if is_infinite else None


def declared_bounds(metric: Any) -> tuple[float | None, float | None]:
    """Minimum and maximum of a metric of a VO, by its attribute `bounds`; None for no bound.

    Raises InvalidPlugin.
    """
    function = metric.function if isinstance(metric, WithSettings) else metric
    given = getattr(function, "bounds", (None, None))
    if isinstance(given, tuple | list) and len(given) == 2:
        least, most = given
        is_valid = all(one is None or _is_finite(one) for one in given)
        if is_valid and (least is None or most is None or least < most):
            return least, most
    expected = "a metric whose `bounds` are its minimum and maximum, None for no bound"
    raise InvalidPlugin(f"bounds = {shorten(given)}", expected)


def _is_finite(value: Any) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating)
    return number and not isinstance(value, bool) and math.isfinite(value)


def _vo_calls(metric: Any) -> Mapping[str, Call]:
    least, most = declared_bounds(metric)

    def problem(value: Any, *_: object) -> str | None:
        if value is None:
            return None
        if not _is_finite(value):
            return f"returned {shorten(value)}, expected a finite number or None"
        if least is not None and value < least:
            return f"returned {value:g}, expected at least {least:g}, according to its bounds"
        if most is not None and value > most:
            return f"returned {value:g}, expected at most {most:g}, according to its bounds"
        return None

    return {"__call__": Call("its metric", ("results", "directory"), problem)}


JOB_METRICS = function_kind(
    "job_metrics",
    "job metric",
    "computes a number for each job, a column of jobs.csv and jobs.parquet",
    {},
    ("results", "directory"),
    lambda column, results, _: _column_problem(column, len(results), "jobs"),
    "metrics.job",
)
VO_METRICS = Kind(
    "vo_metrics",
    "VO metric",
    "computes a value of metrics.json for each VO and for the grid",
    {},
    _vo_calls,
    given=("results", "directory"),
    place="metrics.vo",
)
CLUSTER_METRICS = function_kind(
    "cluster_metrics",
    "cluster metric",
    "computes a time series for each cluster, a column of series.parquet",
    {},
    ("results", "directory", "cluster", "edges_us"),
    lambda column, *given: _column_problem(column, len(given[-1]) - 1, "intervals"),
    "metrics.cluster",
)


@dataclass(frozen=True)
class MoreColumns:
    """Columns from plugins, for the table of jobs and for the series."""

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
    from grid.results.series import edges_of

    results, edges = results.to_read(), edges_of(results)
    edges.flags.writeable = False
    clusters = range(len(directory.clusters))
    return MoreColumns(
        {name: np.asarray(metric(results, directory), float) for name, metric in job.items()},
        {
            name: np.concatenate(
                [metric(results, directory, one, edges) for one in clusters], dtype=float
            )
            for name, metric in cluster.items()
        },
    )


def add_vo_metrics(
    vo: Mapping[str, Metric], metrics: Metrics, results: JobResults, directory: Directory
) -> None:
    """Add the values of metrics of VOs to `metrics`, for each VO's jobs and for all."""
    results = results.to_read()
    for name, metric in vo.items():
        metrics["grid"][name] = _number(metric(results, directory))
        for position, own in enumerate(directory.vos):
            jobs = results.take(results.vo == position).to_read()
            metrics["vos"][own][name] = _number(metric(jobs, directory))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
