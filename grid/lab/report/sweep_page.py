"""The report of a sweep: findings, facet grids, differences by effect, and details at a setting."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from grid.config.text_file import read_text
from grid.lab.findings import (
    axis_title,
    cells_of,
    findings,
    named,
    named_point,
    telling_metrics,
    warnings_of,
)
from grid.lab.report.charts import (
    MANY_ROWS,
    MANY_TICKS,
    MAPPED,
    STEPS,
    WIDE,
    distribution,
    flow_map,
    grid_chart,
    step_columns,
    tooltip,
    values_axis,
    vo_chart,
)
from grid.lab.report.page import Block, Choice, Section, Source, Table, When, save_page
from grid.lab.report.picture import Picture, chart, columns_of, counted
from grid.lab.report.run_data import UNITS
from grid.lab.report.run_page import course, hints_of
from grid.lab.statistics import Interval, mean_interval
from grid.lab.store import (
    EXPECTED,
    EXPERIMENT_FILE,
    FAILED_FILE,
    MAX_BYTES,
    SCENARIO_FILE,
    read_sweep,
)
from grid.lab.study import Difference, Study, paired_differences, read_repeated, values_of_vos
from grid.model.arrays import Floats
from grid.model.errors import input_error
from grid.results.definitions import OwnBounds, bounds_of, label_of

PANELS = 24
"""The most panels of a metric."""
BETWEEN = ", "
"""Between the values of a combination."""


def write_sweep_page(folder: Path, page: Path) -> None:
    """Write the report of the sweep in `folder`, and its charts into `pictures` next to it."""
    study = read_repeated(folder)
    if not study.runs:
        why = f"; see {folder / FAILED_FILE}" if (folder / FAILED_FILE).exists() else ""
        found = "a sweep without a finished run"
        raise input_error("", found, f"one with results{why}", str(folder))
    sweep = read_sweep(folder)
    bounds = study.bounds
    metrics = study.metrics or telling_metrics(study)
    settings = Settings(study)
    definitions = [
        f"{label_of(metric)}: {meaning}"
        for metric, meaning in sweep.meanings.items()
        if metric in metrics
    ]
    across, _, _ = _roles(study, None)
    # Of axes that vary together each has a chart of its own.
    axes: list[str | None] = [axis for axis in study.partners(across) if axis != study.compare]
    charts: list[Block] = [
        one
        for metric in metrics
        for axis in axes or [None]
        if (one := comparison_chart(study, metric, bounds, axis)) is not None
    ]
    if charts and (note := panels_left_out(study)):
        charts.insert(0, note)
    sections = [
        Section("Comparison", charts),
        Section("Differences by effect", differences(study, metrics)),
        Section("Means", [*definitions, means_table(study, metrics)]),
        Section("By virtual organization", by_vo(settings, metrics, bounds)),
        Section("Job flows between VOs", flows(settings)),
        Section("Distributions", distributions(settings)),
        Section("Over time", courses(settings)),
        Section("Provenance", _sources(folder)),
    ]
    introduction = [*findings(study, metrics), _summary(study), *warnings_of(folder, study)]
    save_page(page, f"Sweep {study.name}", introduction, sections)


def _summary(study: Study) -> str:
    seeds = len({seed for _, seed, _ in study.runs})
    axes = "; ".join(
        f"{name}: {len(of)} values from {min(of):g} to {max(of):g}"
        if len(of) > MANY_TICKS and all(map(_is_number, of))
        else f"{name}: {', '.join(map(str, of))}"
        for name, of in study.axes.items()
    )
    intervals = (
        f"Intervals are Student's at {100 * study.level:g} %; equal seeds have equal jobs, unless "
        "an axis changes them."
        if seeds > 1
        else "With one seed there are no intervals."
    )
    return (
        f"{counted(len(study.runs), 'run')} of {counted(len(study.points), 'combination')} with up "
        f"to {counted(seeds, 'seed')}. {axes}. {intervals}"
    )


def _sources(folder: Path) -> list[Block]:
    files = (("The experiment", EXPERIMENT_FILE), ("The scenario", SCENARIO_FILE))
    return [
        Source(title, read_text(folder / name, MAX_BYTES, EXPECTED))
        for title, name in files
        if name == EXPERIMENT_FILE or os.path.lexists(folder / name)
    ]


# Comparison: one facet grid a metric


def comparison_chart(
    study: Study, metric: str, bounds: OwnBounds, along: str | None = None
) -> Picture | None:
    """The metric along one axis, a series for each compared value, further axes in panels."""
    across, column, rows = _roles(study, along)
    x = across or study.compare or ""
    rows_of_chart: list[tuple[Any, ...]] = []
    panels: list[tuple[str, str]] = []
    found = [one for point in study.points if (one := study.interval(metric, point)) is not None]
    means = [one.mean for one in found] or [0.0]
    is_log = min(means) > 0 and max(means) > WIDE * min(means)
    for point in study.points:
        panel = (
            BETWEEN.join(named(axis, point[axis]) for axis in rows),
            named(column, point[column]) if column else "",
        )
        interval = study.interval(metric, point)
        if panel not in panels:
            panels.append(panel)
        if interval is None or panels.index(panel) >= PANELS:
            continue
        axis = study.compare if across is not None else None
        series = "" if axis is None else named(axis, point[axis])
        place = point[x] if x else study.name
        place = place if isinstance(place, int | float) else str(place)
        ends = drawn_ends(interval, bounds_of(metric, bounds), log=is_log)
        rows_of_chart.append((series, place, interval.mean, *ends, *panel))
    if not rows_of_chart:
        return None
    names = ("series", "x", "value", "low", "high", "row", "column")
    columns = columns_of(names, rows_of_chart)
    label = label_of(metric)
    caption = f"{label[0].upper()}{label[1:]}{over_seeds(study)}."
    if any(low is not None for low in columns["low"]):
        caption += f" Intervals: {100 * study.level:g} %."
    legend = axis_title(study.compare) if study.compare else None
    name = f"compare-{metric.replace('_', '-')}"
    has_lines = True
    if len(study.partners(across)) > 1:
        name += f"-by-{x.rsplit('.', maxsplit=1)[-1].replace('_', '-')}"
        has_lines = study.axes[x] == sorted(study.axes[x])
    return grid_chart(
        name, caption, columns, x=axis_title(x), y=label, legend=legend, has_lines=has_lines
    )


def _roles(study: Study, along: str | None) -> tuple[str | None, str | None, list[str]]:
    """The axes of x, of columns and of rows of panels; the compared axis has the series."""
    every = [name for name in study.axes if name not in study.partners(study.compare)]
    varied = [name for name in every if len(study.axes[name]) > 1]
    numeric = [name for name in varied if all(_is_number(one) for one in study.axes[name])]
    across = along if along in every else next(iter(numeric or varied or every), None)
    rest = [name for name in varied if name not in study.partners(across)]
    return across, rest[0] if rest else None, rest[1:]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def panels_left_out(study: Study, along: str | None = None) -> str:
    """A sentence on panels that are left out; empty if there are all."""
    _, column, rows = _roles(study, along)
    axes = [*rows, *([column] if column else [])]
    count = len({repr([point[name] for name in axes]) for point in study.points})
    if count <= PANELS:
        return ""
    return f"The first {PANELS} of {count:,} panels are drawn; the tables have all values."


Ends = tuple[float | None, float | None]
UNBOUNDED = (-math.inf, math.inf)


def drawn_ends(
    interval: Interval, bounds: tuple[float, float] = UNBOUNDED, *, log: bool = False
) -> Ends:
    """The ends of an interval within the metric's bounds; none for one value and for equal ones.

    On a log axis the half width h of the mean m becomes a factor exp(h / m) (delta method).
    """
    if interval.is_constant or not math.isfinite(interval.half_width):
        return None, None
    low, high = interval.low, interval.high
    if log:
        factor = math.exp(interval.half_width / interval.mean)
        low, high = interval.mean / factor, interval.mean * factor
    return max(low, bounds[0]), min(high, bounds[1])


def over_seeds(study: Study) -> str:
    """The end of a caption: values are means, if there are several seeds."""
    return ", mean over seeds" if len({seed for _, seed, _ in study.runs}) > 1 else ""


# Means and differences


def means_table(study: Study, metrics: Sequence[str]) -> Table:
    columns = [[str(point[axis]) for point in study.points] for axis in study.axes]
    columns += [cells_of([study.interval(one, point) for point in study.points]) for one in metrics]
    headers = [*study.axes, *map(label_of, metrics)]
    rows = list(zip(*columns, strict=True))
    return Table(headers, rows, hints=hints_of(metrics, {}), keys=max(1, len(study.axes)))


def differences(study: Study, metrics: Sequence[str]) -> list[Block]:
    """A chart and a table against a chosen baseline, by the size of the effect."""
    axis = str(study.compare)
    by_baseline: dict[str, list[Difference]] = {}
    for one in paired_differences(study, metrics):
        by_baseline.setdefault(named(axis, one.baseline), []).append(one)
    if not by_baseline:
        return []
    differing = {one.metric for found in by_baseline.values() for one in found}
    known = [metric for metric in metrics if metric in differing]
    return [
        "Difference of each row from the baseline with the same seeds, largest relative effect "
        "first." + (" Undecided: the interval contains zero." if over_seeds(study) else ""),
        Choice("baseline", f"Baseline of {axis}", {name: name for name in by_baseline}),
        Choice("difference_metric", "Metric", {metric: label_of(metric) for metric in known}),
        _differences_chart(study, by_baseline, known),
        *(
            When("baseline", name, _differences_table(study, found, known))
            for name, found in by_baseline.items()
        ),
    ]


KINDS = {"interval without zero": "var(--c0)", "undecided": "var(--c7)", "one seed": "var(--c0)",
         "equal in all repetitions": "var(--c6)"}  # fmt: skip


def _kind_of(one: Interval) -> str:
    if one.count < 2:
        return "one seed"
    if one.is_constant:
        return "equal in all repetitions"
    return "undecided" if one.is_undecided else "interval without zero"


def _differences_chart(
    study: Study, by_baseline: Mapping[str, Sequence[Difference]], metrics: Sequence[str]
) -> Picture:
    varied = [name for name, values in study.axes.items() if len(values) > 1] or list(study.axes)
    keys = ("baseline", "metric", "row", "difference", "low", "high", "kind", "effect")
    rows = [
        (baseline, one.metric, BETWEEN.join(named(name, one.point[name]) for name in varied),
         one.interval.mean,
         *drawn_ends(one.interval), _kind_of(one.interval), abs(one.effect))
        for baseline, found in by_baseline.items()
        for one in found
        if one.interval.mean
    ]  # fmt: skip
    columns = columns_of(keys, rows)
    kinds = [kind for kind in KINDS if kind in columns["kind"]]
    is_tall = len(study.points) > MANY_ROWS
    legend = {"title": None, "columns": 2} if len(kinds) > 1 else None
    shade = {"domain": kinds, "range": [KINDS[kind] for kind in kinds]}
    specification = chart(
        "differences",
        height=20 * len(set(columns["row"])),
        baseline=next(iter(by_baseline)),
        metric=metrics[0],
        titles={metric: label_of(metric) for metric in metrics},
        axis=values_axis(is_tall),
        color={"field": "kind", "type": "nominal", "scale": shade, "legend": legend},
        tips=tooltip(row="", baseline="baseline", difference="difference", interval="interval"),
    )
    caption = "Differences of the chosen metric from the chosen baseline; equal rows are omitted."
    return Picture("differences", caption, specification, {"differences": columns}, True, is_tall)


def _differences_table(study: Study, found: Sequence[Difference], metrics: Sequence[str]) -> Table:
    """A row for each point, largest effect first; points without any difference in one row."""
    points: dict[str, Mapping[str, Any]] = {}
    cells: dict[tuple[str, str], Difference] = {}
    effects: dict[str, float] = {}
    for one in found:
        row = repr(one.point)
        points[row] = one.point
        cells[row, one.metric] = one
        effects[row] = max(effects.get(row, 0.0), abs(one.effect))
    order = sorted((row for row in points if effects[row]), key=lambda row: -effects[row])
    equal = [row for row in points if not effects[row]]
    columns = [[str(points[row][axis]) for row in order] for axis in study.axes]
    for metric in metrics:
        every = [cells[row, metric].interval if (row, metric) in cells else None for row in order]
        columns.append([
            f"{text} (undecided)" if one is not None and one.is_undecided else text
            for text, one in zip(cells_of(every), every, strict=True)
        ])  # fmt: skip
    rows = [list(row) for row in zip(*columns, strict=True)]
    if equal:
        rest = ["0"] * len(metrics)
        rows.append([f"{len(equal)} equal: {named_point(points[equal[0]])}"
                     + " …" * (len(equal) > 1), *[""] * (len(study.axes) - 1), *rest])  # fmt: skip
    headers = [*study.axes, *map(label_of, metrics)]
    return Table(headers, rows, hints=hints_of(metrics, {}), keys=len(study.axes))


# Details at a chosen combination of the axes that are not compared

ELSEWHERE = "elsewhere"
"""The choice of a combination, and the column that contains it."""
COMBINATIONS, CELLS = 48, 60_000
"""The most combinations to choose from; fewer if there are more values, to limit the page."""
DEFAULT_METRICS = 8

Spot = tuple[str, str]
"""A combination and a compared value, as they are shown."""


@dataclass(frozen=True)
class Settings:
    """The combinations of a study that a reader can choose."""

    study: Study

    @cached_property
    def every(self) -> dict[str, dict[str, Any]]:
        axes = [name for name in self.study.axes if name != self.study.compare]
        return {
            BETWEEN.join(named(name, point[name]) for name in self._varied): {
                one: point[one] for one in axes
            }
            for point in self.study.points
        }

    @cached_property
    def _varied(self) -> list[str]:
        axes, compare = self.study.axes, self.study.compare
        return [name for name, values in axes.items() if len(values) > 1 and name != compare]

    @cached_property
    def spots(self) -> dict[Spot, dict[str, Any]]:
        """The points of the combinations in the list, by combination and compared value."""
        study, axis = self.study, self.study.compare
        vos = max([1, *(len(one["metrics"]["vos"]) for one in study.records.values())])
        compared = study.axes[axis] if axis is not None else [study.name]
        metrics = len(study.metrics) or DEFAULT_METRICS
        cells = len(compared) * (vos * metrics + min(vos, MAPPED) ** 2)
        listed = list(self.every)[: max(1, min(COMBINATIONS, CELLS // cells))]
        if axis is None:
            return {(chosen, study.name): self.every[chosen] for chosen in listed}
        return {
            (chosen, named(axis, value)): {**self.every[chosen], axis: value}
            for chosen in listed
            for value in compared
        }

    @property
    def compared(self) -> list[str]:
        return list(dict.fromkeys(name for _, name in self.spots))

    @property
    def legend(self) -> str | None:
        axis = self.study.compare
        return axis_title(axis) if axis else None

    @property
    def is_choice(self) -> bool:
        return len(self.every) > 1

    def blocks(self) -> list[Block]:
        """The list to choose from; empty if there is no choice."""
        if not self.is_choice:
            return []
        shown = list(dict.fromkeys(chosen for chosen, _ in self.spots))
        choice = Choice(ELSEWHERE, ", ".join(self._varied), {name: name for name in shown})
        if len(shown) == len(self.every):
            return [choice]
        return [f"The first {len(shown)} of {len(self.every):,} combinations:", choice]

    def when(self, chosen: str, block: str | Table | When) -> str | Table | When:
        """The block, shown if its combination is chosen."""
        return When(ELSEWHERE, chosen, block) if self.is_choice else block

    def parameters(self) -> dict[str, Any]:
        """The parameter of a chart that follows the choice, with its filter."""
        if not self.is_choice:
            return {}
        first = {"name": ELSEWHERE, "value": next(iter(self.spots))[0]}
        return {"params": [first], "transform": [{"filter": f"datum.{ELSEWHERE} === {ELSEWHERE}"}]}

    def with_choice(self, pictures: Sequence[Picture]) -> list[Block]:
        """Pictures that follow the choice, below it; empty if there is no picture."""
        return [*self.blocks(), *pictures] if pictures else []


def by_vo(settings: Settings, metrics: Sequence[str], bounds: OwnBounds) -> list[Block]:
    """A chart and tables of the metrics of each VO."""
    study = settings.study
    found = {
        (metric, spot): {
            vo: mean_interval(list(values.values()), study.level)
            for vo, values in values_of_vos(study, metric, where).items()
        }
        for metric in metrics
        for spot, where in settings.spots.items()
    }
    vos = list(dict.fromkeys(vo for values in found.values() for vo in values))
    known = [one for one in metrics if any(found[one, spot] for spot in settings.spots)]
    if len(vos) < 2 or not known:
        return []
    rows = [
        (chosen, metric, vo, series, one.mean, *drawn_ends(one, bounds_of(metric, bounds)))
        for (metric, (chosen, series)), values in found.items()
        for vo, one in values.items()
    ]
    keys = (ELSEWHERE, "metric", "vo", "series", "value", "low", "high")
    columns = columns_of(keys, rows)
    titles = {metric: label_of(metric) for metric in known}
    chart = vo_chart(
        vos, columns, titles, legend=settings.legend,
        choices={ELSEWHERE: next(iter(settings.spots))[0]} if settings.is_choice else {},
        caption=f"The chosen metric of each VO{over_seeds(study)}.",
    )  # fmt: skip
    tables = []
    for chosen in dict.fromkeys(chosen for chosen, _ in settings.spots):
        names = [name for one, name in settings.spots if one == chosen]
        for metric in known:
            every = [found[metric, (chosen, name)] for name in names]
            cells = [cells_of([one.get(vo) for vo in vos]) for one in every]
            table = Table(["VO", *names], [list(row) for row in zip(vos, *cells, strict=True)])
            tables.append(settings.when(chosen, When("metric", metric, table)))
    return [*settings.blocks(), Choice("metric", "Metric", titles), chart, *tables]


def flows(settings: Settings) -> list[Block]:
    """A map and tables of the VOs that executed each other's jobs; empty if none did."""
    found = {spot: _mean_flows(settings.study, where) for spot, where in settings.spots.items()}
    found = {spot: one for spot, one in found.items() if len(one[0]) > 1 and one[1].any()}
    if not any((jobs - np.diag(np.diag(jobs))).any() for _, jobs in found.values()):
        return []
    # The number of VOs may itself be compared.
    vos = list(dict.fromkeys(vo for names, _ in found.values() for vo in names))
    names = list(dict.fromkeys(name for _, name in found))
    maps = {}
    for spot, (own, jobs) in found.items():
        at = np.array([vos.index(name) for name in own])
        maps["\n".join(spot)] = wide = np.zeros((len(vos), len(vos)))
        wide[np.ix_(at, at)] = jobs
    first = next(iter(found))
    place = f"{ELSEWHERE} + '\\n' + place_of" if settings.is_choice else "'\\n' + place_of"
    params = [{"name": "place_of", "value": first[1]}]
    params += [{"name": ELSEWHERE, "value": first[0]}] if settings.is_choice else []
    parameters = {"params": params, "transform": [{"filter": f"datum.place === {place}"}]}
    choice = Choice("place_of", settings.study.compare or "", {name: name for name in names})
    chart = flow_map(vos, maps, parameters, over_seeds(settings.study))
    return [*settings.blocks(), choice, chart]


def _mean_flows(study: Study, where: Mapping[str, Any]) -> tuple[list[str], Floats]:
    """The VOs at a point, and the jobs of each (rows) that each executed, mean over seeds."""
    records = [study.records[key] for key in study.keys(where).values()]
    vos = list(records[0]["metrics"]["vos"]) if records else []
    jobs = np.zeros((len(vos), len(vos)))
    for record in records:
        for origin, host, count in record["flows"]:
            jobs[origin, host] += count / len(records)
    return vos, jobs


def distributions(settings: Settings) -> list[Block]:
    """Distributions of waits and slowdowns of the jobs of all seeds."""
    study, pictures = settings.study, []
    points = max(60, min(STEPS, 40 * STEPS // len(settings.spots)))
    for name, label in (("wait_s", "wait (s)"), ("slowdown", "slowdown")):
        groups = [
            (*spot, np.array([value for key in study.keys(where).values()
                              for value in study.records[key]["quantiles"].get(name) or ()]))
            for spot, where in settings.spots.items()
        ]  # fmt: skip
        columns = step_columns(ELSEWHERE, groups, points)
        if columns["value"]:
            caption = f"Share of the jobs of all seeds whose {label} is at most x."
            file = f"cdf-{name.replace('_', '-')}"
            look = settings.parameters(), settings.legend, settings.compared
            pictures.append(distribution(file, caption, label, columns, *look))
    return settings.with_choice(pictures)


def courses(settings: Settings) -> list[Block]:
    """Time series of the runs of the first seed."""
    study, pictures = settings.study, []
    for name, label in (("jobs_in_system", "jobs in the system"), ("utilization", "utilization")):
        found: dict[Spot, Mapping[str, Sequence[float]]] = {}
        for spot, where in settings.spots.items():
            keys = study.keys(where)
            one = study.records[keys[min(keys)]]["courses"].get(name) if keys else None
            if one is not None:
                found[spot] = one
        if not found:
            continue
        longest_s = max(one["time_s"][-1] - one["time_s"][0] for one in found.values())
        seconds, unit = next((of for of in UNITS if longest_s >= 3 * of[0]), UNITS[-1])
        lines: dict[str, tuple[Floats, Floats]] = {}
        places: list[str] = []
        for series in settings.compared:
            spots = [spot for spot in found if spot[1] == series]
            if spots:
                lines[series] = tuple(
                    np.concatenate([found[spot][key] for spot in spots]) / scale
                    for key, scale in (("time_s", seconds), ("value", 1.0))
                )  # type: ignore[assignment]
                places += [spot[0] for spot in spots for _ in found[spot]["value"]]
        caption = f"{label[0].upper()}{label[1:]}, first seed."
        file = f"course-{name.replace('_', '-')}"
        look = settings.parameters(), {ELSEWHERE: places}, settings.legend, settings.compared
        pictures.append(course(file, caption, label, unit, lines, *look))
    return settings.with_choice(pictures)
