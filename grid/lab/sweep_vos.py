"""What a sweep tells of each virtual organization: means over seeds, as bars and as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grid.lab.paired import BASELINES, OfVos, values_of_vos
from grid.lab.report.axes import names_within
from grid.lab.report.charts import (
    FEW,
    INTERVAL_TEXTS,
    INTERVAL_TOLD,
    NAMES,
    PANEL,
    by_series,
    in_panels,
)
from grid.lab.report.page import Block, Choice, Table, When
from grid.lab.report.style import COLOURS, FIGURE, Picture
from grid.lab.statistics import Interval, mean_interval, paired_difference
from grid.lab.study import Study
from grid.lab.sweep_places import (
    CELLS,
    ELSEWHERE,
    Place,
    choice_of_settings,
    is_at,
    parameters,
    places_of,
    settings_told,
    title_at,
    when_chosen,
)
from grid.lab.sweep_texts import cells_of, doubt_of, is_same, over_seeds, values_of
from grid.results.bounds import OwnBounds, bounds_of
from grid.results.definitions import label_of

Found = Mapping[tuple[str, str, str], Mapping[str, Interval]]
"""Each VO's mean with its interval, by metric, chosen settings and compared value."""
TOLD = [
    {"field": "vo", "title": "VO"},
    {"field": "series", "title": " "},
    {"field": "value", "title": "mean", "type": "quantitative", "format": FIGURE},
]
"""What stands beside the pointer."""
BASELINE = "vo_baseline"
COLUMNS = (ELSEWHERE, "metric", "vo", "series", "value", "low", "high")
MANY = 12
"""Panels of more VOs than these scroll."""
TABLES = 12
"""So many metrics have a table of VOs; the chart has all of them."""


def by_vo(study: Study, metrics: Sequence[str], bounds: OwnBounds) -> list[Block]:
    """A chart and a table of each metric, a row a VO, at the settings that are chosen."""
    places = places_of(study)
    found = {
        (metric, *place): dict(_intervals(study, metric, where)) for metric in metrics
        for place, where in places.items()
    }  # fmt: skip
    vos = list(dict.fromkeys(vo for values in found.values() for vo in values))
    known = [one for one in metrics if any(found[one, *place] for place in places)]
    if len(vos) < 2 or not known:
        return []
    names = list(dict.fromkeys(name for _, name in places))
    differs = over_seeds(study) and len(names) > 1
    compared = known[:TABLES]
    return [
        *choice_of_settings(study),
        Choice("vo_metric", "Metric", {one: label_of(one) for one in known}),
        _bars(study, found, {one: _bounds(one, bounds) for one in known}, vos, names),
        *_tables(study, found, compared, vos, names),
        *(_differences(study, places, compared, vos, names) if differs else ()),
    ]


def _tables(
    study: Study, found: Found, metrics: Sequence[str], vos: Sequence[str], names: Sequence[str]
) -> Iterator[Block]:
    for chosen in dict.fromkeys(chosen for _, chosen, _ in found):
        for metric in metrics:
            every = [found.get((metric, chosen, name), {}) for name in names]
            columns = [cells_of([one.get(vo) for vo in vos]) for one in every]
            rows = [[vo, *(column[n] for column in columns)] for n, vo in enumerate(vos)]
            table = When("vo_metric", metric, Table(["VO", *names], rows))
            yield when_chosen(study, chosen, table)


def _differences(
    study: Study,
    places: Mapping[Place, Mapping[str, Any]],
    metrics: Sequence[str],
    vos: Sequence[str],
    names: Sequence[str],
) -> Iterator[Block]:
    """How far each VO is from where it is under the baseline, which the reader chooses."""
    all_settings = list(dict.fromkeys(chosen for chosen, _ in places))
    cells = len(all_settings) * len(metrics) * len(vos) * len(names)
    baselines = names[: max(1, min(BASELINES, CELLS // cells))]
    yield "The same minus that of the baseline, VO by VO, paired by seed:"
    yield Choice(BASELINE, f"Baseline of {study.compare}", {name: name for name in baselines})
    for chosen in all_settings:
        for metric in metrics:
            values = {name: values_of_vos(study, metric, places[chosen, name]) for name in names}
            for baseline in baselines:
                table = When("vo_metric", metric, _less(study, values, baseline, vos))
                yield when_chosen(study, chosen, When(BASELINE, baseline, table))


def _less(study: Study, values: Mapping[str, OfVos], baseline: str, vos: Sequence[str]) -> Table:
    """A row for each VO: its values, each less that under the baseline."""
    others = [name for name in values if name != baseline]
    columns = []
    for name in others:
        found = [
            _paired(values[name].get(vo, {}), values[baseline].get(vo, {}), study.level)
            for vo in vos
        ]
        pairs = zip(cells_of(found), found, strict=True)
        columns.append([text + doubt_of(one) for text, one in pairs])
    rows = [[vo, *cells] for vo, *cells in zip(vos, *columns, strict=True)]
    return Table(["VO", *others], rows)


def _paired(
    ones: Mapping[int, float], others: Mapping[int, float], level: float
) -> Interval | None:
    seeds = [seed for seed in ones if seed in others]
    if not seeds:
        return None
    return paired_difference(
        [ones[seed] for seed in seeds], [others[seed] for seed in seeds], level
    )


def _intervals(
    study: Study, metric: str, where: Mapping[str, Any]
) -> Iterator[tuple[str, Interval]]:
    """The metric of each VO that has it at a point: its mean over the seeds, and the interval."""
    for vo, values in values_of_vos(study, metric, where).items():
        yield vo, mean_interval(list(values.values()), study.level)


def _bars(
    study: Study,
    found: Found,
    bounds: Mapping[str, list[float | None]],
    vos: Sequence[str],
    names: Sequence[str],
) -> Picture:
    """A bar for each VO of the metric that is chosen, one of those that `bounds` has."""
    metrics = list(bounds)
    rows = [
        (chosen, metric, vo, name, *_drawn(values[vo]))
        for (metric, chosen, name), values in found.items()
        for vo in vos
        if vo in values
    ]
    columns = {key: [row[place] for row in rows] for place, key in enumerate(COLUMNS)}
    has_intervals = any(low is not None for low in columns["low"])
    are_few = len(names) <= FEW
    is_tall = len(vos) * len(names) > 15 if are_few else len(vos) > MANY
    chosen = ["datum.metric === vo_metric", *filter(None, [is_at(study)])]
    specification = {
        "title": title_at(study, "titles[vo_metric]"),
        "data": {"name": "vos"},
        "params": [
            {"name": "vo_metric", "value": metrics[0]},
            {"name": "titles", "value": {metric: label_of(metric) for metric in metrics}},
            {"name": "bounds", "value": bounds},
            *parameters(study),
        ],
        "transform": [{"filter": " && ".join(chosen)}, *(_ENDS if has_intervals else ())],
        **(
            _groups(vos, names, is_tall, has_intervals, values_of(study) or None)
            if are_few
            else _panels(vos, names, has_intervals)
        ),
    }
    each = "of each VO" if are_few else "a panel for each VO"
    caption = f"The metric chosen above, {each}{over_seeds(study)}{settings_told(study)}."
    if has_intervals:
        caption += f" Intervals are of {100 * study.level:g} %, and end where the metric does."
    return Picture("vos", caption, specification, {"vos": columns}, True, is_tall)


def _drawn(interval: Interval) -> tuple[float, float | None, float | None]:
    """Its mean and its ends, which one value and equal ones do not have."""
    if is_same(interval) or not math.isfinite(interval.half_width):
        return interval.mean, None, None
    return interval.mean, interval.low, interval.high


def _bounds(metric: str, own: OwnBounds) -> list[float | None]:
    return [bound if math.isfinite(bound) else None for bound in bounds_of(metric, own)]


_LEAST, _MOST = ("bounds[datum.metric][0]", "bounds[datum.metric][1]")
_ENDS = [
    *INTERVAL_TEXTS,
    {"calculate": f"{_LEAST} === null ? datum.low : max(datum.low, {_LEAST})", "as": "left"},
    {"calculate": f"{_MOST} === null ? datum.high : min(datum.high, {_MOST})", "as": "right"},
]
"""From where to where an interval is drawn: no farther than the metric can be."""


def _with_intervals(encoding: dict[str, Any], bar: dict[str, Any]) -> dict[str, Any]:
    """Bars, and over each its interval: in ink on paper, to be seen within the bar, too."""
    shared: dict[str, Any] = {
        channel: encoding[channel] for channel in ("y", "yOffset") if channel in encoding
    }
    ends: dict[str, Any] = {"x": {**encoding["x"], "field": "left"}, "x2": {"field": "right"}}
    known = [{"filter": "isValid(datum.low) && isValid(datum.high)"}]
    rules = [
        {
            "transform": known,
            "mark": {"type": "rule", "color": colour, "strokeWidth": wide},
            "encoding": shared | ends,
        }
        for colour, wide in (("var(--paper)", 2.2), ("var(--ink)", 1.2))
    ]
    told = {"tooltip": [*TOLD, *INTERVAL_TOLD]}
    return {"layer": [{"mark": bar, "encoding": {**encoding, **told}}, *rules]}


def _groups(
    vos: Sequence[str],
    names: Sequence[str],
    is_tall: bool,
    has_intervals: bool,
    title: str | None,
) -> dict[str, Any]:
    """VOs one below the other, in each a bar for each of a few names, in the colour of the name."""
    orient = "top" if is_tall else "bottom"
    y = {"field": "vo", "type": "nominal", "title": None, "sort": list(vos)}
    x = {"field": "value", "type": "quantitative", "title": None}
    encoding = {
        "y": {**y, "axis": {"labelOverlap": False, **names_within(NAMES)}},
        "yOffset": {"field": "series", "sort": list(names)},
        "x": {**x, "axis": {"format": FIGURE, "tickCount": 5, "orient": orient}},
        **by_series(names, orient=orient, title=title),
        "tooltip": TOLD,
    }
    height = max((16 if has_intervals else 12) * len(names) + 8, 20) * len(vos)
    size = {"width": "container", "height": height}
    if has_intervals:
        return {**size, **_with_intervals(encoding, {"type": "bar"})}
    return {**size, "mark": "bar", "encoding": encoding}


def _panels(vos: Sequence[str], names: Sequence[str], has_intervals: bool) -> dict[str, Any]:
    """A panel for each VO, in it a bar for each of many names, which stand beside the bars."""
    y = {"field": "series", "type": "nominal", "title": None, "sort": list(names)}
    x = {"field": "value", "type": "quantitative", "title": None}
    encoding = {
        "y": {**y, "axis": {"labelOverlap": False, **names_within(NAMES)}},
        "x": {**x, "axis": {"format": FIGURE, "tickCount": 3}},
        "tooltip": TOLD,
    }
    mark = {"type": "bar", "color": COLOURS[0]}
    panel: dict[str, Any] = {"width": PANEL, "height": {"step": 17}}
    if has_intervals:
        panel |= _with_intervals(encoding, mark)
    else:
        panel |= {"mark": mark, "encoding": encoding}
    panels = in_panels("vo", vos, panel, 4)
    panels["usermeta"]["names"] = NAMES
    # Panels may stand below each other, the last ones far from the first.
    return {**panels, "resolve": {"axis": {"x": "independent"}}}
