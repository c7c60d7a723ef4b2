"""Gantt charts: a row for each CPU of a cluster, or a row for each job if CPUs are not known."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.lab.report.charts import FEW, series, time_axis, tooltip
from grid.lab.report.picture import COLOURS, Picture, chart, columns_of
from grid.lab.report.run_data import RunData

BARS, BARS_A_CLUSTER = 60_000, 6000
"""The most bars of a page and of a cluster, which limit the size of the page."""
FEW_CLUSTERS = 4
"""The most clusters with a chart each; of more, the reader chooses one."""
FEW_ROWS = 90
"""Bars of at most this many rows are thick enough for an edge."""
NEIGHBOURS = 6
"""Colours of the jobs of a single VO, which only separate neighbours."""
BY_CPU, BY_JOB = "a row per CPU", "a row per job, by submission"
WAITING, OWN, OTHERS = "queued", "jobs of the VO", "jobs of other VOs"

Rows = npt.NDArray[np.intp]
Bar = tuple[str, float, float, float, float, str, int]
COLUMNS = ("cluster", "from", "to", "low", "high", "kind", "job")
"""Fields of a bar: times in seconds, rows, the meaning of the colour, the job's number."""


def gantt_charts(run: RunData) -> Iterator[Picture]:
    """A chart for each cluster that ran jobs; of many clusters, one chart that follows a choice."""
    found = rows_by_cluster(run)
    if not found:
        return
    most = min(BARS_A_CLUSTER, BARS // len(found))
    drawn = {name: _bars(run, name, rows, most, rows) for name, rows in found.items()}
    if len(found) <= FEW_CLUSTERS:
        for number, (name, (bars, kind, note)) in enumerate(drawn.items(), start=1):
            top = {name: _top(run, name, bars)}
            yield _picture(run, bars, f"gantt-{number}", f"{name}: {kind}", top, note)
        return
    every = [bar for bars, _, _ in drawn.values() for bar in bars]
    tops = {name: _top(run, name, bars) for name, (bars, _, _) in drawn.items()}
    values = {
        "cluster": run.cluster_titles[0],
        "kinds": {name: kind for name, (_, kind, _) in drawn.items()},
        "tops": tops,
    }
    parameters = {
        "params": [{"name": name, "value": value} for name, value in values.items()],
        "transform": [{"filter": "datum.cluster === cluster"}],
    }
    title = {"text": {"expr": "cluster + ': ' + (kinds[cluster] || 'no job started')"}}
    cut = sum(bool(note) for _, _, note in drawn.values())
    note = f" Only the first {most:,} bars of {cut} clusters are drawn." if cut else ""
    yield _picture(run, every, "gantt", title, tops, note, parameters)


def cluster_chart(run: RunData, name: str, rows: Rows, most: int) -> Picture:
    """The chart of one cluster, with at most `most` bars, of the jobs at `rows` of the table."""
    of_all = rows_by_cluster(run, name).get(name, rows)
    bars, kind, note = _bars(run, name, rows, most, of_all)
    return _picture(run, bars, "gantt", f"{name}: {kind}", {name: _top(run, name, bars)}, note)


def rows_by_cluster(run: RunData, only: str | None = None) -> dict[str, Rows]:
    """The rows of started jobs by the title of their cluster, or of the cluster `only`."""
    names = list(dict.fromkeys(name for _, name in run.clusters))
    executed, cluster = run.positions("executed_vo", run.vos), run.positions("cluster", names)
    started = ~np.isnan(run.column("starting_time")) & (executed >= 0) & (cluster >= 0)
    found = {}
    for (vo, name), title in zip(run.clusters, run.cluster_titles, strict=True):
        if only in (None, title):
            mine = started & (executed == run.vos.index(vo)) & (cluster == names.index(name))
            if mine.any():
                found[title] = np.flatnonzero(mine)
    return found


def _bars(
    run: RunData, name: str, rows: Rows, most: int, of_all: Rows
) -> tuple[list[Bar], str, str]:
    """The bars of a cluster, what its rows are, and a note on jobs without bars.

    Rows are CPUs if the CPUs of most of the cluster's jobs (`of_all`) are known. Of too many bars
    those of the jobs that started first are drawn.
    """
    begun = rows[np.argsort(run.column("starting_time")[rows], kind="stable")][:most]
    cpus = _cpus(run, begun)
    is_by_cpu = 2 * sum(map(bool, _cpus(run, of_all))) > len(of_all)
    # A job has a bar for each interval of its CPUs, or one for its wait and one for its run.
    count = np.cumsum([max(len(one), 1) if is_by_cpu else 2 for one in cpus])
    chosen = np.sort(begun[count <= most])
    left_out = len(rows) - len(chosen)
    note = f"  The first {len(chosen):,} of {len(rows):,} jobs are drawn." if left_out else ""
    if is_by_cpu:
        return _by_cpu(run, name, chosen), BY_CPU, note
    return _by_job(run, name, chosen), BY_JOB, note


def _cpus(run: RunData, rows: Rows) -> list[list[tuple[float, float]]]:
    """First CPU and count of each interval of a job's CPUs ("0-3 5"); none if unknown."""
    found = []
    for text in run.jobs["allocated_resources"].take(rows).to_pylist():
        ends = (part.partition("-") for part in (text or "").split())
        found.append([(float(a), float(b or a) - float(a) + 1) for a, _, b in ends])
    return found


def _by_cpu(run: RunData, name: str, rows: Rows) -> list[Bar]:
    """A row for each CPU. Jobs that were preempted, whose CPUs are unknown, are below the CPUs."""
    index = run.cluster_titles.index(name)
    first, top = sum(run.cluster_cpus[:index]), run.cluster_cpus[index]
    start, end = run.column("starting_time")[rows], run.column("finish_time")[rows]
    kinds, number = _kinds(run, name, rows), run.column("job_id")[rows].astype(int)
    places = [[(low - first, n) for low, n in one] for one in _cpus(run, rows)]
    free_at: list[tuple[float, int]] = []
    for i in np.argsort(start, kind="stable").tolist():
        if not places[i]:
            is_free = bool(free_at) and free_at[0][0] <= start[i]
            lane = heapq.heappop(free_at)[1] if is_free else len(free_at)
            heapq.heappush(free_at, (float(end[i]), lane))
            places[i] = [(float(top + lane), 1.0)]
    return [
        (name, start[i], end[i], low, low + n, kinds[i], int(number[i]))
        for i, of_job in enumerate(places)
        for low, n in of_job
    ]


def _by_job(run: RunData, name: str, rows: Rows) -> list[Bar]:
    submit = run.column("submission_time")[rows]
    order = np.argsort(submit, kind="stable")
    rows, submit = rows[order], submit[order]
    start, end = run.column("starting_time")[rows], run.column("finish_time")[rows]
    kinds, number = _kinds(run, name, rows), run.column("job_id")[rows].astype(int).tolist()
    ended = np.flatnonzero(~np.isnan(end)).tolist()
    waits: list[Bar] = [
        (name, submit[i], start[i], float(i), i + 1.0, WAITING, number[i])
        for i in ended
        if start[i] > submit[i]
    ]
    # Rows may be thinner than a pixel, so runs are drawn over waits.
    return waits + [(name, start[i], end[i], float(i), i + 1.0, kinds[i], number[i]) for i in ended]


def _kinds(run: RunData, cluster: str, rows: Rows) -> list[str]:
    """The meaning of each job's colour."""
    owner = run.positions("vo", run.vos)[rows].tolist()
    if len(run.vos) == 1:
        return [str(number % NEIGHBOURS) for number in range(len(rows))]
    if len(run.vos) <= FEW:
        return [f"jobs of {run.vos[one]}" for one in owner]
    own = run.vos.index(run.clusters[run.cluster_titles.index(cluster)][0])
    return [OWN if one == own else OTHERS for one in owner]


def _top(run: RunData, name: str, bars: Sequence[Bar]) -> float:
    """The number of rows."""
    used = max((high for *_, high, _, _ in bars), default=1.0)
    has_waits = any(kind == WAITING for *_, kind, _ in bars)
    return used if has_waits else max(used, run.cluster_cpus[run.cluster_titles.index(name)])


def _picture(
    run: RunData,
    bars: Sequence[Bar],
    table: str,
    title: str | dict[str, Any],
    tops: Mapping[str, float],
    note: str,
    parameters: Mapping[str, Any] = MappingProxyType({}),
) -> Picture:
    """The chart of `bars`; `tops` are the rows of each cluster that can be chosen."""
    seconds, unit = run.time_unit
    columns = columns_of(COLUMNS, bars)
    columns |= {key: [time / seconds for time in columns[key]] for key in ("from", "to")}
    end: Any = next(iter(tops.values())) if len(tops) == 1 else {"expr": "tops[cluster] || 1"}
    is_thick = max(tops.values(), default=0) <= FEW_ROWS
    colour = _colour(run, columns["kind"])
    specification = chart(
        "gantt",
        title=title,
        table=table,
        x=time_axis("from", unit),
        end=end,
        color=colour,
        # Without an edge of their own colour thin bars would look faint.
        stroke={"value": "var(--paper)"} if is_thick else colour,
        stroke_width=0.3 if is_thick else 0.8,
        tips=tooltip(job="job", kind="", **{"from": f"from ({unit})", "to": f"to ({unit})"},
                     low="first row"),
        parameters=parameters,
    )  # fmt: skip
    separated = " Colours only distinguish neighbours." if len(run.vos) == 1 else ""
    caption = f"Jobs from start to end, in rows of CPUs or of jobs; grey: queued.{separated}{note}"
    return Picture(table, caption, specification, {table: columns}, True)


def _colour(run: RunData, kinds: Sequence[str]) -> dict[str, Any]:
    every = [f"jobs of {vo}" for vo in run.vos] if len(run.vos) <= FEW else [OWN, OTHERS]
    if len(run.vos) == 1:
        every = [str(number) for number in range(NEIGHBOURS)]
    shades = dict(zip([*every, WAITING], [*COLOURS[: len(every)], "var(--waiting)"], strict=True))
    seen = [kind for kind in shades if kind in kinds]
    colour: dict[str, Any] = series(seen, field="kind")["color"]
    colour["scale"] = {"domain": seen, "range": [shades[kind] for kind in seen]}
    if len(run.vos) == 1:
        colour["legend"] = {"title": None, "values": [WAITING]} if WAITING in seen else None
    return colour
