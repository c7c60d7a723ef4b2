"""Whether the clusters of a scenario can do all that is asked of them: `grid.cluster.engines`."""

from __future__ import annotations

from collections.abc import Iterator

from grid.model.platform import VirtualOrganization
from grid.scenario.grid_checks import refused
from grid.scenario.grid_settings import grid_faults
from grid.scenario.platform import cluster_of
from grid.scenario.schema import ClusterSection, GeneratedMachinesSection, MachineSection, Scenario
from grid.scenario.value_checks import Problem
from grid.workload.generators import MACHINE_GENERATORS

SAMPLE = 100
"""So many machines of a generator tell what the others may have."""


def capability_problems(scenario: Scenario) -> Iterator[Problem]:
    """What would be accepted and do nothing, of a scenario that is right otherwise."""
    faults = None if scenario.faults is None else grid_faults(scenario.faults)
    vos = [
        VirtualOrganization(
            vo.names[0],
            tuple(cluster_of(_sampled(one), vo.name, scenario) for one in vo.clusters),
        )
        for vo in scenario.vos or ()
    ]
    yield from refused(vos, faults, _asks_for_memory(scenario), scenario.parts)


def _asks_for_memory(scenario: Scenario) -> bool:
    """Of jobs that are written out; those of traces and generators ask for none."""
    workloads = [vo.workload for vo in scenario.vos or () if vo.workload is not None]
    return any(job.ram_mb > 0 for workload in workloads for job in workload.jobs or ())


def _sampled(section: ClusterSection) -> ClusterSection:
    machines = section.machines
    if not isinstance(machines, GeneratedMachinesSection):
        return section
    if machines.generator not in MACHINE_GENERATORS.own:
        # A user's generator is not asked before the run.
        return section.model_copy(update={"machines": (MachineSection(),)})
    fewer = machines.model_copy(update={"count": min(machines.count, SAMPLE)})
    return section.model_copy(update={"machines": fewer})
