"""Sweeps in which the values of an axis are repetitions, as seeds are: days of a log, for one."""

from __future__ import annotations

from pathlib import Path

from grid.lab.store import read_sweep
from grid.lab.study import Study, read_study


def read_repeated(folder: Path) -> Study:
    """The sweep in `folder`, with the runs at all values of that axis taken together.

    Raises InputError where there is no sweep.
    """
    axis, study = axis_repeated_over(folder), read_study(folder)
    return study if axis is None else study.repeated_over(axis)


def axis_repeated_over(folder: Path) -> str | None:
    """The axis whose values are repetitions, if the experiment names one."""
    axis: str | None = read_sweep(folder).get("repeated_over")
    return axis


def repetitions_told(folder: Path) -> str:
    """Says what is repeated beside the seeds; empty where nothing is."""
    axis = axis_repeated_over(folder)
    if axis is None:
        return ""
    values = ", ".join(map(str, read_sweep(folder)["axes"][axis]))
    return (
        f"The values of {axis} ({values}) are repetitions: where it says seed, it means a seed at "
        f"a value of {axis}."
    )
