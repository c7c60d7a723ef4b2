"""Who ran whose jobs: a map of the VOs, and the same as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grid.lab.report.axes import names_within
from grid.lab.report.page import Table
from grid.lab.report.style import FIGURE, WIDTH, Picture
from grid.model.arrays import Floats, Ints

MAPPED = 24
"""A map of more VOs cannot be read; the others are one row and one column."""
ANNOTATED = 10
NAMES = 90.0
"""Pixels beside a map for the names of its VOs."""
TOLD = 200
BETWEEN = "\n"
"""Between the names of a place by several choices."""
HEADERS = ("submitted in", "ran in", "jobs", "share of the VO's jobs that ran (%)")


def flow_map(
    vos: Sequence[str], moved: Mapping[str, Floats], signals: Sequence[str] = (), note: str = ""
) -> Picture:
    """How many jobs of each VO (rows) ran in each (columns), at each place by its name.

    Each of `moved` is square, VO by VO. The choices `signals` say which place is seen: its name is
    theirs with a line break between them. There is only one place without them.
    """
    names, places = _largest(vos, np.asarray(list(moved.values())).sum(axis=0))
    columns: dict[str, list[Any]] = {key: [] for key in ("place", "origin", "host", "jobs")}
    for place, every in moved.items():
        counts = np.zeros((len(names), len(names)))
        np.add.at(counts, (places[:, None], places[None, :]), every)
        origin, host = np.nonzero(counts)
        columns["place"] += [place] * len(origin)
        columns["origin"] += [names[one] for one in origin]
        columns["host"] += [names[one] for one in host]
        columns["jobs"] += counts[origin, host].tolist()
    side = {"type": "nominal", "sort": names, "scale": {"domain": names}}
    axis = {**names_within(NAMES), "labelOverlap": False}
    # Names lie below columns that are wider than the longest; on a page, its script says which,
    # and makes them smaller where columns are narrow.
    column = min(NAMES, 7.5 * max(map(len, names))) + 8
    lie = (WIDTH - NAMES) / len(names) > column
    is_annotated = len(names) <= ANNOTATED
    specification = {
        "width": "container",
        "height": 24 * len(names),
        "usermeta": {"leastWidth": NAMES + 9 * len(names), "column": column, "names": NAMES},
        "data": {"name": "flows"},
        **_is_chosen(signals, list(moved)),
        "encoding": {
            "x": {**side, "field": "host", "title": "ran in",
                  "axis": {**axis, "labelAngle": 0 if lie else -90}},
            "y": {**side, "field": "origin", "title": "submitted in", "axis": axis},
        },
        "layer": _layers(max(2.0, *columns["jobs"]), is_annotated),
    }  # fmt: skip
    caption = (
        f"Jobs by the VO that they were submitted in and the VO that they ran in{note}. "
        "The fuller a field, the more jobs; shades are even on a log scale."
    )
    if len(names) < len(vos):
        caption += f" The {MAPPED - 1} VOs that moved most jobs are shown by name."
    return Picture("flows", caption, specification, {"flows": columns}, not is_annotated)


def _layers(top: float, is_annotated: bool) -> list[dict[str, Any]]:
    """A field for each flow, the fuller the larger; its jobs are written in it, or in a legend."""
    ticks = [10.0**power for power in range(int(np.log10(top)) + 1)]
    # What is written in a field must be read before its colour.
    full = 0.6 if is_annotated else 1.0
    shade = {"type": "log", "domain": [1, top], "range": [0.18, full], "clamp": True}
    legend = {"title": "jobs", "values": ticks, "symbolType": "square", "format": ",d"}
    legend["symbolFillColor"] = "var(--c0)"
    jobs = {"field": "jobs", "type": "quantitative"}
    told = [
        {"field": "origin", "title": "submitted in"}, {"field": "host", "title": "ran in"},
        {"field": "jobs", "title": "jobs", "format": FIGURE},
    ]  # fmt: skip
    opacity = {**jobs, "scale": shade, "legend": None if is_annotated else legend}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rect", "color": "var(--c0)"},
         "encoding": {"opacity": opacity, "tooltip": told}},
    ]  # fmt: skip
    if is_annotated:
        layers.append({"mark": "text", "encoding": {"text": {**jobs, "format": ",.0f"}}})
    return layers


def _is_chosen(signals: Sequence[str], places: Sequence[str]) -> dict[str, Any]:
    if not signals:
        return {}
    chosen = zip(signals, places[0].split(BETWEEN), strict=True)
    place = f" + '{BETWEEN}' + ".join(signals).replace("\n", "\\n")
    return {
        "params": [{"name": signal, "value": value} for signal, value in chosen],
        "transform": [{"filter": f"datum.place === {place}"}],
    }


def _largest(vos: Sequence[str], moved: Floats) -> tuple[list[str], Ints]:
    """The VOs that gave away and took in most, all others as the last; which one each VO is."""
    if len(vos) <= MAPPED:
        return list(vos), np.arange(len(vos))
    away = moved - np.diag(np.diag(moved))
    order = np.argsort(-(away.sum(axis=0) + away.sum(axis=1)), kind="stable")
    named = np.sort(order[: MAPPED - 1])
    places = np.full(len(vos), MAPPED - 1)
    places[named] = np.arange(MAPPED - 1)
    return [*(vos[one] for one in named), f"{len(vos) - MAPPED + 1} others"], places


def flow_tables(vos: list[str], moved: Floats) -> list[str | Table]:
    """What each VO kept, gave away and took in; and the pairs of VOs that moved most jobs."""
    home = np.diag(moved)
    # Means over seeds have a decimal, all of them.
    digits = 0 if (moved == np.round(moved)).all() else 1
    balance = [
        [vo, *(f"{jobs:,.{digits}f}" for jobs in (
            moved[n].sum(), home[n], moved[n].sum() - home[n], moved[:, n].sum() - home[n]))]
        for n, vo in enumerate(vos)
    ]  # fmt: skip
    headers = ("VO", "its jobs that ran", "of these at home", "in other VOs", "jobs of others")
    tables: list[str | Table] = [Table(headers, balance)]
    away = moved - np.diag(home)
    order = np.argsort(-away, axis=None, kind="stable")[:TOLD]
    pairs = [divmod(int(place), len(vos)) for place in order]
    rows = [
        [vos[origin], vos[host], f"{away[origin, host]:,.{digits}f}",
         f"{100 * away[origin, host] / moved[origin].sum():.1f}"]
        for origin, host in pairs
        if away[origin, host]
    ]  # fmt: skip
    if not rows:
        return [*tables, "No job ran in another VO than its own."]
    if np.count_nonzero(away) > TOLD:
        tables.append(f"The {TOLD} largest of {np.count_nonzero(away):,} flows:")
    return [*tables, Table(HEADERS, rows)]
