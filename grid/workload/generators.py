"""The generators that a scenario can name: of the jobs of VOs, and of the machines of a cluster.

A generator of jobs is a function of the names of the VOs that its users belong to, those VOs and a
random stream; one of machines of their number and a stream. Settings are keyword parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from grid.model.errors import dotted, kind_of, shorten
from grid.model.job_table import JobTable
from grid.model.platform import License, Machine, VirtualOrganization
from grid.model.plugins.registry import Plugins, function_kind
from grid.workload.table_checks import table_problems

Settings = Mapping[str, Any]


class GeneratedMachines(NamedTuple):
    """What a generator of machines gives where licenses come with them."""

    machines: tuple[Machine, ...]
    licenses: tuple[License, ...]


def _jobs_problem(tables: Any, names: Sequence[str], *_: object) -> str | None:
    if not isinstance(tables, Mapping) or set(tables) != set(names):
        found = f"tables of {shorten(list(tables))}" if isinstance(tables, Mapping) else ""
        found = found or shorten(tables)
        return f"gave {found}, expected a table of jobs by the name of each VO: {', '.join(names)}"
    for name, table in tables.items():
        problem = next(table_problems((), table), None)
        if problem is not None:
            path, found, expected = problem
            of = f"jobs of {name} with {dotted(path)}" if path else f"for {name}"
            return f"gave {of}: found {found}, expected {expected}"
        if len(np.unique(table.number)) < len(table):
            return f"gave two jobs of {name} the same number"
    return None


def _machines_problem(made: Any, count: int, *_: object) -> str | None:
    machines = made.machines if isinstance(made, GeneratedMachines) else made
    if not isinstance(machines, Sequence) or not all(isinstance(one, Machine) for one in machines):
        return f"gave {kind_of(made)}, expected machines or GeneratedMachines"
    if len(machines) != count:
        return f"gave {len(machines)} machines, expected {count}"
    return None


JOB_GENERATORS = function_kind(
    "job_generators",
    "generator of jobs",
    "makes the jobs of the users of VOs",
    {
        "convergent": "grid.workload.convergent:convergent_jobs",
        "eg_edf": "grid.workload.eg_edf:eg_edf_jobs",
        "gang": "grid.workload.gang:gang_jobs",
        "lublin": "grid.workload.lublin:lublin_jobs",
        "partial_utility": "grid.workload.partial_utility:partial_utility_jobs",
        "sessions": "grid.workload.sessions:session_jobs",
        "stochastic": "grid.workload.stochastic:stochastic_jobs",
    },
    ("names", "vos", "rng"),
    _jobs_problem,
    "workload.generator and vos.*.workload.generator",
    "generating",
)
MACHINE_GENERATORS = function_kind(
    "machine_generators",
    "generator of machines",
    "makes the machines of a cluster, and their licenses",
    {
        "convergent": "grid.workload.convergent:convergent_farm",
        "eg_edf": "grid.workload.eg_edf:eg_edf_machines",
        "gang": "grid.workload.gang:gang_machines",
        "partial_utility": "grid.workload.partial_utility:partial_utility_machines",
    },
    ("count", "rng"),
    _machines_problem,
    "vos.*.clusters.*.machines.generator",
    "generating",
)


def generate_jobs(
    generator: str,
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    settings: Settings,
    stream: np.random.Generator,
    parts: Plugins | None = None,
) -> dict[str, JobTable]:
    """The jobs of the users of each VO, in order of submission."""
    generate = (parts or Plugins()).make(JOB_GENERATORS, generator, settings)
    tables: dict[str, JobTable] = generate(tuple(names), tuple(vos), stream)
    return tables


def generate_machines(
    generator: str,
    count: int,
    settings: Settings,
    stream: np.random.Generator,
    parts: Plugins | None = None,
) -> GeneratedMachines:
    """`count` machines, and the licenses that come with them."""
    made = (parts or Plugins()).make(MACHINE_GENERATORS, generator, settings)(count, stream)
    if isinstance(made, GeneratedMachines):
        return made
    return GeneratedMachines(tuple(made), ())
