"""CS2's figures with our data."""

from __future__ import annotations

from collections.abc import Iterator

from grid.lab.claims import Studies
from grid.lab.papers.cs2_points import (
    ALL,
    MAIN,
    OURS,
    QUICKSORT,
    READING_RUNS,
    SCALING,
    TIMING,
    TOTAL,
)
from grid.lab.papers.drawing import along_axis, mean_courses
from grid.lab.papers.points import AXIS, FULLEST, PLAN, at, times
from grid.lab.report.charts import Labels, Series, lines
from grid.lab.report.style import Picture


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 1 to 8."""
    time = "mean inter-arrival time (s)"
    if MAIN in studies.found:
        study = studies.found[MAIN]
        named = [(f"Ta = {value}", at(QUICKSORT, value)) for value in times(study)]
        caption = "CS2 Fig. 1 with our data: jobs in the system, under CS 2.0."
        labels = Labels("cs2-figure-1", caption, "time (s)", "jobs")
        yield from mean_courses(labels, study, "jobs_in_system", "time_s", named)
        for number, metric, label in (
            (2, "late_percent", "jobs late, of those with a deadline (%)"),
            (3, "slowdown_mean", "slowdown"),
            (4, "machine_usage", "machine usage, whole simulation (%)"),
            (5, "license_usage", "licence usage, whole simulation (%)"),
        ):
            caption = f"CS2 Fig. {number} with our data: {label}."
            labels = Labels(f"cs2-figure-{number}", caption, time, label)
            yield from along_axis(labels, study, metric, AXIS, ALL)
        for metric, label in (
            ("preemptions", "preemptions a run"),
            ("restarts", "jobs that lost their work and began again, a run"),
        ):
            caption = f"CS2, what preemption costs, for which the text has no figure: {label}."
            labels = Labels(f"cs2-{metric}", caption, time, label)
            yield from along_axis(labels, study, metric, AXIS, OURS)
        yield _makespans(studies)
    if TIMING in studies.found:
        for number, metric, label in (
            (6, PLAN, "time for a plan, mean (ms)"),
            (7, TOTAL, "time for all plans (ms)"),
        ):
            caption = f"CS2 Fig. {number} with our data: {label}."
            labels = Labels(f"cs2-figure-{number}", caption, time, label, log_y=True)
            yield from along_axis(labels, studies.found[TIMING], metric, AXIS, ALL, 1000.0)
    if SCALING in studies.found:
        caption = "CS2 Fig. 8 with our data: time for a plan with nearly all jobs in the system."
        labels = Labels("cs2-figure-8", caption, "jobs", "time for a plan (ms)")
        yield from along_axis(labels, studies.found[SCALING], FULLEST, "jobs", ALL, 1000.0)


def _makespans(studies: Studies) -> Picture:
    """How the makespan hangs on the farm that was drawn; the paper's axis ends at 25,000 s."""
    kinds = {"machines drawn anew": studies.found[MAIN]}
    if READING_RUNS in studies.found:
        kinds["one farm for all"] = studies.found[READING_RUNS].seen({"reading": "one farm"}, {})
    series = []
    first = max(min(times(study)) for study in kinds.values())
    for label, study in kinds.items():
        spans = sorted(study.values("makespan", at(QUICKSORT, first)).values())
        if spans:
            name = f"{label}, Ta = {first}"
            series.append(Series(name, list(range(1, len(spans) + 1)), spans))
    caption = (
        "CS2 Fig. 1, where it ends: the makespan of each repetition under CS 2.0, in rising order; "
        "the last tick of the paper's axis is 25,000 s."
    )
    axes = ("repetition, by its makespan", "makespan (s)")
    return lines(Labels("cs2-makespan", caption, *axes), series)
