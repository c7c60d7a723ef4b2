"""The values of an axis: how tables and pictures call each, and which settings it stands for."""

from __future__ import annotations

import json
from typing import Any

from grid.config.yaml_tree import resolve
from grid.lab.schema import Axis

Label = str | int | float | bool | None


def axis_choices(name: str, axis: Axis) -> list[tuple[Label, dict[str, Any]]]:
    """The values of the axis `name`, as tables and pictures have them, and what each sets."""
    if isinstance(axis, dict):
        return [(_number_or(label), settings) for label, settings in axis.items()]
    return [(_label(value), {name: value}) for value in axis]


def stands_for(given: Label, label: Label) -> bool:
    """Whether a value that a file gives names this value of an axis, one of `axis_choices`."""
    return str(label) in (str(given), str(_number_or(str(given))))


def _number_or(label: str) -> str | int | float:
    """A label as the number that it is, so that it has its place on an axis; else as it is."""
    try:
        value = resolve(label)
    except ValueError:
        return label
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return label


def _label(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, ensure_ascii=False)
