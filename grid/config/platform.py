"""The virtual organizations of a run: multiplied, with generated machines, or from a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from grid.config.checks import license_problems, with_gangs
from grid.config.schema import Scenario, VosFromTraceSection
from grid.kernel.entity import random_stream
from grid.model.arrays import Floats, Ints
from grid.model.errors import dotted
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, MachineGenerator, VirtualOrganization
from grid.model.plugins.registry import Plugins


def vos_of(scenario: Scenario) -> tuple[VirtualOrganization, ...]:
    """The VOs that the scenario lists under `vos`."""
    return tuple(
        replace(
            section,
            name=name,
            count=None,
            workload=None,
            clusters=tuple(cluster_of(one, name, scenario) for one in section.clusters),
        )
        for section in scenario.vos or ()
        for name in section.names
    )


def cluster_of(cluster: Cluster, vo: str, scenario: Scenario) -> Cluster:
    """A cluster of the scenario with the machines of a run, in the VO of that name."""
    if isinstance(cluster.machines, MachineGenerator):
        cluster = _with_generated(cluster, f"{vo}/{cluster.name}", scenario)
    return with_gangs(cluster, scenario.plugins)


def _with_generated(cluster: Cluster, where: str, scenario: Scenario) -> Cluster:
    """The cluster with machines, and licenses, of its generator.

    Raises PluginFailed if a third-party generator makes licenses that do not fit.
    """
    from grid.workload.generators import MACHINE_GENERATORS, generate_machines

    section, plugins = cluster.machines, scenario.plugins
    assert isinstance(section, MachineGenerator)
    seed = scenario.seed if section.seed is None else section.seed
    stream = random_stream(seed, f"machines of {where}")
    made, licenses = generate_machines(
        section.generator, section.count, section.settings, stream, plugins
    )
    power = {key: getattr(section, key) for key in ("watts_idle", "watts_busy", "switch_off")}
    machines = tuple(replace(one, **power) for one in made)
    cluster = replace(cluster, machines=machines, licenses=cluster.licenses or licenses)
    for path, found, expected in license_problems(cluster, ()):
        origin = plugins.find(MACHINE_GENERATORS, section.generator).origin
        raise origin.failed(f"returned {dotted(path)}: found {found}, expected {expected}")
    return cluster


# VOs from a trace


def vos_from_sites(
    section: VosFromTraceSection, sites: Mapping[str, JobTable], plugins: Plugins
) -> tuple[VirtualOrganization, ...]:
    """A VO of one pool for each site of a trace.

    CPUs are shared out in proportion to a weight of each site (`sizing`), but a site is never
    smaller than its widest job. Raises ValueError if there are too few for that.
    """
    weights = np.array([_weight(section.sizing, table) for table in sites.values()])
    widest = np.array([int(table.processors.max(initial=1)) for table in sites.values()])
    if section.total_cpus < widest.sum():
        raise ValueError(f"at least {widest.sum()}, for the widest job of each site")
    sizes = share_out(section.total_cpus, weights, widest)
    return tuple(
        VirtualOrganization(
            name,
            (with_gangs(section.pool(int(size)), plugins),),
            selection=section.selection,
            admission=section.admission,
            priority=section.priority,
        )
        for name, size in zip(sites, sizes, strict=True)
    )


def share_out(total: int, weights: Floats, least: Ints) -> Ints:
    """`total` in whole parts in proportion to `weights`, none below what is its `least`.

    Parts that would be too small get their least, and the other VOs share the remaining CPUs.
    `total` is no less than all of `least`, each of which is at least one.
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
