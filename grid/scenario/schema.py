"""The shape of a scenario, as pydantic models: every key, its type, its limits, its default.

The JSON Schema that `grid schema` prints for editors comes from here. Durations are seconds and
carry it in their names.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from grid.model.platform import ARCHITECTURES, OPERATING_SYSTEMS
from grid.parts.registry import Parts

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
PartName = Annotated[
    str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,63}|[^\x00-\x1f]{1,1000}:[A-Za-z_]\w*)$")
]
"""Of something that plugs in: its name, or where it stands, as `path/to/file.py:Name`."""
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Whole = Annotated[int, Field(ge=-1, le=2**53, strict=True)]
Seconds = Annotated[float, Field(ge=0, le=1e9, strict=True)]
PositiveSeconds = Annotated[float, Field(ge=1e-6, le=1e9, strict=True)]
Megabytes = Annotated[float, Field(ge=0, le=1e9, strict=True)]
# So slow and no slower that a job of the longest run time or input still ends before `NEVER`.
Mips = Annotated[float, Field(ge=1, le=1e9, strict=True)]
Bandwidth = Annotated[float, Field(ge=0.01, le=1e9, strict=True)]
Watts = Annotated[float, Field(ge=0, le=1e9, strict=True)]
IdleWatts = Annotated[Watts, Field(description="of each CPU while no job holds it")]
BusyWatts = Annotated[
    Watts, Field(description="of each CPU while a job holds it, times the job's `power`")
]
Utility = Annotated[float, Field(ge=0, le=1, strict=True)]
OperatingSystem = Literal["linux", "macos", "solaris", "windows"]
Architecture = Literal["x86_32", "x86_64"]

assert OperatingSystem.__args__ == OPERATING_SYSTEMS  # type: ignore[attr-defined]
assert Architecture.__args__ == ARCHITECTURES  # type: ignore[attr-defined]


class Section(BaseModel):
    """A mapping in a scenario. Unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PartSection(Section):
    """Something that plugs in, with its settings (see `grid parts`)."""

    name: PartName
    settings: dict[str, Any] = Field(default_factory=dict)


class LinkSection(Section):
    """The latency between two VOs, in both directions, where it differs from the default."""

    between: tuple[Name, Name]
    latency_s: PositiveSeconds


class NetworkSection(Section):
    """How long messages take."""

    latency_s: PositiveSeconds = Field(
        default=0.05, description="between entities of different VOs"
    )
    local_latency_s: PositiveSeconds = Field(
        default=0.001, description="between entities of one VO"
    )
    bandwidth_mbps: Bandwidth | None = Field(
        default=None, description="megabits a second between VOs, for a job's input; none: no limit"
    )
    links: tuple[LinkSection, ...] = ()


class ProtocolSection(Section):
    """How VOs inform each other and pass jobs on (PU 3.2)."""

    ttl: Annotated[int, Field(ge=0, le=1000, strict=True)] = Field(
        default=3, description="how many times a job may be forwarded"
    )
    when_busy: PartSection | PartName = Field(
        default="queue",
        description="where no suitable resource is free anywhere: queue at the best one, "
        "forward to the best VO of others until the TTL is spent, or reject",
    )
    snapshot_detail: Literal["full", "summary"] = "full"
    snapshot_period_s: PositiveSeconds | None = 60.0
    snapshot_load_limit: Annotated[float, Field(ge=0, le=1000, strict=True)] | None = Field(
        default=0.9, description="publish when a VO's load passes this (load: assigned CPUs / CPUs)"
    )
    snapshot_jobs_limit: Count | None = Field(
        default=10, description="publish when this many jobs were submitted since the last snapshot"
    )


class MachineSection(Section):
    """`count` machines that are alike."""

    count: Count = 1
    cpus: Count = 1
    mips: Mips = 1000.0
    operating_system: OperatingSystem = "linux"
    architecture: Architecture = "x86_64"
    ram_mb: Megabytes = 0.0
    disk_mb: Megabytes = 0.0
    cpu_type: str = ""
    licenses: tuple[Name, ...] = ()
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0


Machines = Annotated[tuple[MachineSection, ...], Field(min_length=1)]


OwnSeed = Annotated[
    Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)] | None,
    Field(description="of what is generated here; default: the scenario's"),
]
"""With its own seed a farm or a workload is the same under every seed of the scenario."""


class GeneratedMachinesSection(Section):
    """Machines drawn by a paper's rules, from the scenario's seed unless they have their own."""

    generator: PartName
    count: Count
    settings: dict[str, Any] = Field(default_factory=dict)
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    seed: OwnSeed = None


class LicenseSection(Section):
    """A license and the number of its copies."""

    name: Name
    copies: Annotated[int, Field(ge=0, le=1_000_000, strict=True)]


class OverheadsSection(Section):
    """What a preemption costs the job: time in which it holds CPUs and does not get on."""

    suspend_s: Seconds = 0.0
    resume_s: Seconds = Field(default=0.0, description="on the machine where it was")
    move_s: Seconds = Field(default=0.0, description="to another machine")


class ClusterSection(Section):
    """Machines, or one pool of processors, under a local policy."""

    name: Name = "cluster"
    policy: PartSection | PartName = "fcfs"
    processors: Count | None = Field(default=None, description="one pool of so many processors")
    mips: Mips = Field(default=1000.0, description="speed of each processor of a pool")
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    machines: Machines | GeneratedMachinesSection | None = None
    licenses: tuple[LicenseSection, ...] = ()
    bind: Literal["machine", "cluster"] | None = Field(
        default=None,
        description="a selected job is bound to the machine that the selection chose, "
        "or the local policy may take any machine of the cluster; default: machine, "
        "but under a gang policy cluster",
    )
    overrun: Literal["kill", "extend"] = Field(
        default="kill", description="what happens to a job that passes its estimate"
    )
    estimates: Literal["user", "exact", "average"] = Field(
        default="user",
        description="what the local policy is told of run times: what users say, the truth, "
        "or the average of the user's last two jobs that ended here, at most what the user says",
    )
    estimate_factor: Annotated[float, Field(ge=0.01, le=100, strict=True)] = Field(
        default=1.0, description="multiplies what users say"
    )
    one_job_a_machine: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="a job has its machine to itself, whatever CPUs it leaves idle"
    )
    preemption: OverheadsSection = OverheadsSection()
    processor_choice: PartSection | PartName | None = Field(
        default=None,
        description="under a gang policy: how the Local Dispatcher chooses the processors whose "
        "queues the tasks of a gang join; default: ld",
    )

    @model_validator(mode="after")
    def _one_kind_of_resource(self) -> ClusterSection:
        if (self.processors is None) == (self.machines is None):
            raise ValueError("exactly one of `processors` and `machines`")
        if self.machines is not None and (self.watts_idle or self.watts_busy):
            raise ValueError("watts in each entry of `machines`: here they are those of a pool")
        return self


class OptionSection(Section):
    """One acceptable value of a requirement and its utility."""

    value: Annotated[float, Field(strict=True)] | OperatingSystem | Architecture
    utility: Utility = 1.0


class RequirementSection(Section):
    """A requirement with its options, the preferred one first."""

    kind: Literal[
        "operating_system", "architecture", "execution_time", "speed", "cores", "ram", "disk"
    ]
    options: Annotated[tuple[OptionSection, ...], Field(min_length=1)]
    weight: Utility = 1.0


class JobSection(Section):
    """One job, written by hand."""

    number: Annotated[int, Field(ge=0, le=2**53, strict=True)] | None = None
    user: Annotated[int, Field(ge=-1, le=2**53, strict=True)] = 0
    submit_s: Seconds = 0.0
    processors: Count = 1
    run_s: PositiveSeconds
    estimate_s: PositiveSeconds | None = Field(default=None, description="default: the run time")
    deadline_s: PositiveSeconds | None = Field(default=None, description="after submission")
    input_mb: Megabytes = 0.0
    ram_mb: Megabytes = 0.0
    checkpointable: Annotated[bool, Field(strict=True)] = False
    power: Annotated[float, Field(ge=0, le=1000, strict=True)] = Field(
        default=1.0, description="factor of the watts that a busy CPU of its machine draws"
    )
    requirements: tuple[RequirementSection, ...] = ()


class TraceFilterSection(Section):
    """Which jobs of a trace are taken: those that meet all that is given. Times are the trace's."""

    from_s: Seconds | None = Field(default=None, description="submitted then or later")
    before_s: Seconds | None = Field(default=None, description="submitted before then")
    users: tuple[Whole, ...] | None = Field(default=None, description="numbers of users")
    min_processors: Count | None = None
    max_processors: Count | None = None
    statuses: tuple[Whole, ...] | None = Field(
        default=None, description="as the log has them: 0 failed, 1 completed, 5 cancelled, ..."
    )


class WorkloadSection(Section):
    """Where jobs come from: exactly one of a trace, a generator, a list of jobs."""

    trace: str | None = Field(
        default=None,
        description="path of a log: .gwf, .parquet (of `grid trace --to`), any other name: SWF; "
        "plain or gzip",
    )
    route: Literal["partition", "group", "user", "queue", "site", "vo"] | None = Field(
        default=None,
        description="the field of the trace that names the VO, for a grid's own workload; "
        "site and vo for GWF only",
    )
    filter: TraceFilterSection | None = Field(default=None, description="of the trace")
    interarrival_factor: Annotated[float, Field(ge=1e-6, le=1e6, strict=True)] | None = Field(
        default=None,
        description="multiplies the times between submissions of the trace; below 1 load grows",
    )
    generator: PartName | None = None
    settings: dict[str, Any] = Field(default_factory=dict, description="of the generator")
    seed: OwnSeed = None
    jobs: tuple[JobSection, ...] | None = None
    enters: Literal["scheduler", "cluster"] = Field(
        default="scheduler",
        description="jobs come to the VO's Local Scheduler, or straight to its only cluster",
    )

    @model_validator(mode="after")
    def _one_source(self) -> WorkloadSection:
        if sum(source is not None for source in (self.trace, self.generator, self.jobs)) != 1:
            raise ValueError("exactly one of `trace`, `generator` and `jobs`")
        for name in ("settings", "seed"):
            if getattr(self, name) not in ({}, None) and self.generator is None:
                raise ValueError(f"`{name}` only with `generator`")
        for name in ("route", "filter", "interarrival_factor"):
            if getattr(self, name) is not None and self.trace is None:
                raise ValueError(f"`{name}` only with `trace`")
        return self


class VoSection(Section):
    """A virtual organization, or `count` of them that are alike (name1, name2, ...)."""

    name: Name
    count: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = None
    selection: PartSection | PartName = "partial"
    cluster_choice: PartSection | PartName = Field(
        default="least_load", description="of the Grid Dispatcher, in a VO of several clusters"
    )
    clusters: Annotated[tuple[ClusterSection, ...], Field(min_length=1)]
    workload: WorkloadSection | None = None

    @property
    def names(self) -> list[str]:
        """The name of the VO, or the names of all that its `count` makes of it."""
        if self.count is None:
            return [self.name]
        return [f"{self.name}{number}" for number in range(1, self.count + 1)]


class VosFromTraceSection(Section):
    """A VO of one pool for each value that the workload's `route` field takes in its trace."""

    total_processors: Count
    sizing: Literal["equal", "work", "peak"] = Field(
        default="equal",
        description="how the processors are shared out: alike, in proportion to the sites' work, "
        "or in proportion to the most jobs that they ran at once",
    )
    selection: PartSection | PartName = "partial"
    policy: PartSection | PartName = "fcfs"


Share = Annotated[float, Field(ge=0, le=0.9, strict=True)]


class MessageFaultsSection(Section):
    """Shares of messages that are lost, doubled or delayed."""

    lost: Share = 0.0
    doubled: Share = 0.0
    delayed: Share = 0.0
    delay_s: PositiveSeconds = Field(default=1.0, description="by how much at most")


class CrashSection(Section):
    """An entity loses what it has not saved, and receives nothing until it starts again."""

    entity: str = Field(description="as the protocol calls it, such as north/scheduler")
    at_s: Seconds
    for_s: PositiveSeconds


class RandomCrashesSection(Section):
    """Every entity crashes now and then."""

    every_s: PositiveSeconds = Field(description="of each entity, on average")
    for_s: PositiveSeconds


class VoOutageSection(Section):
    """All entities of a VO are down; jobs that run there go on."""

    vo: Name
    at_s: Seconds
    for_s: PositiveSeconds


class MachineOutageSection(Section):
    """A machine is down; its jobs wait, and have lost their work if not checkpointable."""

    vo: Name
    cluster: Name = "cluster"
    machine: Annotated[int, Field(ge=0, le=1_000_000, strict=True)] = Field(
        default=0, description="its number in the cluster, from 0"
    )
    at_s: Seconds
    for_s: PositiveSeconds


class PartitionSection(Section):
    """No message passes between the VOs of `one` and those of `other`."""

    one: Annotated[tuple[Name, ...], Field(min_length=1)]
    other: Annotated[tuple[Name, ...], Field(min_length=1)]
    at_s: Seconds
    for_s: PositiveSeconds


class FaultsSection(Section):
    """What goes wrong in virtual time, until all of it heals."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)] | None = Field(
        default=None, description="default: the scenario's"
    )
    heal_s: PositiveSeconds = Field(description="from then on, nothing goes wrong any more")
    between_vos: MessageFaultsSection = MessageFaultsSection()
    within_vos: MessageFaultsSection = MessageFaultsSection()
    crashes: tuple[CrashSection, ...] = ()
    random_crashes: RandomCrashesSection | None = None
    vo_outages: tuple[VoOutageSection, ...] = ()
    machine_outages: tuple[MachineOutageSection, ...] = ()
    partitions: tuple[PartitionSection, ...] = ()


class MetricsSection(Section):
    """Metrics beside those that every run has."""

    job: tuple[PartSection | PartName, ...] = Field(
        default=(), description="each a column of jobs.csv and jobs.parquet"
    )
    vo: tuple[PartSection | PartName, ...] = Field(
        default=(), description="each a figure of metrics.json, of every VO and the grid"
    )
    cluster: tuple[PartSection | PartName, ...] = Field(
        default=(), description="each a column of series.parquet"
    )


class Scenario(Section):
    """A whole scenario, with its parameters filled in."""

    name: Name
    seed: Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)] = 1
    network: NetworkSection = NetworkSection()
    protocol: ProtocolSection = ProtocolSection()
    vos: Annotated[tuple[VoSection, ...], Field(min_length=1)] | None = None
    vos_from_trace: VosFromTraceSection | None = None
    workload: WorkloadSection | None = Field(
        default=None, description="of the whole grid, routed to VOs"
    )
    faults: FaultsSection | None = None
    metrics: MetricsSection = MetricsSection()
    _parts: Parts = PrivateAttr(default_factory=Parts)

    @property
    def parts(self) -> Parts:
        """The sources and objects that the scenario plugs in."""
        return self._parts

    def with_parts(self, parts: Parts) -> Scenario:
        """The same scenario, with what its names stand for."""
        copy = self.model_copy()
        copy._parts = parts
        return copy

    @model_validator(mode="after")
    def _vos_and_jobs(self) -> Scenario:
        if (self.vos is None) == (self.vos_from_trace is None):
            raise ValueError("exactly one of `vos` and `vos_from_trace`")
        if self.vos_from_trace is not None and (
            self.workload is None or self.workload.trace is None or self.workload.route is None
        ):
            raise ValueError("`vos_from_trace` needs a `workload` with a `trace` and a `route`")
        if self.workload is None and not any(vo.workload for vo in self.vos or ()):
            raise ValueError("a `workload`, of the grid or of a VO")
        return self


def name_and_settings(
    section: PartSection | str,
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """What a scenario says of something that plugs in, as the grid has it."""
    if isinstance(section, str):
        return section, ()
    return section.name, tuple(sorted(section.settings.items()))
