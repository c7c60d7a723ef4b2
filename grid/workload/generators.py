"""The generators that a scenario can name, each with settings of its own.

A generator of jobs is given the names of the VOs that its users belong to, those VOs, settings and
a random stream; one of machines is given their number instead of VOs. A wrong setting or an
unknown name is a ValueError (pydantic's, where it is a setting).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from grid.model.job_table import JobTable
from grid.model.platform import Machine, VirtualOrganization
from grid.workload.partial_utility import (
    PartialUtilityJobs,
    PartialUtilityMachines,
    partial_utility_jobs,
    partial_utility_machines,
)

Kind = TypeVar("Kind")
Settings = Mapping[str, Any]
JobGenerator = Callable[
    [Sequence[str], Sequence[VirtualOrganization], Settings, np.random.Generator],
    dict[str, JobTable],
]
MachineGenerator = Callable[[int, Settings, np.random.Generator], tuple[Machine, ...]]

JOB_GENERATORS: dict[str, JobGenerator] = {
    "partial_utility": lambda names, _, settings, stream: partial_utility_jobs(
        names, PartialUtilityJobs.model_validate(settings), stream
    ),
}
MACHINE_GENERATORS: dict[str, MachineGenerator] = {
    "partial_utility": lambda count, settings, stream: partial_utility_machines(
        count, PartialUtilityMachines.model_validate(settings), stream
    ),
}


def generate_jobs(
    generator: str,
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    settings: Settings,
    stream: np.random.Generator,
) -> dict[str, JobTable]:
    """The jobs of the users of each VO, in order of submission."""
    return _named(JOB_GENERATORS, generator)(names, vos, settings, stream)


def generate_machines(
    generator: str, count: int, settings: Settings, stream: np.random.Generator
) -> tuple[Machine, ...]:
    """`count` machines."""
    return _named(MACHINE_GENERATORS, generator)(count, settings, stream)


def _named(generators: Mapping[str, Kind], name: str) -> Kind:
    if name not in generators:
        raise ValueError(f"no generator {name!r}; there are: {', '.join(sorted(generators))}")
    return generators[name]
