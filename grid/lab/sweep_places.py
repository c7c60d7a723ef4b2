"""Where a sweep's report looks: the compared values, at those of the other axes that are chosen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from grid.lab.report.flows import MAPPED
from grid.lab.report.page import Block, Choice, Table, When
from grid.lab.study import Study
from grid.lab.sweep_texts import named

ELSEWHERE = "elsewhere"
"""The choice of the values of those axes that are not compared, and the column that has them."""
CHOICES, CELLS = 48, 60_000
"""So many combinations of these values, the first ones, can be chosen; and fewer where they have so
many figures of VOs together, or a page grows without end."""
METRICS = 8

Place = tuple[str, str]
"""What is chosen where it is seen, and the compared value as a legend has it."""


def settings_elsewhere(study: Study) -> dict[str, dict[str, Any]]:
    """The values of the axes that are not compared: each combination that has runs, by its name."""
    axes = [name for name in study.axes if name != study.compare]
    names = _names(study)
    return {names(point): {name: point[name] for name in axes} for point in study.points}


def _names(study: Study) -> Callable[[Mapping[str, Any]], str]:
    """What gives the name of the combination that a point belongs to."""
    varied = [name for name in study.axes if len(study.axes[name]) > 1 and name != study.compare]
    return lambda point: ", ".join(named(name, point[name]) for name in varied)


def _first_what_tells(study: Study) -> dict[str, dict[str, Any]]:
    """The settings elsewhere; last those at which no run differs by the compared value.

    So a report does not begin where nothing happens, such as with a TTL of 0.
    """
    names, digests = _names(study), defaultdict(set)
    for point, seed, key in study.runs:
        digests[names(point), seed].add(str(study.records[key].get("digest")))
    telling = {name for (name, _), found in digests.items() if len(found) > 1}
    found = settings_elsewhere(study)
    return dict(sorted(found.items(), key=lambda one: one[0] not in telling))


def places_of(study: Study) -> dict[Place, dict[str, Any]]:
    """The points of each combination that can be chosen."""
    axis = study.compare
    values = [None] if axis is None else study.axes[axis]
    return {
        (chosen, study.name if axis is None else named(axis, value)): (
            where if axis is None else {**where, axis: value}
        )
        for chosen, where in list(_first_what_tells(study).items())[: _choices(study)]
        for value in values
    }


def has_choice(study: Study) -> bool:
    """Whether there is anything to choose."""
    return len(settings_elsewhere(study)) > 1


def choice_of_settings(study: Study) -> list[Block]:
    """The list to choose from, and what is not in it; nothing where there is no choice.

    A page has it at several places, and all of them are alike.
    """
    every, most = list(_first_what_tells(study)), _choices(study)
    if len(every) < 2:
        return []
    varied = [name for name in study.axes if len(study.axes[name]) > 1]
    axes = ", ".join(name for name in varied if name != study.compare)
    chosen = Choice(ELSEWHERE, axes, {name: name for name in every[:most]})
    if len(every) <= most:
        return [chosen]
    return [f"Of {len(every):,} combinations of {axes} the first {most} can be chosen.", chosen]


def when_chosen(study: Study, chosen: str, block: str | Table | When) -> str | Table | When:
    """The block, which is shown at the settings that it is of."""
    return When(ELSEWHERE, chosen, block) if has_choice(study) else block


def settings_told(study: Study) -> str:
    """The end of a caption that says where a chart is."""
    return ", at the settings chosen above" if has_choice(study) else ""


def is_at(study: Study) -> str:
    """What filters the rows of a table for a chart: those of the chosen settings; or empty."""
    return f"datum.{ELSEWHERE} === {ELSEWHERE}" if has_choice(study) else ""


def parameters(study: Study) -> list[dict[str, Any]]:
    """The parameter of a chart that follows the choice, if there is one."""
    first = next(iter(_first_what_tells(study)), "")
    return [{"name": ELSEWHERE, "value": first}] if has_choice(study) else []


def title_at(study: Study, title: str) -> dict[str, Any]:
    """A title that is an expression, and under it the chosen settings."""
    lines = [title, *([ELSEWHERE] if has_choice(study) else [])]
    return {"text": {"expr": f"[{', '.join(lines)}]"}}


def _choices(study: Study) -> int:
    vos = max([1, *(len(one["metrics"]["vos"]) for one in study.records.values())])
    compared = len(study.axes[study.compare]) if study.compare is not None else 1
    metrics = len(study.metrics) or METRICS
    figures = compared * (vos * metrics + min(vos, MAPPED) ** 2)
    return max(1, min(CHOICES, CELLS // figures))
