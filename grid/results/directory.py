"""The names of VOs, clusters and machines, by which results tell of positions."""

from __future__ import annotations

from dataclasses import dataclass

from grid.model.platform import Machine, MachineOutage


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """What results need to know of a cluster: its VO, its name and its machines' CPUs.

    Where it runs gangs, all its CPUs count as one machine, and the tasks of a job end at different
    times: the table does not say how many CPUs a job held when.
    """

    vo: int
    name: str
    cpus: tuple[int, ...]
    gangs: bool = False
    machines: tuple[Machine, ...] = ()
    """The machines themselves, for their watts."""
    outages: tuple[MachineOutage, ...] = ()
    external_scheduler: bool = False
    """Whether a scheduler outside of the emulator allocates CPUs by number. Results do not hold
    these allocations, so none are derived either."""


@dataclass(frozen=True, slots=True)
class Directory:
    """The names behind the positions in `JobResults`, in the scenario's order."""

    vos: tuple[str, ...]
    clusters: tuple[ClusterEntry, ...]
