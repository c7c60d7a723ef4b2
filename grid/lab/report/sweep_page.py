"""The report of a sweep: findings, facet grids, differences by effect, and details at a setting."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grid.config.text_file import read_text
from grid.lab.findings import (
    axis_title,
    cells_of,
    findings,
    mean_columns,
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
    is_number,
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
from grid.lab.study import (
    Difference,
    Study,
    axis_text,
    paired_differences,
    read_repeated,
    values_of_vos,
)
from grid.model.arrays import Floats
from grid.model.errors import input_error
from grid.results.definitions import bounds_of, label_of

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
    metrics = study.metrics or telling_metrics(study)
    settings = Settings(study)
    definitions = [
        f"{label_of(metric)}: {meaning}"
        for metric, meaning in read_sweep(folder).meanings.items()
        if metric in metrics
    ]
    across, _, _ = _roles(study, None)
    # Of axes that vary together each has a chart of its own.
    axes: list[str | None] = [axis for axis in study.partners(across) if axis != study.compare]
    charts: list[Block] = [
        one
        for metric in metrics
        for axis in axes or [None]
        if (one := comparison_chart(study, metric, axis)) is not None
    ]
    if charts and (note := panels_left_out(study)):
        charts.insert(0, note)
    sections = [
        Section("Comparison", charts),
        Section("Differences by effect", differences(study, metrics)),
        Section("Means", [*definitions, means_table(study, metrics)]),
        Section("By virtual organization", by_vo(settings, metrics)),
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
        if len(of) > MANY_TICKS and all(map(is_number, of))
        else f"{name}: {', '.join(map(str, of))}"
        for name, of in study.axes.items()
    )
    intervals = "With one seed there are no intervals."
    if seeds > 1:
        intervals = (
            f"{100 * study.level:g} % confidence intervals (Student's t). Runs with the same seed "
            "have the same jobs, unless an axis changes them."
        )
    runs, points = counted(len(study.runs), "run"), counted(len(study.points), "combination")
    return f"{runs} of {points} with up to {counted(seeds, 'seed')}. {axes}. {intervals}"


def _sources(folder: Path) -> list[Block]:
    files = (("The experiment", EXPERIMENT_FILE), ("The scenario", SCENARIO_FILE))
    return [
        Source(title, read_text(folder / name, MAX_BYTES, EXPECTED))
        for title, name in files
        if name == EXPERIMENT_FILE or os.path.lexists(folder / name)
    ]


# Comparison: one facet grid a metric


def comparison_chart(study: Study, metric: str, along: str | None = None) -> Picture | None:
    """The metric along one axis, a series for each compared value, further axes in panels."""
    across, column, rows = _roles(study, along)
    x = across or study.compare or ""
    series = study.compare if across is not None else None
    intervals = [
        (point, one) for point in study.points
        if (one := study.interval(metric, point)) is not None
    ]  # fmt: skip
    means = [one.mean for _, one in intervals] or [0.0]
    is_log = min(means) > 0 and max(means) > WIDE * min(means)
    bounds = bounds_of(metric, study.bounds)
    rows_of_chart: list[tuple[Any, ...]] = []
    panels: list[tuple[str, str]] = []
    for point, interval in intervals:
        panel = (
            BETWEEN.join(named(axis, point[axis]) for axis in rows),
            named(column, point[column]) if column else "",
        )
        panels += [panel] if panel not in panels else []
        if panels.index(panel) < PANELS:
            place = point[x] if x else study.name
            rows_of_chart.append((
                "" if series is None else named(series, point[series]),
                place if isinstance(place, int | float) else str(place),
                interval.mean, *drawn_ends(interval, bounds, log=is_log), *panel,
            ))  # fmt: skip
    if not rows_of_chart:
        return None
    names = ("series", "x", "value", "low", "high", "row", "column")
    columns = columns_of(names, rows_of_chart)
    label = label_of(metric)
    caption = f"{label[0].upper()}{label[1:]}{over_seeds(study)}."
    if any(low is not None for low in columns["low"]):
        caption += f" Intervals: {100 * study.level:g} %."
    name = f"compare-{metric.replace('_', '-')}"
    has_lines = True
    if len(study.partners(across)) > 1:
        name += f"-by-{x.rsplit('.', maxsplit=1)[-1].replace('_', '-')}"
        has_lines = study.axes[x] == sorted(study.axes[x])
    legend = axis_title(study.compare) if study.compare else None
    return grid_chart(
        name, caption, columns, x=axis_title(x), y=label, legend=legend, has_lines=has_lines
    )


def _roles(study: Study, along: str | None) -> tuple[str | None, str | None, list[str]]:
    """The axes of x, of columns and of rows of panels; the compared axis has the series."""
    every = [name for name in study.axes if name not in study.partners(study.compare)]
    varied = [name for name in every if len(study.axes[name]) > 1]
    numeric = [name for name in varied if all(is_number(one) for one in study.axes[name])]
    across = along if along in every else next(iter(numeric or varied or every), None)
    rest = [name for name in varied if name not in study.partners(across)]
    return across, rest[0] if rest else None, rest[1:]


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
    headers = [*study.axes, *map(label_of, metrics)]
    rows = list(zip(*mean_columns(study, metrics), strict=True))
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
        "Difference of each row from the baseline, paired by seed, largest relative effect first."
        + (" Undecided: the interval contains zero." if over_seeds(study) else ""),
        Choice("baseline", f"Baseline of {axis}", {name: name for name in by_baseline}),
        Choice("difference_metric", "Metric", {metric: label_of(metric) for metric in known}),
        _differences_chart(study, by_baseline, known),
        *(
            When("baseline", name, _differences_table(study, found, known))
            for name, found in by_baseline.items()
        ),
    ]


KINDS = {"interval excludes zero": "var(--c0)", "undecided": "var(--c7)", "one seed": "var(--c0)",
         "equal in all repetitions": "var(--c6)"}  # fmt: skip


def _kind_of(one: Interval) -> str:
    if one.count < 2:
        return "one seed"
    if one.is_constant:
        return "equal in all repetitions"
    return "undecided" if one.is_undecided else "interval excludes zero"


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
    caption = (
        "Differences in the selected metric from the selected baseline; equal rows are omitted."
    )
    return Picture("differences", caption, specification, {"differences": columns}, True, is_tall)


def _differences_table(study: Study, found: Sequence[Difference], metrics: Sequence[str]) -> Table:
    """A row for each point, largest effect first; points without any difference in one row."""
    points = {repr(one.point): one.point for one in found}
    cells = {(repr(one.point), one.metric): one.interval for one in found}
    effects = {row: max(abs(one.effect) for one in found if one.point == point)
               for row, point in points.items()}  # fmt: skip
    order = sorted((row for row in points if effects[row]), key=lambda row: -effects[row])
    equal = [row for row in points if not effects[row]]
    columns = [[axis_text(points[row][axis]) for row in order] for axis in study.axes]
    for metric in metrics:
        every = [cells.get((row, metric)) for row in order]
        columns.append([
            f"{text} (undecided)" if one is not None and one.is_undecided else text
            for text, one in zip(cells_of(every), every, strict=True)
        ])  # fmt: skip
    rows = [list(row) for row in zip(*columns, strict=True)]
    if equal:
        more = " …" * (len(equal) > 1)
        first = f"{len(equal)} equal: {named_point(points[equal[0]])}{more}"
        rows.append([first, *[""] * (len(study.axes) - 1), *["0"] * len(metrics)])
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


class Settings:
    """The combinations of a study that a reader can choose.

    `spots` are the points of the combinations in the list, by combination and compared value.
    """

    def __init__(self, study: Study) -> None:
        axis = study.compare
        axes = [name for name in study.axes if name != axis]
        self._varied = [name for name in axes if len(study.axes[name]) > 1]
        every = {
            BETWEEN.join(named(name, point[name]) for name in self._varied): {
                one: point[one] for one in axes
            }
            for point in study.points
        }
        vos = max([1, *(len(one["metrics"]["vos"]) for one in study.records.values())])
        compared = {"": {}} if axis is None else {
            named(axis, value): {axis: value} for value in study.axes[axis]
        }  # fmt: skip
        metrics = len(study.metrics) or DEFAULT_METRICS
        cells = len(compared) * (vos * metrics + min(vos, MAPPED) ** 2)
        self.listed = list(every)[: max(1, min(COMBINATIONS, CELLS // cells))]
        self.study, self.count = study, len(every)
        self.compared = [name or study.name for name in compared]
        self.legend = axis_title(axis) if axis else None
        self.spots: dict[Spot, dict[str, Any]] = {
            (chosen, name or study.name): every[chosen] | value
            for chosen in self.listed
            for name, value in compared.items()
        }

    @property
    def is_choice(self) -> bool:
        return self.count > 1

    def when(self, chosen: str, block: str | Table | When) -> str | Table | When:
        """The block, shown if its combination is chosen."""
        return When(ELSEWHERE, chosen, block) if self.is_choice else block

    def parameters(self) -> dict[str, Any]:
        """The parameter of a chart that follows the choice, with its filter."""
        if not self.is_choice:
            return {}
        first = {"name": ELSEWHERE, "value": self.listed[0]}
        return {"params": [first], "transform": [{"filter": f"datum.{ELSEWHERE} === {ELSEWHERE}"}]}

    def with_choice(self, blocks: Sequence[Block]) -> list[Block]:
        """Blocks that follow the choice, below the list to choose from."""
        if not blocks or not self.is_choice:
            return list(blocks)
        choice = Choice(ELSEWHERE, ", ".join(self._varied), {name: name for name in self.listed})
        if len(self.listed) == self.count:
            return [choice, *blocks]
        return [f"The first {len(self.listed)} of {self.count:,} combinations:", choice, *blocks]


def by_vo(settings: Settings, metrics: Sequence[str]) -> list[Block]:
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
        (chosen, metric, vo, series, one.mean, *drawn_ends(one, bounds_of(metric, study.bounds)))
        for (metric, (chosen, series)), values in found.items()
        for vo, one in values.items()
    ]
    keys = (ELSEWHERE, "metric", "vo", "series", "value", "low", "high")
    titles = {metric: label_of(metric) for metric in known}
    chart = vo_chart(
        vos, columns_of(keys, rows), titles, legend=settings.legend,
        choices={ELSEWHERE: settings.listed[0]} if settings.is_choice else {},
        caption=f"The selected metric by VO{over_seeds(study)}.",
    )  # fmt: skip
    tables = []
    for chosen in settings.listed:
        for metric in known:
            every = [found[metric, (chosen, name)] for name in settings.compared]
            cells = [cells_of([one.get(vo) for vo in vos]) for one in every]
            rows_of_table = [list(row) for row in zip(vos, *cells, strict=True)]
            table = Table(["VO", *settings.compared], rows_of_table)
            tables.append(settings.when(chosen, When("metric", metric, table)))
    return settings.with_choice([Choice("metric", "Metric", titles), chart, *tables])


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
    return settings.with_choice([choice, chart])


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
