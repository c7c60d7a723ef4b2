"""What a sweep tells of its jobs and of the course of its runs, at settings that are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grid.experiment.study import Study
from grid.experiment.sweep_texts import named
from grid.report.axes import durations, numbers
from grid.report.charts import Labels, Series, lines, reach
from grid.report.page import Block, Choice
from grid.report.style import Picture
from grid.report.waiting import POINTS, distribution, steps_of

ELSEWHERE = "elsewhere"
"""The choice of the values of those axes that are not compared, and the column that has them."""
CHOICES = 48
"""So many combinations of these values, the first ones, can be chosen."""
CURVES, FEWEST_POINTS = 40, 60
"""More curves than so many have fewer steps each, so that a page does not grow without end."""

Curve = tuple[str, str, dict[str, Any]]
"""What is chosen where it is seen, the compared value as a legend has it, the point."""


def distributions(study: Study) -> list[Block]:
    """Waits and slowdowns of the jobs of all seeds."""
    return _with_choice(study, list(_distributions(study)))


def courses(study: Study) -> list[Block]:
    """How the runs of the first seed went."""
    return _with_choice(study, list(_courses(study)))


def settings_elsewhere(study: Study) -> dict[str, dict[str, Any]]:
    """The values of the axes that are not compared: each combination that has runs, by its name."""
    axes = [name for name in study.axes if name != study.compare]
    found = {}
    for point in study.points:
        where = {name: point[name] for name in axes}
        found[", ".join(named(name, value) for name, value in where.items())] = where
    return found


def _with_choice(study: Study, pictures: list[Picture]) -> list[Block]:
    every = list(settings_elsewhere(study))
    if not pictures or len(every) < 2:
        return list(pictures)
    axes = ", ".join(name for name in study.axes if name != study.compare)
    chosen = Choice(ELSEWHERE, axes, {name: name for name in every[:CHOICES]})
    blocks: list[Block] = [chosen, *pictures]
    if len(every) > CHOICES:
        left_out = f"Of {len(every):,} combinations of {axes} the first {CHOICES} can be chosen."
        blocks.insert(0, left_out)
    return blocks


def _curves(study: Study) -> list[Curve]:
    axis = study.compare
    values = [None] if axis is None else study.axes[axis]
    return [
        (elsewhere, study.name if axis is None else named(axis, value),
         where if axis is None else {**where, axis: value})
        for elsewhere, where in list(settings_elsewhere(study).items())[:CHOICES]
        for value in values
    ]  # fmt: skip


def _places(curves: Sequence[Curve]) -> dict[str, int]:
    """Which of the colours each compared value has, the same in all charts."""
    return {name: place for place, name in enumerate(dict.fromkeys(one[1] for one in curves))}


def _distributions(study: Study) -> Iterator[Picture]:
    curves = _curves(study)
    points = max(FEWEST_POINTS, min(POINTS, POINTS * CURVES // len(curves)))
    places = _places(curves)
    for name, label, along in (("wait_s", "wait", durations), ("slowdown", "slowdown", numbers)):
        columns: dict[str, list[Any]] = {ELSEWHERE: [], "series": [], "value": [], "share": []}
        for elsewhere, series, where in curves:
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
            caption = f"Share of jobs with at most so much {label}{_told(study)}."
            picture = distribution(f"cdf-{name.replace('_', '-')}", caption, axis, columns, places)
            yield _at_chosen(study, picture)


def _courses(study: Study) -> Iterator[Picture]:
    curves = _curves(study)
    places = _places(curves)
    for name, label in (("jobs_in_system", "jobs in the system"), ("utilization", "utilization")):
        found = []
        for elsewhere, series, where in curves:
            keys = study.keys(where)
            course = study.records[keys[min(keys)]]["courses"].get(name) if keys else None
            if course is not None:
                one = Series(series, course["time_s"], course["value"], place=places[series])
                found.append(replace(one, elsewhere=elsewhere))
        if found:
            caption = f"{label[0].upper()}{label[1:]}, first seed{_told(study)}."
            text = Labels(
                f"course-{name.replace('_', '-')}", caption, "", label, over_time=True,
                y_range=reach(found), y_bounds=(0.0, float("inf")),
            )  # fmt: skip
            yield _at_chosen(study, lines(text, found, markers=False))


def _told(study: Study) -> str:
    return ", at the settings chosen above" if len(settings_elsewhere(study)) > 1 else ""


def _at_chosen(study: Study, picture: Picture) -> Picture:
    """The chart, of which only the rows of the chosen settings are seen; it says which they are."""
    first = next(iter(settings_elsewhere(study)), "")
    if len(settings_elsewhere(study)) < 2:
        return picture
    given = picture.specification
    specification = {
        **given,
        "title": {"text": {"expr": f"['{given['title']}', {ELSEWHERE}]"}},
        "params": [{"name": ELSEWHERE, "value": first}],
        "transform": [{"filter": f"datum.{ELSEWHERE} === {ELSEWHERE}"}],
    }
    return Picture(picture.name, picture.caption, specification, picture.tables)
