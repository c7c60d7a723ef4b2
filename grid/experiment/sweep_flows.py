"""Who ran whose jobs in the runs of a sweep: means over seeds, at each compared value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grid.experiment.study import Study
from grid.model.arrays import Floats
from grid.report.flows import flow_map, flow_tables
from grid.report.page import Block, Choice, When

PLACE = "flow_place"


def flows(study: Study, places: Sequence[tuple[str, Mapping[str, Any]]], at: str) -> list[Block]:
    """A map of all VOs and tables, at the place that is chosen; nothing where no job moved."""
    found = {name: mean_flows(study, where) for name, where in places}
    found = {name: one for name, one in found.items() if len(one[0]) > 1 and one[1].any()}
    if not any((moved - np.diag(np.diag(moved))).any() for _, moved in found.values()):
        return []
    # The number of VOs may itself be what is compared.
    vos = list(dict.fromkeys(vo for names, _ in found.values() for vo in names))
    every = {name: _among(vos, names, moved) for name, (names, moved) in found.items()}
    picture = flow_map(vos, every, PLACE if len(every) > 1 else "", at)
    if len(every) == 1:
        return [picture, *flow_tables(*next(iter(found.values())))]
    choice = Choice(PLACE, study.compare or "", {name: name for name in found})
    tables = [When(PLACE, name, one) for name, of in found.items() for one in flow_tables(*of)]
    return [choice, picture, *tables]


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
