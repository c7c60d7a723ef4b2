"""Whether the clusters of a scenario can do all that is asked of them: `grid.cluster.engines`."""

from __future__ import annotations

from collections.abc import Iterator

from grid.cluster.engines import Wanted, refusals
from grid.model.errors import Path
from grid.policies.registry import make_policy
from grid.scenario.platform import cluster_of
from grid.scenario.schema import ClusterSection, GeneratedMachinesSection, Scenario

SAMPLE = 100
"""So many machines of a generator tell what the others may have."""


def capability_problems(scenario: Scenario) -> Iterator[tuple[Path, str, str]]:
    """What would be accepted and do nothing, of a scenario that is right otherwise."""
    memory = _asks_for_memory(scenario)
    down = [] if scenario.faults is None else scenario.faults.machine_outages
    for v, vo in enumerate(scenario.vos or ()):
        failing = [outage.cluster for outage in down if outage.vo in vo.names]
        for c, section in enumerate(vo.clusters):
            platform = cluster_of(_sampled(section), vo.name, scenario.seed)
            policy = make_policy(platform.policy, dict(platform.policy_settings))
            wanted = Wanted(platform, section.name in failing, memory)
            for field, found, expected in refusals(wanted, policy):
                yield ("vos", v, "clusters", c, field), found, expected


def _asks_for_memory(scenario: Scenario) -> bool:
    """Of jobs that are written out; those of traces and generators ask for none."""
    workloads = [vo.workload for vo in scenario.vos or () if vo.workload is not None]
    return any(job.ram_mb > 0 for workload in workloads for job in workload.jobs or ())


def _sampled(section: ClusterSection) -> ClusterSection:
    machines = section.machines
    if not isinstance(machines, GeneratedMachinesSection):
        return section
    fewer = machines.model_copy(update={"count": min(machines.count, SAMPLE)})
    return section.model_copy(update={"machines": fewer})
