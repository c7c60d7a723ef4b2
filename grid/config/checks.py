"""Checks across sections, of a scenario and of a grid made in Python. Problems carry their paths.

Checks of one section are validators of that section (`grid.model.platform`, `grid.config.schema`);
those of one plugin's settings are in its declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from grid.config.faults import FaultsSection
from grid.config.schema import GridSettings, Scenario
from grid.model.errors import (
    ErrorLine,
    InvalidPlugin,
    Path,
    Problem,
    dotted,
    expected_name,
    raise_if,
    shorten,
)
from grid.model.fields import (
    ARCHITECTURES,
    OPERATING_SYSTEMS,
    PROPERTIES,
    PluginRef,
    entries,
    is_section,
    keys_of,
)
from grid.model.job import MEMORY
from grid.model.job_table import JobTable, repeated_number
from grid.model.platform import Cluster, Machine, MachineGenerator, VirtualOrganization
from grid.model.plugins.registry import Plugins
from grid.model.time import to_seconds
from grid.model.workload import AttributesSection, JobSection, RequirementSection, WorkloadSection
from grid.policies.features import ClusterSpec, JobFeatures, refusals
from grid.policies.registry import is_for_gangs, make_policy
from grid.protocol.admission import unknown_vos
from grid.protocol.information.overlays import edges_beyond
from grid.protocol.names import entities_of_vo
from grid.workload.generators import table_problems

Tables = Sequence[JobTable | None]
Expanded = Sequence[VirtualOrganization]
"""The VOs of a scenario, one for each of its sections, with each of their machines."""
VoLimits = Mapping[str, Mapping[str, int]]
"""The number of machines of each cluster, by VO and cluster."""

LIMITS = MAX_VOS, MAX_MACHINES, MAX_CPUS = 20_000, 100_000, 10_000_000
MAX_LICENSES = 63
"""A machine's licenses are a bit mask of a signed 64-bit integer."""
MAX_OUTAGES = 100_000
"""Of one machine, on average."""


def scenario_problems(scenario: Scenario) -> list[Problem]:
    """All problems of a scenario that conforms to its schema and whose plugins can be made."""
    vos, plugins = scenario.vos or (), scenario.plugins
    problems = list(size_problems(vos))
    if problems:  # all other checks visit each VO
        return problems
    expanded = [
        replace(vo, clusters=tuple(_expanded(one, plugins) for one in vo.clusters)) for vo in vos
    ]
    problems += vo_problems(scenario, vos)
    problems += _workload_problems(scenario, expanded)
    if scenario.faults is not None and vos:  # names of VOs from a trace are known in runs
        problems += fault_problems(scenario.faults, _entities(scenario, vos), machines_of(vos))
    if not problems:
        problems += _effect_problems(scenario, expanded)
        problems += _capability_problems(scenario, expanded)
    return problems


# Virtual organizations


def size_problems(vos: Sequence[VirtualOrganization]) -> Iterator[Problem]:
    """More VOs, machines or CPUs than the limits allow."""
    totals = {"VOs": 0, "machines": 0, "CPUs": 0}
    for vo in vos:
        totals["VOs"] += (of_vo := len(vo.names))
        for count, cpus in (size for cluster in vo.clusters for size in _machine_sizes(cluster)):
            totals["machines"] += of_vo * count
            totals["CPUs"] += of_vo * count * cpus
    for (what, total), limit in zip(totals.items(), LIMITS, strict=True):
        if total > limit:
            yield ("vos",), f"{total} {what} in all", f"at most {limit}"


def _machine_sizes(cluster: Cluster) -> list[tuple[int, int]]:
    """Pairs of (number of machines, CPUs of each); of generated machines, one CPU each."""
    if cluster.cpus is not None:
        return [(1, cluster.cpus)]
    if isinstance(cluster.machines, MachineGenerator):
        return [(cluster.machines.count, 1)]
    return [(machine.count, machine.cpus) for machine in cluster.machines]


def vo_problems(settings: GridSettings, vos: Sequence[VirtualOrganization]) -> Iterator[Problem]:
    """VOs, clusters and licenses whose names do not fit together, also in settings of the grid."""
    names = [name for vo in vos for name in vo.names]
    owners: dict[str, int] = {}
    for v, vo in enumerate(vos):
        path: Path = ("vos", v)
        if "grid" in vo.names and len(names) > 1:
            yield (*path, "name"), "'grid'", "another name: in results, this one refers to all VOs"
        again = [name for name in vo.names if owners.setdefault(name, v) != v]
        if again:
            expected = f"a name other than that of vos.{owners[again[0]]}"
            yield (*path, "name"), f"{again[0]!r} twice", expected
        if len(names) == 1 and (vo.joins_s or vo.leaves_s is not None):
            key = "joins_s" if vo.joins_s else "leaves_s"
            yield (*path, key), shorten(getattr(vo, key)), "none, since there is no other VO"
        known = dict.fromkeys(names)
        for key, name in unknown_vos(vo.admission.name, vo.admission.settings.items(), known):
            expected = expected_name(name, names, "a VO")
            yield (*path, "admission", "settings", key), repr(name), expected
        of_vo = [cluster.name for cluster in vo.clusters]
        yield from _repeated(of_vo, (*path, "clusters"), "cluster of this VO")
        for c, cluster in enumerate(vo.clusters):
            yield from license_problems(cluster, (*path, "clusters", c))
            if cluster.reservations and not isinstance(cluster.machines, MachineGenerator):
                yield from _reservation_problems(cluster, (*path, "clusters", c), names)
    if vos:
        yield from _link_problems(settings, names)
    overlay = settings.protocol.information
    yield from _recovery_problems(settings)
    for edge, position in edges_beyond(overlay.name, overlay.settings.items(), len(names)):
        path = ("protocol", "information", "settings", "edges", edge)
        yield path, f"VO {position}", f"at most {len(names) - 1}: the grid has {len(names)} VOs"


WITHOUT_SNAPSHOTS = ("none", "gossip", "index", "probes")
"""Overlays under which VOs do not publish snapshots."""


def _recovery_problems(settings: GridSettings) -> Iterator[Problem]:
    """VOs cannot be known to be lost if they publish no snapshots, or too few."""
    protocol = settings.protocol
    lost_after_s, period_s = protocol.lost_after_s, protocol.snapshots.period_s
    if lost_after_s is None:
        return
    path: Path = ("protocol", "lost_after_s")
    if protocol.information.name in WITHOUT_SNAPSHOTS:
        expected = "none: VOs publish no snapshots with this overlay"
        yield path, f"{lost_after_s:g} with {protocol.information.name}", expected
    elif period_s is None:
        yield path, f"{lost_after_s:g}", "none without `snapshots.period_s` (heartbeats)"
    elif lost_after_s <= (least_s := period_s + to_seconds(settings.network.longest_us)):
        expected = f"more than {least_s:g}, the snapshot period plus the longest latency"
        yield path, f"{lost_after_s:g}", expected


def _repeated(names: Sequence[str], path: Path, what: str) -> Iterator[Problem]:
    """Names that occur more than once in the list at `path`."""
    first: dict[str, int] = {}
    for index, one in enumerate(names):
        if first.setdefault(one, index) != index:
            yield (*path, index, "name"), f"{one!r} twice", f"a unique name for each {what}"


def license_problems(cluster: Cluster, path: Path) -> Iterator[Problem]:
    """Licenses declared twice or not at all, and resources of both machines and cluster."""
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
        for name in machine.resources:
            if name in cluster.resources:
                expected = "another name: this one is a resource of the whole cluster"
                yield (*path, "machines", m, "resources", name), repr(name), expected


def _reservation_problems(cluster: Cluster, path: Path, vos: Sequence[str]) -> Iterator[Problem]:
    """Reservations of or for what does not exist, or of more CPUs than machines have."""
    machines = cluster.expanded().machines
    names = [machine.name or "" for machine in machines]
    for r, one in enumerate(cluster.reservations):
        chosen = [each for each in machines if one.is_of(each)]
        least = min((each.cpus for each in chosen), default=one.cpus or 0)
        if one.cpus is not None and one.cpus > least:
            expected = f"at most {least}, the CPUs of a machine"
            yield (*path, "reservations", r, "cpus"), str(one.cpus), expected
        lists = (
            ("machines", one.machines, names, "a machine of the cluster"),
            ("vos", one.vos, vos, "the name of a VO"),
        )
        for key, given, known, what in lists:
            for place, name in enumerate(given):
                if name not in known:
                    expected = expected_name(name, known, what)
                    yield (*path, "reservations", r, key, place), repr(name), expected


def _link_problems(settings: GridSettings, vos: Sequence[str]) -> Iterator[Problem]:
    """Links to VOs that do not exist, from a VO to itself, or given twice."""
    known = dict.fromkeys(vos)
    seen: dict[tuple[str, ...], Path] = {}
    for steps, pair, _ in settings.network.pairs():
        path: Path = ("network", *steps)
        for end, vo in enumerate(pair):
            if vo not in known:
                where = (*path, end) if steps[0] == "links" else path
                yield where, repr(vo), expected_name(vo, known, "a VO")
        if pair[0] == pair[1]:
            yield path, f"{pair[0]!r} twice", "two VOs"
        elif seen.setdefault(tuple(sorted(pair)), path) != path:
            yield path, "these two VOs twice", "one latency between two VOs"


# Workloads


def _workload_problems(scenario: Scenario, expanded: Expanded) -> Iterator[Problem]:
    vos, shared = scenario.vos or (), scenario.workload
    if shared is not None:
        if shared.jobs is not None:
            expected = "a trace or a generator: a list of jobs does not route them to VOs"
            yield ("workload", "jobs"), "a list of jobs", expected
        if shared.entry_point == "cluster":
            expected = "scheduler: jobs of the whole grid enter at Local Schedulers"
            yield ("workload", "entry_point"), "'cluster'", expected
    everywhere = _widest(vos, expanded) if vos else None
    names = [name for vo in vos for name in vo.names]
    for v, vo in enumerate(vos):
        if vo.workload is None:
            continue
        path: Path = ("vos", v, "workload")
        if vo.is_direct and len(vo.clusters) != 1:
            found = f"'cluster' in a VO with {len(vo.clusters)} clusters"
            yield (*path, "entry_point"), found, "a VO with one cluster"
        widest = _widest([vo], [expanded[v]]) if vo.is_direct else everywhere
        yield from _job_list_problems(vo.workload, widest, names, (*path, "jobs"))
    yield from _dependency_problems(vos) if shared is None else ()
    for path, section in _job_sections(scenario):
        for r, requirement in enumerate(section.requirements):
            yield from _option_problems(requirement, (*path, "requirements", r, "options"))


def _widest(vos: Sequence[VirtualOrganization], expanded: Expanded) -> int | None:
    """The most CPUs that one job may hold; None if machines are generated."""
    if any(isinstance(one.machines, MachineGenerator) for vo in vos for one in vo.clusters):
        return None
    return max(one.widest for vo in expanded for one in vo.clusters)


def _job_list_problems(
    workload: WorkloadSection, widest: int | None, vos: Sequence[str], path: Path
) -> Iterator[Problem]:
    numbers: dict[int, int] = {}
    for index, job in enumerate(workload.jobs or ()):
        number = index + 1 if job.number is None else job.number
        if numbers.setdefault(number, index) != index:
            expected = "a unique number for each job (default: its position, from 1)"
            yield (*path, index, "number"), f"{number} twice", expected
        if widest is not None and job.cpus > widest:
            expected = f"at most {widest}, the CPUs of the largest machine that it can reach"
            yield (*path, index, "cpus"), str(job.cpus), expected
        for place, one in enumerate(job.after):
            if one.vo is not None and one.vo not in vos:
                expected = expected_name(one.vo, vos, "a VO of this scenario")
                yield (*path, index, "after", place, "vo"), shorten(one.vo), expected


def _dependency_problems(vos: Sequence[VirtualOrganization]) -> Iterator[Problem]:
    """Invalid dependencies, if all jobs are listed. Those of other jobs are known in runs."""
    sections = [(v, vo.workload) for v, vo in enumerate(vos) for _ in vo.names]
    workloads = [workload for _, workload in sections if workload is not None]
    named = [one.vo for work in workloads for job in work.jobs or () for one in job.after]
    names = [name for vo in vos for name in vo.names]
    is_unknown = not {None, *names}.issuperset(named)
    if not named or is_unknown or any(one.jobs is None for one in workloads):
        return
    # Loads compiled code, which `grid check` does without.
    from grid.config.dependencies import dependencies_of, listed_jobs, place_of

    positions: dict[str | None, int] = {name: place for place, name in enumerate(names)}
    lists = [(v, one.jobs or () if one else ()) for v, one in sections]
    tables = [
        listed_jobs(jobs, positions) if jobs and not vos[v].is_direct else None for v, jobs in lists
    ]
    for path, found, expected in dependencies_of(names, tables, ()).problems:
        v, jobs = lists[int(path[1])]
        yield ("vos", v, "workload", "jobs", place_of(jobs, int(path[3])), "after"), found, expected


def _job_sections(scenario: Scenario) -> Iterator[tuple[Path, JobSection | AttributesSection]]:
    """The listed jobs and drawn attributes of all workloads."""
    owners: list[tuple[Path, Any]] = [((), scenario)]
    owners += [(("vos", v), vo) for v, vo in enumerate(scenario.vos or ())]
    for path, owner in owners:
        for key in ("jobs", "attributes") if owner.workload is not None else ():
            yield from entries(owner.workload, key, (*path, "workload"))


def _option_problems(requirement: RequirementSection, path: Path) -> Iterator[Problem]:
    named = {"operating_system": OPERATING_SYSTEMS, "architecture": ARCHITECTURES}
    names = named.get(requirement.kind)
    expected = f"one of {', '.join(names)}" if names else "a number of at least 0"
    for o, option in enumerate(requirement.options):
        value = option.value
        if value not in names if names else isinstance(value, str) or value < 0:
            yield (*path, o, "value"), shorten(value), expected


# Faults


def _entities(scenario: Scenario, vos: Sequence[VirtualOrganization]) -> list[str]:
    shared = scenario.workload is not None
    return [
        entity
        for vo in vos
        for name in vo.names
        for entity in entities_of_vo(
            name,
            [cluster.name for cluster in vo.clusters],
            shared or not vo.is_direct,
            shared or (vo.workload is not None and not vo.is_direct),
        )
    ]


def machines_of(vos: Sequence[VirtualOrganization]) -> VoLimits:
    """The number of machines of each cluster, by VO and cluster."""
    return {
        name: {one.name: sum(n for n, _ in _machine_sizes(one)) for one in vo.clusters}
        for vo in vos
        for name in vo.names
    }


def fault_problems(
    faults: FaultsSection, entities: Sequence[str], vos: VoLimits
) -> Iterator[Problem]:
    """Faults of what the grid does not have, and those that begin after the end of all faults."""
    for key in ("crashes", "vo_outages", "machine_outages", "partitions"):
        for where, fault in entries(faults, key, ("faults",)):
            if fault.outage.start_us >= faults.heal_us:
                expected = f"a time below heal_s, {faults.heal_s:g}"
                yield (*where, "at_s"), f"{fault.at_s:g}", expected
    for where, failing in entries(faults, "random_machine_outages", ("faults",)):
        if faults.heal_us > MAX_OUTAGES * (failing.up_us + failing.down_us):
            least = to_seconds(faults.heal_us // MAX_OUTAGES)
            expected = f"at least {least:g}, so that a machine fails at most {MAX_OUTAGES:,} times"
            yield (*where, "up_s"), f"{failing.up_s:g}", expected
    for path, name, known, what in _fault_names(faults, entities, vos):
        if name not in known:
            yield path, repr(name), expected_name(name, known, what)
    for where, cut in entries(faults, "partitions", ("faults",)):
        both = [name for name in cut.other if name in cut.one]
        if both:
            yield (*where, "other"), repr(both[0]), "a VO not in `one`"
    for where, failure in entries(faults, "machine_outages", ("faults",)):
        count = vos.get(failure.vo, {}).get(failure.cluster)
        if count is not None and failure.machine >= count:
            expected = f"a number below {count} (a pool is one machine)"
            yield (*where, "machine"), str(failure.machine), expected


def _fault_names(
    faults: FaultsSection, entities: Sequence[str], vos: VoLimits
) -> Iterator[tuple[Path, str, Iterable[str], str]]:
    """Each name in the faults with its path, the known names and what they name."""
    a_vo = "a VO"
    for where, crash in entries(faults, "crashes", ("faults",)):
        of_vo = [one for one in entities if one.split("/")[0] == crash.entity.split("/")[0]]
        yield (*where, "entity"), crash.entity, of_vo or entities, "an entity"
    for where, outage in entries(faults, "vo_outages", ("faults",)):
        yield (*where, "vo"), outage.vo, vos, a_vo
    for key in ("machine_outages", "random_machine_outages"):
        for where, failure in entries(faults, key, ("faults",)):
            if failure.vo is not None:
                yield (*where, "vo"), failure.vo, vos, a_vo
            of_vos = list(vos.values()) if failure.vo is None else [vos.get(failure.vo, {})]
            clusters = dict.fromkeys(name for of in of_vos for name in of)
            if failure.cluster is not None and clusters:
                what = f"a cluster of {failure.vo or 'a VO'}"
                yield (*where, "cluster"), failure.cluster, clusters, what
    for where, cut in entries(faults, "partitions", ("faults",)):
        for side in ("one", "other"):
            yield from ((path, vo, vos, a_vo) for path, vo in entries(cut, side, where))


# Settings without effect

DIRECT = "no such setting, since the VO's jobs enter its cluster directly"
NO_MESSAGES = "no such setting, since all jobs enter their clusters directly"
CHOSEN = (
    "no such setting, since it requires several clusters whose jobs are not bound to a machine "
    "(`resource: cluster`, gangs)"
)
OF_SCHEDULER = (
    *("selection", "cluster_choice", "forwarding", "admission", "priority", "joins_s", "leaves_s"),
)
"""Keys of a VO that have no effect if its jobs enter its cluster."""


def _effect_problems(scenario: Scenario, expanded: Expanded) -> Iterator[Problem]:
    """Settings that are not at their defaults and have no effect.

    Defaults pass, since a run writes all of them into its scenario.yaml. Crashes and outages of
    entities pass for direct jobs: in a live run they delay the reports of completions.
    """
    if scenario.is_direct:
        yield from _changed(scenario, ("network", "protocol"), (), NO_MESSAGES)
        of_messages = ("between_vos", "within_vos", "partitions")
        yield from _changed(scenario.faults, of_messages, ("faults",), NO_MESSAGES)
    for v, vo in enumerate(scenario.vos or ()):
        path: Path = ("vos", v)
        if vo.is_direct and not scenario.workload:
            yield from _changed(vo, OF_SCHEDULER, path, DIRECT)
            for c, cluster in enumerate(vo.clusters):
                is_bound = vo.workload is not None and bool(vo.workload.bound_machines)
                if (cluster.resource == "machine") != is_bound:
                    yield (*path, "clusters", c, "resource"), "", DIRECT
            for key in ("jobs", "attributes"):
                for where, one in entries(vo.workload, key, (*path, "workload")):
                    yield from _changed(one, ("requirements",), where, DIRECT)
        elif sum(not one.by_machine for one in expanded[v].clusters) < 2:
            yield from _changed(vo, ("cluster_choice",), path, CHOSEN)


def _changed(section: Any, keys: Iterable[str], path: Path, expected: str) -> Iterator[Problem]:
    """A problem for each of the keys, or of those in them, that is not at its default."""
    for key in keys if section is not None else ():
        value, default = getattr(section, key), keys_of(section)[key].get_default()
        if value != default:
            inner = keys_of(value) if is_section(value) and is_section(default) else {}
            changed = [one for one in inner if getattr(value, one) != getattr(default, one)]
            if not changed or isinstance(value, PluginRef):
                yield (*path, key), "", expected
            else:
                yield from (((*path, key, one), "", expected) for one in changed)


def with_gangs(cluster: Cluster, plugins: Plugins) -> Cluster:
    """The cluster with each of its machines, marked if its policy is for gangs."""
    cluster = cluster.expanded()
    object.__setattr__(cluster, "gang_policy", is_for_gangs(cluster.policy, plugins))
    return cluster


def _expanded(cluster: Cluster, plugins: Plugins) -> Cluster:
    """The cluster with one machine in place of generated ones, which are checked in runs."""
    if isinstance(cluster.machines, MachineGenerator):
        cluster = replace(cluster, machines=(Machine(switch_off=cluster.machines.switch_off),))
    return with_gangs(cluster, plugins)


def _capability_problems(scenario: Scenario, vos: Expanded) -> Iterator[Problem]:
    """Settings of clusters that their policies do not support, and unknown resources."""
    jobs = [job for vo in vos for job in (vo.workload and vo.workload.jobs) or ()]
    held = list(_requested_resources(scenario))
    features = JobFeatures(
        bool(held),
        scenario.protocol.recovers or any(job.cancel_after_s is not None for job in jobs),
        any(job.predicted_s is not None for job in jobs),
        max((bool(one.moldable) for _, one in _job_sections(scenario)), default=0),
    )
    yield from unsupported(vos, scenario.faults, features, scenario.plugins)
    machines = [one.machines for vo in scenario.vos or () for one in vo.clusters]
    if not vos or any(isinstance(one, MachineGenerator) for one in machines):
        return
    known = _known_resources(vos)
    for path, name in held:
        if name not in known:
            yield path, "a request", _known_resource(name, known)
    kinds = (*PROPERTIES, *known)
    for path, section in _job_sections(scenario):
        for r, one in enumerate(section.requirements):
            if one.kind not in kinds:
                expected = expected_name(one.kind, kinds, "a property")
                yield (*path, "requirements", r, "kind"), repr(one.kind), expected


def _known_resources(vos: Sequence[VirtualOrganization]) -> list[str]:
    return sorted(
        {name for vo in vos for cluster in vo.clusters for name in cluster.resource_names}
    )


def _known_resource(name: str, known: Sequence[str]) -> str:
    if not known:
        return f"none, since no machine of the grid has {name}"
    return expected_name(name, known, "a resource of the grid's machines")


def _requested_resources(scenario: Scenario) -> Iterator[tuple[Path, str]]:
    """The resources that jobs and drawn attributes request."""
    for path, section in _job_sections(scenario):
        if isinstance(section, JobSection) and section.ram_mb:
            yield (*path, MEMORY), MEMORY
        for key in ("resources", "resources_per_task"):
            for name in getattr(section, key, ()):
                yield (*path, key, name), name


def unsupported(
    vos: Sequence[VirtualOrganization],
    faults: FaultsSection | None,
    features: JobFeatures,
    plugins: Plugins,
) -> Iterator[Problem]:
    """Features that policies do not support; `features`: what jobs may require."""
    policies = {}
    for v, vo in enumerate(vos):
        for c, cluster in enumerate(vo.clusters):
            path: Path = ("vos", v, "clusters", c)
            kind = repr(cluster.policy)
            if kind not in policies:
                try:
                    policies[kind] = make_policy(
                        cluster.policy.name, cluster.policy.settings, plugins
                    )
                except InvalidPlugin as error:
                    yield (*path, "policy", "settings", *error.path), error.found, error.expected
                    continue
            fails = faults is not None and faults.break_machines_of(vo.name, cluster.name)
            spec = ClusterSpec(cluster, fails, features)
            for field, found, reason in refusals(spec, policies[kind]):
                yield (*path, field), found, reason


# Grids


def refuse(problems: Iterable[Problem], most: int = 20) -> None:
    """Raises InputError with the first of the problems, if there are any."""
    raise_if(
        [
            ErrorLine("grid", None, dotted(path), found, expected)
            for path, found, expected in islice(problems, most)
        ]
    )


def job_problems(
    vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables, *, is_drawn: bool
) -> Iterator[Problem]:
    """All problems of the jobs of a grid whose VOs are valid.

    If it `is_drawn`, jobs that no machine has CPUs for are rejected in the run.
    """
    named = {"submitted": submitted, "direct": direct}
    for name, tables in named.items():
        if len(tables) != len(vos):
            expected = f"a JobTable or None for each of the {len(vos)} VOs"
            yield (name,), f"{len(tables)} tables", expected
            return
    everywhere = [cluster for vo in vos for cluster in vo.clusters]
    each: list[tuple[Path, JobTable, Sequence[Cluster]]] = [
        ((name, v), table, everywhere if name == "submitted" else vo.clusters)
        for v, vo in enumerate(vos)
        for name, tables in named.items()
        if (table := tables[v]) is not None
    ]
    problems = [one for path, table, _ in each for one in table_problems(path, table)]
    for path, _, clusters in each:
        if path[0] == "direct" and len(clusters) != 1:
            found = f"jobs for a VO with {len(clusters)} clusters"
            problems.append((path, found, "a VO with one cluster"))
    yield from problems
    if problems:
        return
    for v in range(len(vos)):
        number = repeated_number([submitted[v], direct[v]])
        if number is not None:
            expected = "a unique number for each job of a VO"
            yield ("vos", v), f"job number {number} twice", expected
    known = _known_resources(vos)
    for path, table, _ in each:
        for name, held in table.resources.items():
            if held.any() and name not in known:
                row = int(held.argmax())
                expected = _known_resource(name, known)
                yield (*path, "resources", name, row), f"{held[row]:g}", expected
    for path, table, clusters in () if is_drawn else each:
        widest = max(cluster.widest for cluster in clusters)
        if (table.processors > widest).any():
            row = int((table.processors > widest).argmax())
            expected = f"at most {widest}, the CPUs of the largest machine that it can reach"
            yield (*path, "processors", row), str(table.processors[row]), expected
