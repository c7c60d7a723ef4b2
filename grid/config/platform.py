"""The virtual organizations of a scenario: written out, multiplied, generated, or from a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grid.config.checks import generated_problems
from grid.config.schema import (
    ClusterSection,
    GeneratedMachinesSection,
    Scenario,
    SwitchOffSection,
    VoSection,
    VosFromTraceSection,
)
from grid.config.sections import name_and_settings
from grid.kernel.entity import random_stream
from grid.model.arrays import Floats, Ints
from grid.model.errors import dotted
from grid.model.job_table import JobTable
from grid.model.platform import (
    Cluster,
    License,
    Machine,
    Membership,
    PreemptionOverheads,
    SwitchOff,
    VirtualOrganization,
)
from grid.model.plugins.registry import Plugins
from grid.model.time import NEVER, from_seconds
from grid.policies.registry import POLICIES, is_gang_policy


def written_vos(scenario: Scenario) -> tuple[VirtualOrganization, ...]:
    """The VOs that the scenario lists under `vos`."""
    return tuple(
        VirtualOrganization(
            name,
            tuple(cluster_of(cluster, name, scenario) for cluster in section.clusters),
            *name_and_settings(section.selection),
            *name_and_settings(section.cluster_choice),
            *_own_rule(section),
            *name_and_settings(section.admission),
            section.priority,
            _membership(section),
        )
        for section in scenario.vos or ()
        for name in section.names
    )


def _membership(section: VoSection) -> Membership:
    leaves_s = section.leaves_s
    leaves_us = NEVER if leaves_s is None else from_seconds(leaves_s)
    return Membership(from_seconds(section.joins_s), leaves_us)


def _own_rule(section: VoSection) -> tuple[str | None, tuple[tuple[str, Any], ...]]:
    return (None, ()) if section.forwarding is None else name_and_settings(section.forwarding)


def vos_from_sites(
    section: VosFromTraceSection, sites: Sequence[tuple[str, JobTable]], parts: Plugins
) -> tuple[VirtualOrganization, ...]:
    """A VO of one pool for each site of a trace.

    The processors are shared out in proportion to a weight of each site (`sizing`), but a site is
    never smaller than its widest job. Raises ValueError if there are too few for that.
    """
    weights = np.array([_weight(section.sizing, table) for _, table in sites])
    widest = np.array([int(table.processors.max(initial=1)) for _, table in sites])
    if section.total_cpus < widest.sum():
        raise ValueError(f"at least {widest.sum()}, for the widest job of each site")
    sizes = share_out(section.total_cpus, weights, widest)
    policy, settings = name_and_settings(section.policy)
    gangs = _is_for_gangs(policy, settings, parts)
    admission, admission_settings = name_and_settings(section.admission)
    return tuple(
        VirtualOrganization(
            name,
            (
                Cluster(
                    "pool",
                    (Machine("pool", int(size)),),
                    policy,
                    settings,
                    by_machine=not gangs,
                    overrun=section.overrun,
                    estimates=section.estimates,
                    estimate_factor=section.estimate_factor,
                    gang_policy=gangs,
                ),
            ),
            *name_and_settings(section.selection),
            admission=admission,
            admission_settings=admission_settings,
            priority=section.priority,
        )
        for (name, _), size in zip(sites, sizes, strict=True)
    )


def share_out(total: int, weights: Floats, least: Ints) -> Ints:
    """`total` in whole parts in proportion to `weights`, none below what is its `least`.

    Parts that would be too small get their least, and the others share the rest. `total` is no less
    than all of `least`, each of which is at least one.
    """
    sizes = least.copy()
    shares_rest = np.ones(len(weights), np.bool_)
    while True:
        rest = total - int(least[~shares_rest].sum())
        sizes[shares_rest] = _by_largest_remainder(rest, weights[shares_rest])
        too_small = sizes < least
        if not too_small.any():
            return sizes
        sizes[too_small] = least[too_small]
        shares_rest &= ~too_small


def _by_largest_remainder(total: int, weights: Floats) -> Ints:
    """`total` in whole parts, one at least each, the rest in proportion, by largest remainder."""
    rest = total - len(weights)
    shares = rest * weights / weights.sum() if weights.sum() > 0 else weights * 0.0
    parts = np.floor(shares).astype(np.int64)
    left = rest - int(parts.sum())
    largest_first = np.lexsort((np.arange(len(weights)), parts - shares))
    parts[largest_first[:left]] += 1
    return parts + 1


def _weight(sizing: str, jobs: JobTable) -> float:
    if sizing == "equal":
        return 1.0
    if sizing == "work":
        return float((jobs.run_us.astype(np.float64) * jobs.processors).sum())
    times = np.concatenate((jobs.submit_us, jobs.submit_us + jobs.run_us))
    changes = np.concatenate((jobs.processors, -jobs.processors))
    # At the same instant an end comes before a start.
    order = np.lexsort((changes, times))
    return float(np.cumsum(changes[order]).max(initial=0))


def cluster_of(section: ClusterSection, vo: str, scenario: Scenario) -> Cluster:
    """The cluster that a section of the VO called `vo` describes."""
    policy, settings = name_and_settings(section.policy)
    gangs = _is_for_gangs(policy, settings, scenario.plugins)
    machines, generated = _machines(section, f"{vo}/{section.name}", scenario)
    written = tuple(License(license.name, license.copies) for license in section.licenses)
    costs = section.preemption
    choice = section.processor_choice
    chosen_by, its_settings = (None, ()) if choice is None else name_and_settings(choice)
    cluster = Cluster(
        section.name,
        machines,
        policy,
        settings,
        by_machine=(section.resource or ("cluster" if gangs else "machine")) == "machine",
        licenses=written or generated,
        overrun=section.overrun,
        estimates=section.estimates,
        estimate_factor=section.estimate_factor,
        one_job_a_machine=section.one_job_a_machine,
        overheads=PreemptionOverheads(
            *map(from_seconds, (costs.suspend_s, costs.resume_s, costs.move_s))
        ),
        processor_choice=chosen_by,
        processor_choice_settings=its_settings,
        gang_policy=gangs,
    )
    if isinstance(section.machines, GeneratedMachinesSection):
        _refuse_wrong(cluster, section.machines.generator, scenario.plugins)
    return cluster


def _refuse_wrong(cluster: Cluster, generator: str, parts: Plugins) -> None:
    """Raises PluginFailed where a generator of another made machines or licenses that cannot be.

    The scenario has no lines for these: what is wrong is the part.
    """
    from grid.workload.generators import MACHINE_GENERATORS

    if generator in MACHINE_GENERATORS.own:
        return
    for path, found, expected in generated_problems(cluster):
        origin = parts.find(MACHINE_GENERATORS, generator).origin
        what = f"{dotted(path)}: found {found}, expected {expected}"
        raise origin.failed(f"generating gave {what}")


def _is_for_gangs(name: str, settings: tuple[tuple[str, Any], ...], parts: Plugins) -> bool:
    return is_gang_policy(parts.find(POLICIES, name), dict(settings), parts)


def _machines(
    section: ClusterSection, where: str, scenario: Scenario
) -> tuple[tuple[Machine, ...], tuple[License, ...]]:
    """The machines, and the licenses that a generator made with them."""
    if section.cpus is not None:
        pool = Machine("pool", section.cpus, section.mips)
        return _with_power((pool,), section), ()
    if isinstance(section.machines, GeneratedMachinesSection):
        from grid.workload.generators import generate_machines

        generated = section.machines
        own = scenario.seed if generated.seed is None else generated.seed
        stream = random_stream(own, f"machines of {where}")
        made, licenses = generate_machines(
            generated.generator, generated.count, generated.settings, stream, scenario.plugins
        )
        return _with_power(made, generated), licenses
    machines: list[Machine] = []
    for kind in section.machines or ():
        described = kind.model_dump(exclude={"count", "switch_off"})
        described["switch_off"] = _switch_off(kind.switch_off)
        machines += [
            Machine(f"m{len(machines) + number}", **described) for number in range(kind.count)
        ]
    return tuple(machines), ()


def _with_power(
    machines: Sequence[Machine], section: ClusterSection | GeneratedMachinesSection
) -> tuple[Machine, ...]:
    """The machines, with what the section says of all of them."""
    idle, busy, off = section.watts_idle, section.watts_busy, _switch_off(section.switch_off)
    return tuple(replace(one, watts_idle=idle, watts_busy=busy, switch_off=off) for one in machines)


def _switch_off(section: SwitchOffSection | None) -> SwitchOff | None:
    if section is None:
        return None
    times = from_seconds(section.after_s), from_seconds(section.boot_s)
    return SwitchOff(*times, section.watts_off, section.watts_boot)
