"""A grid as data, and its entities and network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from grid.cluster import ClusterState, make_cluster
from grid.cluster.gang.processor_choices import PROCESSOR_CHOICES
from grid.cluster.state import disjoint_outages
from grid.config.checks import (
    fault_problems,
    job_problems,
    machines_of,
    refuse,
    size_problems,
    unsupported,
    vo_problems,
    with_gangs,
)
from grid.config.dependencies import Dependencies, dependencies_of
from grid.config.faults import machine_outages, message_faults
from grid.config.information import GridInformation
from grid.config.plugins import plugin_problems, plugin_uses
from grid.config.schema import GridSettings
from grid.kernel.entity import Entity
from grid.kernel.event import Rows
from grid.kernel.network import Network
from grid.model.fields import PluginRef
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Distances, GangLimits, MachineOutage, VirtualOrganization
from grid.model.plugins.registry import Kind, Plugins
from grid.model.resources import NOT_INCLUDED, clusters_of, resources_of, status_rows, summary_of
from grid.model.time import NEVER, Time, from_seconds
from grid.policies.features import JobFeatures
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Policy
from grid.policies.registry import make_policy
from grid.protocol import names
from grid.protocol.grid_dispatcher import GridDispatcher
from grid.protocol.local_dispatcher import LocalDispatcher
from grid.protocol.local_scheduler import LocalScheduler, SchedulerSettings
from grid.protocol.recovery import RecoverySettings
from grid.protocol.registry import ADMISSION, CLUSTER_CHOICES, DISCOUNTS, FORWARDING, SELECTIONS
from grid.protocol.resource_manager import AdmissionSettings, ResourceManager
from grid.protocol.selection import Selection
from grid.protocol.workload_source import WorkloadSource
from grid.results.machines import ClusterEntry, Directory
from grid.results.workflows import Workflows

if TYPE_CHECKING:
    from grid.protocol.migration import Migration


class RuntimeHooks(NamedTuple):
    """What a runtime provides to entities.

    `clock` gives seconds, to time plans. `connect` connects the policy of a cluster, named
    `VO/cluster`, to an external process. With `may_break`, machines can be taken down at any time
    of the run. In a `live` run, clusters are simulated up to the present.
    """

    clock: Callable[[], float] | None = None
    connect: Callable[[str, Policy | GangPolicy], None] | None = None
    may_break: bool = False
    live: bool = False


NO_HOOKS = RuntimeHooks()


@dataclass(frozen=True, eq=False)
class Grid:
    """A whole grid, ready to run: its settings, VOs and jobs. Raises InputError for invalid ones.

    `submitted` are the jobs that enter at each VO's Local Scheduler, `direct` those that enter at
    the VO's only cluster, both by position of the VO and in order of submission. With `is_drawn`
    (jobs or machines are drawn at random) a job that no machine has CPUs for is rejected at its
    submission; otherwise it is an error. `plugins` has the plugins that settings and VOs name.
    """

    settings: GridSettings
    vos: tuple[VirtualOrganization, ...]
    submitted: tuple[JobTable | None, ...]
    direct: tuple[JobTable | None, ...]
    is_drawn: bool = False
    plugins: Plugins = field(default_factory=Plugins)

    def __post_init__(self) -> None:
        refuse(size_problems(self.vos))
        refuse(vo_problems(self.settings, self.vos))
        if not self.is_drawn:
            uses = (use for v, vo in enumerate(self.vos) for use in plugin_uses(vo, ("vos", v)))
            refuse(plugin_problems(uses, self.plugins))
            vos = []
            for vo in self.vos:
                clusters = tuple(with_gangs(one, self.plugins) for one in vo.clusters)
                vos.append(replace(vo, clusters=clusters))
            object.__setattr__(self, "vos", tuple(vos))
        tables = self.submitted, self.direct
        refuse(job_problems(self.vos, *tables, is_drawn=self.is_drawn))
        refuse(self._dependencies.problems)
        refuse(unsupported(self.vos, self.settings.faults, self.job_features, self.plugins))
        if self.settings.faults is not None:
            refuse(fault_problems(self.settings.faults, self.names, machines_of(self.vos)))

    @property
    def may_pass_the_end(self) -> bool:
        """Whether virtual time may end before all jobs do, one at a time on the slowest CPU."""
        jobs = [table for table in (*self.submitted, *self.direct) if table is not None]
        slowest = min(m.mips for vo in self.vos for c in vo.clusters for m in c.machines)
        run_us = sum(float((table.run_us * table.reference_mips).sum()) for table in jobs)
        last_us = max((int(table.submit_us.max(initial=0)) for table in jobs), default=0)
        return last_us + run_us / slowest >= NEVER

    @property
    def workflows(self) -> Workflows | None:
        """The workflows of the jobs; None if no job depends on another."""
        return self._dependencies.workflows

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def seed(self) -> int:
        return self.settings.seed

    @cached_property
    def vo_of(self) -> dict[str, int]:
        """The VO of each entity, in order of the entities' names."""
        entities: list[tuple[str, int]] = []
        for position, vo in enumerate(self.vos):
            clusters = [cluster.name for cluster in vo.clusters]
            has_source = self.submitted[position] is not None
            is_member = has_source or self.direct[position] is None
            mine = names.entities_of_vo(vo.name, clusters, is_member, has_source)
            entities += [(name, position) for name in mine]
        return dict(sorted(entities))

    @property
    def names(self) -> tuple[str, ...]:
        """All entities, sorted."""
        return tuple(self.vo_of)

    @property
    def sites(self) -> tuple[int, ...]:
        """The VO of each entity."""
        return tuple(self.vo_of.values())

    @cached_property
    def network(self) -> Network:
        settings, faults = self.settings.network, self.settings.faults
        position = {vo.name: index for index, vo in enumerate(self.vos)}
        return Network(
            self.names,
            self.sites,
            settings.latency_us,
            settings.local_latency_us,
            {
                (position[one], position[other]): latency_us
                for _, (one, other), latency_us in settings.pairs()
            },
            settings.bandwidth_mbps,
            None if faults is None else message_faults(faults, self.seed, position),
        )

    @cached_property
    def directory(self) -> Directory:
        return Directory(
            tuple(vo.name for vo in self.vos),
            tuple(
                ClusterEntry(
                    position,
                    cluster.name,
                    # A job of a gang cluster may use several machines.
                    (cluster.processors,)
                    if cluster.gangs
                    else tuple(machine.cpus for machine in cluster.machines),
                    cluster.gangs,
                    cluster.machines,
                    self.outages_of(vo, cluster),
                    external_scheduler=cluster.is_real or cluster.policy.name == "batsim",
                )
                for position, vo in enumerate(self.vos)
                for cluster in vo.clusters
            ),
        )

    @cached_property
    def job_features(self) -> JobFeatures:
        """The features that clusters must support for the jobs."""
        features = JobFeatures.of((*self.submitted, *self.direct))
        if self.settings.protocol.recovers:
            features = features._replace(cancellations=True)
        return features

    @cached_property
    def _first_cluster(self) -> tuple[int, ...]:
        counts = [len(vo.clusters) for vo in self.vos]
        return tuple(int(first) for first in np.cumsum([0, *counts[:-1]]))

    def jobs_by_vo(self) -> list[int]:
        """How many jobs the users of each VO submit."""
        return [
            sum(len(table) for table in tables if table is not None)
            for tables in zip(self.submitted, self.direct, strict=True)
        ]

    def first_rows(self) -> dict[str, Rows]:
        """The rows of each Resource Manager before its first snapshot: nothing assigned."""
        return {
            names.resource_manager(vo.name): self._first_rows(position)
            for position, vo in self._members.items()
        }

    def bare_entities(
        self, members: Collection[str], hooks: RuntimeHooks = NO_HOOKS
    ) -> dict[str, Entity]:
        """The entities of those names, for runs without faults; see `grid.config.wrapped`."""
        wanted = frozenset(members)
        return {
            name: entity
            for position in sorted({self.vo_of[name] for name in wanted})
            for name, entity in self._entities_of(position, self.vos[position], wanted, hooks)
        }

    @cached_property
    def _members(self) -> dict[int, VirtualOrganization]:
        """The VOs that take part in the protocol, by their positions."""
        return {
            position: vo
            for position, vo in enumerate(self.vos)
            if names.resource_manager(vo.name) in self.vo_of
        }

    def _first_rows(self, position: int) -> Rows:
        resources = resources_of(self.vos[position], position)
        nothing = np.zeros((1 + len(self._information.requested), len(resources)))
        backlog_s = nothing[0] if self._information.include_backlog else NOT_INCLUDED
        rows = status_rows(resources, nothing, backlog_s, 0)
        is_summary = self.settings.protocol.snapshot_detail == "summary"
        return summary_of(rows, resources) if is_summary else rows

    @cached_property
    def _board_vos(self) -> list[tuple[int, int]]:
        return [(position, len(self._first_rows(position))) for position in self._members]

    def _entities_of(
        self, position: int, vo: VirtualOrganization, wanted: frozenset[str], hooks: RuntimeHooks
    ) -> Iterable[tuple[str, Entity]]:
        dispatchers = tuple(names.local_dispatcher(vo.name, c.name) for c in vo.clusters)
        manager = names.resource_manager(vo.name)
        for index, (name, cluster) in enumerate(zip(dispatchers, vo.clusters, strict=True)):
            if name in wanted:
                state = self.cluster_of(vo, cluster, hooks)
                yield (
                    name,
                    LocalDispatcher(
                        state,
                        vo=position,
                        number=index,
                        position=self._first_cluster[position] + index,
                        limits=cluster.job_limits(),
                        policy=self.plugins.shown(cluster.policy.name),
                        resource_manager=manager,
                        direct=self.direct[position],
                        lazy=not hooks.live,
                        migration=migration_of(self, vo, index, state) if cluster.gangs else None,
                    ),
                )
        if (name := names.grid_dispatcher(vo.name)) in wanted:
            choice: Any = self.made(CLUSTER_CHOICES, vo.cluster_choice)
            clusters = clusters_of(resources_of(vo, position))
            yield name, GridDispatcher(manager, dispatchers, clusters, choice)
        if (name := names.scheduler(vo.name)) in wanted:
            yield name, self._scheduler(position, vo)
        if manager in wanted:
            yield manager, self._resource_manager(position, vo, dispatchers)
        if (name := names.information_service(vo.name)) in wanted:
            distances = self._distances(position)
            yield name, self._information.service(position, self._board_vos, distances)
        jobs = self.submitted[position]
        if jobs is not None and (name := names.workload_source(vo.name)) in wanted:
            successors = self._dependencies.successors[position]
            yield name, WorkloadSource(vo.name, names.scheduler(vo.name), jobs, successors)

    def cluster_of(
        self, vo: VirtualOrganization, cluster: Cluster, hooks: RuntimeHooks = NO_HOOKS
    ) -> ClusterState:
        policy = self.policy_of(cluster)
        if hooks.connect is not None:
            hooks.connect(f"{vo.name}/{cluster.name}", policy)
        return make_cluster(
            cluster,
            policy,
            hooks.clock,
            self.outages_of(vo, cluster),
            choice=self.made(PROCESSOR_CHOICES, cluster.processor_choice or PluginRef("ld")),
            jobs=self.job_features,
            vo=vo.name,
            may_break=hooks.may_break,
        )

    def policy_of(self, cluster: Cluster) -> Policy | GangPolicy:
        return make_policy(cluster.policy.name, cluster.policy.settings, self.plugins)

    def made(self, kind: Kind, plugin: PluginRef) -> Any:
        return self.plugins.make(kind, plugin.name, plugin.settings)

    def selection_of(self, vo: VirtualOrganization) -> Selection:
        made: Selection = self.made(SELECTIONS, vo.selection)
        return made

    def outages_of(self, vo: VirtualOrganization, cluster: Cluster) -> tuple[MachineOutage, ...]:
        """The outages of its machines, reservations for maintenance included."""
        faults, outages = self.settings.faults, cluster.maintenance()
        if faults is not None:
            count = len(cluster.machines)
            outages += machine_outages(faults, self.seed, vo.name, cluster.name, count)
        return disjoint_outages(outages)

    def _scheduler(self, position: int, vo: VirtualOrganization) -> LocalScheduler:
        protocol = self.settings.protocol
        after_us = [
            None if after_s is None else from_seconds(after_s)
            for after_s in (protocol.lost_after_s, protocol.recall_after_s)
        ]
        discount = self.plugins.find(DISCOUNTS, protocol.discount.name).target
        peers = names.Peers(
            names.resource_manager(vo.name),
            names.information_service(vo.name),
            self._schedulers,
            self._distances(position),
            self._first_cluster[position],
        )
        settings = SchedulerSettings(
            protocol.ttl,
            self.rule_of(vo),
            protocol.avoid_loops,
            protocol.when_refused,
            RecoverySettings(*after_us) if protocol.recovers else None,
            getattr(discount, "counts_dispatches", False),
            self._dependencies.listeners[position],
        )
        return LocalScheduler(self.selection_of(vo), peers, settings)

    def rule_of(self, vo: VirtualOrganization) -> Any:
        return self.made(FORWARDING, vo.forwarding or self.settings.protocol.forwarding)

    def _distances(self, position: int) -> Distances:
        network = self.settings.network
        links = tuple(
            (vo, latency_us)
            for vo, latency_us in enumerate(self.network.latency_row(position))
            if latency_us != network.latency_us and vo != position
        )
        return Distances(position, network.latency_us, links, network.bandwidth_mbps)

    @cached_property
    def _dependencies(self) -> Dependencies:
        return dependencies_of([vo.name for vo in self.vos], self.submitted, self.direct)

    @cached_property
    def _information(self) -> GridInformation:
        requested = sorted(
            {
                name
                for table in self.submitted
                if table is not None
                for name, held in table.resources.items()
                if held.any()
            }
            & {name for vo in self.vos for one in vo.clusters for name in one.resource_names}
        )
        return GridInformation(
            self.settings, self.vos, self.plugins, self._last_submission_us, tuple(requested)
        )

    @cached_property
    def _last_submission_us(self) -> Time:
        tables = [table for table in self.submitted if table is not None and len(table)]
        return max((int(table.submit_us.max()) for table in tables), default=0)

    @cached_property
    def _schedulers(self) -> tuple[str, ...]:
        return tuple(names.scheduler(vo.name) for vo in self.vos)

    def _resource_manager(
        self, position: int, vo: VirtualOrganization, dispatchers: tuple[str, ...]
    ) -> ResourceManager:
        information, several = self._information, len(vo.clusters) > 1
        notified = [other for other in information.notified_of(position) if other in self._members]
        return ResourceManager(
            position,
            resources_of(vo, position),
            information.snapshot_rules(position),
            AdmissionSettings(self.made(ADMISSION, vo.admission), vo.priority),
            scheduler=names.scheduler(vo.name),
            information=names.information_service(vo.name),
            dispatchers=dispatchers,
            grid_dispatcher=names.grid_dispatcher(vo.name) if several else None,
            membership=vo.membership,
            shared=tuple(frozenset(cluster.resources) for cluster in vo.clusters),
            directory=tuple(information.services[other] for other in notified),
        )


# Migration of gangs between clusters


def migration_of(
    grid: Grid, vo: VirtualOrganization, number: int, cluster: ClusterState
) -> Migration | None:
    """How the VO's cluster `number` exchanges gangs with others, if it does."""
    from grid.cluster.gang.core import GangCluster
    from grid.protocol.migration import Migration, Peer

    moving = {
        index: Peer(names.local_dispatcher(vo.name, one.name), GangLimits.of(one))
        for index, one in enumerate(vo.clusters)
        if one.gangs and getattr(grid.policy_of(one), "external_migration", False)
    }
    if number not in moving or len(moving) == 1:
        return None
    assert isinstance(cluster, GangCluster)
    peers = tuple(peer for index, peer in moving.items() if index != number)
    return Migration(cluster, list(moving).index(number), peers)
