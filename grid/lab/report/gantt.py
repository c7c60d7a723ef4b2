"""Gantt charts of the clusters of a run: every CPU with its jobs, or every job with its times."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.lab.report.charts import by_series, time_axis
from grid.lab.report.labels import counted
from grid.lab.report.run_data import RunData
from grid.lab.report.run_pictures import LINES
from grid.lab.report.style import FIGURE, Picture
from grid.lab.report.zoom import ZOOM

BARS = 60_000
"""So many bars all clusters have at most, or a page grows too large; each has its share of them."""
BARS_A_CLUSTER = 6000
FEW_CLUSTERS = 4
"""So many clusters have a chart each; of more, the reader chooses one."""
MOSTLY = 0.8
"""Where it is known of so many jobs which CPUs they had, the chart has a row for every CPU."""
FEW_ROWS = 90
"""Bars of so many rows are thick enough for an edge that tells neighbours apart."""
FEW_TICKS = 10
NEIGHBOURS = 6
"""Where all jobs are of one VO, so many colours tell neighbours apart."""
BY_CPU, BY_JOB = "a row a CPU", "a row a job, by submission"
LEFT_OUT = "jobs that were preempted, or began again, are left out"
WAITING, OWN, OTHERS = "waiting", "jobs of its own VO", "jobs of other VOs"
HEIGHT, HIGHER, MANY_ROWS = 300, 450, 150
"""Pixels of a chart, and of one that has many rows."""

Rows = npt.NDArray[np.intp]
Bar = tuple[str, float, float, float, float, str, int]
"""Cluster, from and to in seconds, lowest and highest row, what the colour means, job."""
COLUMNS = ("cluster", "from", "to", "low", "high", "kind", "job")


def gantt_charts(run: RunData) -> Iterator[Picture]:
    """A chart for each cluster that ran jobs; with many clusters one chart to choose them in."""
    found = rows_by_cluster(run)
    if not found:
        return
    most = min(BARS_A_CLUSTER, BARS // len(found))
    bars: list[Bar] = []
    notes: dict[str, str] = {}
    rows_are: dict[str, str] = {}
    tops: dict[str, float] = {}
    left_out = 0
    for name, rows in found.items():
        bars_of, rows_are[name], notes[name], unknown = _bars_of(run, name, rows, most, rows)
        tops[name] = _top(run, name, bars_of, rows_are[name])
        bars += bars_of
        left_out += unknown
    seconds, _ = run.time_unit
    columns: dict[str, list[Any]] = {
        key: [bar[place] for bar in bars] for place, key in enumerate(COLUMNS)
    }
    columns |= {key: [time / seconds for time in columns[key]] for key in ("from", "to")}
    # Charts of a run are compared: all show the same time, unless some show their first jobs only.
    cut = sum("first" in note for note in notes.values())
    span = None if cut else (_beginning(run, columns["from"]), max(columns["to"]))
    if len(found) <= FEW_CLUSTERS:
        for number, (name, note) in enumerate(notes.items(), start=1):
            rows_of = {
                key: [value for value, of in zip(values, columns["cluster"], strict=True)
                      if of == name]
                for key, values in columns.items()
            }  # fmt: skip
            table = f"gantt-{number}"
            top = {name: tops[name]}
            chart = _chart(run, rows_of, table, f"{name}: {rows_are[name]}", top, span)
            yield Picture(table, _caption(run, name, note), chart, {table: rows_of}, True)
        return
    note = " A row a CPU, or a row a job where CPUs are not known."
    caption = _caption(run, "the cluster chosen above", note)
    title = {"text": {"expr": "cluster + ': ' + (rows[cluster] || 'no job ran')"}}
    chosen: dict[str, Any] = _chart(run, columns, "gantt", title, tops, span)
    chosen["params"] = [
        {"name": "cluster", "value": run.cluster_titles[0]},
        {"name": "rows", "value": rows_are},
        {"name": "tops", "value": tops},
    ]
    chosen["transform"] = [{"filter": "datum.cluster === cluster"}]
    if left_out:
        caption += f" Of all clusters {left_out:,} {LEFT_OUT}."
    if cut:
        more = counted(cut, "cluster")
        caption += f" Of {more} with more jobs, the first {most:,} bars are drawn."
    yield Picture("gantt", caption, chosen, {"gantt": columns}, True)


def _beginning(run: RunData, starts: Sequence[float]) -> float:
    """Where the charts of clusters over time begin, or the first job that started before."""
    seconds, _ = run.time_unit
    first_s = run.series["time_s"][0].as_py() if run.series.num_rows else 0.0
    return min(first_s / seconds, *starts)


def _caption(run: RunData, name: str, note: str) -> str:
    """What bars are, and what colours mean where no legend says it."""
    neighbours = " Colours tell neighbours apart, and mean nothing." if len(run.vos) == 1 else ""
    return (
        f"Jobs in {name}, each a bar from its start to its end; where a row is a job, in grey from "
        f"its submission on.{neighbours}{note}"
    )


def cluster_chart(run: RunData, name: str, rows: Rows, most: int) -> Picture:
    """The chart of one cluster, with so many bars at most, of the jobs at `rows` of the table."""
    # What a row is does not change with the time that is looked at.
    of_all = rows_by_cluster(run, name).get(name, rows)
    bars, rows_are, note, _ = _bars_of(run, name, rows, most, of_all)
    top = {name: _top(run, name, bars, rows_are)}
    seconds, _ = run.time_unit
    columns: dict[str, list[Any]] = {
        key: [bar[place] for bar in bars] for place, key in enumerate(COLUMNS)
    }
    columns |= {key: [time / seconds for time in columns[key]] for key in ("from", "to")}
    chart = _chart(run, columns, "gantt", f"{name}: {rows_are}", top)
    return Picture("gantt", _caption(run, name, note), chart, {"gantt": columns}, True)


def rows_by_cluster(run: RunData, only: str | None = None) -> dict[str, Rows]:
    """The rows of the jobs that ran in each cluster that ran any, by the cluster's name.

    In one of these alone, if it is given.
    """
    names = list(dict.fromkeys(name for _, name in run.clusters))
    executed, cluster = run.positions("executed_vo", run.vos), run.positions("cluster", names)
    started = ~np.isnan(run.column("starting_time")) & (executed >= 0) & (cluster >= 0)
    found = {}
    for (vo, name), title in zip(run.clusters, run.cluster_titles, strict=True):
        if only not in (None, title):
            continue
        mine = started & (executed == run.vos.index(vo)) & (cluster == names.index(name))
        if mine.any():
            found[title] = np.flatnonzero(mine)
    return found


def _bars_of(
    run: RunData, name: str, rows: Rows, most: int, of_all: Rows
) -> tuple[list[Bar], str, str, int]:
    """The bars of a cluster, what its rows are, what is to be said, and how many jobs it lacks.

    What its rows are hangs on all jobs that ran there, at the rows `of_all` of the table. Of too
    many jobs those are drawn that started first, of whatever VO: the table has VO after VO.
    """
    begun = rows[np.argsort(run.column("starting_time")[rows], kind="stable")][:most]
    cpus = _cpus(run, begun)
    is_by_cpu = np.mean([bool(places) for places in _cpus(run, of_all)]) > MOSTLY
    # A job that waited has two bars in a row of its own.
    bars_of = (
        np.maximum([len(places) for places in cpus], 1) if is_by_cpu else np.full(len(cpus), 2)
    )
    shown = np.sort(begun[np.cumsum(bars_of) <= most])
    note = ""
    if len(shown) < len(rows):
        note = f" Of {len(rows):,} jobs the first {len(shown):,} to start are drawn."
    if not is_by_cpu:
        return _by_job(run, name, shown), BY_JOB, note, 0
    cpus = _cpus(run, shown)
    unknown = sum(not places for places in cpus)
    if unknown:
        note += f" {unknown:,} {LEFT_OUT}."
    return _by_cpu(run, name, shown, cpus), BY_CPU, note, unknown


def _top(run: RunData, name: str, bars: Sequence[Bar], rows_are: str) -> float:
    """Where the rows of a cluster end: with its last CPU, or its last job."""
    used = max((high for *_, high, _, _ in bars), default=1.0)
    cpus = run.cluster_cpus[run.cluster_titles.index(name)]
    return used if rows_are != BY_CPU or cpus is None else max(used, float(cpus))


def _cpus(run: RunData, rows: Rows) -> list[list[tuple[float, float]]]:
    """The CPUs that each of these jobs had; none where that is not known."""
    return [_intervals(text) for text in run.jobs["allocated_resources"].take(rows).to_pylist()]


def _by_cpu(
    run: RunData, name: str, rows: Rows, cpus: Sequence[list[tuple[float, float]]]
) -> list[Bar]:
    """A row for each CPU of the cluster, from 0, with the jobs that had it."""
    start, end = run.column("starting_time")[rows], run.column("finish_time")[rows]
    lowest = _first_cpu(run, name)
    if lowest is None:
        lowest = min((low for places in cpus for low, _ in places), default=0.0)
    kinds, number = _kinds(run, name, rows), run.column("job_id")[rows].astype(int)
    return [
        (name, start[i], end[i], low - lowest, low - lowest + n, kinds[i], int(number[i]))
        for i, places in enumerate(cpus)
        for low, n in places
    ]


def _first_cpu(run: RunData, name: str) -> float | None:
    """The number of the cluster's first CPU among those of the grid, if that is known."""
    before = run.cluster_cpus[: run.cluster_titles.index(name)]
    known = [cpus for cpus in before if cpus is not None]
    return float(sum(known)) if len(known) == len(before) else None


def _by_job(run: RunData, name: str, rows: Rows) -> list[Bar]:
    """A row for each job, where the table does not tell when it held which CPUs."""
    submit = run.column("submission_time")[rows]
    rows, submit = rows[np.argsort(submit, kind="stable")], np.sort(submit)
    start, end = run.column("starting_time")[rows], run.column("finish_time")[rows]
    kinds, number = _kinds(run, name, rows), run.column("job_id")[rows].astype(int)
    waits: list[Bar] = []
    runs: list[Bar] = []
    for i in np.flatnonzero(~np.isnan(end)).tolist():
        job = int(number[i])
        if start[i] > submit[i]:
            waits.append((name, submit[i], start[i], float(i), i + 1.0, WAITING, job))
        runs.append((name, start[i], end[i], float(i), i + 1.0, kinds[i], job))
    # Rows may be thinner than a pixel: the wait of a job does not hide the run of the one above.
    return waits + runs


def _intervals(cpus: str | None) -> list[tuple[float, float]]:
    """Lowest CPU and number of CPUs of each interval of a set such as "0-3 5"."""
    found = []
    for part in (cpus or "").split():
        low, _, high = part.partition("-")
        found.append((float(low), float(high or low) - float(low) + 1))
    return found


def _kinds(run: RunData, cluster: str, rows: Rows) -> list[str]:
    """What the colour of each job means: whose it is; with one VO it tells neighbours apart."""
    owner = run.positions("vo", run.vos)[rows].tolist()
    if len(run.vos) == 1:
        return [f"{number % NEIGHBOURS}" for number in range(len(rows))]
    if len(run.vos) <= LINES:
        names = list(run.places)
        return [names[one] for one in owner]
    own = run.vos.index(run.clusters[run.cluster_titles.index(cluster)][0])
    return [OWN if one == own else OTHERS for one in owner]


def _places(run: RunData) -> dict[str, int]:
    """Which of the colours each kind of job has: that of its VO in all charts of the run."""
    neighbours = {f"{number}": number for number in range(NEIGHBOURS)}
    return {**run.places, OWN: 0, OTHERS: 1, **neighbours}


def _rows_axis(tops: Collection[float]) -> dict[str, Any]:
    """An axis of rows, of which a chart has so many: ticks are at whole numbers."""
    if len(tops) == 1 and max(tops) <= FEW_TICKS:
        return {"grid": False, "format": ",d", "values": list(range(int(max(tops)) + 1))}
    # Of several clusters, one of few rows has ticks between them, which have no number.
    whole = "datum.value % 1 ? '' : format(datum.value, ',d')"
    return {"grid": False, "labelExpr": whole}


def _chart(
    run: RunData,
    columns: dict[str, list[Any]],
    table: str,
    title: str | dict[str, Any],
    tops: Mapping[str, float],
    span: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """The chart of the bars in `columns`, over the times of `span`, or those of all its bars.

    `tops` says of each cluster where its rows end; of several, one is chosen.
    """
    places, unit = _places(run), run.time_unit[1]
    kinds = [kind for kind in places if kind in columns["kind"]]
    colour = by_series(kinds, places, field="kind")["color"]
    if WAITING in columns["kind"]:
        domain, shades = colour["scale"]["domain"], colour["scale"]["range"]
        colour["scale"] = {"domain": [WAITING, *domain], "range": ["var(--waiting)", *shades]}
        colour["legend"] = {"title": None}
    if all(kind.isdigit() for kind in kinds):
        is_told = {"title": None, "values": [WAITING]}
        colour = {**colour, "legend": is_told if WAITING in columns["kind"] else None}
    end: Any = next(iter(tops.values())) if len(tops) == 1 else {"expr": "tops[cluster] || 1"}
    scale = {"reverse": True, "nice": False, "zero": False, "domainMin": 0, "domainMax": end}
    row = {"type": "quantitative", "title": None, "axis": _rows_axis(set(tops.values()))}
    few = [cluster for cluster, top in tops.items() if top <= FEW_ROWS]
    is_few = {"test": f"indexof({json.dumps(few)}, datum.cluster) >= 0"}
    x = time_axis("from", unit)
    if span is not None:
        x["scale"] = {**x["scale"], "domain": list(span)}
    return {
        "width": "container",
        "height": HIGHER if max(tops.values()) > MANY_ROWS else HEIGHT,
        "title": title,
        "data": {"name": table},
        "layer": [{
            "params": [ZOOM],
            "mark": {"type": "rect", "clip": True},
            "encoding": {
                "x": x,
                "x2": {"field": "to"},
                "y": {"field": "low", **row, "scale": scale},
                "y2": {"field": "high"},
                "color": colour,
                # Thin bars have an edge of their own colour, so that they are not fainter for it.
                "stroke": {**colour, "condition": {**is_few, "value": "var(--paper)"}},
                "strokeWidth": {"condition": {**is_few, "value": 0.3}, "value": 0.8},
                "tooltip": [
                    {"field": "job", "title": "job"},
                    {"field": "kind", "title": " "},
                    {"field": "from", "title": f"from ({unit})", "format": FIGURE},
                    {"field": "to", "title": f"to ({unit})", "format": FIGURE},
                    {"field": "low", "title": "first row"},
                ],
            },
        }],
    }  # fmt: skip
