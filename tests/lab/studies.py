"""Sweeps written by hand: figures that a test chose, in the files that a sweep would leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
