"""The schema of a scenario, as pydantic models: every key, its type, its limits, its default.

The JSON Schema for editors and the reference of the documentation derive from it, so every key has
a description. Durations are in seconds, and their names end in `_s`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from grid.config.faults import FaultsSection
from grid.config.sections import (
    EstimateFactor,
    Estimates,
    Joins,
    Leaves,
    Microseconds,
    Overrun,
    OwnSeed,
    PluginOf,
    PluginSection,
    Section,
    TakesEffect,
)
from grid.config.workload_sections import WorkloadSection
from grid.config.yaml_tree import ScenarioLines
from grid.model.fields import (
    Architecture,
    Bandwidth,
    Copies,
    Count,
    Megabytes,
    Mips,
    Name,
    OperatingSystem,
    PluginName,
    PositiveSeconds,
    PriorityRule,
    Seconds,
    Seed,
    Switch,
    Watts,
)
from grid.model.job_results import MeasuredJobs
from grid.model.plugins.registry import Plugins
from grid.model.time import NEVER, Time, from_seconds

OF_SCHEDULER = TakesEffect("jobs enter the cluster")

IdleWatts = Annotated[
    Watts, Field(description="Power draw of each CPU while the machine is up and no job holds it.")
]
BusyWatts = Annotated[
    Watts,
    Field(description="Power draw of each CPU while a job holds it, times the job's `power`."),
]
MaySwitchOff = Annotated[
    "SwitchOffSection | None",
    Field(description="When an idle machine is switched off. Default: never."),
]
LocalPolicy = Annotated[
    PluginSection | PluginName,
    PluginOf("policies"),
    Field(description="The local policy, which decides when jobs start."),
]
VoSelection = Annotated[
    PluginSection | PluginName,
    PluginOf("selections"),
    OF_SCHEDULER,
    Field(description="How the VO's Local Scheduler chooses resources for a job."),
]
VoAdmission = Annotated[
    PluginSection | PluginName,
    PluginOf("admission"),
    OF_SCHEDULER,
    Field(description="Which jobs of other VOs the VO admits (see `grid plugins admission`)."),
]
VoPriority = Annotated[
    PriorityRule,
    OF_SCHEDULER,
    Field(
        description="Whose jobs start first: those of the VO's own users (local) or those of "
        "other VOs (remote). The others queue at the Resource Manager until CPUs are free. "
        "Default: none, all jobs queue in the cluster."
    ),
]


class SwitchOffSection(Section):
    """Machines that are switched off when idle. All are on at first, and after an outage."""

    after_s: Seconds = Field(
        description="A machine that has been idle for longer than this is switched off."
    )
    boot_s: Seconds = Field(
        default=0.0,
        description="Boot time: a job that is started on a machine which is off holds its CPUs for "
        "this long before it begins.",
    )
    watts_off: Watts = Field(default=0.0, description="Power draw of each CPU while it is off.")
    watts_boot: Watts = Field(default=0.0, description="Power draw of each CPU while it boots.")


class MachineSection(Section):
    """`count` equal machines."""

    count: Count = Field(default=1, description="Number of such machines.")
    cpus: Count = Field(default=1, description="CPUs of each machine.")
    mips: Mips = Field(
        default=1000.0, description="Speed of each CPU, in million instructions a second."
    )
    operating_system: OperatingSystem = Field(
        default="linux", description="For requirements of jobs."
    )
    architecture: Architecture = Field(default="x86_64", description="For requirements of jobs.")
    ram_mb: Megabytes = Field(
        default=0.0,
        description="Memory, which jobs with `ram_mb` share. 0: no limit for such jobs, and a "
        "requirement of `ram` is not fulfilled.",
    )
    disk_mb: Megabytes = Field(default=0.0, description="Disk space, for requirements of jobs.")
    cpu_type: str = Field(
        default="", description="A free-form tag, which policies and heuristics may read."
    )
    licenses: tuple[Name, ...] = Field(
        default=(), description="Names of the licenses whose software it can run."
    )
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    switch_off: MaySwitchOff = None


Machines = Annotated[tuple[MachineSection, ...], Field(min_length=1)]


class GeneratedMachinesSection(Section):
    """Machines drawn from the scenario's seed, or their own, by a generator."""

    generator: Annotated[PluginName, PluginOf("machine_generators")] = Field(
        description="Name of the generator that makes the machines."
    )
    count: Count = Field(description="Number of machines.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of the generator.")
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    switch_off: MaySwitchOff = None
    seed: OwnSeed = None


class LicenseSection(Section):
    """A license and the number of its copies."""

    name: Name = Field(description="Name of the license.")
    copies: Copies = Field(
        description="How many machines may use it at once; jobs of one machine share a copy."
    )


class OverheadsSection(Section):
    """Overheads of a preemption: the job holds CPUs and makes no progress."""

    suspend_s: Seconds = Field(default=0.0, description="To write its state; paid when it resumes.")
    resume_s: Seconds = Field(default=0.0, description="To read its state on the same machine.")
    move_s: Seconds = Field(default=0.0, description="To move its state to another machine.")
    suspend_us = Microseconds("suspend_s")
    resume_us = Microseconds("resume_s")
    move_us = Microseconds("move_s")


class ClusterSection(Section):
    """Machines, or one pool of CPUs, under a local policy."""

    name: Name = Field(default="cluster", description="Its name within the VO.")
    policy: LocalPolicy = "fcfs"
    cpus: Count | None = Field(
        default=None, description="One pool of this number of `linux` CPUs, instead of `machines`."
    )
    mips: Mips = Field(
        default=1000.0,
        description="Speed of each CPU of a pool, in million instructions a second.",
    )
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    switch_off: MaySwitchOff = None
    machines: Machines | GeneratedMachinesSection | None = Field(
        default=None, description="A list of machines, or a generator of them."
    )
    licenses: tuple[LicenseSection, ...] = Field(
        default=(), description="Licenses that float among the machines of the cluster."
    )
    resource: Annotated[
        Literal["machine", "cluster"] | None,
        TakesEffect("jobs enter the cluster", ("cluster",)),
    ] = Field(
        default=None,
        description="`machine`: a job runs on the machine that the selection chose. `cluster`: the "
        "local policy may choose any machine of the cluster. Default: machine, but cluster under a "
        "gang policy.",
    )
    overrun: Overrun = "kill"
    estimates: Estimates = "user"
    estimate_factor: EstimateFactor = 1.0
    one_job_a_machine: Switch = Field(
        default=False, description="A job holds its machine exclusively."
    )
    preemption: OverheadsSection = Field(
        default=OverheadsSection(), description="Overheads of a preemption."
    )
    processor_choice: Annotated[
        PluginSection | PluginName | None, PluginOf("processor_choices")
    ] = Field(
        default=None,
        description="How the Local Dispatcher of a cluster of gangs chooses the processors whose "
        "queues the tasks of a gang join. Default: ld.",
    )

    @model_validator(mode="after")
    def _one_kind_of_resource(self) -> ClusterSection:
        if (self.cpus is None) == (self.machines is None):
            raise ValueError("exactly one of `cpus` and `machines`")
        for key in ("mips", "watts_idle", "watts_busy", "switch_off"):
            default = type(self).model_fields[key].default
            if self.machines is not None and getattr(self, key) != default:
                raise ValueError(f"`{key}` in each entry of `machines`: here it is that of a pool")
        return self


class VoSection(Section):
    """A virtual organization, or `count` equal ones (name1, name2, ...)."""

    name: Name = Field(description="Its name, which begins the names of its entities.")
    count: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = Field(
        default=None,
        description="Number of equal VOs: NAME1, NAME2 and so on. Default: one, NAME.",
    )
    selection: VoSelection = "partial"
    cluster_choice: Annotated[
        PluginSection | PluginName,
        PluginOf("cluster_choices"),
        OF_SCHEDULER,
        TakesEffect("the selection chooses the cluster"),
    ] = Field(
        default="least_load",
        description="How the Grid Dispatcher chooses among the clusters of the VO for jobs that "
        "are bound to no machine (`resource: cluster`, gangs).",
    )
    forwarding: Annotated[
        PluginSection | PluginName | None, PluginOf("forwarding"), OF_SCHEDULER
    ] = Field(
        default=None,
        description="The VO's own forwarding policy. Default: that of the protocol.",
    )
    admission: VoAdmission = "all"
    priority: VoPriority = "none"
    joins_s: Annotated[Joins, OF_SCHEDULER] = 0.0
    leaves_s: Annotated[Leaves, OF_SCHEDULER] = None
    clusters: Annotated[tuple[ClusterSection, ...], Field(min_length=1)] = Field(
        description="The VO's clusters."
    )
    workload: WorkloadSection | None = Field(
        default=None, description="The jobs of the VO's users. Default: none of its own."
    )

    @property
    def names(self) -> list[str]:
        """The name of the VO, or of all VOs that its `count` makes."""
        if self.count is None:
            return [self.name]
        return [f"{self.name}{number}" for number in range(1, self.count + 1)]

    @property
    def is_direct(self) -> bool:
        """Whether its jobs enter its cluster, and no Local Scheduler."""
        return self.workload is not None and self.workload.entry_point == "cluster"


class VosFromTraceSection(Section):
    """A VO of one pool for each value of the workload's `route` field in its trace."""

    total_cpus: Count = Field(
        description="CPUs of all these VOs together. A VO has at least as many as its widest job; "
        "the others share the rest."
    )
    sizing: Literal["equal", "work", "peak"] = Field(
        default="equal",
        description="How the CPUs are shared out: equally, in proportion to the sites' work (run "
        "time times CPUs), or in proportion to the largest number of CPUs in use if no job waited. "
        "Rounding is by largest remainder.",
    )
    selection: VoSelection = "partial"
    policy: LocalPolicy = "fcfs"
    overrun: Overrun = "kill"
    estimates: Estimates = "user"
    estimate_factor: EstimateFactor = 1.0
    admission: VoAdmission = "all"
    priority: VoPriority = "none"


class LinkSection(Section):
    """The latency between two VOs, in both directions, if it is not the default."""

    between: tuple[Name, Name] = Field(description="Names of the two VOs.")
    latency_s: PositiveSeconds = Field(description="Latency of a message between them.")
    latency_us = Microseconds("latency_s")


class NetworkSection(Section):
    """Latencies and bandwidth."""

    latency_s: PositiveSeconds = Field(
        default=0.05, description="Latency of a message between entities of different VOs."
    )
    local_latency_s: PositiveSeconds = Field(
        default=0.001, description="Latency of a message between entities of one VO."
    )
    bandwidth_mbps: Bandwidth | None = Field(
        default=None,
        description="Megabits a second between VOs, for the input of a job. Default: no limit.",
    )
    links: tuple[LinkSection, ...] = Field(
        default=(), description="Pairs of VOs with a latency of their own."
    )
    latency_us = Microseconds("latency_s")
    local_latency_us = Microseconds("local_latency_s")

    @property
    def longest_us(self) -> Time:
        """The longest latency of all."""
        latencies = (link.latency_us for link in self.links)
        return max(self.latency_us, self.local_latency_us, *latencies)


class ProtocolSection(Section):
    """Information dissemination and forwarding of jobs (PU 3.2)."""

    ttl: Annotated[int, Field(ge=0, le=1000, strict=True)] = Field(
        default=3, description="How many times a job may be forwarded from VO to VO."
    )
    forwarding: Annotated[PluginSection | PluginName, PluginOf("forwarding")] = Field(
        default="queue",
        description="The forwarding policy: whether a job stays in its VO or is forwarded, mainly "
        "if no eligible resource is free. `queue`: it queues at the best resource. `forward`: it "
        "is forwarded to the best other VO until its TTL is spent. `reject`: it is rejected. For "
        "others see `grid plugins forwarding`.",
    )
    avoid_loops: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="A job is not forwarded again to a VO that it has left.",
    )
    when_refused: Literal["next", "origin", "reject"] = Field(
        default="next",
        description="What happens to a job that another VO does not admit. `next`: it returns to "
        "its sender and tries another VO. `origin`: it returns to its own VO and runs or queues "
        "there. `reject`: it is rejected.",
    )
    information: Annotated[PluginSection | PluginName, PluginOf("information")] = Field(
        default="all",
        description="The information overlay: which VOs receive which others' status, and how. "
        "`all`: every VO publishes snapshots to all others. `none`: no VO publishes any. "
        "For others see `grid plugins information`.",
    )
    discount: Annotated[PluginSection | PluginName, PluginOf("discounts")] = Field(
        default="no_correction",
        description="How stale status of other VOs is corrected. `no_correction`: not at all. "
        "`drained`: minus the work that must have been completed since. `by_age`: the older, the "
        "less it counts.",
    )
    snapshot_detail: Literal["full", "summary"] = Field(
        default="full",
        description="What a snapshot has: a row for each resource, or two rows for a VO.",
    )
    snapshot_period_s: PositiveSeconds | None = Field(
        default=60.0,
        description="A VO publishes a snapshot at multiples of this; null: not periodically.",
    )
    snapshot_load_limit: Annotated[float, Field(ge=0, le=1000, strict=True)] | None = Field(
        default=0.9,
        description="A VO publishes when its load, assigned CPUs over CPUs, rises above this.",
    )
    snapshot_jobs_limit: Count | None = Field(
        default=10,
        description="A VO publishes when more jobs than this were assigned there since the last.",
    )
    stall_after_s: PositiveSeconds | None = Field(
        default=None,
        description="A run ends with an error if no job has changed state for this long, none runs "
        "and none is to be submitted, while messages are sent. Default: 100 times all timings of "
        "the protocol.",
    )

    @property
    def snapshot_period_us(self) -> Time | None:
        """The snapshot period in microseconds, None if snapshots are not periodic."""
        return None if self.snapshot_period_s is None else from_seconds(self.snapshot_period_s)


Metrics = tuple[PluginSection | PluginName, ...]


class MetricsSection(Section):
    """Which jobs are measured, and metrics in addition to the built-in ones."""

    submitted_from_s: Seconds = Field(
        default=0.0,
        description="Job metrics cover only jobs that were submitted at this virtual time or "
        "later, so that the warm-up is left out. Metrics of machines and of decisions cover the "
        "whole run.",
    )
    submitted_until_s: PositiveSeconds | None = Field(
        default=None,
        description="Job metrics cover only jobs that were submitted before this virtual time. "
        "Default: no end.",
    )
    job: Annotated[Metrics, PluginOf("job_metrics")] = Field(
        default=(), description="Metrics of jobs: each is a column of jobs.csv and jobs.parquet."
    )
    vo: Annotated[Metrics, PluginOf("vo_metrics")] = Field(
        default=(),
        description="Metrics of VOs: each is a value of metrics.json, of every VO and the grid.",
    )
    cluster: Annotated[Metrics, PluginOf("cluster_metrics")] = Field(
        default=(), description="Metrics of clusters: each is a column of series.parquet."
    )

    @model_validator(mode="after")
    def _until_after_from(self) -> MetricsSection:
        if self.submitted_until_s is not None and self.submitted_until_s <= self.submitted_from_s:
            raise ValueError("`submitted_until_s` above `submitted_from_s`")
        return self

    @property
    def measured(self) -> MeasuredJobs:
        """The jobs that job metrics cover."""
        until_s = self.submitted_until_s
        until_us = NEVER if until_s is None else from_seconds(until_s)
        return MeasuredJobs(from_seconds(self.submitted_from_s), until_us)


class GridSettings(Section):
    """What applies to a grid as a whole, next to its VOs and their jobs."""

    name: Name = Field(
        default="grid",
        description="Names the run and its folder. Default in a file: the name of the file.",
    )
    seed: Seed = Field(
        default=1, description="Seed of all random streams: the same seed gives the same run."
    )
    network: Annotated[NetworkSection, TakesEffect("no entity sends messages")] = Field(
        default=NetworkSection(), description="Latencies and bandwidth."
    )
    protocol: Annotated[ProtocolSection, TakesEffect("no entity sends messages")] = Field(
        default=ProtocolSection(), description="Information dissemination and forwarding of jobs."
    )
    faults: FaultsSection | None = Field(
        default=None, description="Faults of messages, entities and machines. Default: none."
    )
    metrics: MetricsSection = Field(
        default=MetricsSection(), description="Which jobs are measured, and additional metrics."
    )


class Scenario(GridSettings):
    """A whole scenario, with its parameters filled in."""

    vos: Annotated[tuple[VoSection, ...], Field(min_length=1)] | None = Field(
        default=None, description="The virtual organizations of the grid."
    )
    vos_from_trace: VosFromTraceSection | None = Field(
        default=None, description="Instead of `vos`: a VO for each site of the workload's trace."
    )
    workload: WorkloadSection | None = Field(
        default=None, description="Jobs of the whole grid, routed to VOs."
    )
    _plugins: Plugins = PrivateAttr(default_factory=Plugins)
    _lines: ScenarioLines = PrivateAttr(default_factory=ScenarioLines)

    @property
    def plugins(self) -> Plugins:
        """The sources and objects that the scenario plugs in."""
        return self._plugins

    @property
    def lines(self) -> ScenarioLines:
        """File and line of its values."""
        return self._lines

    @property
    def is_direct(self) -> bool:
        """Whether all jobs enter clusters, so that no entity sends messages."""
        return self.workload is None and all(vo.is_direct for vo in self.vos or ())

    def with_plugins(self, plugins: Plugins, lines: ScenarioLines | None = None) -> Scenario:
        """The same scenario with the plugins that it names, and the lines of its values."""
        copy = self.model_copy()
        copy._plugins, copy._lines = plugins, lines or self._lines
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
