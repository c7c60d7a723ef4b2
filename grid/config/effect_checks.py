"""Checks of settings that would be accepted and have no effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from grid.config.faults import FaultsSection
from grid.config.grid_checks import NO_MEMORY, refused
from grid.config.platform import cluster_of
from grid.config.schema import (
    ClusterSection,
    GeneratedMachinesSection,
    MachineSection,
    Scenario,
    VoSection,
)
from grid.config.sections import PluginSection, Section, name_and_settings
from grid.model.errors import Path, Problem
from grid.model.fields import PluginName
from grid.model.platform import VirtualOrganization
from grid.model.plugins.registry import Kind, Plugins
from grid.model.time import Time, from_seconds, to_seconds
from grid.protocol.registry import FORWARDING, INFORMATION
from grid.workload.generators import MACHINE_GENERATORS

AS_WRITTEN = ""
"""What is found is what stands there."""
NO_MESSAGES = (
    "no such setting, for all jobs enter their clusters directly, and no entity sends a message"
)
PAST_SCHEDULER = (
    "no such setting, for the VO's jobs enter its cluster directly, past its Local Scheduler"
)
ANY_MACHINE = "cluster, for the VO's jobs enter it directly, and no selection binds them"
NONE_TO_CUT_OFF = "a VO that sends messages, for this one's jobs enter its cluster directly"
OF_THE_SCHEDULER = (
    "selection", "cluster_choice", "forwarding", "admission", "priority", "joins_s", "leaves_s",
)  # fmt: skip
"""Keys of a VO that say what becomes of jobs that come by Local Schedulers."""


def direct_problems(scenario: Scenario) -> Iterator[Problem]:
    """Settings for routed jobs and for messages, where there are none.

    What is at its default passes, for a run writes all defaults into its scenario.yaml. Crashes and
    outages of entities pass, too: a live run hears later of the jobs that have ended meanwhile.
    """
    if scenario.workload is not None or scenario.vos is None:
        return
    direct = [(v, vo) for v, vo in enumerate(scenario.vos) if _is_direct(vo)]
    for v, vo in direct:
        yield from _of_vo(vo, ("vos", v))
    faults = scenario.faults
    if faults is not None:
        yield from _partitions(faults, {name for _, vo in direct for name in vo.names})
    if len(direct) < len(scenario.vos):
        return
    for key in ("network", "protocol"):
        yield from _given(getattr(scenario, key), (key,), NO_MESSAGES)
    if faults is not None:
        for key in ("between_vos", "within_vos"):
            yield from _given(getattr(faults, key), ("faults", key), NO_MESSAGES)


def _is_direct(vo: VoSection) -> bool:
    return vo.workload is not None and vo.workload.entry_point == "cluster"


def _of_vo(vo: VoSection, path: Path) -> Iterator[Problem]:
    yield from _given(vo, path, PAST_SCHEDULER, OF_THE_SCHEDULER)
    for c, cluster in enumerate(vo.clusters):
        if cluster.resource == "machine":
            yield (*path, "clusters", c, "resource"), AS_WRITTEN, ANY_MACHINE
    workload, wanted = vo.workload, ("requirements",)
    if workload is None:
        return
    for j, job in enumerate(workload.jobs or ()):
        yield from _given(job, (*path, "workload", "jobs", j), PAST_SCHEDULER, wanted)
    if workload.attributes is not None:
        attributes = (*path, "workload", "attributes")
        yield from _given(workload.attributes, attributes, PAST_SCHEDULER, wanted)


def _partitions(faults: FaultsSection, direct: set[str]) -> Iterator[Problem]:
    """Those that keep no message from anybody: one of the sides sends and hears none."""
    for number, cut in enumerate(faults.partitions):
        sides = (("one", cut.one), ("other", cut.other))
        silent = next((side for side, names in sides if direct.issuperset(names)), None)
        if silent is not None:
            yield ("faults", "partitions", number, silent, 0), AS_WRITTEN, NONE_TO_CUT_OFF


def _given(
    section: Section, path: Path, expected: str, keys: Iterable[str] | None = None
) -> Iterator[Problem]:
    """Which of the keys, or of all that the section has, are not at their defaults."""
    fields = type(section).model_fields
    for key in fields if keys is None else keys:
        if getattr(section, key) != fields[key].get_default():
            yield (*path, key), AS_WRITTEN, expected


SAMPLE = 100
"""So many machines of a generator tell what the others may have."""


NEVER_ASKED = (
    "no choice of clusters, for there is never one: it takes several clusters whose jobs the "
    "selection does not bind to a machine (`resource: cluster`, gangs)"
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
    yield from refused(vos, scenario.faults, bool(asking), scenario.plugins)
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
        cpus=1,
        policy=section.policy,
        overrun=section.overrun,
        estimates=section.estimates,
        estimate_factor=section.estimate_factor,
    )
    cluster = cluster_of(pool, "", scenario)
    # Faults name no VO that comes from a trace: those that concern any concern all.
    vo = VirtualOrganization("", (cluster,))
    for path, found, expected in refused([vo], faults, False, scenario.plugins):
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


LEASE_MESSAGES = 5
"""From a held place to the job in it: to the Local Scheduler and, as a bid, to the one that called;
a look at the Information Service and back; then the job comes."""
LOCAL_MESSAGES_OF_A_BID = 2
"""Who is called asks its Information Service, and has its Resource Manager hold the place. These
are four. But who called asks its own Information Service when its wait is over, and a bid that
comes before the answer still counts: that makes up for two."""

Given = PluginSection | PluginName


class _Wait(NamedTuple):
    """A setting of our own parts of a kind: how long they wait for answers."""

    kind: Kind
    setting: str
    least_us: Time
    """With less no answer can come in time, as if nobody was asked."""
    expected: str


def message_time_problems(scenario: Scenario) -> Iterator[Problem]:
    rules: list[tuple[Path, Given]] = [(("protocol", "forwarding"), scenario.protocol.forwarding)]
    for v, vo in enumerate(scenario.vos or ()):
        if vo.forwarding is not None:
            rules.append((("vos", v, "forwarding"), vo.forwarding))
    local_us = from_seconds(scenario.network.local_latency_s)
    for path, rule in rules:
        yield from _lease(path, rule, to_seconds(local_us))
    if scenario.vos is not None and sum(len(vo.names) for vo in scenario.vos) == 1:
        # There is nobody to wait for.
        return
    there_and_back_us = 2 * _shortest_way_us(scenario)
    in_vain_us = there_and_back_us + LOCAL_MESSAGES_OF_A_BID * local_us
    so_long = "take so long even between the nearest VOs"
    expected = f"more than {to_seconds(in_vain_us):g} s: a call and the bid {so_long}"
    for_bids = _Wait(FORWARDING, "wait_s", in_vain_us + 1, expected)
    for path, rule in rules:
        yield from _too_short(for_bids, path, rule, scenario.plugins)
    expected = f"at least {to_seconds(there_and_back_us):g} s: a probe and its answer {so_long}"
    for_probes = _Wait(INFORMATION, "timeout_s", there_and_back_us, expected)
    path = ("protocol", "information")
    yield from _too_short(for_probes, path, scenario.protocol.information, scenario.plugins)


def _lease(path: Path, rule: Given, local_s: float) -> Iterator[Problem]:
    """A lease that is over before a job of the VO itself can come to the place that is held.

    The place would fall to the next in line, whose job comes too late as well, and so for ever.
    """
    lease_s = dict(name_and_settings(rule)[1]).get("lease_s")
    if isinstance(lease_s, int | float) and 0 < lease_s <= LEASE_MESSAGES * local_s:
        expected = f"more than {LEASE_MESSAGES * local_s:g} s: an offer, the answer to it and the "
        expected += f"job take {LEASE_MESSAGES} messages within the VO"
        yield (*path, "settings", "lease_s"), f"{lease_s:g}", expected


def _too_short(wait: _Wait, path: Path, given: Given, parts: Plugins) -> Iterator[Problem]:
    name, settings = name_and_settings(given)
    part, is_set = parts.find(wait.kind, name), wait.setting in dict(settings)
    declared = part.declared.model.model_fields.get(wait.setting)
    # Parts of others may mean something else by a setting of that name.
    if not part.is_own or declared is None:
        return
    wait_s = dict(settings)[wait.setting] if is_set else declared.default
    if from_seconds(wait_s) < wait.least_us:
        found = f"{wait_s:g}" if is_set else f"{wait_s:g}, the default"
        yield (*path, "settings", wait.setting), found, wait.expected


def _shortest_way_us(scenario: Scenario) -> Time:
    """The least latency between two VOs."""
    network = scenario.network
    vos = sum(len(vo.names) for vo in scenario.vos or ())
    ways_us = {frozenset(link.between): from_seconds(link.latency_s) for link in network.links}
    if scenario.vos is None or len(ways_us) < vos * (vos - 1) // 2:
        ways_us[frozenset()] = from_seconds(network.latency_s)
    return min(ways_us.values())
