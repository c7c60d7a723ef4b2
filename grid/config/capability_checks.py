"""Whether the clusters of a scenario can do all that is asked of them: `grid.cluster.engines`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grid.config.direct_checks import AS_WRITTEN, direct_problems
from grid.config.fault_sections import FaultsSection
from grid.config.grid_checks import NO_MEMORY, refused
from grid.config.platform import cluster_of
from grid.config.schema import (
    ClusterSection,
    GeneratedMachinesSection,
    MachineSection,
    Scenario,
    VoSection,
)
from grid.model.errors import Path, Problem
from grid.model.platform import VirtualOrganization
from grid.workload.generators import MACHINE_GENERATORS

SAMPLE = 100
"""So many machines of a generator tell what the others may have."""


NEVER_ASKED = (
    "no choice of clusters, for there is never one: it takes several clusters whose jobs the "
    "selection does not bind to a machine (`bind: cluster`, gangs)"
)


def capability_problems(scenario: Scenario) -> Iterator[Problem]:
    """What would be accepted and do nothing, of a scenario that is right otherwise."""
    yield from direct_problems(scenario)
    vos = [
        VirtualOrganization(
            vo.names[0],
            tuple(cluster_of(_sampled(one), vo.name, scenario) for one in vo.clusters),
        )
        for vo in scenario.vos or ()
    ]
    yield from _never_asked(scenario.vos or (), vos)
    asking = list(_jobs_with_memory(scenario))
    yield from refused(vos, scenario.faults, bool(asking), scenario.parts)
    yield from _of_sites(scenario, scenario.faults)
    machines = [machine for vo in vos for cluster in vo.clusters for machine in cluster.machines]
    if not any(machine.ram_mb for machine in machines) and not _may_have_memory(scenario):
        for path, found in asking:
            yield path, found, NO_MEMORY


def _of_sites(scenario: Scenario, faults: FaultsSection | None) -> Iterator[Problem]:
    """The same of the VOs of a trace, which differ in their sizes alone."""
    section = scenario.vos_from_trace
    if section is None:
        return
    pool = ClusterSection(
        name="pool",
        processors=1,
        policy=section.policy,
        overrun=section.overrun,
        estimates=section.estimates,
        estimate_factor=section.estimate_factor,
    )
    cluster = cluster_of(pool, "", scenario)
    # Faults name no VO that comes from a trace: those that concern any concern all.
    vo = VirtualOrganization("", (cluster,))
    for path, found, expected in refused([vo], faults, False, scenario.parts):
        yield ("vos_from_trace", *path[4:]), found, expected


def _never_asked(
    sections: Sequence[VoSection], vos: Sequence[VirtualOrganization]
) -> Iterator[Problem]:
    """Choices of the Grid Dispatcher, where the selection says to which cluster each job goes."""
    default = VoSection.model_fields["cluster_choice"].get_default()
    for v, (section, vo) in enumerate(zip(sections, vos, strict=True)):
        is_asked = sum(not one.by_machine for one in vo.clusters) > 1
        if section.cluster_choice != default and not is_asked:
            yield ("vos", v, "cluster_choice"), AS_WRITTEN, NEVER_ASKED


def _jobs_with_memory(scenario: Scenario) -> Iterator[tuple[Path, str]]:
    """Of jobs that are written out; those of traces and generators ask for none."""
    for v, vo in enumerate(scenario.vos or ()):
        jobs = vo.workload.jobs if vo.workload is not None else None
        for j, job in enumerate(jobs or ()):
            if job.ram_mb > 0:
                yield ("vos", v, "workload", "jobs", j, "ram_mb"), f"{job.ram_mb:g}"


def _may_have_memory(scenario: Scenario) -> bool:
    """Whether a user's generator, which is not asked before the run, makes machines."""
    sections = [one.machines for vo in scenario.vos or () for one in vo.clusters]
    return any(
        isinstance(one, GeneratedMachinesSection) and one.generator not in MACHINE_GENERATORS.own
        for one in sections
    )


def _sampled(section: ClusterSection) -> ClusterSection:
    machines = section.machines
    if not isinstance(machines, GeneratedMachinesSection):
        return section
    if machines.generator not in MACHINE_GENERATORS.own:
        # A user's generator is not asked before the run.
        machine = MachineSection(switch_off=machines.switch_off)
        return section.model_copy(update={"machines": (machine,)})
    fewer = machines.model_copy(update={"count": min(machines.count, SAMPLE)})
    return section.model_copy(update={"machines": fewer})
