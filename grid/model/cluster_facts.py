"""What readers of a run's events need to know of a cluster, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from grid.model.platform import Cluster, MachineOutage
from grid.model.time import Time


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A cluster of a VO: its policy, and what each of its machines has.

    Shapes (machines,). Where it runs gangs, all CPUs count as one machine. `machine_licenses` are
    bit masks over `licenses`, which are (name, copies). `outages` are (machine, from,
    until before). Where it runs gangs, `cpus_of` has the CPUs of each machine that can be down.
    """

    vo: str
    name: str
    policy: str
    cpus: tuple[int, ...]
    ram_mb: tuple[float, ...] = ()
    machine_licenses: tuple[int, ...] = ()
    licenses: tuple[tuple[str, int], ...] = ()
    outages: tuple[tuple[int, Time, Time], ...] = ()
    gangs: bool = False
    one_job_a_machine: bool = False
    cpus_of: tuple[int, ...] = ()

    @property
    def entity(self) -> str:
        """The name of its Local Dispatcher."""
        return f"{self.vo}/cluster/{self.name}"

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return asdict(self)

    @classmethod
    def of_dict(cls, given: Mapping[str, Any]) -> ClusterFacts:
        """What `as_dict` gave, or JSON of it. Raises KeyError, TypeError or ValueError."""
        made = dict(given)
        for name in ("vo", "name", "policy"):
            made[name] = str(made[name])
        for name, kind in (("cpus", int), ("ram_mb", float), ("machine_licenses", int)):
            made[name] = tuple(map(kind, made[name]))
        made["cpus_of"] = tuple(map(int, made.get("cpus_of", ())))
        made["licenses"] = tuple((str(name), int(copies)) for name, copies in made["licenses"])
        made["outages"] = tuple((int(m), int(start), int(end)) for m, start, end in made["outages"])
        return cls(**made)


def facts_of(
    vo: str, cluster: Cluster, policy: str, outages: tuple[MachineOutage, ...]
) -> ClusterFacts:
    """The facts of a cluster whose policy is shown by that name."""
    names = [one.name for one in cluster.licenses]
    machines = () if cluster.gangs else cluster.machines
    return ClusterFacts(
        vo,
        cluster.name,
        policy,
        (cluster.processors,) if cluster.gangs else tuple(one.cpus for one in machines),
        tuple(one.ram_mb for one in machines),
        tuple(sum(1 << names.index(name) for name in one.licenses) for one in machines),
        tuple((one.name, one.copies) for one in cluster.licenses),
        tuple((one.machine, one.start_us, one.end_us) for one in outages),
        cluster.gangs,
        cluster.one_job_a_machine,
        tuple(one.cpus for one in cluster.machines) if cluster.gangs else (),
    )
