"""What a scenario must keep to beyond its schema: names that agree, sizes that make sense."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from grid.config.effect_checks import message_time_problems
from grid.config.fault_checks import FaultTargets, fault_problems
from grid.config.grid_checks import (
    END_S,
    admission_problems,
    edge_problems,
    license_problems,
    link_problems,
    repeated,
    too_large,
)
from grid.config.schema import (
    ClusterSection,
    GeneratedMachinesSection,
    Scenario,
    VoSection,
    VosFromTraceSection,
)
from grid.config.sections import name_and_settings
from grid.config.workload_sections import (
    AnnotateSection,
    JobSection,
    RequirementSection,
    WorkloadSection,
)
from grid.model.errors import Path, Problem, shorten
from grid.model.platform import ARCHITECTURES, OPERATING_SYSTEMS, REFERENCE_MIPS
from grid.model.plugins.registry import Plugins
from grid.policies.registry import POLICIES, is_gang_policy
from grid.protocol.names import entities_of_vo


def problems(scenario: Scenario) -> Iterator[Problem]:
    """All that is wrong with a scenario that keeps to its schema."""
    too_large = list(_sizes(scenario))
    if too_large:
        # The other checks go through every VO.
        yield from too_large
        return
    yield from _vo_names(scenario)
    yield from _admitted_vos(scenario)
    overlay = name_and_settings(scenario.protocol.information)
    number = sum(vo.count or 1 for vo in scenario.vos or ())
    yield from edge_problems(*overlay, number)
    if scenario.vos is not None:
        names = [name for vo in scenario.vos for name in vo.names]
        yield from link_problems(scenario.network.links, names)
    for v, vo in enumerate(scenario.vos or ()):
        names = [cluster.name for cluster in vo.clusters]
        yield from repeated(names, ("vos", v, "clusters"), "cluster of this VO")
        for c, cluster in enumerate(vo.clusters):
            yield from license_problems(cluster, ("vos", v, "clusters", c))
            yield from _estimates(cluster, ("vos", v, "clusters", c))
    if scenario.vos_from_trace is not None:
        yield from _estimates(scenario.vos_from_trace, ("vos_from_trace",))
    yield from _memberships(scenario)
    yield from message_time_problems(scenario)
    yield from _grid_workload(scenario)
    yield from _vo_workloads(scenario)
    yield from _end_of_time(scenario)
    if scenario.faults is not None:
        yield from fault_problems(scenario.faults, _places(scenario))


def _sizes(scenario: Scenario) -> Iterator[Problem]:
    vos = machines = cpus = 0
    for vo in scenario.vos or ():
        count = vo.count or 1
        vos += count
        for cluster in vo.clusters:
            sizes = list(_machine_sizes(cluster))
            machines += count * sum(number for number, _ in sizes)
            cpus += count * sum(map(prod, sizes))
    yield from too_large(vos, machines, cpus)


def _machine_sizes(cluster: ClusterSection) -> Iterator[tuple[int, int]]:
    """Pairs of (number of machines, CPUs of each); of generated machines, one CPU each."""
    if cluster.cpus is not None:
        yield 1, cluster.cpus
    elif isinstance(cluster.machines, GeneratedMachinesSection):
        yield cluster.machines.count, 1
    else:
        for machine in cluster.machines or ():
            yield machine.count, machine.cpus


def _vo_names(scenario: Scenario) -> Iterator[Problem]:
    owners: dict[str, int] = {}
    count = sum(len(vo.names) for vo in scenario.vos or ())
    for v, vo in enumerate(scenario.vos or ()):
        if "grid" in vo.names and count > 1:
            # Tables of results call all VOs so; a single one has the figures of all.
            yield ("vos", v, "name"), "'grid'", "another name: results call all VOs so"
        for name in vo.names:
            owner = owners.setdefault(name, v)
            if owner != v:
                yield (
                    ("vos", v, "name"),
                    f"{name!r} again",
                    f"another name than that of vos.{owner}",
                )
                break


def _admitted_vos(scenario: Scenario) -> Iterator[Problem]:
    known = dict.fromkeys(name for vo in scenario.vos or () for name in vo.names)
    for v, vo in enumerate(scenario.vos or ()):
        path: Path = ("vos", v, "admission", "settings")
        yield from admission_problems(*name_and_settings(vo.admission), known, path)


def _is_for_gangs(cluster: ClusterSection, parts: Plugins) -> bool:
    name, settings = name_and_settings(cluster.policy)
    return is_gang_policy(parts.find(POLICIES, name), dict(settings), parts)


def _estimates(section: ClusterSection | VosFromTraceSection, path: Path) -> Iterator[Problem]:
    if section.estimates == "exact" and section.estimate_factor != 1:
        expected = "1: with `estimates: exact` there is nothing to multiply"
        yield (*path, "estimate_factor"), str(section.estimate_factor), expected


def _places(scenario: Scenario) -> FaultTargets | None:
    """What can go wrong in the grid, as far as the scenario names it."""
    if scenario.vos is None:
        return None
    clusters = {
        name: {cluster.name: _machine_count(cluster) for cluster in vo.clusters}
        for vo in scenario.vos
        for name in vo.names
    }
    entities = [entity for vo in scenario.vos for entity in _entities(vo, scenario)]
    return FaultTargets(entities, clusters)


def _machine_count(cluster: ClusterSection) -> int:
    """How many machines a cluster has; a pool of processors is one."""
    if cluster.machines is None:
        return 1
    if isinstance(cluster.machines, tuple):
        return sum(machine.count for machine in cluster.machines)
    return cluster.machines.count


def _entities(vo: VoSection, scenario: Scenario) -> Iterator[str]:
    """The entities of the VOs of one section."""
    is_direct = vo.workload is not None and vo.workload.entry_point == "cluster"
    shares = scenario.workload is not None
    for name in vo.names:
        clusters = [cluster.name for cluster in vo.clusters]
        with_source = shares or (vo.workload is not None and not is_direct)
        yield from entities_of_vo(name, clusters, shares or not is_direct, with_source)


def _memberships(scenario: Scenario) -> Iterator[Problem]:
    number = sum(len(vo.names) for vo in scenario.vos or ())
    for v, vo in enumerate(scenario.vos or ()):
        if vo.leaves_s is not None and vo.leaves_s <= vo.joins_s:
            expected = f"a time after it joins, at {vo.joins_s:g} s"
            yield ("vos", v, "leaves_s"), f"{vo.leaves_s:g}", expected
        if vo.joins_s == 0 and vo.leaves_s is None:
            continue
        key = "joins_s" if vo.joins_s else "leaves_s"
        if number == 1:
            yield ("vos", v, key), shorten(getattr(vo, key)), "none, for there is no other VO"


def _grid_workload(scenario: Scenario) -> Iterator[Problem]:
    workload = scenario.workload
    if workload is None:
        return
    yield from _annotations(workload, ("workload",))
    if workload.jobs is not None:
        expected = "a trace or a generator: a list of jobs does not say whose they are"
        yield ("workload", "jobs"), "a list of jobs", expected
    if workload.entry_point == "cluster":
        expected = "scheduler: the jobs of a whole grid come to the Local Schedulers"
        yield ("workload", "entry_point"), "'cluster'", expected


def _vo_workloads(scenario: Scenario) -> Iterator[Problem]:
    vos = scenario.vos or ()
    widest = _widest((cluster for vo in vos for cluster in vo.clusters), scenario.plugins)
    for v, vo in enumerate(vos):
        if vo.workload is None:
            continue
        limit = widest
        if vo.workload.entry_point == "cluster":
            limit = _widest(vo.clusters, scenario.plugins)
            if len(vo.clusters) != 1:
                found = f"'cluster' in a VO of {len(vo.clusters)} clusters"
                yield ("vos", v, "workload", "entry_point"), found, "a VO with one cluster"
        yield from _jobs(vo.workload, limit, ("vos", v, "workload", "jobs"))
        yield from _annotations(vo.workload, ("vos", v, "workload"))


def _annotations(workload: WorkloadSection, path: Path) -> Iterator[Problem]:
    if workload.attributes is not None:
        yield from _requirements(workload.attributes, (*path, "attributes", "requirements"))


def _end_of_time(scenario: Scenario) -> Iterator[Problem]:
    """Written jobs that cannot end before virtual time does, even if no CPU ever idles."""
    vos = scenario.vos or ()
    busy = [v for v, vo in enumerate(vos) if vo.workload is not None and vo.workload.jobs]
    if not busy or scenario.faults is not None or scenario.protocol.forwarding == "reject":
        return
    everywhere = [cluster for vo in vos for cluster in vo.clusters for _ in vo.names]
    work = sum(_certain_work(vos[v].workload, everywhere) * len(vos[v].names) for v in busy)
    yield from _too_late(work, everywhere, ("vos", busy[0], "workload", "jobs"))
    for v in busy:
        workload = vos[v].workload
        if workload is not None and workload.entry_point == "cluster":
            own = _certain_work(workload, vos[v].clusters)
            yield from _too_late(own, vos[v].clusters, ("vos", v, "workload", "jobs"))


def _certain_work(workload: WorkloadSection | None, clusters: Sequence[ClusterSection]) -> float:
    """Million instructions of the jobs that will run, whatever happens."""
    factor = min(1.0, *(cluster.estimate_factor for cluster in clusters))
    jobs = (workload.jobs if workload is not None else None) or ()
    if workload is not None and workload.attributes is not None:
        jobs = ()
    each = [
        min(job.run_s, (job.estimate_s or job.run_s) * factor) * job.cpus
        for job in jobs
        if not job.requirements
    ]
    return REFERENCE_MIPS * sum(each)


def _too_late(work: float, clusters: Sequence[ClusterSection], path: Path) -> Iterator[Problem]:
    capacity = 0.0
    for cluster in clusters:
        if isinstance(cluster.machines, GeneratedMachinesSection):
            return
        machines = cluster.machines or ()
        capacity += sum(machine.count * machine.cpus * machine.mips for machine in machines)
        capacity += (cluster.cpus or 0) * cluster.mips
    if work >= END_S * capacity:
        found = f"work for {work / capacity:.3g} s on all CPUs together"
        yield path, found, f"less than {END_S:.3g} s, the end of virtual time"


def _widest(clusters: Iterable[ClusterSection], parts: Plugins) -> int | None:
    """The most CPUs that one job may hold; none where machines are generated, and so unknown."""
    widest = 0
    for cluster in clusters:
        if isinstance(cluster.machines, GeneratedMachinesSection):
            return None
        sizes = list(_machine_sizes(cluster))
        if _is_for_gangs(cluster, parts):
            widest = max(widest, sum(count * cpus for count, cpus in sizes))
        else:
            widest = max(widest, *(cpus for _, cpus in sizes))
    return widest


def _jobs(workload: WorkloadSection, widest: int | None, path: Path) -> Iterator[Problem]:
    numbers: dict[int, int] = {}
    for index, job in enumerate(workload.jobs or ()):
        number = index + 1 if job.number is None else job.number
        if numbers.setdefault(number, index) != index:
            expected = "a number of its own for each job (default: its place, from 1)"
            yield (*path, index, "number"), f"{number} again", expected
        if widest is not None and job.cpus > widest:
            expected = f"at most {widest}, the CPUs of the largest machine that it can reach"
            yield (*path, index, "cpus"), str(job.cpus), expected
        yield from _requirements(job, (*path, index, "requirements"))


def _requirements(job: JobSection | AnnotateSection, path: Path) -> Iterator[Problem]:
    for r, requirement in enumerate(job.requirements):
        for o, option in enumerate(requirement.options):
            expected = _option(requirement, option.value)
            if expected is not None:
                yield (*path, r, "options", o, "value"), shorten(option.value), expected


def _option(requirement: RequirementSection, value: float | str) -> str | None:
    """What should stand for the option `value`, if it is wrong for its kind of requirement."""
    named = {"operating_system": OPERATING_SYSTEMS, "architecture": ARCHITECTURES}
    names = named.get(requirement.kind)
    if names is not None:
        return None if value in names else f"one of {', '.join(names)}"
    if isinstance(value, str):
        return "a number"
    return None if value >= 0 else "at least 0"
