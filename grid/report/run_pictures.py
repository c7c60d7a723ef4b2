"""Pictures of one run: who did what when, how busy it was, who waited and who helped whom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from grid.model.arrays import Floats, Ints
from grid.report.gantt import gantt
from grid.report.run_data import RunData
from grid.report.style import (
    COLOURS,
    DASHES,
    SEQUENTIAL,
    Picture,
    drawing,
    legend,
    picture,
    time_axis,
)

LINES = 6
"""More lines than this are a tangle; the middle of them is drawn instead."""
WIDE = 10.0
"""A range over which values grow by more than this factor is seen on a logarithmic scale."""
STEPS = 240
"""Points along the time axis: one for about every pixel of a small screen."""
ANNOTATED = 10


def run_pictures(run: RunData) -> Iterator[Picture]:
    """All pictures that the run has data for."""
    yield from gantt(run)
    for column, label in (
        ("utilization", "CPUs in use / CPUs"),
        ("queued", "jobs waiting"),
        ("license_use", "license copies in use / copies"),
        ("lost_cpus", "CPUs lost to fragmentation"),
    ):
        yield from _course(run, column, label)
    yield from _distributions(run)
    yield from _map_of_vos(run)


def _course(run: RunData, column: str, label: str) -> Iterator[Picture]:
    """How a column of the series went over time, a line a cluster or the middle of all."""
    if column not in run.series.column_names:
        return
    values = run.series[column].to_numpy(zero_copy_only=False)
    times = run.series["time_s"].to_numpy()
    count = len(run.clusters)
    is_only_one = count == len(run.vos)
    if not len(times) or np.isnan(values).all():
        return
    length = len(times) // count
    time, levels = _thinned(times[:length], values.reshape(count, length))
    with drawing() as (figure, axes):
        if count <= LINES:
            for number, (vo, name) in enumerate(run.clusters):
                if np.isnan(levels[number]).all():
                    continue
                axes.step(
                    time,
                    levels[number],
                    where="post",
                    color=COLOURS[number],
                    linestyle=DASHES[number],
                    label=vo if is_only_one else f"{vo}/{name}",
                )
            caption = f"{label[0].upper()}{label[1:]}, by cluster."
        else:
            low, middle, high = np.nanquantile(levels, (0.1, 0.5, 0.9), axis=0)
            axes.fill_between(
                time, low, high, step="post", color=COLOURS[5], alpha=0.5, label="10 % to 90 %"
            )
            axes.step(time, middle, where="post", color=COLOURS[0], label="median")
            mean = np.nanmean(levels, axis=0)
            axes.step(time, mean, where="post", color=COLOURS[1], linestyle="--", label="mean")
            caption = f"{label[0].upper()}{label[1:]}, over {count} clusters."
        time_axis(axes, float(time[0]), float(time[-1]))
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        legend(axes, count if count <= LINES else 3)
        yield picture(column.replace("_", "-"), caption, figure)


def _thinned(time: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """Means over at most STEPS intervals of alike length."""
    width = -(-len(time) // STEPS)
    starts = np.arange(0, len(time), width)
    sums = np.add.reduceat(levels, starts, axis=1)
    counts = np.diff(np.append(starts, len(time)))
    return time[starts], sums / counts


def _distributions(run: RunData) -> Iterator[Picture]:
    """The share of jobs that waited so long, or were slowed down so much, at most."""
    submit, wait = run.column("submission_time"), run.column("waiting_time")
    end = run.column("finish_time")
    run_s = run.column("execution_time")
    if "held_time" in run.jobs.column_names:
        run_s = run.column("held_time")
    with np.errstate(divide="ignore", invalid="ignore"):
        slowdown = np.where(run_s > 0, (end - submit) / run_s, np.nan)
    owner = run.positions("vo", run.vos)
    for name, values, label in (
        ("wait", wait, "wait (s)"),
        ("slowdown", slowdown, "slowdown"),
    ):
        if np.isnan(values).all():
            continue
        with drawing() as (figure, axes):
            lines = _groups(values, owner, run.vos)
            for number, (group, mine) in enumerate(lines):
                axes.step(
                    np.sort(mine),
                    np.arange(1, len(mine) + 1) / len(mine),
                    where="post",
                    color=COLOURS[number % len(COLOURS)],
                    linestyle=DASHES[number % len(DASHES)],
                    label=group,
                )
            _spread(axes, values)
            axes.set(xlabel=label, ylabel="share of jobs", ylim=(0, 1.01))
            legend(axes, len(lines))
            caption = f"Distribution of {name}: the share of jobs with at most so much."
            yield picture(f"cdf-{name}", caption, figure)


def _spread(axes: Axes, values: Floats) -> None:
    """A logarithmic scale for what spans more than one can see on a linear one."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if high > WIDE * max(low, 1.0):
        axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xlim(low, high if high > low else low + 1.0)


def _groups(values: Floats, owner: Ints, vos: list[str]) -> list[tuple[str, Floats]]:
    """The values of each VO that has any; of all jobs together where there are many VOs."""
    known = ~np.isnan(values)
    if not 1 < len(vos) <= LINES:
        return [("all jobs", values[known])]
    groups = [(f"jobs of {vo}", values[known & (owner == number)]) for number, vo in enumerate(vos)]
    return [(name, mine) for name, mine in groups if len(mine)]


def _map_of_vos(run: RunData) -> Iterator[Picture]:
    """How many jobs of each VO (rows) ran in each (columns)."""
    count = len(run.vos)
    if count < 2:
        return
    moved = run.moved
    with drawing(height=3.9) as (figure, axes):
        shown = np.where(moved > 0, moved, np.nan)
        norm = LogNorm(vmin=1, vmax=max(2.0, float(moved.max())))
        image = axes.imshow(shown, cmap=SEQUENTIAL, norm=norm)
        figure.colorbar(image, ax=axes, label="jobs", shrink=0.8)
        axes.set(xlabel="ran in", ylabel="submitted in")
        axes.grid(visible=False)
        if count <= ANNOTATED:
            axes.set_xticks(range(count), run.vos, rotation=45, ha="right")
            axes.set_yticks(range(count), run.vos)
            for row, column in np.ndindex(count, count):
                light = moved[row, column] < np.sqrt(norm.vmax or 1.0)
                colour = "white" if light and moved[row, column] else "black"
                axes.text(
                    column, row, f"{moved[row, column]:.0f}", ha="center", va="center", color=colour
                )
        caption = (
            "Who forwarded how much to whom: jobs by the VO of their user and the VO they ran in."
        )
        yield picture("vo-map", caption, figure)
