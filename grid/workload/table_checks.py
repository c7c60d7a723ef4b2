"""What is wrong with a table of jobs that somebody made: its columns, values and requirements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from grid.model.errors import Path, Problem, shorten
from grid.model.job import Option, Requirement, RequirementKind
from grid.model.job_table import COLUMNS, LIMITS, JobTable
from grid.model.requirement_columns import RequirementColumns


def table_problems(path: Path, table: object) -> Iterator[Problem]:
    """The first wrong value of each column, and of the requirements."""
    if not isinstance(table, JobTable):
        yield path, shorten(table), "a JobTable or None"
        return
    size = len(table.number)
    for name, dtype in COLUMNS.items():
        column = getattr(table, name)
        if not isinstance(column, np.ndarray) or column.shape != (size,) or column.dtype != dtype:
            expected = f"an array of {size} values of {np.dtype(dtype).name}"
            yield (*path, name), _kind_of(column), expected
            return
    for name, (least, most) in LIMITS.items():
        column = getattr(table, name)
        outside = np.flatnonzero(~((column >= least) & (column <= most)))
        if len(outside):
            row = int(outside[0])
            value = column[row].item()
            expected = f"at least {least}" if value < least else f"at most {most}"
            yield (*path, name, row), str(value), expected
    order = np.flatnonzero(np.diff(table.submit_us) < 0)
    if len(order):
        row = int(order[0]) + 1
        before = table.submit_us[row - 1]
        expected = f"jobs in order of submission (the one before comes at {before})"
        yield (*path, "submit_us", row), str(table.submit_us[row]), expected
    yield from _requirement_problems((*path, "requirements"), table, size)


def _kind_of(column: object) -> str:
    if isinstance(column, np.ndarray):
        return f"an array of shape {column.shape} of {column.dtype.name}"
    return shorten(column)


def _requirement_problems(path: Path, table: JobTable, size: int) -> Iterator[Problem]:
    if table.requirements and len(table.requirements) != size:
        found = f"those of {len(table.requirements)} jobs"
        yield path, found, f"none, or a tuple for each of {size} jobs"
        return
    columns = table.requirements
    if columns.are_right if isinstance(columns, RequirementColumns) else _are_right(columns):
        return
    for row, wanted in enumerate(table.requirements):
        if not _are_right([wanted]):
            expected = "Requirements with Options of finite values and utilities from 0 to 1"
            yield (*path, row), shorten(wanted), expected
            return


def _are_right(requirements: Sequence[tuple[Requirement, ...]]) -> bool:
    every = [one for wanted in requirements for one in wanted]
    if not all(isinstance(one, Requirement) for one in every):
        return False
    options = [option for one in every for option in one.options]
    if not all(isinstance(option, Option) for option in options):
        return False
    try:
        shares = np.array([one.weight for one in every] + [one.utility for one in options])
        values = np.array([option.value for option in options], np.float64)
    except (TypeError, ValueError):
        return False
    return (
        all(isinstance(one.kind, RequirementKind) and one.options for one in every)
        and bool(((shares >= 0) & (shares <= 1)).all())
        and bool(np.isfinite(values).all())
    )
