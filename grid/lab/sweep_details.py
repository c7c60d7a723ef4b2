"""Parts of a sweep's report for chosen settings: metrics by VO, job flows, distributions, courses.

The reader chooses a combination of values of the axes that are not compared. All compared values
are shown at that combination.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from grid.lab.report.axes import durations, names_within, numbers
from grid.lab.report.charts import (
    FEW,
    INTERVAL_TEXTS,
    INTERVAL_TOLD,
    NAMES,
    Labels,
    Series,
    by_series,
    lines,
    reach,
)
from grid.lab.report.flows import BETWEEN, MAPPED, flow_map, flow_tables
from grid.lab.report.page import Block, Choice, Table, When
from grid.lab.report.style import COLOURS, FIGURE, Picture
from grid.lab.report.waiting import POINTS, distribution, steps_of
from grid.lab.statistics import Interval, mean_interval, paired_values
from grid.lab.study import Study
from grid.lab.sweep_texts import cells_of, difference_cells, named, over_seeds, values_of
from grid.lab.tables import BASELINES, OfVos, values_of_vos
from grid.model.arrays import Floats
from grid.results.definitions import OwnBounds, bounds_of, label_of

ELSEWHERE = "elsewhere"
"""The choice of a combination, and the column that contains it."""
CHOICES, CELLS = 48, 60_000
"""The most combinations to choose from; fewer if they have more values of VOs, since the size of a
page is limited."""
DEFAULT_METRICS = 8

Spot = tuple[str, str]
"""A combination that can be chosen, and a compared value, both as they are shown."""


@dataclass(frozen=True)
class _Settings:
    """The combinations of a study that a reader can choose, and what to draw for the choice."""

    study: Study

    @cached_property
    def every(self) -> dict[str, dict[str, Any]]:
        """All combinations by name; last those at which the compared value changes no run."""
        study, names, digests = self.study, self._names, defaultdict(set)
        axes = [name for name in study.axes if name != study.compare]
        for point, seed, key in study.runs:
            digests[names(point), seed].add(str(study.records[key].get("digest")))
        differing = {name for (name, _), found in digests.items() if len(found) > 1}
        found = {names(point): {name: point[name] for name in axes} for point in study.points}
        return dict(sorted(found.items(), key=lambda one: one[0] not in differing))

    @property
    def _names(self) -> Callable[[Mapping[str, Any]], str]:
        axes = self._varied
        return lambda point: ", ".join(named(name, point[name]) for name in axes)

    @property
    def _varied(self) -> list[str]:
        axes, compare = self.study.axes, self.study.compare
        return [name for name, values in axes.items() if len(values) > 1 and name != compare]

    @cached_property
    def shown(self) -> list[str]:
        """The names of the combinations in the list."""
        study = self.study
        vos = max([1, *(len(one["metrics"]["vos"]) for one in study.records.values())])
        compared = len(study.axes[study.compare]) if study.compare is not None else 1
        cells = compared * (vos * (len(study.metrics) or DEFAULT_METRICS) + min(vos, MAPPED) ** 2)
        return list(self.every)[: max(1, min(CHOICES, CELLS // cells))]

    @property
    def spots(self) -> dict[Spot, dict[str, Any]]:
        """The points of all combinations in the list."""
        axis, study = self.study.compare, self.study
        if axis is None:
            return {(chosen, study.name): self.every[chosen] for chosen in self.shown}
        return {
            (chosen, named(axis, value)): {**self.every[chosen], axis: value}
            for chosen in self.shown
            for value in study.axes[axis]
        }

    @property
    def compared(self) -> list[str]:
        """The names of the compared values."""
        return list(dict.fromkeys(name for _, name in self.spots))

    @property
    def is_choice(self) -> bool:
        """Whether there is more than one combination."""
        return len(self.every) > 1

    def blocks(self) -> list[Block]:
        """The list to choose from; empty if there is no choice."""
        if not self.is_choice:
            return []
        axes = ", ".join(self._varied)
        choice = Choice(ELSEWHERE, axes, {name: name for name in self.shown})
        if len(self.every) == len(self.shown):
            return [choice]
        count = len(self.every)
        return [f"The first {len(self.shown)} of {count:,} combinations of {axes}:", choice]

    def when(self, chosen: str, block: str | Table | When) -> str | Table | When:
        """The block, shown if its combination is chosen."""
        return When(ELSEWHERE, chosen, block) if self.is_choice else block

    @property
    def caption(self) -> str:
        """The end of a caption."""
        return ", at the settings chosen above" if self.is_choice else ""

    @property
    def filter(self) -> list[str]:
        """The condition on rows of a chart."""
        return [f"datum.{ELSEWHERE} === {ELSEWHERE}"] if self.is_choice else []

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """The parameter of a chart that follows the choice."""
        return [{"name": ELSEWHERE, "value": self.shown[0]}] if self.is_choice else []

    def title(self, expression: str) -> dict[str, Any]:
        """A title that is an expression, with the chosen combination below it."""
        parts = [expression, *([ELSEWHERE] if self.is_choice else [])]
        return {"text": {"expr": f"[{', '.join(parts)}]"}}


# By VO

BASELINE = "vo_baseline"
TABLES = 12
"""The most metrics with a table of VOs; the chart has all."""
MANY_BARS = 15
VO_COLUMNS = (ELSEWHERE, "metric", "vo", "series", "value", "low", "high")
Found = Mapping[tuple[str, str, str], Mapping[str, Interval]]
"""The interval of each VO, by metric, combination and compared value."""


def by_vo(study: Study, metrics: Sequence[str], bounds: OwnBounds) -> list[Block]:
    """A chart and tables of the metrics of each VO, means over seeds."""
    settings = _Settings(study)
    found = {
        (metric, *spot): {
            vo: mean_interval(list(values.values()), study.level)
            for vo, values in values_of_vos(study, metric, where).items()
        }
        for metric in metrics
        for spot, where in settings.spots.items()
    }
    vos = list(dict.fromkeys(vo for values in found.values() for vo in values))
    known = [one for one in metrics if any(found[one, *spot] for spot in settings.spots)]
    if len(vos) < 2 or not known:
        return []
    has_differences = over_seeds(study) and len(settings.compared) > 1
    return [
        *settings.blocks(),
        Choice("vo_metric", "Metric", {one: label_of(one) for one in known}),
        _vo_bars(settings, found, {one: _bounds(one, bounds) for one in known}, vos),
        *_vo_tables(settings, found, known[:TABLES], vos),
        *(_vo_differences(settings, known[:TABLES], vos) if has_differences else ()),
    ]


def _vo_tables(
    settings: _Settings, found: Found, metrics: Sequence[str], vos: Sequence[str]
) -> Iterator[Block]:
    names = settings.compared
    for chosen in settings.shown:
        for metric in metrics:
            every = [found.get((metric, chosen, name), {}) for name in names]
            columns = [cells_of([one.get(vo) for vo in vos]) for one in every]
            rows = [list(row) for row in zip(vos, *columns, strict=True)]
            yield settings.when(chosen, When("vo_metric", metric, Table(["VO", *names], rows)))


def _vo_differences(
    settings: _Settings, metrics: Sequence[str], vos: Sequence[str]
) -> Iterator[Block]:
    """The differences of each VO from the baseline that the reader chooses."""
    study, names, spots = settings.study, settings.compared, settings.spots
    cells = len(settings.shown) * len(metrics) * len(vos) * len(names)
    baselines = names[: max(1, min(BASELINES, CELLS // cells))]
    yield "The same minus that of the baseline, VO by VO, paired by seed:"
    yield Choice(BASELINE, f"Baseline of {study.compare}", {name: name for name in baselines})
    for chosen in settings.shown:
        for metric in metrics:
            values = {name: values_of_vos(study, metric, spots[chosen, name]) for name in names}
            for baseline in baselines:
                table = When("vo_metric", metric, _less(study, values, baseline, vos))
                yield settings.when(chosen, When(BASELINE, baseline, table))


def _less(study: Study, values: Mapping[str, OfVos], baseline: str, vos: Sequence[str]) -> Table:
    others = [name for name in values if name != baseline]
    columns = []
    for name in others:
        pairs = [
            paired_values(values[name].get(vo, {}), values[baseline].get(vo, {})) for vo in vos
        ]
        columns.append(
            difference_cells([mean_interval(one, study.level) if one else None for one in pairs])
        )
    return Table(["VO", *others], [list(row) for row in zip(vos, *columns, strict=True)])


def _bounds(metric: str, own: OwnBounds) -> list[float | None]:
    return [bound if math.isfinite(bound) else None for bound in bounds_of(metric, own)]


def _vo_bars(
    settings: _Settings,
    found: Found,
    bounds: Mapping[str, list[float | None]],
    vos: Sequence[str],
) -> Picture:
    """VOs below each other; for each a bar for each compared value, in the colour of the value."""
    names, study = settings.compared, settings.study
    rows = [
        (chosen, metric, vo, name, *_ends(values[vo]))
        for (metric, chosen, name), values in found.items()
        for vo in vos
        if vo in values
    ]
    columns = {key: [row[n] for row in rows] for n, key in enumerate(VO_COLUMNS)}
    is_tall = len(vos) * len(names) > MANY_BARS
    orient = "top" if is_tall else "bottom"
    x: dict[str, Any] = {"field": "value", "type": "quantitative", "title": None}
    x["axis"] = {"format": FIGURE, "tickCount": 5, "orient": orient}
    y = {"field": "vo", "type": "nominal", "title": None, "sort": list(vos)}
    encoding = {
        "y": {**y, "axis": {"labelOverlap": False, **names_within(NAMES)}},
        "yOffset": {"field": "series", "sort": names},
        "x": x,
        **by_series(names, orient=orient, title=values_of(study) or None),
    }
    rules = [
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "rule", "color": colour, "strokeWidth": width},
            "encoding": {
                **{channel: encoding[channel] for channel in ("y", "yOffset")},
                "x": {**x, "field": "left"},
                "x2": {"field": "right"},
            },
        }
        # A line on a wider one in the colour of the page, to be seen inside the bar.
        for colour, width in (("var(--paper)", 2.2), ("var(--ink)", 1.2))
    ]
    told = [
        {"field": "vo", "title": "VO"}, {"field": "series", "title": " "},
        {"field": "value", "title": "mean", "type": "quantitative", "format": FIGURE},
    ]  # fmt: skip
    has_intervals = any(low is not None for low in columns["low"])
    bars: dict[str, Any] = {"mark": {"type": "bar"}}
    bars["encoding"] = {**encoding, "tooltip": [*told, *(INTERVAL_TOLD if has_intervals else ())]}
    conditions = " && ".join(["datum.metric === vo_metric", *settings.filter])
    specification = {
        "title": settings.title("titles[vo_metric]"),
        "data": {"name": "vos"},
        "params": [
            {"name": "vo_metric", "value": next(iter(bounds))},
            {"name": "titles", "value": {metric: label_of(metric) for metric in bounds}},
            {"name": "bounds", "value": bounds},
            *settings.parameters,
        ],
        "transform": [{"filter": conditions}, *_ENDS],
        "width": "container",
        "height": max((16 if has_intervals else 12) * len(names) + 8, 20) * len(vos),
        "layer": [bars, *(rules if has_intervals else ())],
    }
    caption = f"The metric chosen above, of each VO{over_seeds(study)}{settings.caption}."
    if has_intervals:
        caption += f" Intervals are of {100 * study.level:g} %, and end at the metric's bounds."
    return Picture("vos", caption, specification, {"vos": columns}, True, is_tall)


def _ends(interval: Interval) -> tuple[float, float | None, float | None]:
    """Mean, low and high of an interval, without ends for a single value and for equal ones."""
    if interval.is_constant or not math.isfinite(interval.half_width):
        return interval.mean, None, None
    return interval.mean, interval.low, interval.high


_LEAST, _MOST = ("bounds[datum.metric][0]", "bounds[datum.metric][1]")
_ENDS = [
    *INTERVAL_TEXTS,
    {"calculate": f"{_LEAST} === null ? datum.low : max(datum.low, {_LEAST})", "as": "left"},
    {"calculate": f"{_MOST} === null ? datum.high : min(datum.high, {_MOST})", "as": "right"},
]
"""The ends of drawn intervals, within the bounds of the metric."""


# Flows

FLOW_PLACE = "flow_place"


def flows(study: Study) -> list[Block]:
    """Which VO ran whose jobs: a map and tables; empty if no job was forwarded."""
    settings = _Settings(study)
    found = {spot: _mean_flows(study, where) for spot, where in settings.spots.items()}
    found = {spot: one for spot, one in found.items() if len(one[0]) > 1 and one[1].any()}
    forwarding = [
        spot for spot, (_, jobs) in found.items() if (jobs - np.diag(np.diag(jobs))).any()
    ]
    if not forwarding:
        return []
    # The number of VOs may itself be compared.
    vos = list(dict.fromkeys(vo for names, _ in found.values() for vo in names))
    compared = list(dict.fromkeys(name for _, name in (*forwarding, *found)))
    used = (settings.is_choice, len(compared) > 1)
    signals = [one for one, has in zip((ELSEWHERE, FLOW_PLACE), used, strict=True) if has]
    maps = {
        BETWEEN.join(one for one, has in zip(spot, used, strict=True) if has): _among(vos, *every)
        for spot, every in found.items()
    }
    choice = [Choice(FLOW_PLACE, study.compare or "", {name: name for name in compared})]
    tables = [
        settings.when(chosen, When(FLOW_PLACE, name, one) if used[1] else one)
        for (chosen, name), every in found.items()
        for one in flow_tables(*every)
    ]
    picture = flow_map(vos, maps, signals, over_seeds(study) + settings.caption)
    return [*settings.blocks(), *(choice if used[1] else []), picture, *tables]


def _mean_flows(study: Study, where: Mapping[str, Any]) -> tuple[list[str], Floats]:
    """The VOs at a point, and the jobs of each (rows) that each ran (columns), mean over seeds."""
    records = [study.records[key] for key in study.keys(where).values()]
    vos = list(records[0]["metrics"]["vos"]) if records else []
    jobs = np.zeros((len(vos), len(vos)))
    for record in records:
        for origin, host, count in record["flows"]:
            jobs[origin, host] += count / len(records)
    return vos, jobs


def _among(vos: Sequence[str], names: Sequence[str], jobs: Floats) -> Floats:
    """The flows between `names`, as a matrix of all `vos`."""
    at = np.array([vos.index(name) for name in names])
    wide = np.zeros((len(vos), len(vos)))
    wide[np.ix_(at, at)] = jobs
    return wide


# Distributions and courses

CURVES, FEWEST_POINTS = 40, 60
"""If there are more curves than this, each has fewer steps, since the size of a page is limited."""
SEEN = "seen_series"
"""The choice of the compared value that is highlighted if there are many."""


def distributions(study: Study) -> list[Block]:
    """Distributions of waits and slowdowns of the jobs of all seeds."""
    settings = _Settings(study)
    return _with_choices(settings, list(_distributions(settings)))


def courses(study: Study) -> list[Block]:
    """Time series of the runs of the first seed."""
    settings = _Settings(study)
    return _with_choices(settings, list(_courses(settings)))


def _with_choices(settings: _Settings, pictures: list[Picture]) -> list[Block]:
    if not pictures:
        return []
    names = settings.compared
    seen = [Choice(SEEN, settings.study.compare or "", {name: name for name in names})]
    return [*settings.blocks(), *(seen if len(names) > FEW else []), *pictures]


def _places(settings: _Settings) -> dict[str, int]:
    """The colour of each compared value, the same in all charts."""
    return {name: place for place, name in enumerate(settings.compared)}


def _distributions(settings: _Settings) -> Iterator[Picture]:
    study, spots, places = settings.study, settings.spots, _places(settings)
    points = max(FEWEST_POINTS, min(POINTS, POINTS * CURVES // len(spots)))
    for name, label, along in (("wait_s", "wait", durations), ("slowdown", "slowdown", numbers)):
        columns: dict[str, list[Any]] = {ELSEWHERE: [], "series": [], "value": [], "share": []}
        for (elsewhere, series), where in spots.items():
            sets = [study.records[key]["quantiles"].get(name) for key in study.keys(where).values()]
            values = np.array([value for quantiles in sets for value in quantiles or ()])
            if len(values):
                found, shares = steps_of(values, points)
                columns[ELSEWHERE] += [elsewhere] * len(found)
                columns["series"] += [series] * len(found)
                columns["value"] += found.tolist()
                columns["share"] += shares.tolist()
        if columns["value"]:
            axis = along("value", label, columns["value"])
            caption = f"Share of the jobs of all seeds whose {label} is at most x"
            caption += f"{settings.caption}."
            picture = distribution(f"cdf-{name.replace('_', '-')}", caption, axis, columns, places)
            yield _at_chosen(settings, picture)


def _courses(settings: _Settings) -> Iterator[Picture]:
    study, places = settings.study, _places(settings)
    for name, label in (("jobs_in_system", "jobs in the system"), ("utilization", "utilization")):
        found = []
        for (elsewhere, series), where in settings.spots.items():
            keys = study.keys(where)
            course = study.records[keys[min(keys)]]["courses"].get(name) if keys else None
            if course is not None:
                one = Series(series, course["time_s"], course["value"], place=places[series])
                found.append(replace(one, elsewhere=elsewhere))
        if found:
            caption = f"{label[0].upper()}{label[1:]}, first seed{settings.caption}."
            text = Labels(
                f"course-{name.replace('_', '-')}", caption, "", label, over_time=True,
                y_range=reach(found), y_bounds=(0.0, math.inf),
            )  # fmt: skip
            yield _at_chosen(settings, lines(text, found, markers=False))


def _at_chosen(settings: _Settings, picture: Picture) -> Picture:
    """The chart with only the rows of the chosen combination, which its title names.

    If there are many lines, the chosen one is highlighted and the others are grey.
    """
    specification, names = dict(picture.specification), settings.compared
    caption, title = picture.caption, f"'{picture.specification['title']}'"
    specification["params"] = settings.parameters
    if settings.is_choice:
        specification["transform"] = [{"filter": one} for one in settings.filter]
        specification["title"] = settings.title(title)
    if len(names) > FEW:
        specification["params"] = [*settings.parameters, {"name": SEEN, "value": names[0]}]
        specification["title"] = settings.title(f"{title}, {SEEN}")
        specification["encoding"], specification["layer"] = _highlighted(specification)
        caption += f" Grey: the other values of {settings.study.compare}."
    return Picture(picture.name, caption, specification, picture.tables)


def _highlighted(
    specification: Mapping[str, Any],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The encoding and the layers of a chart of lines with one of them highlighted."""
    given = specification["encoding"]
    first, *others = specification["layer"]
    alike = {"detail": {"field": "series"}, **first.get("encoding", {})}
    grey = {**first["mark"], "color": "var(--waiting)", "strokeWidth": 0.8}
    seen = {**first["mark"], "color": COLOURS[0], "strokeWidth": 2.2}
    layers = [
        {"mark": grey, "encoding": alike},
        {
            "transform": [{"filter": f"datum.series === {SEEN}"}],
            "mark": seen,
            "encoding": alike,
        },
        *others,
    ]
    return {key: one for key, one in given.items() if key in ("x", "y")}, layers
