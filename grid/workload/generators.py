"""The generators that a scenario can name, each with settings of its own.

A generator of jobs is given the names of the VOs that its users belong to, those VOs, settings and
a random stream; one of machines is given their number instead of VOs. A wrong setting or an
unknown name is a ValueError (pydantic's, where it is a setting).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel

from grid.model.job_table import JobTable
from grid.model.platform import License, Machine, VirtualOrganization
from grid.workload.convergent import (
    ConvergentJobs,
    ConvergentMachines,
    convergent_jobs,
    convergent_licenses,
    convergent_machines,
)
from grid.workload.eg_edf import EgEdfJobs, EgEdfMachines, eg_edf_jobs, eg_edf_machines
from grid.workload.gang import GangJobs, GangMachines, gang_jobs, gang_machines
from grid.workload.partial_utility import (
    PartialUtilityJobs,
    PartialUtilityMachines,
    partial_utility_jobs,
    partial_utility_machines,
)

Settings = Mapping[str, Any]


class JobGenerator(NamedTuple):
    """What a generator's settings must be, and what makes its jobs of them."""

    settings: type[BaseModel]
    generate: Callable[
        [Sequence[str], Sequence[VirtualOrganization], Any, np.random.Generator],
        dict[str, JobTable],
    ]


class MachineGenerator(NamedTuple):
    """What a generator's settings must be, and what makes its machines of them.

    `licenses` makes the licenses of a farm of such machines, where it has any.
    """

    settings: type[BaseModel]
    generate: Callable[[int, Any, np.random.Generator], tuple[Machine, ...]]
    licenses: (
        Callable[[Sequence[Machine], Any, np.random.Generator], tuple[License, ...]] | None
    ) = None


Kind = TypeVar("Kind", JobGenerator, MachineGenerator)

JOB_GENERATORS: dict[str, JobGenerator] = {
    "convergent": JobGenerator(ConvergentJobs, convergent_jobs),
    "eg_edf": JobGenerator(EgEdfJobs, eg_edf_jobs),
    "gang": JobGenerator(GangJobs, gang_jobs),
    "partial_utility": JobGenerator(
        PartialUtilityJobs,
        lambda names, _, settings, stream: partial_utility_jobs(names, settings, stream),
    ),
}
MACHINE_GENERATORS: dict[str, MachineGenerator] = {
    "convergent": MachineGenerator(ConvergentMachines, convergent_machines, convergent_licenses),
    "eg_edf": MachineGenerator(EgEdfMachines, eg_edf_machines),
    "gang": MachineGenerator(GangMachines, gang_machines),
    "partial_utility": MachineGenerator(PartialUtilityMachines, partial_utility_machines),
}


def generate_jobs(
    generator: str,
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    settings: Settings,
    stream: np.random.Generator,
) -> dict[str, JobTable]:
    """The jobs of the users of each VO, in order of submission."""
    chosen = _named(JOB_GENERATORS, generator)
    return chosen.generate(names, vos, chosen.settings.model_validate(settings), stream)


def generate_machines(
    generator: str, count: int, settings: Settings, stream: np.random.Generator
) -> tuple[tuple[Machine, ...], tuple[License, ...]]:
    """`count` machines, and the licenses that come with them."""
    chosen = _named(MACHINE_GENERATORS, generator)
    checked = chosen.settings.model_validate(settings)
    machines = chosen.generate(count, checked, stream)
    return machines, chosen.licenses(machines, checked, stream) if chosen.licenses else ()


def _named(generators: Mapping[str, Kind], name: str) -> Kind:
    if name not in generators:
        raise ValueError(f"no generator {name!r}; there are: {', '.join(sorted(generators))}")
    return generators[name]
