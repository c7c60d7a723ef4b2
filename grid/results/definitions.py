"""Metrics and columns: loads their names, units and meanings from `definitions.yaml`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

Columns = Mapping[str, tuple[str, str]]
"""Unit and meaning by the name of a column, in the order of the file."""
OwnBounds = Mapping[str, Sequence[float | None]]
"""Minimum and maximum that plugin metrics declare, by name; None for no bound."""

_RANGES = {
    "0 or more": (0.0, math.inf),
    "0 to 1": (0.0, 1.0),
    "0 to 100": (0.0, 100.0),
    "1 or more": (1.0, math.inf),
    "at most 1, may be negative": (-math.inf, 1.0),
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of metrics.json, of a sweep's results.csv, or of its clock.csv.

    - `name`: its key in the files; `title`: its label in tables and on axes, before its `unit`.
    - `unit`: `s`, `%`, `J`; empty for a count or a ratio.
    - `meaning`: its definition; `over`: what it is summed or averaged over.
    - `values`: its range, a key of `_RANGES`; `better`: `more`, `less` or empty.
    - `source`: paper and equation; empty if it is customary or our own.
    """

    name: str
    title: str
    meaning: str
    over: str
    unit: str = ""
    values: str = "0 or more"
    better: str = ""
    source: str = ""

    @property
    def label(self) -> str:
        """Title and unit, as in headers of columns and axes."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Group:
    """Metrics that have the same subject."""

    title: str
    about: str
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class File:
    """A table or document that the emulator writes."""

    title: str
    about: str
    columns: Columns


_CONTENT: dict[str, Any] = yaml.load(
    Path(__file__).with_name("definitions.yaml").read_bytes(),
    getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)
GROUPS = {
    key: Group(
        group["title"],
        group["about"],
        tuple(Metric(name, **facts) for name, facts in group["metrics"].items()),
    )
    for key, group in _CONTENT["metrics"].items()
}
FILES = {
    key: File(
        file["title"],
        file["about"],
        {name: (unit, meaning) for name, (unit, meaning) in file["columns"].items()},
    )
    for key, file in _CONTENT["files"].items()
}
EVENT_TEXTS: Mapping[str, tuple[str, str]] = {
    event: (step, after) for event, (step, after) in _CONTENT["histories"].items()
}
"""By event: its step in the history of a job, and what the job does or waits for after it."""
METRICS: Mapping[str, Metric] = {
    metric.name: metric for group in GROUPS.values() for metric in group.metrics
}
"""All metrics by name, without plugins."""

_UNITS = {"s": "s", "h": "h", "j": "J", "kj": "kJ", "kwh": "kWh", "w": "W", "percent": "%"}
"""Last words of names of plugin metrics that are units, and how these are written."""


def label_of(name: str) -> str:
    """The label of a metric, with its unit.

    That of a plugin metric is its name, whose last word may be a unit.
    """
    known = METRICS.get(name)
    if known is not None:
        return known.label
    title, _, unit = name.rpartition("_")
    if title and unit in _UNITS:
        return f"{title.replace('_', ' ')} ({_UNITS[unit]})"
    return name.replace("_", " ")


def bounds_of(name: str, own: OwnBounds) -> tuple[float, float]:
    """Minimum and maximum of a metric, infinite if it has none."""
    if name in METRICS:
        return _RANGES[METRICS[name].values]
    least, most = own.get(name, (None, None))
    return -math.inf if least is None else least, math.inf if most is None else most


def row_texts(values: Sequence[float | None], missing: str = "-") -> list[str]:
    """The values of one row as text, with the same number of decimals."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in known):
        digits = 0
    else:
        largest = max(abs(value) for value in known)
        digits = 1 if largest >= 100 else 3
        if 0 < largest < 0.01:
            digits = 2 - math.floor(math.log10(largest))
    return [missing if value is None else f"{value:z,.{digits}f}" for value in values]


def message_names() -> dict[str, str]:
    """Meaning of each message in the column `event` of events.parquet: its docstring's summary."""
    from grid.model.messages import MESSAGES
    from grid.model.records import word_of

    return {
        word_of(kind): (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
        for kind in MESSAGES
    }
