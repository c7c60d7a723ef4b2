"""Checks of a grid however it was made: the values of its VOs, how they fit, and its jobs.

A scenario is checked before (`grid.config.checks`), with its lines; here only values are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from grid.cluster.gang.processor_choices import PROCESSOR_CHOICES
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
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.plugins.registry import Kind, Plugins
from grid.model.plugins.settings import expected
from grid.model.time import NEVER, SECOND_US, to_seconds
from grid.policies.registry import POLICIES, make_policy
from grid.protocol.admission import unknown_vos
from grid.protocol.information.overlays import edges_beyond
from grid.protocol.registry import ADMISSION, CLUSTER_CHOICES, FORWARDING, SELECTIONS
from grid.workload.generators import table_problems

Tables = Sequence[JobTable | None]
Settings = Iterable[tuple[str, Any]]

MAX_VOS = 20_000
MAX_MACHINES = 100_000
MAX_CPUS = 10_000_000
MAX_LICENSES = 63
"""A machine's licenses are a bit mask of a signed 64-bit integer."""
END_S = to_seconds(NEVER)
"""The end of virtual time."""
NO_MEMORY = "none, for no machine of the grid gives its ram_mb"

_PLUGINS_OF_A_VO = {
    "selection": SELECTIONS, "cluster_choice": CLUSTER_CHOICES, "forwarding": FORWARDING,
    "admission": ADMISSION,
}  # fmt: skip
_PLUGINS_OF_A_CLUSTER = {"policy": POLICIES, "processor_choice": PROCESSOR_CHOICES}


def refuse(problems: Iterable[Problem], most: int = 20) -> None:
    """Raises InputError with the first of the problems, if there are any."""
    lines = [
        ErrorLine("grid", None, dotted(path), found, expected)
        for (path, found, expected), _ in zip(problems, range(most), strict=False)
    ]
    if lines:
        raise InputError(lines)


def platform_problems(vos: Sequence[VirtualOrganization], parts: Plugins) -> Iterator[Problem]:
    """Wrong values of VOs, then those that do not fit together."""
    problems = list(wrong_values(vos, tuple[VirtualOrganization, ...], ("vos",)))
    if not vos:
        problems.append((("vos",), "nothing", "at least one VirtualOrganization"))
    if not problems:
        for v, vo in enumerate(vos):
            names = [cluster.name for cluster in vo.clusters]
            problems += repeated(names, ("vos", v, "clusters"), "cluster of this VO")
            if not vo.clusters:
                problems.append((("vos", v, "clusters"), "nothing", "at least one Cluster"))
            for c, cluster in enumerate(vo.clusters):
                problems += cluster_problems(cluster, ("vos", v, "clusters", c))
    yield from problems
    if not problems:
        yield from total_problems(vos)
        yield from repeated([vo.name for vo in vos], ("vos",), "VO")
        yield from _plugin_problems(vos, parts)


def wrong_values(value: object, kind: Any, path: Path = ()) -> Iterator[Problem]:
    """The values in dataclasses of the model that their declared types do not allow."""
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


def cluster_problems(cluster: Cluster, path: Path) -> Iterator[Problem]:
    """A cluster without machines, or with licenses that its machines cannot have."""
    if not cluster.machines:
        yield (*path, "machines"), "nothing", "at least one Machine"
    yield from license_problems(cluster, path)


def made_problems(cluster: Cluster) -> Iterator[Problem]:
    """What is wrong with a cluster whose machines a generator made."""
    wrong = list(wrong_values((cluster,), tuple[Cluster, ...]))
    yield from [(path[1:], found, reason) for path, found, reason in wrong] or cluster_problems(
        cluster, ()
    )


def license_problems(cluster: Any, path: Path) -> Iterator[Problem]:
    """Licenses declared twice, and licenses of machines that the cluster does not declare.

    `cluster` is a Cluster or its section in a scenario.
    """
    declared = [license.name for license in cluster.licenses]
    yield from repeated(declared, (*path, "licenses"), "license of this cluster")
    if len(declared) > MAX_LICENSES:
        yield (*path, "licenses"), f"{len(declared)} licenses", f"at most {MAX_LICENSES}"
    for m, machine in enumerate(cluster.machines if isinstance(cluster.machines, tuple) else ()):
        for rank, name in enumerate(machine.licenses):
            if name not in declared:
                what = f"a license from {dotted((*path, 'licenses'))}"
                expected = expected_name(name, declared, what)
                yield (*path, "machines", m, "licenses", rank), repr(name), expected


def repeated(names: Sequence[str], path: Path, what: str) -> Iterator[Problem]:
    """Names that occur more than once in the list at `path`."""
    first: dict[str, int] = {}
    for index, one in enumerate(names):
        if first.setdefault(one, index) != index:
            yield (*path, index, "name"), f"{one!r} again", f"a name of its own for each {what}"


def total_problems(vos: Sequence[VirtualOrganization]) -> Iterator[Problem]:
    """More VOs, machines or CPUs than the limits allow."""
    machines = sum(len(cluster.machines) for vo in vos for cluster in vo.clusters)
    cpus = sum(cluster.processors for vo in vos for cluster in vo.clusters)
    yield from too_large(len(vos), machines, cpus)


def too_large(vos: int, machines: int, cpus: int) -> Iterator[Problem]:
    """What a grid has too many of."""
    totals = [(vos, MAX_VOS, "VOs"), (machines, MAX_MACHINES, "machines"), (cpus, MAX_CPUS, "CPUs")]
    for total, limit, what in totals:
        if total > limit:
            yield ("vos",), f"{total} {what} in all", f"at most {limit}"


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


def edge_problems(name: str, settings: Settings, vos: int) -> Iterator[Problem]:
    """Edges of the overlay `edges` to VOs that do not exist."""
    for edge, vo in edges_beyond(name, settings, vos):
        path: Path = ("protocol", "information", "settings", "edges", edge)
        yield path, f"VO {vo}", f"at most {vos - 1}: the grid has {vos} VOs"


def admission_problems(
    rule: str, settings: Settings, known: Collection[str], path: Path
) -> Iterator[Problem]:
    """VOs that a built-in admission rule names and that do not exist."""
    for setting, name in unknown_vos(rule, settings, known):
        yield (*path, setting), repr(name), expected_name(name, known, "the name of a VO")


def _plugin_problems(vos: Sequence[VirtualOrganization], parts: Plugins) -> Iterator[Problem]:
    """Plugins of VOs that cannot be made; each is tried once."""
    tried: dict[str, InvalidPlugin | None] = {}

    def problems(owner: Any, kinds: Mapping[str, Kind], path: Path) -> Iterator[Problem]:
        for key, kind in kinds.items():
            name, settings = getattr(owner, key), getattr(owner, f"{key}_settings")
            if name is None:
                continue
            tag = f"{kind.name} {name} {settings!r}"
            if tag not in tried:
                tried[tag] = _reason(kind, name, settings, parts)
            error = tried[tag]
            if error is not None:
                where = (f"{key}_settings", *error.path) if error.path else (key,)
                yield (*path, *where), error.found, error.expected

    known = dict.fromkeys(vo.name for vo in vos)
    for v, vo in enumerate(vos):
        yield from problems(vo, _PLUGINS_OF_A_VO, ("vos", v))
        path: Path = ("vos", v, "admission_settings")
        yield from admission_problems(vo.admission, vo.admission_settings, known, path)
        for c, cluster in enumerate(vo.clusters):
            yield from problems(cluster, _PLUGINS_OF_A_CLUSTER, ("vos", v, "clusters", c))


def _reason(kind: Kind, name: str, settings: Any, parts: Plugins) -> InvalidPlugin | None:
    """Why there is no such part with these settings."""
    try:
        parts.make(kind, name, dict(settings))
    except InvalidPlugin as error:
        return error
    except (TypeError, ValueError) as error:
        return InvalidPlugin(shorten(settings), f"pairs of names and values ({error})")
    return None


def refused(
    vos: Sequence[VirtualOrganization], faults: Any, memory: bool, parts: Plugins
) -> Iterator[Problem]:
    """What the policies of clusters do not support.

    `faults` is the section of faults, or None; `memory`: whether any job requires some.
    """
    from grid.cluster.engines import Wanted, refusals

    policies = {}
    for v, vo in enumerate(vos):
        for c, cluster in enumerate(vo.clusters):
            kind = f"{cluster.policy} {cluster.policy_settings!r}"
            if kind not in policies:
                try:
                    given = dict(cluster.policy_settings)
                    policies[kind] = make_policy(cluster.policy, given, parts)
                except InvalidPlugin as error:  # settings that do not go together
                    settings = ("vos", v, "clusters", c, "policy", "settings")
                    yield (*settings, *error.path), error.found, error.expected
                    continue
            fails = faults is not None and faults.break_machines_of(vo.name, cluster.name)
            wanted = Wanted(cluster, fails, memory)
            for field, found, reason in refusals(wanted, policies[kind]):
                yield ("vos", v, "clusters", c, field), found, reason


def job_problems(
    settings: Any, vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> Iterator[Problem]:
    """All that is wrong with the jobs of a grid whose VOs are right."""
    problems: list[Problem] = []
    for name, tables in (("submitted", submitted), ("direct", direct)):
        if len(tables) != len(vos):
            expected = f"one for each of the {len(vos)} VOs, a JobTable or None"
            yield (name,), f"{len(tables)} tables", expected
            return
        for position, table in enumerate(tables):
            if table is not None:
                problems += table_problems((name, position), table)
    for position, (vo, table) in enumerate(zip(vos, direct, strict=True)):
        if table is not None and len(vo.clusters) != 1:
            found = f"jobs for a VO of {len(vo.clusters)} clusters"
            problems.append((("direct", position), found, "a VO with one cluster"))
    yield from problems
    if problems:
        return
    for position, both in enumerate(zip(submitted, direct, strict=True)):
        yield from _repeated_numbers(position, [table for table in both if table is not None])
    yield from past_the_end(settings, vos, submitted, direct)


def _repeated_numbers(position: int, tables: Sequence[JobTable]) -> Iterator[Problem]:
    """Two jobs of one VO with one number, which is their name in it."""
    jobs = concatenate(tables).number if len(tables) > 1 else tables[0].number if tables else None
    if jobs is None or (np.diff(jobs) > 0).all():
        return
    numbers, counts = np.unique(jobs, return_counts=True)
    if (counts > 1).any():
        path: Path = ("vos", position)
        found = f"job number {numbers[counts > 1][0]} again"
        yield path, found, "a number of its own for each job of a VO"


def past_the_end(
    settings: Any, vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> Iterator[Problem]:
    """Work that takes longer than there is time, even if no CPU ever idles."""
    if settings.faults is not None:
        return
    everywhere = [cluster for vo in vos for cluster in vo.clusters]
    for position, (vo, table) in enumerate(zip(vos, direct, strict=True)):
        if table is not None:
            yield from _too_much_work(("direct", position), [table], vo.clusters)
    if settings.protocol.forwarding != "reject":
        tables = [table for table in submitted if table is not None]
        yield from _too_much_work(("submitted",), tables, everywhere)


def _too_much_work(
    path: Path, tables: Sequence[JobTable], clusters: Sequence[Cluster]
) -> Iterator[Problem]:
    capacity = sum(machine.cpus * machine.mips for one in clusters for machine in one.machines)
    factor = min(1.0, *(cluster.estimate_factor for cluster in clusters))
    widest = max(cluster.widest for cluster in clusters)
    work = sum(_certain_work(table, factor, widest) for table in tables)
    least_us = work / capacity
    if least_us >= NEVER:
        found = f"work for {least_us / SECOND_US:.3g} s on all CPUs together"
        yield path, found, f"less than {END_S:.3g} s, the end of virtual time"


def _certain_work(table: JobTable, factor: float, widest: int) -> float:
    """Microseconds times MIPS of the jobs that will run, whatever happens."""
    certain = (table.processors <= widest) & (table.licenses == 0)
    if table.requirements:
        certain &= ~table.has_requirements
    run_us: Floats = np.minimum(table.run_us, table.estimate_us * factor)
    return float((run_us * table.processors * table.reference_mips)[certain].sum())


def width_problems(
    vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> Iterator[Problem]:
    """The first job of each table that asks for more CPUs than any machine that it can reach."""
    everywhere = max(cluster.widest for vo in vos for cluster in vo.clusters)
    for position, vo in enumerate(vos):
        here = max(cluster.widest for cluster in vo.clusters)
        for name, table, widest in (
            ("submitted", submitted[position], everywhere),
            ("direct", direct[position], here),
        ):
            if table is None or not (table.processors > widest).any():
                continue
            row = int((table.processors > widest).argmax())
            expected = f"at most {widest}, the CPUs of the largest machine that it can reach"
            yield (name, position, "processors", row), str(table.processors[row]), expected


def memory_problems(
    vos: Sequence[VirtualOrganization], submitted: Tables, direct: Tables
) -> Iterator[Problem]:
    """The first job of each table that asks for memory, in a grid that has no machine with any."""
    if any(machine.ram_mb > 0 for vo in vos for one in vo.clusters for machine in one.machines):
        return
    for name, tables in (("submitted", submitted), ("direct", direct)):
        for position, table in enumerate(tables):
            if table is not None and table.ram_mb.any():
                row = int(table.ram_mb.argmax())
                yield (name, position, "ram_mb", row), f"{table.ram_mb[row]:g}", NO_MEMORY


def may_pass_the_end(vos: Sequence[VirtualOrganization], tables: Sequence[JobTable | None]) -> bool:
    """Whether virtual time may end before the jobs do, one after the other on the slowest CPU."""
    slowest = min(m.mips for vo in vos for cluster in vo.clusters for m in cluster.machines)
    jobs = [table for table in tables if table is not None]
    run_us = sum(float((table.run_us * table.reference_mips).sum()) for table in jobs) / slowest
    last_us = max((int(table.submit_us.max(initial=0)) for table in jobs), default=0)
    return last_us + run_us >= NEVER
