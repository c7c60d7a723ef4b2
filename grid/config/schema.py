"""The schema of a scenario, as pydantic models: every key, its type, its limits, its default.

The JSON Schema for editors and the reference of the documentation derive from it, so every key has
a description. Durations are in seconds, and their names end in `_s`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from grid.config.faults import FaultsSection
from grid.config.yaml_tree import Node, located
from grid.model.errors import ErrorLine, Path
from grid.model.fields import (
    Count,
    Cpus,
    EstimateFactor,
    Estimates,
    Microseconds,
    Name,
    Overrun,
    PluginOf,
    PluginRef,
    PositiveSeconds,
    Seconds,
    Section,
    Seed,
)
from grid.model.job_results import MeasuredJobs
from grid.model.platform import (
    Cluster,
    LocalPolicy,
    VirtualOrganization,
    VoAdmission,
    VoPriority,
    VoSelection,
)
from grid.model.plugins.registry import Plugins
from grid.model.time import NEVER, Time, from_seconds
from grid.model.workload import WorkloadSection


class VosFromTraceSection(Section):
    """A VO with one pool for each value of the workload's `route` field in its trace."""

    total_cpus: Cpus
    """Total number of CPUs of these VOs. Each VO has enough for its widest job."""
    sizing: Literal["equal", "work", "peak"] = "equal"
    """How the CPUs are distributed: equally, in proportion to the sites' work (run time times
    CPUs), or in proportion to the largest number of CPUs in use if no job waited. Rounding is by
    largest remainder."""
    selection: VoSelection = PluginRef("partial")
    policy: LocalPolicy = PluginRef("fcfs")
    overrun: Overrun = "kill"
    estimates: Estimates = "user"
    estimate_factor: EstimateFactor = 1.0
    admission: VoAdmission = PluginRef("all")
    priority: VoPriority = "none"

    def pool(self, cpus: int) -> Cluster:
        return Cluster(
            "pool",
            policy=self.policy,
            cpus=cpus,
            overrun=self.overrun,
            estimates=self.estimates,
            estimate_factor=self.estimate_factor,
        )


class LinkSection(Section):
    """The latency between two VOs, in both directions, if it is not the default."""

    between: tuple[Name, Name]
    """Names of the two VOs."""
    latency_s: PositiveSeconds
    """Latency of a message between them."""
    latency_us = Microseconds("latency_s")


class NetworkSection(Section):
    """Latencies and bandwidth."""

    latency_s: PositiveSeconds = 0.05
    """Latency of a message between entities of different VOs."""
    local_latency_s: PositiveSeconds = 0.001
    """Latency of a message between entities of the same VO."""
    bandwidth_mbps: Annotated[float, Field(ge=0.01, le=1e9, strict=True)] | None = None
    """Bandwidth between VOs for the input of jobs. Default: no limit."""
    links: tuple[LinkSection, ...] = ()
    """Pairs of VOs with their own latency."""
    latency_matrix_s: dict[Name, dict[Name, PositiveSeconds]] = Field(default={})
    """Latencies of many pairs, such as `{a: {b: 0.02, c: 0.05}, b: {c: 0.03}}`. List each pair
    once, in either order."""
    latency_us = Microseconds("latency_s")
    local_latency_us = Microseconds("local_latency_s")

    def pairs(self) -> Iterator[tuple[Path, tuple[Name, Name], Time]]:
        """The path in this section, the names and the latency of pairs with their own latency."""
        for position, link in enumerate(self.links):
            yield ("links", position, "between"), link.between, link.latency_us
        for one, row in self.latency_matrix_s.items():
            for other, latency_s in row.items():
                yield ("latency_matrix_s", one, other), (one, other), from_seconds(latency_s)

    @property
    def longest_us(self) -> Time:
        latencies = (latency_us for _, _, latency_us in self.pairs())
        return max(self.latency_us, self.local_latency_us, *latencies)


class SnapshotsSection(Section):
    """Triggers of snapshots (PU 3.2). Without triggers, no snapshots are published."""

    period_s: PositiveSeconds | None = None
    """A snapshot is published at multiples of this time if anything has changed."""
    load_above: Annotated[float, Field(ge=0, le=1000, strict=True)] | None = None
    """A snapshot is published when the load (assigned CPUs divided by all CPUs) rises above
    this."""
    jobs_above: Count | None = None
    """A snapshot is published when more jobs than this have been assigned since the last one."""

    @property
    def period_us(self) -> Time | None:
        """The period in microseconds, None if snapshots are not periodic."""
        return None if self.period_s is None else from_seconds(self.period_s)


class ProtocolSection(Section):
    """Information dissemination and forwarding of jobs (PU 3.2)."""

    ttl: Annotated[int, Field(ge=0, le=1000, strict=True)] = 3
    """How many times a job may be forwarded from VO to VO."""
    forwarding: Annotated[PluginRef, PluginOf("forwarding")] = PluginRef("queue")
    """The forwarding policy: whether a job stays in its VO or is forwarded, mainly if no eligible
    resource is free. `queue`: it queues at the best resource. `forward`: it is forwarded to the
    best other VO until its TTL is exhausted. `reject`: it is rejected. For others see `grid plugins
    forwarding`."""
    avoid_loops: Annotated[bool, Field(strict=True)] = False
    """A job is not forwarded again to a VO that it has left."""
    when_refused: Literal["next", "origin", "reject"] = "next"
    """What happens to a job that another VO does not admit. `next`: it returns to its sender and
    tries another VO. `origin`: it returns to its own VO and runs or queues there. `reject`: it is
    rejected."""
    information: Annotated[PluginRef, PluginOf("information")] = PluginRef("all")
    """The information overlay: which VOs receive the status of which others, and how. `all`: every
    VO publishes snapshots to all others. `none`: no snapshots are published. For others see `grid
    plugins information`."""
    discount: Annotated[PluginRef, PluginOf("discounts")] = PluginRef("no_correction")
    """How stale status of other VOs is corrected. `no_correction`: not at all. `drained`: the work
    that must have been completed since then is subtracted. `by_age`: older status has less weight.
    `own_dispatches`: the jobs that the VO itself has sent since then are added."""
    snapshot_detail: Literal["full", "summary"] = "full"
    """Content of a snapshot: a row for each resource, or two rows for the VO."""
    snapshots: SnapshotsSection = SnapshotsSection(period_s=60.0, load_above=0.9, jobs_above=10)
    """When a VO publishes a snapshot: on each of the given triggers. Default: all three,
    `{period_s: 60, load_above: 0.9, jobs_above: 10}`."""
    lost_after_s: PositiveSeconds | None = None
    """A VO counts as lost if it has not published a snapshot for this long: no jobs are sent there,
    and the origins of jobs that are there submit copies. When the VO returns, they cancel the old
    ones; the first to complete counts. VOs then publish a snapshot every `snapshots.period_s`, even
    without changes. Default: no VO is ever lost."""
    recall_after_s: PositiveSeconds | None = None
    """A job that has been with other VOs for this long and has not started is recalled by its
    origin and sent elsewhere, within its TTL. Default: never."""
    stall_after_s: PositiveSeconds | None = None
    """The run ends with an error if, for this long, messages are sent but no job changes state,
    runs or remains to be submitted. Default: 100 times the sum of the protocol's times."""

    @property
    def recovers(self) -> bool:
        """Whether jobs may return from other VOs before they start, or are run again."""
        return self.lost_after_s is not None or self.recall_after_s is not None


Metrics = tuple[PluginRef, ...]


class MetricsSection(Section):
    """Which jobs are measured, and metrics in addition to the built-in ones."""

    submitted_from_s: Seconds = 0.0
    """Job metrics cover only jobs that were submitted at this virtual time or later, so that the
    warm-up is left out. Metrics of machines and of decisions cover the whole run."""
    submitted_until_s: PositiveSeconds | None = None
    """Job metrics cover only jobs that were submitted before this virtual time. Default: no end."""
    job: Annotated[Metrics, PluginOf("job_metrics")] = ()
    """Metrics of jobs: each is a column of jobs.csv and jobs.parquet."""
    vo: Annotated[Metrics, PluginOf("vo_metrics")] = ()
    """Metrics of VOs: each is a value of metrics.json, of every VO and the grid."""
    cluster: Annotated[Metrics, PluginOf("cluster_metrics")] = ()
    """Metrics of clusters: each is a column of series.parquet."""

    @model_validator(mode="after")
    def _until_after_from(self) -> MetricsSection:
        if self.submitted_until_s is not None and self.submitted_until_s <= self.submitted_from_s:
            raise ValueError("`submitted_until_s` above `submitted_from_s`")
        return self

    @property
    def measured(self) -> MeasuredJobs:
        until_s = self.submitted_until_s
        until_us = NEVER if until_s is None else from_seconds(until_s)
        return MeasuredJobs(from_seconds(self.submitted_from_s), until_us)


class GridSettings(Section):
    """Settings of a grid as a whole, in addition to its VOs and their jobs."""

    name: Name = "grid"
    """Name of the run and its folder. Default for a file: the file's name."""
    seed: Seed = 1
    """Seed of all random streams; the same seed gives the same run."""
    network: NetworkSection = NetworkSection()
    """Latencies and bandwidth."""
    protocol: ProtocolSection = ProtocolSection()
    """Information dissemination and forwarding of jobs."""
    faults: FaultsSection | None = None
    """Faults of messages, entities and machines. Default: none."""
    metrics: MetricsSection = MetricsSection()
    """Which jobs are measured, and additional metrics."""


@dataclass(frozen=True)
class Loaded:
    """The plugins of a scenario; and its tree, which is not sent to other processes."""

    plugins: Plugins = field(default_factory=Plugins)
    root: Node | None = field(default=None, compare=False)

    def __reduce__(self) -> Any:
        return Loaded, (self.plugins,)


class Scenario(GridSettings):
    """A scenario after its parameters are substituted."""

    schema_version: Literal[1] = 1
    """Version of these keys; a later version may rename some."""
    vos: Annotated[tuple[VirtualOrganization, ...], Field(min_length=1)] | None = None
    """The virtual organizations of the grid."""
    vos_from_trace: VosFromTraceSection | None = None
    """Instead of `vos`: a VO for each site of the workload's trace."""
    workload: WorkloadSection | None = None
    """Jobs of the whole grid, routed to VOs."""
    _loaded: Loaded = PrivateAttr(default_factory=Loaded)

    @property
    def plugins(self) -> Plugins:
        return self._loaded.plugins

    def located(self, error: ErrorLine) -> ErrorLine:
        """The error with the line of its field, in the process that read the scenario."""
        return error if self._loaded.root is None else located(self._loaded.root, error)

    @property
    def is_direct(self) -> bool:
        """Whether all jobs enter clusters, so that no entity sends messages."""
        return self.workload is None and all(vo.is_direct for vo in self.vos or ())

    def with_loaded(self, plugins: Plugins, root: Node) -> Scenario:
        """The same scenario with the plugins that it names, and the tree that it was read from."""
        copy = self.model_copy()
        copy._loaded = Loaded(plugins, root)
        return copy

    @model_validator(mode="after")
    def _vos_and_jobs(self) -> Scenario:
        if (self.vos is None) == (self.vos_from_trace is None):
            raise ValueError("exactly one of `vos` and `vos_from_trace`")
        if self.vos_from_trace is not None and (
            self.workload is None or self.workload.trace is None or self.workload.route is None
        ):
            raise ValueError("a `workload` with a `trace` and a `route`, for `vos_from_trace`")
        if self.workload is None and not any(vo.workload for vo in self.vos or ()):
            raise ValueError("a `workload`, of the grid or of a VO")
        return self
