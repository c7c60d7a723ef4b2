"""What a sweep tells of its jobs and of the course of its runs, at settings that are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grid.lab.report.axes import durations, numbers
from grid.lab.report.charts import FEW, Labels, Series, lines, reach
from grid.lab.report.page import Block, Choice
from grid.lab.report.style import COLOURS, Picture
from grid.lab.report.waiting import POINTS, distribution, steps_of
from grid.lab.study import Study
from grid.lab.sweep_places import (
    ELSEWHERE,
    choice_of_settings,
    has_choice,
    is_at,
    parameters,
    places_of,
    settings_told,
    title_at,
)

CURVES, FEWEST_POINTS = 40, 60
"""More curves than so many have fewer steps each, so that a page does not grow without end."""
SEEN = "seen_series"
"""The choice of the compared value that is seen before the others, where there are many."""


def distributions(study: Study) -> list[Block]:
    """Waits and slowdowns of the jobs of all seeds."""
    return _with_choices(study, list(_distributions(study)))


def courses(study: Study) -> list[Block]:
    """How the runs of the first seed went."""
    return _with_choices(study, list(_courses(study)))


def _with_choices(study: Study, pictures: list[Picture]) -> list[Block]:
    if not pictures:
        return []
    names = list(_places(study))
    seen = [Choice(SEEN, study.compare or "", {name: name for name in names})]
    return [*choice_of_settings(study), *(seen if len(names) > FEW else []), *pictures]


def _places(study: Study) -> dict[str, int]:
    """Which of the colours each compared value has, the same in all charts."""
    names = dict.fromkeys(name for _, name in places_of(study))
    return {name: place for place, name in enumerate(names)}


def _distributions(study: Study) -> Iterator[Picture]:
    curves, places = places_of(study), _places(study)
    points = max(FEWEST_POINTS, min(POINTS, POINTS * CURVES // len(curves)))
    for name, label, along in (("wait_s", "wait", durations), ("slowdown", "slowdown", numbers)):
        columns: dict[str, list[Any]] = {ELSEWHERE: [], "series": [], "value": [], "share": []}
        for (elsewhere, series), where in curves.items():
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
            caption = f"Share of the jobs of all seeds with at most so much {label}"
            caption += f"{settings_told(study)}."
            picture = distribution(f"cdf-{name.replace('_', '-')}", caption, axis, columns, places)
            yield _at_chosen(study, picture)


def _courses(study: Study) -> Iterator[Picture]:
    curves, places = places_of(study), _places(study)
    for name, label in (("jobs_in_system", "jobs in the system"), ("utilization", "utilization")):
        found = []
        for (elsewhere, series), where in curves.items():
            keys = study.keys(where)
            course = study.records[keys[min(keys)]]["courses"].get(name) if keys else None
            if course is not None:
                one = Series(series, course["time_s"], course["value"], place=places[series])
                found.append(replace(one, elsewhere=elsewhere))
        if found:
            caption = f"{label[0].upper()}{label[1:]}, first seed{settings_told(study)}."
            text = Labels(
                f"course-{name.replace('_', '-')}", caption, "", label, over_time=True,
                y_range=reach(found), y_bounds=(0.0, float("inf")),
            )  # fmt: skip
            yield _at_chosen(study, lines(text, found, markers=False))


def _at_chosen(study: Study, picture: Picture) -> Picture:
    """The chart, of which only the rows of the chosen settings are seen; it says which they are.

    Of many lines the one that the reader chose is seen before the others, which are grey.
    """
    specification, names = dict(picture.specification), list(_places(study))
    specification["params"] = parameters(study)
    if has_choice(study):
        specification["title"] = title_at(study, f"'{picture.specification['title']}'")
        specification["transform"] = [{"filter": is_at(study)}]
    if len(names) > FEW:
        specification["params"] = [*parameters(study), {"name": SEEN, "value": names[0]}]
        specification["title"] = title_at(study, f"'{picture.specification['title']}', {SEEN}")
        specification["encoding"], specification["layer"] = _one_before_others(specification)
    caption = f"{picture.caption} Grey: the other values of {study.compare}."
    caption = caption if len(names) > FEW else picture.caption
    return Picture(picture.name, caption, specification, picture.tables)


def _one_before_others(
    specification: Mapping[str, Any],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The encoding and the layers of a chart of lines, of which one is chosen."""
    given = specification["encoding"]
    encoding = {key: one for key, one in given.items() if key in ("x", "y")}
    first, *others = specification["layer"]
    mark = first["mark"] if isinstance(first["mark"], dict) else {"type": first["mark"]}
    alike = {"detail": {"field": "series"}, **first.get("encoding", {})}
    grey = {**mark, "color": "var(--waiting)", "strokeWidth": 0.8}
    chosen = [{"filter": f"datum.series === {SEEN}"}]
    before = {**mark, "color": COLOURS[0], "strokeWidth": 2.2}
    layers = [
        {"mark": grey, "encoding": alike},
        {"transform": chosen, "mark": before, "encoding": alike},
        *others,
    ]
    return encoding, layers
