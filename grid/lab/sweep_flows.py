"""Who ran whose jobs in the runs of a sweep: means over seeds, at each compared value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grid.lab.report.flows import BETWEEN, flow_map, flow_tables
from grid.lab.report.page import Block, Choice, When
from grid.lab.study import Study
from grid.lab.sweep_places import (
    ELSEWHERE,
    choice_of_settings,
    has_choice,
    places_of,
    settings_told,
    when_chosen,
)
from grid.lab.sweep_texts import over_seeds
from grid.model.arrays import Floats

PLACE = "flow_place"


def flows(study: Study) -> list[Block]:
    """A map of all VOs and tables, at the place that is chosen; nothing where no job moved."""
    found = {place: mean_flows(study, where) for place, where in places_of(study).items()}
    found = {place: one for place, one in found.items() if len(one[0]) > 1 and one[1].any()}
    if not any(_moves(moved) for _, moved in found.values()):
        return []
    # The number of VOs may itself be what is compared.
    vos = list(dict.fromkeys(vo for names, _ in found.values() for vo in names))
    # First comes what has something to show.
    moving = [place for place, one in found.items() if _moves(one[1])]
    compared = list(dict.fromkeys(name for _, name in (*moving, *found)))
    is_chosen = (has_choice(study), len(compared) > 1)
    signals = [one for one, has in zip((ELSEWHERE, PLACE), is_chosen, strict=True) if has]
    maps = {
        BETWEEN.join(one for one, has in zip(place, is_chosen, strict=True) if has): (
            _among(vos, *every)
        )
        for place, every in found.items()
    }
    choice = [Choice(PLACE, study.compare or "", {name: name for name in compared})]
    tables = [
        when_chosen(study, chosen, When(PLACE, name, one) if is_chosen[1] else one)
        for (chosen, name), every in found.items()
        for one in flow_tables(*every)
    ]
    picture = flow_map(vos, maps, signals, over_seeds(study) + settings_told(study))
    return [*choice_of_settings(study), *(choice if is_chosen[1] else []), picture, *tables]


def _moves(moved: Floats) -> bool:
    """Whether any job ran in another VO than its own."""
    return bool((moved - np.diag(np.diag(moved))).any())


def mean_flows(study: Study, where: Mapping[str, Any]) -> tuple[list[str], Floats]:
    """The VOs at a point, and how many jobs of each (rows) ran in each, the mean over seeds."""
    records = [study.records[key] for key in study.keys(where).values()]
    vos = list(records[0]["metrics"]["vos"]) if records else []
    moved = np.zeros((len(vos), len(vos)))
    for record in records:
        for origin, host, jobs in record["flows"]:
            moved[origin, host] += jobs / len(records)
    return vos, moved


def _among(vos: Sequence[str], names: Sequence[str], moved: Floats) -> Floats:
    """The flows between `names`, with a place for each of `vos`."""
    at = np.array([vos.index(name) for name in names])
    wide = np.zeros((len(vos), len(vos)))
    wide[np.ix_(at, at)] = moved
    return wide
