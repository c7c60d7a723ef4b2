"""The shape of a scenario, as pydantic models: every key, its type, its limits, its default.

`grid schema` prints it for editors, and the reference of the documentation is made from it: every
key has a description. Durations are seconds and carry it in their names.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from grid.config.grid_sections import GridSettings
from grid.config.sections import (
    EstimateFactor,
    Estimates,
    Joins,
    Leaves,
    Overrun,
    OwnSeed,
    PluginSection,
    Section,
)
from grid.config.workload_sections import WorkloadSection
from grid.config.yaml_tree import ScenarioLines
from grid.model.fields import (
    Architecture,
    Copies,
    Count,
    Megabytes,
    Mips,
    Name,
    OperatingSystem,
    PluginName,
    PriorityRule,
    Seconds,
    Switch,
    Watts,
)
from grid.model.plugins.registry import Plugins

IdleWatts = Annotated[
    Watts, Field(description="What each CPU draws while no job holds it and the machine is up.")
]
BusyWatts = Annotated[
    Watts,
    Field(description="What each CPU draws while a job holds it, times the job's `power`."),
]
MaySwitchOff = Annotated[
    "SwitchOffSection | None",
    Field(description="When an idle machine is switched off. Default: never."),
]
LocalPolicy = Annotated[
    PluginSection | PluginName,
    Field(description="The local policy: it decides which job starts when."),
]
VoSelection = Annotated[
    PluginSection | PluginName,
    Field(description="How the VO's Local Scheduler values resources for a job."),
]
VoAdmission = Annotated[
    PluginSection | PluginName,
    Field(description="Which jobs of other VOs the VO takes in (see `grid parts admission`)."),
]
VoPriority = Annotated[
    PriorityRule,
    Field(
        description="Whose jobs start first where some have to wait: those of the VO's own users "
        "(local) or those of other VOs (remote). The others wait at the Resource Manager until "
        "CPUs are left over. Default: none, all wait in the cluster."
    ),
]
VoForwarding = Annotated[
    PluginSection | PluginName | None,
    Field(description="The VO's own rule of forwarding. Default: that of the protocol."),
]


class SwitchOffSection(Section):
    """Machines that are switched off when they have been idle for some time. All are on at first,
    and after an outage."""

    after_s: Seconds = Field(
        description="A machine that has been idle for longer than this is switched off."
    )
    boot_s: Seconds = Field(
        default=0.0,
        description="A job that is started on a machine which is off holds its CPUs for so long "
        "before it begins: the machine boots.",
    )
    watts_off: Watts = Field(default=0.0, description="What each CPU draws while it is off.")
    watts_boot: Watts = Field(default=0.0, description="What each CPU draws while it boots.")


class MachineSection(Section):
    """`count` machines that are alike."""

    count: Count = Field(default=1, description="How many such machines.")
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
        description="Memory, which jobs with `ram_mb` share. 0: not given, so that such jobs find "
        "no limit here, and a requirement of `ram` is not fulfilled.",
    )
    disk_mb: Megabytes = Field(default=0.0, description="Disk space, for requirements of jobs.")
    cpu_type: str = Field(
        default="", description="A word of yours, which policies and heuristics may look at."
    )
    licenses: tuple[Name, ...] = Field(
        default=(), description="Names of the licenses whose software it can run."
    )
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    switch_off: MaySwitchOff = None


Machines = Annotated[tuple[MachineSection, ...], Field(min_length=1)]


class GeneratedMachinesSection(Section):
    """Machines drawn by a paper's rules, from the scenario's seed unless they have their own."""

    generator: PluginName = Field(description="Name of the generator that makes the machines.")
    count: Count = Field(description="How many machines it makes.")
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
    """What a preemption costs the job: time in which it holds CPUs and does not get on."""

    suspend_s: Seconds = Field(default=0.0, description="To write its state; paid at its return.")
    resume_s: Seconds = Field(
        default=0.0, description="To read its state again, on the machine where it was."
    )
    move_s: Seconds = Field(default=0.0, description="To bring its state to another machine.")


class ClusterSection(Section):
    """Machines, or one pool of processors, under a local policy."""

    name: Name = Field(default="cluster", description="Its name within the VO.")
    policy: LocalPolicy = "fcfs"
    cpus: Count | None = Field(
        default=None, description="One pool of this number of `linux` CPUs, instead of `machines`."
    )
    mips: Mips = Field(
        default=1000.0,
        description="Speed of each processor of a pool, in million instructions a second.",
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
    resource: Literal["machine", "cluster"] | None = Field(
        default=None,
        description="`machine`: a selected job runs on the machine that the selection chose. "
        "`cluster`: the local policy may take any machine of the cluster. Default: machine, but "
        "cluster under a policy of gangs.",
    )
    overrun: Overrun = "kill"
    estimates: Estimates = "user"
    estimate_factor: EstimateFactor = 1.0
    one_job_a_machine: Switch = Field(
        default=False, description="A job has its machine to itself, whatever CPUs it leaves idle."
    )
    preemption: OverheadsSection = Field(
        default=OverheadsSection(), description="What a preemption costs the job."
    )
    processor_choice: PluginSection | PluginName | None = Field(
        default=None,
        description="How the Local Dispatcher of a cluster of gangs chooses the processors whose "
        "queues the tasks of a gang join. Default: ld.",
    )

    @model_validator(mode="after")
    def _one_kind_of_resource(self) -> ClusterSection:
        if (self.cpus is None) == (self.machines is None):
            raise ValueError("exactly one of `cpus` and `machines`")
        if self.machines is not None and self.mips != type(self).model_fields["mips"].default:
            raise ValueError("`mips` in each entry of `machines`: here they are those of a pool")
        if self.machines is not None and (self.watts_idle or self.watts_busy):
            raise ValueError("watts in each entry of `machines`: here they are those of a pool")
        if self.machines is not None and self.switch_off is not None:
            raise ValueError("`switch_off` in each entry of `machines`: here it is that of a pool")
        return self


class VoSection(Section):
    """A virtual organization, or `count` of them that are alike (name1, name2, ...)."""

    name: Name = Field(description="Its name, and the beginning of the names of its entities.")
    count: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = Field(
        default=None,
        description="So many VOs that are alike: NAME1, NAME2 and so on. Default: one, NAME.",
    )
    selection: VoSelection = "partial"
    cluster_choice: PluginSection | PluginName = Field(
        default="least_load",
        description="How the Grid Dispatcher chooses among the clusters, in a VO of several, for "
        "jobs that are bound to no machine (`resource: cluster`, gangs).",
    )
    forwarding: VoForwarding = None
    admission: VoAdmission = "all"
    priority: VoPriority = "none"
    joins_s: Joins = 0.0
    leaves_s: Leaves = None
    clusters: Annotated[tuple[ClusterSection, ...], Field(min_length=1)] = Field(
        description="The VO's clusters."
    )
    workload: WorkloadSection | None = Field(
        default=None, description="The jobs of the VO's users. Default: none of its own."
    )

    @property
    def names(self) -> list[str]:
        """The name of the VO, or the names of all that its `count` makes of it."""
        if self.count is None:
            return [self.name]
        return [f"{self.name}{number}" for number in range(1, self.count + 1)]


class VosFromTraceSection(Section):
    """A VO of one pool for each value that the workload's `route` field takes in its trace."""

    total_cpus: Count = Field(
        description="Processors of all these VOs together. A VO has at least as many as its widest "
        "job, and the others share the rest."
    )
    sizing: Literal["equal", "work", "peak"] = Field(
        default="equal",
        description="How the processors are shared out: alike, in proportion to the sites' work "
        "(run time times processors), or in proportion to the most processors that would be in use "
        "at once if no job waited. What is left of whole numbers goes to the largest remainders.",
    )
    selection: VoSelection = "partial"
    policy: LocalPolicy = "fcfs"
    overrun: Overrun = "kill"
    estimates: Estimates = "user"
    estimate_factor: EstimateFactor = 1.0
    admission: VoAdmission = "all"
    priority: VoPriority = "none"


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
    _places: ScenarioLines = PrivateAttr(default_factory=ScenarioLines)

    @property
    def plugins(self) -> Plugins:
        """The sources and objects that the scenario plugs in."""
        return self._plugins

    @property
    def places(self) -> ScenarioLines:
        """Where its values stand."""
        return self._places

    def with_plugins(self, parts: Plugins, places: ScenarioLines | None = None) -> Scenario:
        """The same scenario, with what its names stand for, and where its values stand."""
        copy = self.model_copy()
        copy._plugins, copy._places = parts, places or self._places
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
