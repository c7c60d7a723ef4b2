"""Whether those that a scenario lets go wrong are there."""

from __future__ import annotations

from collections.abc import Iterator

from grid.entities import names
from grid.model.errors import expected_name
from grid.scenario.schema import ClusterSection, Scenario, VoSection
from grid.scenario.yaml_tree import Path

Problem = tuple[Path, str, str]


def fault_problems(scenario: Scenario) -> Iterator[Problem]:
    """Faults of what the scenario does not have, and faults that never come."""
    named = list(_named(scenario))
    yield from _after_healing(scenario)
    if scenario.vos is None:
        for path, name, _ in named:
            yield path, repr(name), "no VO by name where VOs come from a trace"
        return
    vos = [name for vo in scenario.vos for name in vo.names]
    entities = [entity for vo in scenario.vos for entity in _entities(vo, scenario)]
    for path, name, known in named:
        if known == "entity" and name not in entities:
            yield path, repr(name), expected_name(name, entities, "an entity")
        elif known == "vo" and name not in vos:
            yield path, repr(name), expected_name(name, vos, "the name of a VO")
    yield from _two_sides(scenario)
    yield from _machine_problems(scenario, scenario.vos)


def _named(scenario: Scenario) -> Iterator[tuple[Path, str, str]]:
    """Each name in the faults, where it stands, and of what it is the name."""
    faults = scenario.faults
    if faults is None:
        return
    for number, crash in enumerate(faults.crashes):
        yield ("faults", "crashes", number, "entity"), crash.entity, "entity"
    for number, outage in enumerate(faults.vo_outages):
        yield ("faults", "vo_outages", number, "vo"), outage.vo, "vo"
    for number, machine_outage in enumerate(faults.machine_outages):
        yield ("faults", "machine_outages", number, "vo"), machine_outage.vo, "vo"
    for number, cut in enumerate(faults.partitions):
        for side, vos in (("one", cut.one), ("other", cut.other)):
            for place, vo in enumerate(vos):
                yield ("faults", "partitions", number, side, place), vo, "vo"


def _after_healing(scenario: Scenario) -> Iterator[Problem]:
    faults = scenario.faults
    if faults is None:
        return
    for section in ("crashes", "vo_outages", "machine_outages", "partitions"):
        for number, fault in enumerate(getattr(faults, section)):
            if fault.at_s >= faults.heal_s:
                path: Path = ("faults", section, number, "at_s")
                yield path, f"{fault.at_s:g}", f"a time below heal_s, {faults.heal_s:g}"


def _two_sides(scenario: Scenario) -> Iterator[Problem]:
    for number, cut in enumerate(scenario.faults.partitions if scenario.faults else ()):
        both = [name for name in cut.other if name in cut.one]
        if both:
            path: Path = ("faults", "partitions", number, "other")
            yield path, repr(both[0]), "a VO that is not in `one`"


def _machine_problems(scenario: Scenario, vos: tuple[VoSection, ...]) -> Iterator[Problem]:
    """Clusters that a VO does not have, and machines that a cluster does not have."""
    for number, outage in enumerate(scenario.faults.machine_outages if scenario.faults else ()):
        clusters = [vo.clusters for vo in vos if outage.vo in vo.names]
        if not clusters:
            continue
        path: Path = ("faults", "machine_outages", number)
        named = {cluster.name: cluster for cluster in clusters[0]}
        cluster = named.get(outage.cluster)
        if cluster is None:
            found = repr(outage.cluster)
            yield (
                (*path, "cluster"),
                found,
                expected_name(outage.cluster, named, f"a cluster of {outage.vo}"),
            )
        elif outage.machine >= (count := _machines(cluster)):
            yield (*path, "machine"), str(outage.machine), f"a number below {count}"


def _machines(cluster: ClusterSection) -> int:
    """How many machines a cluster has; a pool of processors is one."""
    if cluster.machines is None:
        return 1
    if isinstance(cluster.machines, tuple):
        return sum(machine.count for machine in cluster.machines)
    return cluster.machines.count


def _entities(vo: VoSection, scenario: Scenario) -> Iterator[str]:
    """The entities of the VOs of one section."""
    is_direct = vo.workload is not None and vo.workload.enters == "cluster"
    shares = scenario.workload is not None
    for name in vo.names:
        for cluster in vo.clusters:
            yield names.local_dispatcher(name, cluster.name)
        if len(vo.clusters) > 1:
            yield names.grid_dispatcher(name)
        if shares or not is_direct:
            yield names.scheduler(name)
            yield names.resource_manager(name)
            yield names.information_service(name)
        if shares or (vo.workload is not None and not is_direct):
            yield names.workload_source(name)
