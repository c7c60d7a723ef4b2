"""The report of a sweep: what differs between its points, by how much, and how surely."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grid.config.text_file import read_text
from grid.lab.repetitions import read_repeated, repetitions_told
from grid.lab.report.axes import WIDE
from grid.lab.report.charts import Labels, Series, any_cut, are_lines, chart, reach
from grid.lab.report.labels import counted, shown
from grid.lab.report.page import Block, Section, Source, Table, html_page
from grid.lab.report.run_page import hints_of, save_page
from grid.lab.report.style import Picture
from grid.lab.statistics import repetitions
from grid.lab.store import (
    EXPECTED,
    EXPERIMENT_FILE,
    FAILED_FILE,
    MAX_BYTES,
    SCENARIO_FILE,
    read_sweep,
)
from grid.lab.study import Study
from grid.lab.sweep_differences import differences
from grid.lab.sweep_flows import flows
from grid.lab.sweep_jobs import courses, distributions
from grid.lab.sweep_texts import (
    SAME_TOLD,
    cells_of,
    fewer_seeds,
    is_same,
    jobs_turned_away,
    measured_line,
    missing_told,
    named,
    over_seeds,
    own_bounds,
    values_of,
)
from grid.lab.sweep_vos import by_vo
from grid.lab.telling import telling_metrics, without_effect
from grid.model.errors import one_mistake
from grid.results.bounds import OwnBounds, bounds_of
from grid.results.definitions import label_of

CHARTS_A_METRIC = 12
"""More axes than two make several charts of a metric; this many are drawn."""
WISHED = 0.05
"""Repetitions are suggested for an interval of the mean ± this share of it."""


def write_sweep_page(folder: Path, page: Path) -> None:
    """Write the report of the sweep in `folder`, and its pictures into `pictures` beside it."""
    study = read_repeated(folder)
    if not study.runs:
        why = f"; see {folder / FAILED_FILE}" if (folder / FAILED_FILE).exists() else ""
        found = "a sweep of which no run is done"
        raise one_mistake("", found, f"one with results{why}", str(folder))
    metrics, bounds = study.metrics or telling_metrics(study), own_bounds(folder)
    seeds = len({seed for _, seed, _ in study.runs})
    drawn = f" Intervals are of {100 * study.level:g} %, over {counted(seeds, 'repetition')}."
    comparisons: list[Block] = [
        replace(one, caption=one.caption + drawn * (seeds > 1))
        for metric in metrics
        for one in comparison_charts(study, metric, bounds)
    ]
    if comparisons and (left_out := charts_left_out(study)):
        comparisons.insert(0, left_out)
    axes = "; ".join(
        f"{name}: {', '.join(map(_quoted, values))}" for name, values in study.axes.items()
    )
    some_lack = len(study.runs) < len(study.points) * seeds
    introduction = (
        f"{counted(len(study.runs), 'run')}: {counted(len(study.points), 'combination')} with "
        f"{'up to ' if some_lack else ''}{counted(seeds, 'seed')} each. {axes}. "
        + " ".join(
            filter(
                None,
                (
                    repetitions_told(folder),
                    _certainty(study, seeds),
                    missing_told(folder),
                    without_effect(study),
                    fewer_seeds(study),
                    jobs_turned_away(study),
                    measured_line(folder),
                ),
            )
        )
    )
    sections = [
        Section("Comparisons", comparisons),
        Section("Means", [*_plugged_in(folder, metrics), means_table(study, metrics)]),
        Section("Differences, paired by seed", differences(study, metrics)),
        Section("By virtual organization", by_vo(study, metrics, bounds)),
        Section("Flows between VOs", flows(study)),
        Section("Distributions", distributions(study)),
        Section("Over time", courses(study)),
        Section("How it was made", _sources(folder)),
    ]
    save_page(page, html_page(f"Sweep {study.name}", introduction, sections), sections)


def _quoted(value: Any) -> str:
    """A value in a list of values: one that has a comma stands in quotes."""
    return f'"{value}"' if "," in str(value) else str(value)


def _plugged_in(folder: Path, metrics: Sequence[str]) -> Iterator[Block]:
    """A line for each metric of the table that was plugged in and says what it means."""
    for metric, meaning in read_sweep(folder).get("meanings", {}).items():
        if metric in metrics:
            yield f"{label_of(metric)}: {meaning}"


def _certainty(study: Study, seeds: int) -> str:
    if seeds == 1:
        return "With one seed there are no intervals: nothing here says how sure a mean is."
    return (
        f"Intervals are Student's, at a level of {100 * study.level:g} %; the same seed means the "
        f"same jobs, unless an axis changes them. {SAME_TOLD}."
    )


CUT = "An interval that reaches beyond the axis ends there."


def comparison_charts(
    study: Study, metric: str, bounds: OwnBounds, along: str | None = None
) -> Iterator[Picture]:
    """The metric over the axes: the compared one as lines or bars, another (`along`) as x."""
    across, unique = _axes_of_charts(study, along)
    panels = [
        (where, list(_series(study, metric, across, where))) for where in unique[:CHARTS_A_METRIC]
    ]
    every = [one for _, series in panels for one in series]
    reaches = _reaches(every, bounds_of(metric, bounds))
    for number, (where, series) in enumerate(panels, start=1):
        if not series:
            continue
        suffix = f"-{number}" if len(unique) > 1 else ""
        fixed_at = ", ".join(f"{name} {value}" for name, value in where.items())
        y = label_of(metric)
        caption = f"{y[0].upper()}{y[1:]}{f', {fixed_at}' if fixed_at else ''}."
        name = f"compare-{metric.replace('_', '-')}{suffix}"
        x = across or study.compare or ""
        labels = Labels(name, caption, x, y, subtitle=fixed_at, of=values_of(study), **reaches)
        if any_cut(labels, series):
            labels = replace(labels, caption=f"{caption} {CUT}")
        yield chart(labels, series)


def charts_left_out(study: Study, along: str | None = None) -> str:
    """Which charts of each metric there are not; empty if there are all."""
    _, unique = _axes_of_charts(study, along)
    if len(unique) <= CHARTS_A_METRIC:
        return ""
    return (
        f"Of {len(unique):,} combinations of {', '.join(unique[0])} the first {CHARTS_A_METRIC} "
        "have charts of each metric; what is below is of all."
    )


def _axes_of_charts(
    study: Study, along: str | None = None
) -> tuple[str | None, list[dict[str, Any]]]:
    """The axis that charts have as x, and where on further axes each chart of a metric is."""
    every = [name for name in study.axes if name != study.compare]
    # An axis of one value has nothing to show along it, unless there is no other.
    others = [name for name in every if len(study.axes[name]) > 1] or every[:1]
    numeric = [name for name in others if _is_numeric(study.axes[name])]
    across = along if along in every else next(iter(numeric or others), None)
    rest = [name for name in others if name != across]
    fixed = [{name: point[name] for name in rest} for point in study.points]
    return across, [point for n, point in enumerate(fixed) if point not in fixed[:n]]


def _reaches(series: Sequence[Series], bounds: tuple[float, float]) -> dict[str, Any]:
    """What charts that are compared have in common, of `Labels`: one range, one kind of axis."""
    y_range, (least, most) = reach(series), bounds
    means = [mean for one in series for mean in one.mean]
    is_wide = bool(means) and min(means) > 0 and max(means) > WIDE * min(means)
    if y_range is None or not is_wide or not are_lines(series):
        return {"y_range": y_range, "y_bounds": (least, most)}
    # A logarithmic axis has no zero: an interval that reaches so far goes to the axis' end.
    low = least if least > 0 else max(min(means) / 2, y_range[0])
    return {"y_range": (low, min(most, y_range[1])), "y_bounds": (low, most), "log_y": True}


def _series(
    study: Study, metric: str, across: str | None, where: Mapping[str, Any]
) -> Iterator[Series]:
    """A series for each compared value, along `across`; without it, one along the compared."""
    if across is None:
        axis = study.compare
        places = list(study.axes[axis]) if axis is not None else [study.name]
        points = [{axis: value} if axis is not None else {} for value in places]
        one = series_of(study, metric, "", places, points)
        if one is not None:
            yield one
        return
    compared = study.axes[study.compare] if study.compare is not None else [None]
    for number, value in enumerate(compared):
        base = {**where, study.compare: value} if study.compare is not None else dict(where)
        places = list(study.axes[across])
        points = [{**base, across: place} for place in places]
        label = "" if study.compare is None else named(study.compare, value)
        one = series_of(study, metric, label, places, points)
        if one is not None:
            yield replace(one, place=number)


def series_of(
    study: Study, metric: str, label: str, places: list[Any], points: list[dict[str, Any]]
) -> Series | None:
    """The metric's means and intervals at `points`, which stand at `places`; None if none has."""
    found = [
        (place, interval)
        for place, point in zip(places, points, strict=True)
        if (interval := study.interval(metric, point)) is not None
    ]
    if not found:
        return None
    return Series(
        label,
        [place for place, _ in found],
        [interval.mean for _, interval in found],
        [math.nan if is_same(interval) else interval.low for _, interval in found],
        [math.nan if is_same(interval) else interval.high for _, interval in found],
    )


def means_table(study: Study, metrics: tuple[str, ...]) -> Table:
    """Every point with its means ± half the interval, and the repetitions that seem enough."""
    columns = [[str(point[axis]) for point in study.points] for axis in study.axes]
    headers = list(study.axes)
    for metric in metrics:
        columns.append(cells_of([study.interval(metric, point) for point in study.points]))
        headers.append(label_of(metric))
    if over_seeds(study):
        columns.append([shown(_enough(study, metrics, point)) for point in study.points])
        headers.append(f"repetitions for ± {100 * WISHED:g} % of each mean")
    rows = list(zip(*columns, strict=True))
    return Table(headers, rows, hints=hints_of(metrics, {}), keys=len(study.axes))


def _enough(study: Study, metrics: Sequence[str], point: Mapping[str, Any]) -> int | None:
    """Repetitions that make the widest interval at a point as narrow as wished; None if unknown."""
    most = 0
    for metric in metrics:
        values = list(study.values(metric, point).values())
        if len(set(values)) == 1:
            # Where no seed changes anything, repetitions are no evidence of any width.
            continue
        wished = abs(sum(values)) / len(values) * WISHED if values else 0.0
        most = max(most, (repetitions(values, wished, study.level) or 0) if values else 0)
    return most or None


def _is_numeric(values: list[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _sources(folder: Path) -> list[Block]:
    """The experiment, and the scenario where that does not stand within it."""
    files = (("The experiment", EXPERIMENT_FILE), ("The scenario", SCENARIO_FILE))
    return [
        Source(title, read_text(folder / name, MAX_BYTES, EXPECTED))
        for title, name in files
        if name == EXPERIMENT_FILE or os.path.lexists(folder / name)
    ]
