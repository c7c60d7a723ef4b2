"""What a grid must keep to, however it was made: its VOs, its settings and its jobs.

A file is checked before (`grid.config.checks`), with its lines; here nothing is known but values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from grid.cluster.gang.processor_choices import PROCESSOR_CHOICES
from grid.config.fault_checks import FAULT_CHECKS
from grid.config.value_checks import (
    COST,
    DURATION,
    MAX_MACHINES,
    SEED,
    Check,
    Problem,
    flag,
    is_a,
    number,
    one_of,
    optional,
    plain_name,
    repeated,
    text,
    tuple_of,
    whole,
    wrong_values,
)
from grid.model.errors import InputError, Mistake, Path, WrongPart, dotted, expected_name, shorten
from grid.model.faults import GridFaults, Outage
from grid.model.grid_settings import GridSettings, Link, NetworkSettings, ProtocolRules
from grid.model.measured_jobs import MeasuredJobs
from grid.model.platform import (
    ARCHITECTURES,
    OPERATING_SYSTEMS,
    Cluster,
    License,
    Machine,
    Membership,
    PreemptionOverheads,
    SwitchOff,
    VirtualOrganization,
)
from grid.model.plugins.kind import Kind
from grid.model.plugins.registry import Parts
from grid.model.time import NEVER
from grid.policies.registry import POLICIES, make_policy
from grid.protocol.admission import unknown_vos
from grid.protocol.information.graphs import edges_beyond
from grid.protocol.registry import (
    ADMISSION,
    CLUSTER_CHOICES,
    DISCOUNTS,
    FORWARDING,
    INFORMATION,
    SELECTIONS,
)

MAX_VOS = 20_000
MAX_CPUS = 10_000_000
MAX_LICENSES = 63
"""A machine's licenses are a bit mask of a signed 64-bit integer."""

_AMOUNT = number(0, 1e9)
_SETTINGS = is_a(tuple, "a tuple of pairs of name and value")

CHECKS: Mapping[type, Mapping[str, Check]] = {
    GridSettings: {
        "seed": SEED,
        "network": is_a(NetworkSettings, "NetworkSettings"),
        "protocol": is_a(ProtocolRules, "ProtocolRules"),
        "faults": optional(is_a(GridFaults, "GridFaults or None")),
        "measured": is_a(MeasuredJobs, "MeasuredJobs"),
    },
    MeasuredJobs: {"from_us": whole(0, NEVER - 1), "until_us": whole(0, NEVER)},
    NetworkSettings: {
        "latency_us": DURATION,
        "local_latency_us": DURATION,
        "bandwidth_mbps": optional(number(0.01, 1e9)),
        "links": tuple_of(is_a(Link, "a Link"), "Links"),
    },
    Link: {"between": tuple_of(text, "two names of VOs"), "latency_us": DURATION},
    ProtocolRules: {
        "ttl": whole(0, 1000),
        "when_busy": text,
        "when_busy_settings": _SETTINGS,
        "avoid_loops": flag,
        "when_refused": one_of(("next", "home", "reject")),
        "information": text,
        "information_settings": _SETTINGS,
        "discount": text,
        "discount_settings": _SETTINGS,
        "snapshot_detail": one_of(("full", "summary")),
        "snapshot_period_us": optional(DURATION),
        "snapshot_load_limit": optional(number(0, 1000)),
        "snapshot_jobs_limit": optional(whole(1, 1_000_000)),
    },
    VirtualOrganization: {
        "name": plain_name,
        "clusters": tuple_of(is_a(Cluster, "a Cluster"), "Clusters"),
        "selection": text,
        "selection_settings": _SETTINGS,
        "cluster_choice": text,
        "cluster_choice_settings": _SETTINGS,
        "when_busy": optional(text),
        "when_busy_settings": _SETTINGS,
        "admission": text,
        "admission_settings": _SETTINGS,
        "priority": one_of(("none", "home", "afar")),
        "membership": is_a(Membership, "a Membership"),
    },
    Membership: {"joins_us": whole(0, NEVER - 1), "leaves_us": whole(1, NEVER)},
    Cluster: {
        "name": plain_name,
        "machines": tuple_of(is_a(Machine, "a Machine"), "Machines"),
        "policy": text,
        "policy_settings": _SETTINGS,
        "by_machine": flag,
        "licenses": tuple_of(is_a(License, "a License"), "Licenses"),
        "overrun": one_of(("kill", "extend")),
        "estimates": one_of(("user", "exact", "average")),
        "estimate_factor": number(0.01, 100),
        "one_job_a_machine": flag,
        "overheads": is_a(PreemptionOverheads, "PreemptionOverheads"),
        "processor_choice": optional(text),
        "processor_choice_settings": _SETTINGS,
        "gang_policy": flag,
    },
    Machine: {
        "name": text,
        "cpus": whole(1, 1_000_000),
        "mips": number(0, 1e9, above=True),
        "operating_system": one_of(OPERATING_SYSTEMS),
        "architecture": one_of(ARCHITECTURES),
        "ram_mb": _AMOUNT,
        "disk_mb": _AMOUNT,
        "cpu_type": text,
        "licenses": tuple_of(text, "names of licenses"),
        "watts_idle": _AMOUNT,
        "watts_busy": _AMOUNT,
        "switch_off": optional(is_a(SwitchOff, "SwitchOff or None")),
    },
    SwitchOff: {"after_us": COST, "boot_us": COST, "watts_off": _AMOUNT, "watts_boot": _AMOUNT},
    License: {"name": text, "copies": whole(0, 1_000_000)},
    PreemptionOverheads: {"suspend_us": COST, "resume_us": COST, "move_us": COST},
    **FAULT_CHECKS,
}
"""What the attributes of the dataclasses of a grid must be."""


def refuse(problems: Iterable[Problem], most: int = 20) -> None:
    """Raises InputError with the first of the problems, if there are any."""
    mistakes = [
        Mistake("grid", None, dotted(path), found, expected)
        for (path, found, expected), _ in zip(problems, range(most), strict=False)
    ]
    if mistakes:
        raise InputError(mistakes)


def platform_problems(
    settings: GridSettings, vos: Sequence[VirtualOrganization], parts: Parts
) -> Iterator[Problem]:
    """All that is wrong with the values of the grid's parts, then with how they fit together."""
    if not isinstance(settings, GridSettings):
        yield ("settings",), shorten(settings), "GridSettings"
        return
    problems = [*_values((), settings)]
    if not vos:
        problems.append((("vos",), "nothing", "at least one VirtualOrganization"))
    for position, vo in enumerate(vos):
        problems += _vo_values(("vos", position), vo)
    yield from problems
    if not problems:
        yield from _sizes(vos)
        yield from repeated([vo.name for vo in vos], ("vos",), ("name",), "VO")
        yield from link_problems(settings.network.links, [vo.name for vo in vos])
        yield from _plugged(settings.protocol, vos, parts)


def _values(path: Path, item: object) -> Iterator[Problem]:
    """Wrong values of a dataclass of `CHECKS`, and of those in it."""
    checks = CHECKS[type(item)]
    problems = [*wrong_values(path, item, checks)]
    yield from problems
    if isinstance(item, Outage) and not problems and item.end_us <= item.start_us:
        yield (*path, "end_us"), str(item.end_us), f"more than start_us, {item.start_us}"
    if isinstance(item, Membership) and not problems and item.leaves_us <= item.joins_us:
        yield (*path, "leaves_us"), str(item.leaves_us), f"more than joins_us, {item.joins_us}"
    skipped = [place[-1] for place, _, _ in problems]
    for attribute in checks:
        inner = getattr(item, attribute)
        if attribute in skipped or attribute == "machines":
            continue
        if type(inner) in CHECKS:
            yield from _values((*path, attribute), inner)
        elif isinstance(inner, tuple):
            for position, one in enumerate(inner):
                if type(one) in CHECKS:
                    yield from _values((*path, attribute, position), one)


def _vo_values(path: Path, vo: object) -> Iterator[Problem]:
    if not isinstance(vo, VirtualOrganization):
        yield path, shorten(vo), "a VirtualOrganization"
        return
    problems = [*_values(path, vo)]
    yield from problems
    if problems:
        return
    if not vo.clusters:
        yield (*path, "clusters"), "nothing", "at least one Cluster"
    yield from repeated(
        [cluster.name for cluster in vo.clusters],
        (*path, "clusters"),
        ("name",),
        "cluster of this VO",
    )
    for position, cluster in enumerate(vo.clusters):
        yield from _machine_values((*path, "clusters", position), cluster)


def _machine_values(path: Path, cluster: Cluster) -> Iterator[Problem]:
    """Machines and licenses of a cluster; those that are alike are looked at once."""
    if not cluster.machines:
        yield (*path, "machines"), "nothing", "at least one Machine"
    declared = [license.name for license in cluster.licenses]
    yield from repeated(declared, (*path, "licenses"), ("name",), "license of this cluster")
    if len(declared) > MAX_LICENSES:
        yield (*path, "licenses"), f"{len(declared)} licenses", f"at most {MAX_LICENSES}"
    checks = CHECKS[Machine]
    for position, machine in enumerate(cluster.machines):
        place: Path = (*path, "machines", position)
        problems = [*wrong_values(place, machine, checks)]
        if not problems and machine.switch_off is not None:
            problems += _values((*place, "switch_off"), machine.switch_off)
        yield from problems
        for rank, license in enumerate(() if problems else machine.licenses):
            if license not in declared:
                what = f"a license from {dotted((*path, 'licenses'))}"
                expected = expected_name(license, declared, what)
                yield (*place, "licenses", rank), repr(license), expected


def made_problems(cluster: Cluster) -> Iterator[Problem]:
    """What is wrong with a cluster whose machines a generator made."""
    yield from [*_values((), cluster)] or _machine_values((), cluster)


def _sizes(vos: Sequence[VirtualOrganization]) -> Iterator[Problem]:
    machines = sum(len(cluster.machines) for vo in vos for cluster in vo.clusters)
    cpus = sum(cluster.processors for vo in vos for cluster in vo.clusters)
    yield from too_large(len(vos), machines, cpus)


def too_large(vos: int, machines: int, cpus: int) -> Iterator[Problem]:
    """What a grid has too many of."""
    totals = [(vos, MAX_VOS, "VOs"), (machines, MAX_MACHINES, "machines"), (cpus, MAX_CPUS, "CPUs")]
    for total, limit, what in totals:
        if total > limit:
            yield ("vos",), f"{total} {what} in all", f"at most {limit}"


def link_problems(links: Sequence[Link], vos: Sequence[str]) -> Iterator[Problem]:
    """Links to VOs that are not there, to themselves, or given twice."""
    known = dict.fromkeys(vos)
    pairs: dict[tuple[str, ...], int] = {}
    for position, link in enumerate(links):
        path: Path = ("network", "links", position, "between")
        if len(link.between) != 2:
            yield path, f"{len(link.between)} names", "two VOs"
            continue
        for end, vo in enumerate(link.between):
            if vo not in known:
                yield (*path, end), repr(vo), expected_name(vo, known, "the name of a VO")
        if link.between[0] == link.between[1]:
            yield path, f"{link.between[0]!r} twice", "two VOs"
        elif pairs.setdefault(tuple(sorted(link.between)), position) != position:
            yield path, "these two VOs again", "one link between two VOs"


def _plugged(
    protocol: ProtocolRules, vos: Sequence[VirtualOrganization], parts: Parts
) -> Iterator[Problem]:
    """Policies and other parts that cannot be made; each kind is tried once."""
    tried: dict[str, WrongPart | None] = {}

    def problems(path: Path, kind: Kind, name: str, settings: Any) -> Iterator[Problem]:
        key = f"{kind.name} {name} {settings!r}"
        if key not in tried:
            tried[key] = _reason(kind, name, settings, parts)
        error = tried[key]
        if error is not None:
            setting = (*path[:-1], f"{path[-1]}_settings", *error.path)
            yield setting if error.path else path, error.found, error.expected

    known = dict.fromkeys(vo.name for vo in vos)
    rule = (protocol.when_busy, protocol.when_busy_settings)
    yield from problems(("protocol", "when_busy"), FORWARDING, *rule)
    overlay = (protocol.information, protocol.information_settings)
    found = list(problems(("protocol", "information"), INFORMATION, *overlay))
    yield from found
    if not found:
        yield from edge_problems(("protocol", "information_settings"), *overlay, len(vos))
    discount = (protocol.discount, protocol.discount_settings)
    yield from problems(("protocol", "discount"), DISCOUNTS, *discount)
    for v, vo in enumerate(vos):
        own = ("vos", v)
        yield from problems((*own, "selection"), SELECTIONS, vo.selection, vo.selection_settings)
        choice = (vo.cluster_choice, vo.cluster_choice_settings)
        yield from problems((*own, "cluster_choice"), CLUSTER_CHOICES, *choice)
        if vo.when_busy is not None:
            rule = (vo.when_busy, vo.when_busy_settings)
            yield from problems((*own, "when_busy"), FORWARDING, *rule)
        yield from problems((*own, "admission"), ADMISSION, vo.admission, vo.admission_settings)
        yield from _unknown_vos(own, vo, known)
        for c, cluster in enumerate(vo.clusters):
            path = (*own, "clusters", c, "policy")
            yield from problems(path, POLICIES, cluster.policy, cluster.policy_settings)
            if cluster.processor_choice is not None:
                path = (*own, "clusters", c, "processor_choice")
                choice = (cluster.processor_choice, cluster.processor_choice_settings)
                yield from problems(path, PROCESSOR_CHOICES, *choice)


def edge_problems(
    path: Path, name: str, settings: Iterable[tuple[str, Any]], vos: int
) -> Iterator[Problem]:
    """Edges of the overlay `edges` to VOs that are not there."""
    for place, vo in edges_beyond(name, settings, vos):
        yield (*path, "edges", place), f"VO {vo}", f"at most {vos - 1}: the grid has {vos} VOs"


def _unknown_vos(
    path: Path, vo: VirtualOrganization, known: Mapping[str, Any]
) -> Iterator[Problem]:
    """VOs that our rule of admission names and that are not there."""
    for setting, name in unknown_vos(vo.admission, vo.admission_settings, known):
        expected = expected_name(name, known, "the name of a VO")
        yield (*path, "admission_settings", setting), repr(name), expected


def _reason(kind: Kind, name: str, settings: Any, parts: Parts) -> WrongPart | None:
    """Why there is no such part with these settings."""
    try:
        parts.make(kind, name, dict(settings))
    except WrongPart as error:
        return error
    except (TypeError, ValueError) as error:
        return WrongPart(shorten(settings), f"pairs of names and values ({error})")
    return None


def refused(
    vos: Sequence[VirtualOrganization], faults: GridFaults | None, memory: bool, parts: Parts
) -> Iterator[Problem]:
    """What clusters whose policies are right would take no account of.

    `memory`: whether any job asks for some.
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
                except WrongPart as error:  # settings that do not go together
                    settings = ("vos", v, "clusters", c, "policy", "settings")
                    yield (*settings, *error.path), error.found, error.expected
                    continue
            fails = faults is not None and faults.break_machines_of(vo.name, cluster.name)
            wanted = Wanted(cluster, fails, memory)
            for field, found, expected in refusals(wanted, policies[kind]):
                yield ("vos", v, "clusters", c, field), found, expected
