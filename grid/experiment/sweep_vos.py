"""What a sweep tells of each virtual organization: means over seeds, as bars and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grid.experiment.study import Study
from grid.report.charts import by_series
from grid.report.page import Block, Choice, Table, When
from grid.report.style import FIGURE, Picture
from grid.results.definitions import label_of, row_texts

TABLES = 12
"""So many metrics have a table of VOs; the chart has all of them."""


def by_vo(
    study: Study, metrics: Sequence[str], places: Sequence[tuple[str, Mapping[str, Any]]], at: str
) -> list[Block]:
    """A chart and a table of each metric, a row a VO, at the places of a study, named as given."""
    found = {
        (metric, name): dict(means(study, metric, where)) for metric in metrics
        for name, where in places
    }  # fmt: skip
    vos = list(dict.fromkeys(vo for values in found.values() for vo in values))
    known = [metric for metric in metrics if any(found[metric, name] for name, _ in places)]
    if len(vos) < 2 or not known:
        return []
    names = [name for name, _ in places]
    blocks: list[Block] = [Choice("vo_metric", "Metric", {one: label_of(one) for one in known})]
    blocks.append(_bars(found, known, vos, names, at))
    for metric in known[:TABLES]:
        columns = [row_texts([found[metric, name].get(vo) for vo in vos], "–") for name in names]
        rows = [[vo, *(column[n] for column in columns)] for n, vo in enumerate(vos)]
        blocks.append(When("vo_metric", metric, Table(["VO", *names], rows)))
    return blocks


def means(study: Study, metric: str, where: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The metric of each VO that has it at a point, its mean over the seeds."""
    every = [study.records[key]["metrics"]["vos"] for key in study.keys(where).values()]
    for vo in every[0] if every else ():
        values = [figures[vo].get(metric) for figures in every if vo in figures]
        exact = [float(value) for value in values if value is not None]
        if exact:
            yield vo, float(np.mean(exact))


def _bars(
    found: Mapping[tuple[str, str], Mapping[str, float]],
    metrics: Sequence[str],
    vos: Sequence[str],
    names: Sequence[str],
    at: str,
) -> Picture:
    rows = [
        (metric, vo, name, found[metric, name][vo])
        for metric in metrics
        for name in names
        for vo in vos
        if vo in found[metric, name]
    ]
    keys = ("metric", "vo", "series", "value")
    columns = {key: [row[place] for row in rows] for place, key in enumerate(keys)}
    axis = {"labelOverlap": False}
    is_tall = len(vos) > 15
    figure = {"type": "quantitative", "format": FIGURE}
    specification = {
        "width": "container",
        "height": max(12 * len(names) + 8, 20) * len(vos),
        "title": {"text": {"expr": "titles[vo_metric]"}},
        "data": {"name": "vos"},
        "params": [
            {"name": "vo_metric", "value": metrics[0]},
            {"name": "titles", "value": {metric: label_of(metric) for metric in metrics}},
        ],
        "transform": [{"filter": "datum.metric === vo_metric"}],
        "mark": "bar",
        "encoding": {
            "y": {"field": "vo", "type": "nominal", "title": None, "sort": list(vos), "axis": axis},
            "yOffset": {"field": "series", "sort": list(names)},
            "x": {"field": "value", "type": "quantitative", "title": None,
                  "axis": {"format": FIGURE, "tickCount": 5,
                           "orient": "top" if is_tall else "bottom"}},
            **by_series(names),
            "tooltip": [
                {"field": "vo", "title": "VO"},
                {"field": "series", "title": " "},
                {"field": "value", "title": "mean", **figure},
            ],
        },
    }  # fmt: skip
    caption = f"The metric chosen above, of each VO{at}."
    return Picture("vos", caption, specification, {"vos": columns}, True, is_tall)
