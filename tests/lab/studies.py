"""Sweeps written by hand: figures that a test chose, in the files that a sweep would leave."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grid.lab.store import Store, write_json
from grid.lab.study import Study, read_study
from grid.results.run_folder import SWEEP_FILE

Figures = Mapping[str, Sequence[float | None]]


def study_of(
    folder: Path,
    name: str,
    points: Sequence[tuple[dict[str, Any], Figures]],
    absent: Sequence[tuple[dict[str, Any], str]] = (),
    level: float = 0.95,
    scenario: dict[str, Any] | None = None,
) -> Study:
    """A study in which each point has the given values of its metrics, seed by seed from 1.

    Metrics `plan_seconds_...` become the times that its policy's plans took. `scenario` is that of
    all runs, for claims that look at it.
    """
    store = Store(folder / name)
    cases = []
    for position, (point, figures) in enumerate(points):
        count = len(next(iter(figures.values())))
        for seed in range(1, count + 1):
            key = f"{position:02d}x{seed:02d}"
            cases.append({"point": point, "seed": seed, "key": key})
            values = {metric: column[seed - 1] for metric, column in figures.items()}
            plan = values.pop("plan_seconds_mean", 0.001)
            for kind in ("runs", "clock"):
                (store.folder / kind).mkdir(parents=True, exist_ok=True)
            times = {"count": 10, "mean": plan, "max": plan, "total": 10 * (plan or 0.0)}
            for metric in [name for name in values if name.startswith("plan_seconds_")]:
                times[metric.removeprefix("plan_seconds_")] = values.pop(metric)
            store.write(
                key,
                {"metrics": {"grid": values, "vos": {}}, "more": {}, "quantiles": {},
                 "courses": {}, "seed": seed, "scenario": scenario or {}},
                {"plan_seconds": {"policy": times}, "cpu_seconds": {}, "wall_seconds": 1.0},
            )  # fmt: skip
    axes = {axis: list(dict.fromkeys(point[axis] for point, _ in points)) for axis in points[0][0]}
    write_json(
        store.folder / SWEEP_FILE,
        {
            "name": name,
            "code": "none",
            "axes": axes,
            "seeds": sorted({case["seed"] for case in cases}),
            "level": level,
            "compare": next(iter(axes)),
            "metrics": [],
            "cases": cases,
            "absent": [{"point": point, "reason": reason} for point, reason in absent],
        },
    )
    return read_study(store.folder)


Made = Callable[[str, dict[str, Any]], tuple[float, float]]
"""The mean of a metric at a point, and how much repetitions differ."""


class MadeStore:
    """Runs that were made up, in memory."""

    def __init__(self, points: Mapping[str, tuple[dict[str, Any], int]], made: Made) -> None:
        self._points, self._made = points, made

    def has(self, key: str) -> bool:
        return key in self._points

    def record(self, key: str) -> dict[str, Any]:
        value = self._value(key)
        return {
            "metrics": {"grid": Figured(value)},
            "more": {},
            "scenario": {},
            "courses": Courses(value),
        }

    def clock(self, key: str) -> dict[str, Any]:
        value = self._value(key)
        seconds = {
            f"mean_below_{bound}": value(f"plan_seconds_mean_below_{bound}") for bound in (2, 64)
        }
        counts = {f"count_below_{bound}": 10 for bound in (2, 64)}
        whole = {
            "count": 20,
            "mean": value("plan_seconds_mean"),
            "max": value("plan_seconds_max"),
            "total": value("plan_seconds_total"),
        }
        return {"plan_seconds": {"policy": {**whole, **counts, **seconds}}}

    def _value(self, key: str) -> Callable[[str], float]:
        point, seed = self._points[key]

        def value(metric: str) -> float:
            mean, spread = self._made(metric, point)
            words = f"{metric} {sorted(point.items())} {seed}".encode()
            noise = np.random.default_rng(zlib.crc32(words)).normal()
            # Nothing that is measured is negative, and times are not nothing.
            return max(mean + spread * float(noise), 1e-3 * abs(mean))

        return value


class Figured(dict[str, float]):
    """A mapping that computes its values."""

    def __init__(self, value: Callable[[str], float]) -> None:
        super().__init__()
        self._value = value

    def get(self, metric: str, default: Any = None) -> Any:
        return self._value(metric)

    def __or__(self, other: Any) -> Any:
        return self


class Courses(dict[str, Any]):
    """Courses by interaction: the value at 1600 is that of the metric "NAME at 1600"."""

    def __init__(self, value: Callable[[str], float]) -> None:
        super().__init__()
        self._value = value

    def get(self, name: str, default: Any = None) -> Any:
        places = list(range(100, 3001, 100))
        values = [self._value(f"{name} at {place}") for place in places]
        return {"interactions": places, "value": values}


def made_study(name: str, axes: Mapping[str, Sequence[Any]], made: Made, seeds: int = 4) -> Study:
    """A study in memory that has a run of every combination of the axes' values."""
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    runs = [
        (point, seed, f"{name} {number} {seed}")
        for number, point in enumerate(points)
        for seed in range(1, seeds + 1)
    ]
    store: Any = MadeStore({key: (point, seed) for point, seed, key in runs}, made)
    of = {axis: list(values) for axis, values in axes.items()}
    return Study(name, of, 0.95, None, (), tuple(runs), (), (store,))
