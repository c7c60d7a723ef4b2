"""The Gantt chart of one cluster of a run: every CPU with its jobs, or every job with its times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from grid.model.arrays import Floats
from grid.report.run_data import RunData
from grid.report.style import COLOURS, Picture, drawing, picture, time_axis

JOBS_DRAWN = 20_000
"""More jobs than this are more than a picture shows; the first ones are drawn."""
MOSTLY = 0.8
"""Where it is known of so many jobs which CPUs they had, the chart has a row for every CPU."""
THIN = 2000
"""More bars than this have no room for an edge."""
PIXELS = 400
WAITED = "#BFBFBF"

Rows = npt.NDArray[np.intp]
Bars = list[tuple[float, float, float, float]]
"""Rectangles: from, to (s), lowest row, rows."""


def gantt(run: RunData) -> Iterator[Picture]:
    """The chart of the cluster that ran most jobs; none where no job ran."""
    rows = _busiest_cluster(run)
    if not len(rows):
        return
    first = rows[0]
    where = f"{run.jobs['executed_vo'][first].as_py()}/{run.jobs['cluster'][first].as_py()}"
    caption = f"Gantt chart of {where}, the cluster with most jobs."
    if len(rows) > JOBS_DRAWN:
        caption += f" Of its {len(rows):,} jobs the first {JOBS_DRAWN:,} are drawn."
        rows = rows[:JOBS_DRAWN]
    by_cpu = run.jobs["allocated_resources"].take(rows).to_pylist()
    known = np.array([bool(cpus) for cpus in by_cpu])
    if known.mean() > MOSTLY:
        if not known.all():
            caption += f" {np.count_nonzero(~known)} jobs that were preempted are left out."
        yield _by_cpu(run, rows, by_cpu, caption)
    else:
        caption += " A line a job, by submission: grey while it waits, then until its end."
        yield _by_job(run, rows, caption)


def _busiest_cluster(run: RunData) -> Rows:
    """The rows of the jobs that ran in the cluster with most of them."""
    names = list(dict.fromkeys(name for _, name in run.clusters))
    executed, cluster = run.positions("executed_vo", run.vos), run.positions("cluster", names)
    started = ~np.isnan(run.column("starting_time")) & (executed >= 0) & (cluster >= 0)
    place = np.where(started, executed * len(names) + cluster, -1)
    values, counts = np.unique(place[started], return_counts=True)
    return np.flatnonzero(place == values[np.argmax(counts)]) if len(values) else np.array([], int)


def _by_cpu(run: RunData, rows: Rows, by_cpu: Sequence[str], caption: str) -> Picture:
    """A row for each CPU of the cluster, from 0, with the jobs that had it."""
    start, end = run.column("starting_time")[rows], run.column("finish_time")[rows]
    cpus = [_intervals(text) for text in by_cpu]
    lowest = min(low for places in cpus for low, _ in places)
    bars = [
        (start[i], end[i], low - lowest, n) for i, places in enumerate(cpus) for low, n in places
    ]
    of_job = [i for i, places in enumerate(cpus) for _ in places]
    with drawing(height=3.6) as (figure, axes):
        shades, handles = _shades(run, rows)
        _draw(axes, bars, [shades[job] for job in of_job], 0.2 if len(bars) < THIN else 0.0)
        time_axis(axes, float(start.min()), float(end.max()))
        axes.set_ylabel("CPU")
        if handles:
            axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
        return picture("gantt", caption, figure)


def _by_job(run: RunData, rows: Rows, caption: str) -> Picture:
    """A row for each job, where the table does not tell when it held which CPUs."""
    submit = run.column("submission_time")[rows]
    rows, submit = rows[np.argsort(submit, kind="stable")], np.sort(submit)
    start, end = run.column("starting_time")[rows], run.column("finish_time")[rows]
    ran = ~np.isnan(end)
    places = np.flatnonzero(ran)
    waits = [(submit[i], start[i], float(i), 1.0) for i in places]
    # What runs for less than a pixel is seen nonetheless.
    least = float(end[ran].max() - submit.min()) / PIXELS
    runs = [(start[i], max(end[i], start[i] + least), float(i), 1.0) for i in places]
    with drawing(height=3.6) as (figure, axes):
        shades, handles = _shades(run, rows)
        if not handles:
            shades = [COLOURS[0]] * len(rows)
            handles = [Patch(color=COLOURS[0], label="from first start to end")]
        colours = [WAITED] * len(waits) + [shades[i] for i in places]
        _draw(axes, waits + runs, colours, 0.0)
        time_axis(axes, float(submit.min()), float(end[ran].max()))
        axes.set_ylabel("job")
        axes.invert_yaxis()
        handles.insert(0, Patch(color=WAITED, label="waiting"))
        axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
        return picture("gantt", caption, figure)


def _intervals(cpus: str) -> list[tuple[float, float]]:
    """Lowest CPU and number of CPUs of each interval of a set such as "0-3 5"."""
    found = []
    for part in (cpus or "").split():
        low, _, high = part.partition("-")
        found.append((float(low), float(high or low) - float(low) + 1))
    return found


def _shades(run: RunData, rows: Rows) -> tuple[list[str], list[Patch]]:
    """The colour of each job, and what the colours mean.

    That is whose the jobs are; where all are one VO's, or too many VOs', colours only tell
    neighbours apart.
    """
    owner = run.positions("vo", run.vos)[rows]
    present = np.unique(owner).tolist()
    if not 1 < len(present) <= len(COLOURS):
        return [COLOURS[place % len(COLOURS)] for place in range(len(rows))], []
    shade = {one: COLOURS[place] for place, one in enumerate(present)}
    handles = [Patch(color=shade[one], label=f"jobs of {run.vos[one]}") for one in present]
    return [shade[one] for one in owner.tolist()], handles


def _draw(axes: Axes, bars: Bars, colours: Sequence[str], edge: float) -> None:
    begin, end, low, rows = np.array(bars, np.float64).T
    axes.add_collection(
        PolyCollection(
            list(_corners(begin, end, low, low + rows)),
            facecolors=list(colours),
            edgecolors="white",
            linewidths=edge,
            rasterized=True,
        )
    )
    axes.set_ylim(low.min(), (low + rows).max())
    axes.grid(visible=False)


def _corners(begin: Floats, end: Floats, low: Floats, high: Floats) -> Floats:
    return np.stack(
        [
            np.column_stack([begin, low]),
            np.column_stack([begin, high]),
            np.column_stack([end, high]),
            np.column_stack([end, low]),
        ],
        axis=1,
    )
