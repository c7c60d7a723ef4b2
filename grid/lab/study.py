"""The results of a sweep: values of a metric at a point, by seed, with intervals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from grid.config.schema import Scenario
from grid.lab.experiment import Point
from grid.lab.record import Record
from grid.lab.statistics import Interval, mean_interval, paired_values
from grid.lab.store import Store, TwoStores, read_failures, read_sweep

GRID = "grid"
PART_OF_COURSE = re.compile(r"(\w+)\[([\d.]+):([\d.]+)\]")


@dataclass(frozen=True)
class Study:
    """The finished runs of a sweep: point, seed and key of each.

    `absent` are points without runs, with the reason.
    """

    name: str
    axes: Mapping[str, list[Any]]
    level: float
    compare: str | None
    metrics: tuple[str, ...]
    runs: tuple[tuple[Point, int, str], ...]
    absent: tuple[tuple[Point, str], ...]
    store: Store | TwoStores
    code: str = ""
    """The version of the code that the runs were made with."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Aliases of metrics: the metric that is looked up for a requested name."""

    def seen(self, where: Mapping[str, Any], names: Mapping[str, str]) -> Study:
        """The runs at the values of `where`, without these axes; `names` are aliases of metrics."""

        def fits(point: Point) -> bool:
            return where.items() <= point.items()

        def rest(point: Point) -> Point:
            return {name: value for name, value in point.items() if name not in where}

        return replace(
            self,
            axes={name: values for name, values in self.axes.items() if name not in where},
            runs=tuple((rest(point), seed, key) for point, seed, key in self.runs if fits(point)),
            absent=tuple((rest(point), why) for point, why in self.absent if fits(point)),
            names=names,
        )

    def filled_from(self, other: Study, axis: str) -> Study:
        """These runs, and those of `other` with the same seeds that differ only in `axis`."""
        points = [point for point, _, _ in self.runs]
        seeds = {seed for _, seed, _ in self.runs}

        def rest(point: Point) -> Point:
            return {name: value for name, value in point.items() if name != axis}

        beside = [rest(point) for point in points]
        more = tuple(
            run
            for run in other.runs
            if run[0] not in points and rest(run[0]) in beside and run[1] in seeds
        )
        axes = {
            axis: list(dict.fromkeys(point[axis] for point, _, _ in (*self.runs, *more)))
            for axis in self.axes
        }
        return replace(
            self, axes=axes, runs=self.runs + more, store=TwoStores(self.store, other.store)
        )

    def limited_to(self, other: Study) -> Study:
        """The runs at points and with seeds that `other` has as well."""
        points = [point for point, _, _ in other.runs]
        seeds = {seed for _, seed, _ in other.runs}
        runs = tuple(run for run in self.runs if run[0] in points and run[1] in seeds)
        axes = {
            axis: [value for value in values if value in other.axes[axis]]
            for axis, values in self.axes.items()
        }
        return replace(self, axes=axes, runs=runs)

    def repeated_over(self, axis: str) -> Study:
        """The runs with each pair of a value of `axis` and a seed as one repetition."""
        places = {str(value): place for place, value in enumerate(self.axes[axis])}
        rests: dict[str, int] = {}
        runs = []
        for point, seed, key in self.runs:
            rest = {name: value for name, value in point.items() if name != axis}
            number = places[str(point[axis])] + len(places) * seed
            runs.append((rests.setdefault(str(rest), len(rests)), (rest, number, key)))
        runs.sort(key=lambda run: run[0])
        axes = {name: values for name, values in self.axes.items() if name != axis}
        compare = next(iter(axes), None) if self.compare == axis else self.compare
        return replace(self, axes=axes, compare=compare, runs=tuple(run for _, run in runs))

    @cached_property
    def points(self) -> list[Point]:
        """The points that have runs, in the order of the axes."""
        points: list[Point] = []
        for point, _, _ in self.runs:
            if not points or points[-1] != point:
                points.append(point)
        return points

    @cached_property
    def records(self) -> dict[str, Record]:
        """The results of each run, by key."""
        return {key: self.store.record(key) for _, _, key in self.runs}

    @cached_property
    def clocks(self) -> dict[str, Record]:
        """The real-clock times of each run, by key."""
        return {key: self.store.clock(key) for _, _, key in self.runs}

    def keys(self, where: Mapping[str, Any]) -> dict[int, str]:
        """The key of each seed at the point with the values of `where`; empty if there is none.

        Raises ValueError if `where` matches several points.
        """
        fitting = [run for run in self.runs if where.items() <= run[0].items()]
        found = {seed: key for _, seed, key in fitting}
        if len(found) < len(fitting):
            raise ValueError(f"{dict(where)} names no single point of {self.name}")
        return found

    def reason_for(self, where: Mapping[str, Any]) -> str:
        """Why there is no run at the point with the values of `where`; empty if unknown."""
        reasons = [why for point, why in self.absent if where.items() <= point.items()]
        return reasons[0] if reasons else ""

    def scenarios(self, where: Mapping[str, Any]) -> list[Scenario]:
        """The scenarios of the runs at a point, in the order of their seeds."""
        keys = self.keys(where)
        return [
            Scenario.model_validate(self.records[keys[seed]]["scenario"]) for seed in sorted(keys)
        ]

    def values(self, metric: str, where: Mapping[str, Any]) -> dict[int, float]:
        """The metric of the grid at a point, by seed, without seeds that do not have it.

        `plan_seconds_*` are real-clock times; `a+b` is a sum of metrics, `-a` a negated metric.
        `a[0.5:0.8]` is the mean of the time series `a` from 50 % to 80 % of its length.
        """
        given = self.names.get(metric, metric)
        found = {seed: self._value(given, key) for seed, key in self.keys(where).items()}
        return {seed: value for seed, value in found.items() if value is not None}

    def _value(self, metric: str, key: str) -> float | None:
        if metric.startswith("-"):
            value = self._value(metric.removeprefix("-"), key)
            return None if value is None else -value
        if "+" in metric:
            parts = [self._value(part, key) for part in metric.split("+")]
            known = [part for part in parts if part is not None]
            return sum(known) if len(known) == len(parts) else None
        if metric.startswith("plan_seconds_"):
            return plan_seconds(self.clocks[key], metric.removeprefix("plan_seconds_"))
        record = self.records[key]
        if part := PART_OF_COURSE.fullmatch(metric):
            return _mean_of(record["courses"].get(part[1]), float(part[2]), float(part[3]))
        value = (record["metrics"][GRID] | record["more"]).get(metric)
        return None if value is None else float(value)

    def interval(self, metric: str, where: Mapping[str, Any]) -> Interval | None:
        """The mean over seeds with its confidence interval; None if there is no value."""
        values = list(self.values(metric, where).values())
        return mean_interval(values, self.level) if values else None

    def difference(
        self, metric: str, first: Mapping[str, Any], second: Mapping[str, Any]
    ) -> Interval | None:
        """The mean of first - second over the seeds that both have, paired by seed."""
        ones, others = self.values(metric, first), self.values(metric, second)
        values = paired_values(ones, others)
        return mean_interval(values, self.level) if values else None

    def pairs(self) -> Iterator[tuple[Point, Point]]:
        """Points that differ in the compared axis alone: the first value's with each other's."""
        if self.compare is None:
            return
        first = self.axes[self.compare][0]
        for point in self.points:
            if point[self.compare] != first:
                yield {**point, self.compare: first}, point


def plan_seconds(clock: Record, figure: str) -> float | None:
    """`mean`, `max`, `total` or `count` of the seconds that plans took, over all policies.

    So are `mean_below_N` and `count_below_N`, see `Manifest`; None where no queue was as long.
    `mean_waiting` is that of the plans that were made while at least one job waited;
    `mean_fullest` that of the plans with the longest queues, of a power of two at least that the
    longest one has (the last of the `mean_below_N`): so with nearly all jobs in the system.
    """
    policies = list(clock["plan_seconds"].values())
    if not policies:
        return None
    if figure == "mean_waiting":
        return _mean_waiting(policies)
    if figure == "mean_fullest":
        below = [name for policy in policies for name in policy if name.startswith("mean_below_")]
        longest = max(below, key=lambda name: int(name.removeprefix("mean_below_")), default="")
        return plan_seconds(clock, longest) if longest else None
    if figure == "max":
        return max(float(policy["max"]) for policy in policies)
    known = [policy for policy in policies if figure in policy]
    if figure.startswith("mean"):
        counts = [policy[figure.replace("mean", "count")] for policy in known]
        total = sum(policy[figure] * count for policy, count in zip(known, counts, strict=True))
        return total / sum(counts) if any(counts) else None
    return float(sum(policy[figure] for policy in known))


def _mean_of(
    course: Mapping[str, Sequence[float]] | None, begin: float, until: float
) -> float | None:
    """The mean of the values of a course at its places from `begin` to `until`, of the last one."""
    if course is None:
        return None
    (places,) = (places for name, places in course.items() if name != "value")
    last = places[-1] if places else 0.0
    chosen = [
        value
        for place, value in zip(places, course["value"], strict=True)
        if begin * last <= place <= until * last
    ]
    return sum(chosen) / len(chosen) if chosen else None


def _mean_waiting(policies: Sequence[Mapping[str, float]]) -> float | None:
    total, plans = 0.0, 0.0
    for policy in policies:
        for name, mean in policy.items():
            # Below 1: no job waited; below 0: the policy made no plan at all.
            if name.startswith("mean_below_") and int(name.removeprefix("mean_below_")) > 1:
                count = policy[name.replace("mean", "count")]
                total, plans = total + mean * count, plans + count
    return total / plans if plans else None


def read_study(folder: Path) -> Study:
    """The sweep in `folder`. Raises InputError if there is none."""
    sweep = read_sweep(folder)
    store = Store(folder)
    return Study(
        sweep["name"],
        sweep["axes"],
        sweep["level"],
        sweep["compare"],
        tuple(sweep["metrics"]),
        tuple(
            (case["point"], case["seed"], case["key"])
            for case in sweep["cases"]
            if store.has(case["key"])
        ),
        (
            *((one["point"], one["reason"]) for one in sweep["absent"]),
            *((one["point"], f"it failed ({one['error']})") for one in read_failures(folder)),
        ),
        store,
        sweep["code"],
    )


def read_repeated(folder: Path) -> Study:
    """The sweep in `folder`, with the values of the axis in `repeated_over` as repetitions.

    Raises InputError if there is no sweep.
    """
    axis, study = read_sweep(folder).get("repeated_over"), read_study(folder)
    return study if axis is None else study.repeated_over(axis)
