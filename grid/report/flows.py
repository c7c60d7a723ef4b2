"""Who ran whose jobs: a map of the VOs, and the same as tables."""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats
from grid.report.labels import shown
from grid.report.page import Table
from grid.report.style import Columns, Picture

MAPPED = 24
"""A map of more VOs cannot be read; the others are one row and one column."""
ANNOTATED = 10
TOLD = 200
HEADERS = ("submitted in", "ran in", "jobs", "% of the first's jobs that ran")


def flow_map(vos: list[str], moved: Floats, name: str = "flows") -> Picture:
    """How many jobs of each VO (rows) ran in each (columns). `moved` is square, VO by VO."""
    names, counts = _largest(vos, moved)
    origin, host = np.nonzero(counts)
    columns: Columns = {
        "origin": [names[place] for place in origin],
        "host": [names[place] for place in host],
        "jobs": counts[origin, host],
    }
    top = max(2.0, float(counts.max()))
    x = {"field": "host", "type": "nominal", "sort": names, "title": "ran in"}
    y = {"field": "origin", "type": "nominal", "sort": names, "title": "submitted in"}
    angle = {"labelAngle": -90 if len(names) > 3 else 0, "labelLimit": 90, "labelOverlap": False}
    shade = {"type": "log", "domain": [1, top], "range": [0.1, 0.6]}
    ticks = [10.0**power for power in range(int(np.log10(top)) + 1)]
    layers = [
        {
            "mark": {"type": "rect", "color": "var(--c0)"},
            "encoding": {
                "fillOpacity": {
                    "field": "jobs", "type": "quantitative", "scale": shade,
                    "legend": {"title": "jobs", "values": ticks, "symbolType": "square",
                               "symbolFillColor": "var(--c0)", "format": ",d"},
                },
                "tooltip": [
                    {"field": "origin", "title": "submitted in"},
                    {"field": "host", "title": "ran in"},
                    {"field": "jobs", "title": "jobs", "format": ",d"},
                ],
            },
        }
    ]  # fmt: skip
    if len(names) <= ANNOTATED:
        text = {"field": "jobs", "type": "quantitative", "format": ",d"}
        layers.append({"mark": {"type": "text"}, "encoding": {"text": text}})
    specification = {
        "width": "container",
        "height": 24 * len(names),
        "data": {"name": name},
        "encoding": {
            "x": {**x, "scale": {"domain": names}, "axis": angle},
            "y": {**y, "scale": {"domain": names}, "axis": {**angle, "labelAngle": 0}},
        },
        "layer": layers,
    }  # fmt: skip
    caption = "Jobs by the VO that they were submitted in and the VO that they ran in."
    if len(names) < len(vos):
        caption += f" The {MAPPED - 1} VOs that moved most jobs are shown by name."
    is_wide = len(names) > ANNOTATED
    return Picture(name, caption, specification, {name: columns}, is_wide)


def _largest(vos: list[str], moved: Floats) -> tuple[list[str], Floats]:
    """The VOs that gave away and took in most, all others as the last one."""
    if len(vos) <= MAPPED:
        return vos, moved
    away = moved - np.diag(np.diag(moved))
    order = np.argsort(-(away.sum(axis=0) + away.sum(axis=1)), kind="stable")
    named = np.sort(order[: MAPPED - 1])
    place = np.full(len(vos), MAPPED - 1)
    place[named] = np.arange(MAPPED - 1)
    counts = np.zeros((MAPPED, MAPPED))
    np.add.at(counts, (place[:, None], place[None, :]), moved)
    return [*(vos[one] for one in named), f"{len(vos) - MAPPED + 1} others"], counts


def flow_tables(vos: list[str], moved: Floats) -> list[str | Table]:
    """What each VO kept, gave away and took in; and the pairs of VOs that moved most jobs."""
    home = np.diag(moved)
    balance = [
        [vo, shown(float(moved[n].sum())), shown(float(home[n])),
         shown(float(moved[n].sum() - home[n])), shown(float(moved[:, n].sum() - home[n]))]
        for n, vo in enumerate(vos)
    ]  # fmt: skip
    headers = ("VO", "its jobs that ran", "of these at home", "in other VOs", "jobs of others")
    tables: list[str | Table] = [Table(headers, balance)]
    away = moved - np.diag(home)
    order = np.argsort(-away, axis=None, kind="stable")[:TOLD]
    pairs = [divmod(int(place), len(vos)) for place in order]
    rows = [
        [vos[origin], vos[host], shown(float(away[origin, host])),
         f"{100 * away[origin, host] / moved[origin].sum():.1f}"]
        for origin, host in pairs
        if away[origin, host]
    ]  # fmt: skip
    if not rows:
        return [*tables, "No job ran in another VO than its own."]
    if np.count_nonzero(away) > TOLD:
        tables.append(f"The {TOLD} largest of {np.count_nonzero(away):,} flows:")
    return [*tables, Table(HEADERS, rows)]
