"""Checks across sections, of a scenario and of a grid made in Python. Problems carry their paths.

Checks of one section are validators of that section (`grid.config.schema`); those of one plugin's
settings are in its declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from grid.cluster.gang.processor_choices import PROCESSOR_CHOICES
from grid.config.faults import FaultsSection
from grid.config.plugins import PluginUse, plugin_problems, sections_in
from grid.config.schema import (
    ClusterSection,
    GeneratedMachinesSection,
    MachineSection,
    Scenario,
    VoSection,
    VosFromTraceSection,
)
from grid.config.sections import Section, TakesEffect, name_and_settings
from grid.config.workload_sections import RequirementSection, WorkloadSection
from grid.model.arrays import Floats
from grid.model.errors import (
    ErrorLine,
    InputError,
    InvalidPlugin,
    Path,
    Problem,
    dotted,
    expected_name,
    shorten,
)
from grid.model.job_table import JobTable, concatenate
from grid.model.platform import ARCHITECTURES, OPERATING_SYSTEMS, Cluster, VirtualOrganization
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import expected
from grid.model.time import NEVER, SECOND_US, to_seconds
from grid.policies.registry import POLICIES, is_gang_policy, make_policy
from grid.protocol.admission import unknown_vos
from grid.protocol.information.overlays import edges_beyond
from grid.protocol.names import entities_of_vo
from grid.protocol.registry import ADMISSION, CLUSTER_CHOICES, FORWARDING, SELECTIONS
from grid.workload.generators import MACHINE_GENERATORS, table_problems

Tables = Sequence[JobTable | None]
VoLimits = Mapping[str, Mapping[str, int]]
"""The number of machines of each cluster, by VO and cluster."""

MAX_VOS = 20_000
MAX_MACHINES = 100_000
MAX_CPUS = 10_000_000
MAX_LICENSES = 63
"""A machine's licenses are a bit mask of a signed 64-bit integer."""
MAX_OUTAGES = 100_000
"""Of one machine, on average."""
SAMPLE = 100
"""Machines of a generator that a check makes."""
NO_MEMORY = "none, for no machine of the grid gives its ram_mb"
NO_EFFECT = {
    "jobs enter the cluster": "no such setting, since the VO's jobs enter its cluster directly",
    "no entity sends messages": "no such setting, since all jobs enter their clusters directly",
    "the selection chooses the cluster": "no such setting, since it takes several clusters whose "
    "jobs the selection does not bind to a machine (`resource: cluster`, gangs)",
}
"""The conditions of `TakesEffect`, and what is expected of a setting without effect."""


def scenario_problems(scenario: Scenario) -> list[Problem]:
    """All problems of a scenario that conforms to its schema and whose plugins can be made."""
    vos = scenario.vos or ()
    problems = list(_sizes(vos))
    if problems:  # all other checks visit each VO
        return problems
    names = [name for vo in vos for name in vo.names]
    problems += _vo_problems(vos, names)
    if scenario.vos is not None:
        problems += link_problems(scenario.network.links, names)
    if scenario.vos_from_trace is not None:
        problems += _estimate_problems(scenario.vos_from_trace, ("vos_from_trace",))
    overlay = name_and_settings(scenario.protocol.information)
    problems += edge_problems(*overlay, len(names))
    problems += _workload_problems(scenario)
    if scenario.faults is not None:
        problems += fault_problems(scenario.faults, *_fault_targets(scenario))
    return problems or [*_effect_problems(scenario), *_capability_problems(scenario)]


# Virtual organizations


def _sizes(vos: Sequence[VoSection]) -> Iterator[Problem]:
    counts = [vo.count or 1 for vo in vos]
    sizes = [[size for cluster in vo.clusters for size in _machine_sizes(cluster)] for vo in vos]
    machines = sum(n * sum(m for m, _ in of) for n, of in zip(counts, sizes, strict=True))
    cpus = sum(n * sum(map(prod, of)) for n, of in zip(counts, sizes, strict=True))
    yield from _too_large(sum(counts), machines, cpus)


def _machine_sizes(cluster: ClusterSection) -> list[tuple[int, int]]:
    """Pairs of (number of machines, CPUs of each); of generated machines, one CPU each."""
    if cluster.cpus is not None:
        return [(1, cluster.cpus)]
    if isinstance(cluster.machines, GeneratedMachinesSection):
        return [(cluster.machines.count, 1)]
    return [(machine.count, machine.cpus) for machine in cluster.machines or ()]


def _too_large(vos: int, machines: int, cpus: int) -> Iterator[Problem]:
    totals = [(vos, MAX_VOS, "VOs"), (machines, MAX_MACHINES, "machines"), (cpus, MAX_CPUS, "CPUs")]
    for total, limit, what in totals:
        if total > limit:
            yield ("vos",), f"{total} {what} in all", f"at most {limit}"


def _vo_problems(vos: Sequence[VoSection], names: Sequence[str]) -> Iterator[Problem]:
    owners: dict[str, int] = {}
    for v, vo in enumerate(vos):
        path: Path = ("vos", v)
        if "grid" in vo.names and len(names) > 1:
            yield (*path, "name"), "'grid'", "another name: in results it means all VOs"
        for name in vo.names:
            owner = owners.setdefault(name, v)
            if owner != v:
                expected = f"another name than that of vos.{owner}"
                yield (*path, "name"), f"{name!r} again", expected
                break
        if vo.leaves_s is not None and vo.leaves_s <= vo.joins_s:
            expected = f"a time after it joins, at {vo.joins_s:g} s"
            yield (*path, "leaves_s"), f"{vo.leaves_s:g}", expected
        if len(names) == 1 and (vo.joins_s or vo.leaves_s is not None):
            key = "joins_s" if vo.joins_s else "leaves_s"
            yield (*path, key), shorten(getattr(vo, key)), "none, for there is no other VO"
        yield from _admission_problems(
            *name_and_settings(vo.admission), names, (*path, "admission", "settings")
        )
        of_vo = [cluster.name for cluster in vo.clusters]
        yield from _repeated(of_vo, (*path, "clusters"), "cluster of this VO")
        for c, cluster in enumerate(vo.clusters):
            yield from _license_problems(cluster, (*path, "clusters", c))
            yield from _estimate_problems(cluster, (*path, "clusters", c))


def _estimate_problems(
    section: ClusterSection | VosFromTraceSection, path: Path
) -> Iterator[Problem]:
    if section.estimates == "exact" and section.estimate_factor != 1:
        found = str(section.estimate_factor)
        yield (*path, "estimate_factor"), found, "1, with `estimates: exact`"


def _repeated(names: Sequence[str], path: Path, what: str) -> Iterator[Problem]:
    """Names that occur more than once in the list at `path`."""
    first: dict[str, int] = {}
    for index, one in enumerate(names):
        if first.setdefault(one, index) != index:
            yield (*path, index, "name"), f"{one!r} again", f"a name of its own for each {what}"


def _license_problems(cluster: Any, path: Path) -> Iterator[Problem]:
    """Licenses declared twice, and licenses of machines that the cluster does not declare.

    `cluster` is a Cluster or its section in a scenario.
    """
    declared = [license.name for license in cluster.licenses]
    yield from _repeated(declared, (*path, "licenses"), "license of this cluster")
    if len(declared) > MAX_LICENSES:
        yield (*path, "licenses"), f"{len(declared)} licenses", f"at most {MAX_LICENSES}"
    for m, machine in enumerate(cluster.machines if isinstance(cluster.machines, tuple) else ()):
        for rank, name in enumerate(machine.licenses):
            if name not in declared:
                what = f"a license from {dotted((*path, 'licenses'))}"
                expected = expected_name(name, declared, what)
                yield (*path, "machines", m, "licenses", rank), repr(name), expected


def _admission_problems(
    policy: str, settings: Iterable[tuple[str, Any]], vos: Sequence[str], path: Path
) -> Iterator[Problem]:
    """VOs that a built-in admission policy names and that do not exist."""
    for setting, name in unknown_vos(policy, settings, frozenset(vos)):
        yield (*path, setting), repr(name), expected_name(name, vos, "the name of a VO")


def link_problems(links: Sequence[Any], vos: Sequence[str]) -> Iterator[Problem]:
    """Links to VOs that do not exist, from a VO to itself, or given twice."""
    known = dict.fromkeys(vos)
    pairs: dict[tuple[str, ...], int] = {}
    for position, link in enumerate(links):
        path: Path = ("network", "links", position, "between")
        for end, vo in enumerate(link.between):
            if vo not in known:
                yield (*path, end), repr(vo), expected_name(vo, known, "the name of a VO")
        if link.between[0] == link.between[1]:
            yield path, f"{link.between[0]!r} twice", "two VOs"
        elif pairs.setdefault(tuple(sorted(link.between)), position) != position:
            yield path, "these two VOs again", "one link between two VOs"


def edge_problems(name: str, settings: Iterable[tuple[str, Any]], vos: int) -> Iterator[Problem]:
    """Edges of the overlay `edges` to VOs that do not exist."""
    for edge, vo in edges_beyond(name, settings, vos):
        path: Path = ("protocol", "information", "settings", "edges", edge)
        yield path, f"VO {vo}", f"at most {vos - 1}: the grid has {vos} VOs"


# Workloads


def _workload_problems(scenario: Scenario) -> Iterator[Problem]:
    vos, shared = scenario.vos or (), scenario.workload
    if shared is not None:
        yield from _attribute_problems(shared, ("workload",))
        if shared.jobs is not None:
            expected = "a trace or a generator: a list of jobs does not route them to VOs"
            yield ("workload", "jobs"), "a list of jobs", expected
        if shared.entry_point == "cluster":
            expected = "scheduler: jobs of the whole grid enter at Local Schedulers"
            yield ("workload", "entry_point"), "'cluster'", expected
    everywhere = _widest([cluster for vo in vos for cluster in vo.clusters], scenario.plugins)
    for v, vo in enumerate(vos):
        if vo.workload is None:
            continue
        path: Path = ("vos", v, "workload")
        widest = _widest(vo.clusters, scenario.plugins) if vo.is_direct else everywhere
        if vo.is_direct and len(vo.clusters) != 1:
            found = f"'cluster' in a VO of {len(vo.clusters)} clusters"
            yield (*path, "entry_point"), found, "a VO with one cluster"
        yield from _job_list_problems(vo.workload, widest, (*path, "jobs"))
        yield from _attribute_problems(vo.workload, path)


def _widest(clusters: Sequence[ClusterSection], plugins: Plugins) -> int | None:
    """The most CPUs that one job may hold; None if machines are generated."""
    if any(isinstance(one.machines, GeneratedMachinesSection) for one in clusters):
        return None
    return max(
        (
            sum(map(prod, sizes)) if _is_for_gangs(cluster, plugins) else max(c for _, c in sizes)
            for cluster in clusters
            for sizes in [_machine_sizes(cluster)]
        ),
        default=0,
    )


def _is_for_gangs(cluster: ClusterSection, plugins: Plugins) -> bool:
    name, settings = name_and_settings(cluster.policy)
    return is_gang_policy(plugins.find(POLICIES, name), dict(settings), plugins)


def _job_list_problems(
    workload: WorkloadSection, widest: int | None, path: Path
) -> Iterator[Problem]:
    numbers: dict[int, int] = {}
    for index, job in enumerate(workload.jobs or ()):
        number = index + 1 if job.number is None else job.number
        if numbers.setdefault(number, index) != index:
            expected = "a number of its own for each job (default: its position, from 1)"
            yield (*path, index, "number"), f"{number} again", expected
        if widest is not None and job.cpus > widest:
            expected = f"at most {widest}, the CPUs of the largest machine that it can reach"
            yield (*path, index, "cpus"), str(job.cpus), expected
        yield from _requirement_problems(job.requirements, (*path, index, "requirements"))


def _attribute_problems(workload: WorkloadSection, path: Path) -> Iterator[Problem]:
    if workload.attributes is not None:
        where = (*path, "attributes", "requirements")
        yield from _requirement_problems(workload.attributes.requirements, where)


def _requirement_problems(
    requirements: Sequence[RequirementSection], path: Path
) -> Iterator[Problem]:
    named = {"operating_system": OPERATING_SYSTEMS, "architecture": ARCHITECTURES}
    for r, requirement in enumerate(requirements):
        names = named.get(requirement.kind)
        for o, option in enumerate(requirement.options):
            where = (*path, r, "options", o, "value")
            if names is not None and option.value not in names:
                yield where, shorten(option.value), f"one of {', '.join(names)}"
            elif names is None and isinstance(option.value, str):
                yield where, shorten(option.value), "a number"
            elif names is None and isinstance(option.value, float | int) and option.value < 0:
                yield where, shorten(option.value), "at least 0"


# Faults


def _fault_targets(scenario: Scenario) -> tuple[list[str] | None, VoLimits]:
    """The entities, None if VOs come from a trace; and the clusters of each VO."""
    if scenario.vos is None:
        return None, {}
    clusters = {
        name: {one.name: sum(n for n, _ in _machine_sizes(one)) for one in vo.clusters}
        for vo in scenario.vos
        for name in vo.names
    }
    shared = scenario.workload is not None
    entities: list[str] = []
    for vo in scenario.vos:
        with_source = shared or (vo.workload is not None and not vo.is_direct)
        of_vo = [cluster.name for cluster in vo.clusters]
        for name in vo.names:
            entities += entities_of_vo(name, of_vo, shared or not vo.is_direct, with_source)
    return entities, clusters


def fault_problems(
    faults: FaultsSection, entities: Sequence[str] | None, vos: VoLimits
) -> Iterator[Problem]:
    """Faults of what the grid does not have, and faults that would begin after the end of faults.

    Without `entities`, no name of a VO or an entity is known.
    """
    for key in ("crashes", "vo_outages", "machine_outages", "partitions"):
        for place, fault in enumerate(getattr(faults, key)):
            if fault.outage.start_us >= faults.heal_us:
                path: Path = ("faults", key, place, "at_s")
                yield path, f"{fault.at_s:g}", f"a time below heal_s, {faults.heal_s:g}"
    for place, failing in enumerate(faults.random_machine_outages):
        if faults.heal_us > MAX_OUTAGES * (failing.up_us + failing.down_us):
            least = to_seconds(faults.heal_us // MAX_OUTAGES)
            path = ("faults", "random_machine_outages", place, "up_s")
            expected = f"at least {least:g}, so that a machine fails {MAX_OUTAGES:,} times at most"
            yield path, f"{failing.up_s:g}", expected
    for path, name, known, what in _fault_names(faults, entities or (), vos):
        if entities is None:
            expected = "no name of a VO or an entity, since the VOs come from a trace"
            yield path, repr(name), expected
        elif name not in known:
            yield path, repr(name), expected_name(name, known, what)
    for place, cut in enumerate(faults.partitions):
        both = [name for name in cut.other if name in cut.one]
        if both:
            yield ("faults", "partitions", place, "other"), repr(both[0]), "a VO not in `one`"
    for place, failure in enumerate(faults.machine_outages):
        count = vos.get(failure.vo, {}).get(failure.cluster)
        if count is not None and failure.machine >= count:
            path = ("faults", "machine_outages", place, "machine")
            yield path, str(failure.machine), f"a number below {count} (a pool is one machine)"


def _fault_names(
    faults: FaultsSection, entities: Sequence[str], vos: VoLimits
) -> Iterator[tuple[Path, str, Iterable[str], str]]:
    """Each name in the faults with its path, the known names and what they name."""
    a_vo = "the name of a VO"
    for place, crash in enumerate(faults.crashes):
        of_vo = [one for one in entities if one.split("/")[0] == crash.entity.split("/")[0]]
        yield ("faults", "crashes", place, "entity"), crash.entity, of_vo or entities, "an entity"
    for place, outage in enumerate(faults.vo_outages):
        yield ("faults", "vo_outages", place, "vo"), outage.vo, vos, a_vo
    for key in ("machine_outages", "random_machine_outages"):
        for place, failure in enumerate(getattr(faults, key)):
            if failure.vo is not None:
                yield ("faults", key, place, "vo"), failure.vo, vos, a_vo
            of_vos = list(vos.values()) if failure.vo is None else [vos.get(failure.vo, {})]
            clusters = dict.fromkeys(name for of in of_vos for name in of)
            if failure.cluster is not None and clusters:
                path: Path = ("faults", key, place, "cluster")
                yield path, failure.cluster, clusters, f"a cluster of {failure.vo or 'a VO'}"
    for place, cut in enumerate(faults.partitions):
        for side, names in (("one", cut.one), ("other", cut.other)):
            for index, vo in enumerate(names):
                yield ("faults", "partitions", place, side, index), vo, vos, a_vo


# Settings without effect


def _effect_problems(scenario: Scenario) -> Iterator[Problem]:
    """Settings that are not at their defaults and have no effect (`TakesEffect`).

    Defaults pass, since a run writes all of them into its scenario.yaml. Crashes and outages of
    entities pass for direct jobs: in a live run they delay the reports of completions.
    """
    if scenario.is_direct:
        yield from _without_effect(scenario, (), ("no entity sends messages",))
    for v, vo in enumerate(scenario.vos or ()):
        conditions = ["jobs enter the cluster"] if vo.is_direct and not scenario.workload else []
        if not conditions and sum(map(_chooses_machines(scenario), vo.clusters)) < 2:
            conditions.append("the selection chooses the cluster")
        yield from _without_effect(vo, ("vos", v), conditions)


def _chooses_machines(scenario: Scenario) -> Callable[[ClusterSection], bool]:
    """Whether the local policy may choose any machine of a cluster of the scenario."""

    def chooses_machines(cluster: ClusterSection) -> bool:
        if cluster.resource is not None:
            return cluster.resource == "cluster"
        return _is_for_gangs(cluster, scenario.plugins)

    return chooses_machines


def _without_effect(section: Section, path: Path, conditions: Sequence[str]) -> Iterator[Problem]:
    for key, field in type(section).model_fields.items():
        value, default = getattr(section, key), field.get_default()
        effects = [one for one in field.metadata if isinstance(one, TakesEffect)]
        idle = next((one for one in effects if one.unless in conditions), None)
        if idle is not None and value != default and value not in idle.harmless:
            inner = type(value).model_fields if isinstance(value, Section) else None
            for name in inner or ("",):
                if not inner or getattr(value, name) != inner[name].get_default():
                    where = (*path, key, name) if inner else (*path, key)
                    yield where, "", NO_EFFECT[idle.unless]
        elif _may_have_effects(type(section), key):
            for place, one in enumerate(value) if isinstance(value, tuple) else [(None, value)]:
                if isinstance(one, Section) and not isinstance(one, VoSection):
                    where = (*path, key) if place is None else (*path, key, place)
                    yield from _without_effect(one, where, conditions)


@cache
def _may_have_effects(section: type[Section], key: str) -> bool:
    return any(
        any(isinstance(one, TakesEffect) for one in field.metadata)
        or _may_have_effects(inner, name)
        for inner in sections_in(section.model_fields[key].annotation)
        for name, field in inner.model_fields.items()
    )


def _capability_problems(scenario: Scenario) -> Iterator[Problem]:
    """Settings of clusters that their policies do not support, with a sample of each generator."""
    from grid.config.platform import cluster_of

    vos = [
        VirtualOrganization(
            vo.names[0],
            tuple(cluster_of(_sample(one), vo.name, scenario) for one in vo.clusters),
        )
        for vo in scenario.vos or ()
    ]
    asking = [
        (("vos", v, "workload", "jobs", j, "ram_mb"), f"{job.ram_mb:g}")
        for v, vo in enumerate(scenario.vos or ())
        for j, job in enumerate((vo.workload and vo.workload.jobs) or ())
        if job.ram_mb > 0
    ]
    yield from unsupported(vos, scenario.faults, bool(asking), scenario.plugins)
    machines = [machine for vo in vos for one in vo.clusters for machine in one.machines]
    sections = [one.machines for vo in scenario.vos or () for one in vo.clusters]
    is_drawn = any(isinstance(one, GeneratedMachinesSection) for one in sections)
    if asking and not is_drawn and not any(machine.ram_mb > 0 for machine in machines):
        yield *asking[0], NO_MEMORY
    section = scenario.vos_from_trace
    if section is not None:
        keys = ("policy", "overrun", "estimates", "estimate_factor")
        pool = ClusterSection(name="pool", cpus=1, **{key: getattr(section, key) for key in keys})
        # Faults that concern any VO of a trace concern all, since they cannot name one.
        vo = VirtualOrganization("", (cluster_of(pool, "", scenario),))
        for path, found, expected in unsupported([vo], scenario.faults, False, scenario.plugins):
            yield ("vos_from_trace", *path[4:]), found, expected


def _sample(section: ClusterSection) -> ClusterSection:
    machines = section.machines
    if not isinstance(machines, GeneratedMachinesSection):
        return section
    if machines.generator not in MACHINE_GENERATORS.own:  # called in runs only
        machine = MachineSection(switch_off=machines.switch_off)
        return section.model_copy(update={"machines": (machine,)})
    fewer = machines.model_copy(update={"count": min(machines.count, SAMPLE)})
    return section.model_copy(update={"machines": fewer})


# Grids


def refuse(problems: Iterable[Problem], most: int = 20) -> None:
    """Raises InputError with the first of the problems, if there are any."""
    errors = [
        ErrorLine("grid", None, dotted(path), found, expected)
        for (path, found, expected), _ in zip(problems, range(most), strict=False)
    ]
    if errors:
        raise InputError(errors)


def platform_problems(vos: Sequence[VirtualOrganization], plugins: Plugins) -> Iterator[Problem]:
    """Invalid values of VOs made in Python, then those that do not fit together."""
    problems = list(invalid_values(vos, tuple[VirtualOrganization, ...], ("vos",)))
    if not vos:
        problems.append((("vos",), "nothing", "at least one VirtualOrganization"))
    for v, vo in enumerate(() if problems else vos):
        path: Path = ("vos", v, "clusters")
        problems += _repeated([one.name for one in vo.clusters], path, "cluster of this VO")
        if not vo.clusters:
            problems.append((path, "nothing", "at least one Cluster"))
        for c, cluster in enumerate(vo.clusters):
            problems += _cluster_problems(cluster, (*path, c))
    yield from problems
    if problems:
        return
    yield from total_problems(vos)
    names = [vo.name for vo in vos]
    yield from _repeated(names, ("vos",), "VO")
    yield from plugin_problems(_uses_in_python(vos), plugins)
    for v, vo in enumerate(vos):
        path = ("vos", v, "admission_settings")
        yield from _admission_problems(vo.admission, vo.admission_settings, names, path)


def invalid_values(value: object, kind: Any, path: Path = ()) -> Iterator[Problem]:
    """Values in dataclasses of the model that their declared types do not allow."""
    try:
        _adapter(kind).validate_python(value)
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False):
            reason = "a tuple" if error["type"] == "tuple_type" else expected(dict(error))
            yield (*path, *error["loc"]), shorten(error["input"]), reason


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    config = ConfigDict(strict=True, revalidate_instances="always", allow_inf_nan=False)
    return TypeAdapter(kind, config=config)


def _cluster_problems(cluster: Cluster, path: Path) -> Iterator[Problem]:
    if not cluster.machines:
        yield (*path, "machines"), "nothing", "at least one Machine"
    yield from _license_problems(cluster, path)


def generated_problems(cluster: Cluster) -> Iterator[Problem]:
    """Problems of a cluster whose machines a generator made."""
    invalid = list(invalid_values((cluster,), tuple[Cluster, ...]))
    yield from [(path[1:], found, reason) for path, found, reason in invalid] or _cluster_problems(
        cluster, ()
    )


def total_problems(vos: Sequence[VirtualOrganization]) -> Iterator[Problem]:
    """More VOs, machines or CPUs than the limits allow."""
    machines = sum(len(cluster.machines) for vo in vos for cluster in vo.clusters)
    cpus = sum(cluster.processors for vo in vos for cluster in vo.clusters)
    yield from _too_large(len(vos), machines, cpus)


def _uses_in_python(vos: Sequence[VirtualOrganization]) -> Iterator[PluginUse]:
    of_vo = {
        "selection": SELECTIONS, "cluster_choice": CLUSTER_CHOICES, "forwarding": FORWARDING,
        "admission": ADMISSION,
    }  # fmt: skip
    of_cluster = {"policy": POLICIES, "processor_choice": PROCESSOR_CHOICES}
    for v, vo in enumerate(vos):
        clusters = [
            (one, of_cluster, ("vos", v, "clusters", c)) for c, one in enumerate(vo.clusters)
        ]
        owners: list[tuple[Any, Any, Path]] = [(vo, of_vo, ("vos", v)), *clusters]
        for owner, kinds, path in owners:
            for key, kind in kinds.items():
                name, settings = getattr(owner, key), getattr(owner, f"{key}_settings")
                if name is not None:
                    where = (*path, key), (*path, f"{key}_settings")
                    yield PluginUse(kind, name, dict(settings), *where)


def unsupported(
    vos: Sequence[VirtualOrganization],
    faults: FaultsSection | None,
    memory: bool,
    plugins: Plugins,
) -> Iterator[Problem]:
    """Features that policies do not support; `memory`: whether jobs require some."""
    from grid.policies.features import ClusterSpec, refusals

    policies = {}
    for v, vo in enumerate(vos):
        for c, cluster in enumerate(vo.clusters):
            path: Path = ("vos", v, "clusters", c)
            kind = f"{cluster.policy} {cluster.policy_settings!r}"
            if kind not in policies:
                try:
                    given = dict(cluster.policy_settings)
                    policies[kind] = make_policy(cluster.policy, given, plugins)
                except InvalidPlugin as error:
                    yield (*path, "policy", "settings", *error.path), error.found, error.expected
                    continue
            fails = faults is not None and faults.break_machines_of(vo.name, cluster.name)
            spec = ClusterSpec(cluster, fails, memory)
            for field, found, reason in refusals(spec, policies[kind]):
                yield (*path, field), found, reason


# Jobs of a grid


class _JobsOf(NamedTuple):
    """A table of jobs, its path, and the clusters that its jobs can reach."""

    path: Path
    table: JobTable
    clusters: Sequence[Cluster]


def _job_tables(
    vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> list[_JobsOf]:
    everywhere = [cluster for vo in vos for cluster in vo.clusters]
    found = []
    for position, (vo, own, to_cluster) in enumerate(zip(vos, submitted, direct, strict=True)):
        if own is not None:
            found.append(_JobsOf(("submitted", position), own, everywhere))
        if to_cluster is not None:
            found.append(_JobsOf(("direct", position), to_cluster, vo.clusters))
    return found


def job_problems(
    settings: Any,
    vos: Sequence[VirtualOrganization],
    submitted: Tables,
    direct: Tables,
    *,
    is_drawn: bool,
) -> Iterator[Problem]:
    """All problems of the jobs of a grid whose VOs are valid.

    If it `is_drawn`, jobs that no machine has CPUs for are rejected in the run.
    """
    for name, tables in (("submitted", submitted), ("direct", direct)):
        if len(tables) != len(vos):
            expected = f"one for each of the {len(vos)} VOs, a JobTable or None"
            yield (name,), f"{len(tables)} tables", expected
            return
    each = _job_tables(vos, submitted, direct)
    problems = [one for jobs in each for one in table_problems(jobs.path, jobs.table)]
    for path, _, clusters in each:
        if path[0] == "direct" and len(clusters) != 1:
            found = f"jobs for a VO of {len(clusters)} clusters"
            problems.append((path, found, "a VO with one cluster"))
    yield from problems
    if problems:
        return
    for position in range(len(vos)):
        own = [table for table in (submitted[position], direct[position]) if table is not None]
        yield from _repeated_numbers(position, own)
    if settings.faults is None:
        yield from _past_the_end(settings, each)
    machines = [machine for vo in vos for one in vo.clusters for machine in one.machines]
    if not any(machine.ram_mb > 0 for machine in machines):
        for path, table, _ in each:
            if table.ram_mb.any():
                row = int(table.ram_mb.argmax())
                yield (*path, "ram_mb", row), f"{table.ram_mb[row]:g}", NO_MEMORY
    for path, table, clusters in () if is_drawn else each:
        widest = max(cluster.widest for cluster in clusters)
        if (table.processors > widest).any():
            row = int((table.processors > widest).argmax())
            expected = f"at most {widest}, the CPUs of the largest machine that it can reach"
            yield (*path, "processors", row), str(table.processors[row]), expected


def _repeated_numbers(position: int, tables: Sequence[JobTable]) -> Iterator[Problem]:
    """Two jobs of one VO with one number."""
    jobs = concatenate(tables).number if len(tables) > 1 else tables[0].number if tables else None
    if jobs is None or (np.diff(jobs) > 0).all():
        return
    numbers, counts = np.unique(jobs, return_counts=True)
    if (counts > 1).any():
        found = f"job number {numbers[counts > 1][0]} again"
        yield ("vos", position), found, "a number of its own for each job of a VO"


def _past_the_end(settings: Any, each: Sequence[_JobsOf]) -> Iterator[Problem]:
    """Work that takes longer than virtual time lasts, even if no CPU ever idles."""
    groups = [[one] for one in each if one.path[0] == "direct"]
    if settings.protocol.forwarding != "reject":
        groups.append([one for one in each if one.path[0] == "submitted"])
    for group in filter(None, groups):
        clusters = group[0].clusters
        capacity = sum(machine.cpus * machine.mips for one in clusters for machine in one.machines)
        factor = min(1.0, *(cluster.estimate_factor for cluster in clusters))
        widest = max(cluster.widest for cluster in clusters)
        least_us = sum(_certain_work(one.table, factor, widest) for one in group) / capacity
        if least_us >= NEVER:
            found = f"work for {least_us / SECOND_US:.3g} s on all CPUs together"
            expected = f"less than {to_seconds(NEVER):.3g} s, the end of virtual time"
            yield group[0].path, found, expected


def _certain_work(table: JobTable, factor: float, widest: int) -> float:
    """Microseconds times MIPS of the jobs that certainly run."""
    certain = (table.processors <= widest) & (table.licenses == 0)
    if table.requirements:
        certain &= ~table.has_requirements
    run_us: Floats = np.minimum(table.run_us, table.estimate_us * factor)
    return float((run_us * table.processors * table.reference_mips)[certain].sum())


def may_pass_the_end(vos: Sequence[VirtualOrganization], tables: Tables) -> bool:
    """Whether virtual time may end before the jobs do, one after the other on the slowest CPU."""
    slowest = min(m.mips for vo in vos for cluster in vo.clusters for m in cluster.machines)
    jobs = [table for table in tables if table is not None]
    run_us = sum(float((table.run_us * table.reference_mips).sum()) for table in jobs) / slowest
    last_us = max((int(table.submit_us.max(initial=0)) for table in jobs), default=0)
    return last_us + run_us >= NEVER
