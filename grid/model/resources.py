"""Resources as the selection sees them: columns over machines and pools of many VOs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.platform import ARCHITECTURES, OPERATING_SYSTEMS, VirtualOrganization

UNKNOWN = np.inf
"""Assigned CPUs of a resource of which nothing has been heard: it is never free."""

ASSIGNED_CPUS, JOBS, NUMBER = 0, 1, 2
STATUS_COLUMNS = 3
"""Columns of a status row: CPUs assigned to jobs, number of those jobs, which resource it is."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceColumns:
    """What does not change about resources, every column of shape (resources,).

    A resource is what a selection chooses: a machine, or a whole cluster whose policy is free to
    take any of its machines (`machine` is -1 then, and its other columns are those of its first
    machine). `widest` is the most CPUs that one job may hold there.
    """

    vo: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    cluster: npt.NDArray[np.int64]
    machine: npt.NDArray[np.int64]
    cpus: npt.NDArray[np.float64]
    widest: npt.NDArray[np.float64]
    mips: npt.NDArray[np.float64]
    operating_system: npt.NDArray[np.int64]
    architecture: npt.NDArray[np.int64]
    ram_mb: npt.NDArray[np.float64]
    disk_mb: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.vo)


@dataclass(frozen=True, slots=True, eq=False)
class ResourceTable:
    """Resources of the grid as one virtual organization knows them at one moment.

    `assigned_cpus` has shape (resources,): how many CPUs are promised to jobs, queued ones
    included, so that load is assigned / cpus and may pass one; `UNKNOWN` where nothing was heard.
    """

    columns: ResourceColumns
    assigned_cpus: npt.NDArray[np.float64]


def resources_of(vo: VirtualOrganization, position: int) -> ResourceColumns:
    """The resources of `vo`, which is the grid's VO number `position`."""
    rows: list[tuple[float, ...]] = []
    for c, cluster in enumerate(vo.clusters):
        units = (
            [(m, machine.cpus, machine.cpus) for m, machine in enumerate(cluster.machines)]
            if cluster.by_machine
            else [(-1, cluster.processors, cluster.widest)]
        )
        for m, cpus, widest in units:
            machine = cluster.machines[max(m, 0)]
            rows.append(
                (
                    position,
                    len(rows),
                    c,
                    m,
                    cpus,
                    widest,
                    machine.mips,
                    OPERATING_SYSTEMS.index(machine.operating_system),
                    ARCHITECTURES.index(machine.architecture),
                    machine.ram_mb,
                    machine.disk_mb,
                )
            )
    columns: dict[str, Any] = {
        column.name: np.array(values, np.int64 if "int" in str(column.type) else np.float64)
        for column, values in zip(fields(ResourceColumns), zip(*rows, strict=True), strict=True)
    }
    return ResourceColumns(**columns)


def concatenate_resources(parts: Sequence[ResourceColumns]) -> ResourceColumns:
    """All rows of all parts, one part after the other; at least one part."""
    return ResourceColumns(
        *(
            np.concatenate([getattr(part, column.name) for part in parts])
            for column in fields(ResourceColumns)
        )
    )
