"""The platform of a grid: machines, clusters, virtual organizations, distances and outages.

A *machine* is space-shared: a job holds a number of its CPUs from start to end. A pool of CPUs, as
in a batch log, is a cluster of one machine with that many CPUs.

`Cluster` and `VirtualOrganization` are the sections of a scenario. Those of a run are the same with
`count` and `machines` expanded (`grid.config.platform`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo, model_validator
from pydantic.dataclasses import dataclass

from grid.model.arrays import Ints
from grid.model.fields import (
    PLATFORM,
    REFERENCE_MIPS,
    Amounts,
    Architecture,
    Count,
    Cpus,
    EstimateFactor,
    Estimates,
    Megabytes,
    Microseconds,
    Mips,
    Name,
    OperatingSystem,
    Overrun,
    OwnSeed,
    PluginName,
    PluginOf,
    PluginRef,
    PositiveSeconds,
    Seconds,
    Switch,
    Watts,
    keys_of,
)
from grid.model.job import MEMORY, Job, amounts, most_tasks, rounded, unlisted
from grid.model.job import Amounts as JobAmounts
from grid.model.time import NEVER, SECOND_US, Time
from grid.model.workload import WorkloadSection

GANG_POLICIES = ("afcfs", "lgfs")

IdleWatts = Annotated[
    Watts, Field(description="Power draw of each CPU while the machine is up and no job holds it.")
]
BusyWatts = Annotated[
    Watts,
    Field(description="Power draw of each CPU while a job holds it, times the job's `power`."),
]
LocalPolicy = Annotated[
    PluginRef,
    PluginOf("policies"),
    Field(description="The local policy, which decides when jobs start."),
]
VoSelection = Annotated[
    PluginRef,
    PluginOf("selections"),
    Field(description="How the VO's Local Scheduler chooses resources for a job."),
]
VoAdmission = Annotated[
    PluginRef,
    PluginOf("admission"),
    Field(description="Which jobs of other VOs the VO admits (see `grid plugins admission`)."),
]
VoPriority = Annotated[
    Literal["none", "local", "remote"],
    Field(
        description="Whose jobs start first: those of the VO's own users (local) or those of "
        "other VOs (remote). The others queue at the Resource Manager until CPUs are free. "
        "Default: none, all jobs queue in the cluster."
    ),
]


@dataclass(frozen=True, config=PLATFORM)
class SwitchOff:
    """Switches idle machines off. Machines are on initially and after an outage."""

    after_s: Seconds
    """A machine that has been idle for longer than this is switched off."""
    boot_s: Seconds = 0.0
    """Boot time: a job that starts on a machine that is off holds its CPUs for this long before it
    runs."""
    watts_off: Watts = 0.0
    """Power draw of each CPU while it is off."""
    watts_boot: Watts = 0.0
    """Power draw of each CPU while it boots."""
    after_us = Microseconds("after_s")
    boot_us = Microseconds("boot_s")


MaySwitchOff = Annotated[
    SwitchOff | None, Field(description="When an idle machine is switched off. Default: never.")
]


@dataclass(frozen=True, config=PLATFORM)
class Machine:
    """A machine or, in a scenario, `count` identical machines."""

    name: Name | None = None
    """Its name. Default: m0, m1 and so on."""
    cpus: Cpus = 1
    """CPUs of each machine."""
    mips: Mips = REFERENCE_MIPS
    """Speed of each CPU, in million instructions per second."""
    operating_system: OperatingSystem = "linux"
    """For requirements of jobs."""
    architecture: Architecture = "x86_64"
    """For requirements of jobs."""
    ram_mb: Megabytes = 0.0
    """Memory, shared by jobs with `ram_mb`. If it is 0, these jobs have no limit, and no `ram`
    requirement is fulfilled."""
    disk_mb: Megabytes = 0.0
    """Disk space, for requirements of jobs."""
    resources: Amounts = Field(default_factory=dict)
    """Amounts of other resources, such as `{gpus: 4}`, which its jobs share."""
    cpu_type: str = ""
    """A free-form tag, which policies and heuristics may read."""
    licenses: tuple[Name, ...] = ()
    """Names of the licenses that it supports."""
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    switch_off: MaySwitchOff = None
    count: Count = 1
    """Number of identical machines."""

    @property
    def limits(self) -> dict[str, float]:
        """The amounts of its resources; without `ram_mb`, memory is not limited."""
        return self.resources | ({MEMORY: self.ram_mb} if self.ram_mb else {})

    @property
    def has_watts(self) -> bool:
        off = self.switch_off
        more = () if off is None else (off.watts_off, off.watts_boot)
        return any((self.watts_idle, self.watts_busy, *more))


@dataclass(frozen=True, config=PLATFORM)
class MachineGenerator:
    """Machines made by a generator from the scenario's seed or their own."""

    generator: Annotated[PluginName, PluginOf("machine_generators")]
    """Name of the machine generator."""
    count: Count
    """Number of machines."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the generator."""
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    switch_off: MaySwitchOff = None
    seed: OwnSeed = None


if TYPE_CHECKING:
    Machines = tuple[Machine, ...]
else:  # The machines of a run are a tuple: a generator is replaced by its machines.
    Machines = tuple[Machine, ...] | MachineGenerator
POOL_KEYS = ("mips", "watts_idle", "watts_busy", "switch_off")
"""Keys of a cluster with `cpus` that each entry of `machines` has otherwise."""


@dataclass(frozen=True, config=PLATFORM)
class License:
    """A license and the number of its copies."""

    name: Name
    """Name of the license."""
    copies: Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
    """Number of machines that may use it at once; jobs on one machine share a copy."""


class Beneficiaries(NamedTuple):
    """Users and VOs whose jobs may use reserved CPUs; no job may if neither is given."""

    users: tuple[int, ...] = ()
    vos: tuple[str, ...] = ()

    def include(self, vo: str, user: Any) -> Any:
        """Whether they include that user of the VO, or each of an array of users."""
        of_vo = vo in self.vos if self.vos else True
        return np.isin(user, self.users) & of_vo if self.users else of_vo


NO_BENEFICIARY = Beneficiaries()


@dataclass(frozen=True, config=PLATFORM)
class Reservation:
    """Machines, or some of their CPUs, that are reserved for certain jobs, as announced to
    policies."""

    from_s: Seconds
    """Start of the reservation."""
    to_s: PositiveSeconds
    """End of the reservation."""
    machines: tuple[Name, ...] = ()
    """Names of the machines. Default: all machines of the cluster."""
    cpus: Cpus | None = None
    """Number of CPUs reserved on each machine. Default: all."""
    users: tuple[Annotated[int, Field(ge=0, strict=True)], ...] = ()
    """Numbers of the users whose jobs may use the reserved CPUs, in any VO or in one of `vos`."""
    vos: tuple[Name, ...] = ()
    """Names of the VOs whose jobs may use the reserved CPUs. Default: all VOs if `users` is given.
    Otherwise no job may use them, and a machine whose CPUs are all reserved is down."""
    from_us = Microseconds("from_s")
    to_us = Microseconds("to_s")

    def is_of(self, machine: Machine) -> bool:
        return not self.machines or machine.name in self.machines

    @property
    def beneficiaries(self) -> Beneficiaries:
        return Beneficiaries(tuple(sorted(self.users)), tuple(sorted(self.vos)))

    @model_validator(mode="after")
    def _in_order(self) -> Reservation:
        if self.from_s >= self.to_s:
            raise ValueError(f"`from_s` ({self.from_s:g}) less than `to_s`")
        return self


@dataclass(frozen=True, config=PLATFORM)
class PreemptionOverheads:
    """Overheads of a preemption, during which the job holds CPUs without making progress.

    They all occur when the job resumes, since a preemption releases its CPUs at once.
    """

    suspend_s: Seconds = 0.0
    """Time to save the job's state, added when it resumes."""
    resume_s: Seconds = 0.0
    """Time to restore the job's state on the same machine."""
    move_s: Seconds = 0.0
    """Time to move the job's state to another machine."""
    suspend_us = Microseconds("suspend_s")
    resume_us = Microseconds("resume_s")
    move_us = Microseconds("move_s")


@dataclass(frozen=True, config=PLATFORM)
class Slurm:
    """Settings of a real Slurm cluster."""

    conf: Annotated[str, Field(pattern=r"^/[^\x00-\x1f]*$")]
    """Absolute path of its slurm.conf, which has `JobCompType=jobcomp/filetxt`."""
    partition: Name | None = None
    """The partition to which all jobs are submitted. Default: Slurm's default partition."""
    command: str | None = None
    """The shell command that jobs run, with GRID_VO, GRID_JOB, GRID_CPUS and GRID_RUN_S (run time
    in seconds of real time) in its environment. Default: `sleep` for that time."""


@dataclasses.dataclass(frozen=True, slots=True)
class MachineOutage:
    """Machine number `machine` of its cluster is down from `start_us` until before `end_us`."""

    machine: int
    start_us: Time
    end_us: Time


class Window(NamedTuple):
    """`cpus` of a machine are reserved from `start_us` until before `end_us`.

    They are so for jobs of any of the `beneficiaries`; if there are none, no job may use them.
    """

    machine: int
    start_us: Time
    end_us: Time
    cpus: int
    beneficiaries: tuple[Beneficiaries, ...] = ()


@cache
def _parts(
    reservations: tuple[Reservation, ...], cpus: int
) -> list[tuple[Time, Time, int, tuple[Beneficiaries, ...]]]:
    """The windows of a machine without its number; disjoint for the same beneficiaries.

    While reservations for several overlap, there is a window for each set of them: jobs of none of
    the set may not use what is reserved for any of it.
    """
    found = []
    edges = sorted({edge for one in reservations for edge in (one.from_us, one.to_us)})
    for start_us, end_us in pairwise(edges):
        held = Counter({NO_BENEFICIARY: 0})
        for one in reservations:
            if one.from_us <= start_us < one.to_us:
                held[one.beneficiaries] += one.cpus or cpus
        down = held.pop(NO_BENEFICIARY)
        for size in range(len(held) + 1):
            for group in combinations(sorted(held), size):
                reserved = min(down + sum(held[one] for one in group), cpus)
                if reserved:
                    found.append((start_us, end_us, reserved, group))
    return found


class JobLimits(NamedTuple):
    """The most that one job may hold: CPUs, resources, and a bit mask over the licenses."""

    processors: int
    resources: JobAmounts
    licenses: int

    def allow(self, job: Job) -> bool:
        """Whether a job conforms to them."""
        enough = job.processors <= self.processors and job.licenses & ~self.licenses == 0
        if not enough or not job.resources:
            return enough
        most = dict(self.resources)
        return all(held <= most.get(name, unlisted(name)) for name, held in job.resources)


class GangLimits(NamedTuple):
    """The most that the tasks of one gang may hold.

    CPUs in all, then (machines, CPUs, resources) of each kind of machine, and what these share.
    """

    processors: int
    machines: tuple[tuple[int, int, JobAmounts], ...]
    shared: JobAmounts

    @classmethod
    def of(cls, cluster: Cluster) -> GangLimits:
        each = Counter((one.cpus, amounts(one.limits)) for one in cluster.machines)
        kinds = tuple((count, *kind) for kind, count in each.items())
        return cls(cluster.processors, kinds, amounts(cluster.resources))

    def allow(self, job: Job) -> bool:
        """Whether a job conforms to them."""
        return not job.licenses and self.hold(job.processors, job.resources)

    def hold(self, processors: int, requests: JobAmounts) -> bool:
        """Whether a gang of that size, with what it requests, conforms to them."""
        if processors > self.processors or not requests:
            return processors <= self.processors
        shared, room = dict(self.shared), 0
        for count, cpus, resources in self.machines:
            here, most = dict(resources), cpus
            for name, amount in requests:
                if name not in shared:
                    limit = rounded(here.get(name, unlisted(name)))
                    most = min(most, most_tasks(limit, rounded(amount), processors))
            room += count * most
        is_free = [
            rounded(amount) <= rounded(shared.get(name, np.inf)) for name, amount in requests
        ]
        return all(is_free) and room >= processors


@dataclass(frozen=True, config=PLATFORM)
class Cluster:
    """Machines, or one pool of CPUs, under a local policy."""

    name: Name = "cluster"
    """Its name within the VO."""
    machines: Machines = ()
    """A list of machines, or a generator of them."""
    policy: LocalPolicy = PluginRef("fcfs")
    cpus: Cpus | None = None
    """A pool of this many `linux` CPUs, instead of `machines`."""
    mips: Mips = REFERENCE_MIPS
    """Speed of each CPU of a pool, in million instructions per second."""
    watts_idle: IdleWatts = 0.0
    watts_busy: BusyWatts = 0.0
    switch_off: MaySwitchOff = None
    licenses: tuple[License, ...] = ()
    """Licenses that float among the machines of the cluster."""
    resources: Amounts = Field(default_factory=dict)
    """Amounts of resources that all jobs of the cluster share, such as `{burst_buffer_gb: 800}`."""
    resource: Literal["machine", "cluster"] | None = None
    """`machine`: a job runs on the machine that the selection chose. `cluster`: the local policy
    may choose any machine of the cluster. Default: machine, but cluster under a gang policy."""
    overrun: Overrun = "kill"
    estimates: Estimates = "user"
    estimate_factor: EstimateFactor = 1.0
    one_job_per_machine: Switch = False
    """A job holds its machine exclusively."""
    preemption: PreemptionOverheads = PreemptionOverheads()
    """Overheads of a preemption."""
    reservations: tuple[Reservation, ...] = ()
    """Maintenance, and CPUs reserved for certain jobs. Policies take them into account in advance:
    no other job starts if, by its estimate, it would run into a reservation. When a whole machine
    is reserved, other jobs still running there are interrupted, as in an outage."""
    processor_choice: Annotated[PluginRef | None, PluginOf("processor_choices")] = None
    """How the Local Dispatcher of a gang cluster chooses the processors whose queues the tasks of a
    gang join. Default: ld."""
    backend: Literal["simulated", "slurm"] = "simulated"
    """`slurm`: a real cluster, in live runs only. Slurm decides when jobs start and which fail, so
    the local policy and the keys for estimates have no effect."""
    slurm: Slurm | None = None
    """The Slurm cluster, for `backend: slurm`."""
    # Whether the policy is a third-party gang policy; not a key.
    gang_policy: bool = Field(default=False, init=False, exclude=True)

    @model_validator(mode="after")
    def _one_kind_of_resource(self) -> Cluster:
        if (self.cpus is None) == (self.machines == ()):
            raise ValueError("exactly one of `cpus` and `machines`")
        for key in POOL_KEYS:
            if self.cpus is None and getattr(self, key) != keys_of(Cluster)[key].default:
                raise ValueError(f"`{key}` in each entry of `machines`: here it applies to a pool")
        return self

    @model_validator(mode="after")
    def _real_cluster(self) -> Cluster:
        if self.is_real and self.slurm is None:
            raise ValueError("`slurm` with `conf`, for `backend: slurm`")
        is_generated = isinstance(self.machines, MachineGenerator)
        is_pool = self.cpus is not None or (
            not is_generated and sum(one.count for one in self.machines) == 1
        )
        if self.is_real and (self.gangs or not is_pool):
            raise ValueError("`cpus` and no gang policy, for `backend: slurm`")
        return self

    @property
    def is_real(self) -> bool:
        """Whether a batch system runs its jobs."""
        return self.backend != "simulated"

    def expanded(self) -> Cluster:
        """The cluster with a name and a `count` of 1 for each machine; a pool is one machine."""
        if self.cpus is not None:
            of_pool: dict[str, Any] = {key: getattr(self, key) for key in POOL_KEYS}
            pool = Machine("pool", self.cpus, **of_pool)
            defaults = {key: keys_of(Cluster)[key].default for key in POOL_KEYS}
            return replace(self, machines=(pool,), cpus=None, **defaults)
        if all(one.count == 1 and one.name for one in self.machines):
            return self
        each = [one for one in self.machines for _ in range(one.count)]
        machines = tuple(
            replace(one, count=1, name=one.name if one.count == 1 and one.name else f"m{number}")
            for number, one in enumerate(each)
        )
        return replace(self, machines=machines)

    @property
    def by_machine(self) -> bool:
        """Whether a job is bound to the machine that the selection chose."""
        return self.resource == "machine" or (self.resource is None and not self.gangs)

    @property
    def processors(self) -> int:
        return sum(machine.cpus for machine in self.machines)

    @property
    def gangs(self) -> bool:
        """Whether each CPU has its own queue and runs one task of a job at a time."""
        return self.gang_policy or self.policy.name in GANG_POLICIES

    @property
    def widest(self) -> int:
        """The most CPUs that one job may hold."""
        if self.gangs:
            return self.processors
        return max(machine.cpus for machine in self.machines)

    @property
    def padding(self) -> int:
        """CPUs that `one_job_per_machine` adds to each machine and job: no two jobs fit.

        They are more than the jobs in a cluster can request together at any time.
        """
        large = 1 << max(20, self.processors.bit_length())
        return large if self.one_job_per_machine else 0

    def windows(self) -> list[Window]:
        """The reserved CPUs over time, from the first on."""
        each = [
            Window(number, *part)
            for number, machine in enumerate(self.machines)
            for own in [[one for one in self.reservations if one.is_of(machine)]]
            for part in _parts(tuple(own), machine.cpus)
        ]
        return sorted(each, key=lambda one: (one.start_us, one.machine, one.beneficiaries))

    def reserved(self) -> dict[str, tuple[Beneficiaries, ...]]:
        """The beneficiaries of windows, if any, by the name of a resource of each machine.

        Other jobs request as many of it as CPUs. There are as many of it as CPUs, and windows
        reserve them.
        """
        each = sorted({one.beneficiaries for one in self.windows() if one.beneficiaries})
        return {f"not reserved {number}": group for number, group in enumerate(each)}

    def maintenance(self) -> tuple[MachineOutage, ...]:
        """When machines are down since all of their CPUs are reserved."""
        return tuple(
            MachineOutage(one.machine, one.start_us, one.end_us)
            for one in self.windows()
            if one.cpus == self.machines[one.machine].cpus and not one.beneficiaries
        )

    @property
    def resource_names(self) -> tuple[str, ...]:
        """Names of the resources that are limited: those of machines, then those of the cluster."""
        of_machines = {name for machine in self.machines for name in machine.limits}
        return (*sorted(of_machines), *sorted(self.resources))

    def amount(self, machine: Machine, name: str) -> float:
        """The most of a resource that a job may hold on that machine of the cluster."""
        return (machine.limits | self.resources).get(name, unlisted(name))

    def license_bits(self, machine: Machine) -> int:
        """Which licenses of the cluster a job may ever use on the machine: a bit mask."""
        return sum(
            1 << number
            for number, license in enumerate(self.licenses)
            if license.copies > 0 and license.name in machine.licenses
        )

    def job_limits(self) -> tuple[JobLimits | GangLimits, ...]:
        """A job can run here if it conforms to any of these, which are those of machines."""
        if self.gangs:
            return (GangLimits.of(self),)
        each = {
            JobLimits(one.cpus, amounts(one.limits | self.resources), self.license_bits(one))
            for one in self.machines
        }
        return tuple(sorted(each))


@dataclasses.dataclass(frozen=True, slots=True)
class Membership:
    """When a VO is in the grid and shares its resources."""

    joins_us: Time = 0
    leaves_us: Time = NEVER

    def holds(self, now: Time) -> bool:
        return self.joins_us <= now < self.leaves_us


ALWAYS = Membership()


def _after_joining(leaves_s: float | None, info: ValidationInfo) -> float | None:
    joins_s = info.data.get("joins_s", 0.0)
    if leaves_s is not None and leaves_s <= joins_s:
        raise ValueError(f"a time after it joins, at {joins_s:g} s")
    return leaves_s


@dataclass(frozen=True, config=PLATFORM)
class VirtualOrganization:
    """A virtual organization, or `count` identical ones (name1, name2, ...)."""

    name: Name
    """Name of the VO. The names of its entities begin with it."""
    clusters: Annotated[tuple[Cluster, ...], Field(min_length=1)]
    """The VO's clusters."""
    count: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = None
    """Number of identical VOs: NAME1, NAME2 and so on. Default: one, NAME."""
    selection: VoSelection = PluginRef("partial")
    cluster_choice: Annotated[PluginRef, PluginOf("cluster_choices")] = PluginRef("least_load")
    """How the Grid Dispatcher chooses among the clusters of the VO for jobs that are not bound to a
    machine (`resource: cluster`, gangs)."""
    forwarding: Annotated[PluginRef | None, PluginOf("forwarding")] = None
    """The VO's own forwarding policy. Default: that of the protocol."""
    admission: VoAdmission = PluginRef("all")
    priority: VoPriority = "none"
    joins_s: Seconds = 0.0
    """When the VO joins the grid. Until then its users' jobs can use only its own resources, and no
    other VO can use these."""
    leaves_s: Annotated[PositiveSeconds | None, AfterValidator(_after_joining)] = None
    """When the VO leaves the grid, after it has joined. Assigned jobs stay there; jobs in transit
    to it are refused (`when_refused`). Default: never."""
    workload: WorkloadSection | None = None
    """The jobs of the VO's users. Default: none."""
    joins_us = Microseconds("joins_s")
    leaves_us = Microseconds("leaves_s")

    @property
    def names(self) -> list[str]:
        if self.count is None:
            return [self.name]
        return [f"{self.name}{number}" for number in range(1, self.count + 1)]

    @property
    def is_direct(self) -> bool:
        """Whether its jobs enter its cluster, and no Local Scheduler."""
        return self.workload is not None and self.workload.entry_point == "cluster"

    @property
    def membership(self) -> Membership:
        return Membership(self.joins_us, self.leaves_us)


class Distances(NamedTuple):
    """Latencies from VO number `vo` to the others, and the bandwidth between VOs.

    `links` has (VO, latency) for latencies other than `latency_us`. A bandwidth of None is
    unlimited."""

    vo: int
    latency_us: Time
    links: tuple[tuple[int, Time], ...] = ()
    bandwidth_mbps: float | None = None

    @property
    def longest_us(self) -> Time:
        return max([self.latency_us, *(latency_us for _, latency_us in self.links)])

    def hops_us(self, vos: Ints, megabytes: float, data: Sequence[tuple[int, float]] = ()) -> Ints:
        """Transfer time of a job with that input, and `data`, to each of `vos`. Same shape.

        It is 0 to the own VO, unless there are `data` in others (VO, megabytes).
        """
        hop_us = np.full(len(vos), self.latency_us, np.int64)
        for vo, latency_us in self.links:
            hop_us[vos == vo] = latency_us
        hop_us += transfer_us(megabytes, self.bandwidth_mbps)
        is_own = vos == self.vo
        hop_us[is_own] = 0
        if data:
            holders = np.array([holder for holder, _ in data if holder != self.vo], np.int64)
            hop_us[is_own] = self.hops_us(holders, 0.0).max(initial=0)
            for there in np.unique(vos).tolist():
                beyond = sum(size for holder, size in data if holder != there)
                hop_us[vos == there] += transfer_us(beyond, self.bandwidth_mbps)
        return hop_us


def transfer_us(megabytes: float, bandwidth_mbps: float | None) -> Time:
    """Transmission time of `megabytes` between two VOs, without the latency."""
    if bandwidth_mbps is None or megabytes <= 0.0:
        return 0
    return round(megabytes * 8.0 / bandwidth_mbps * SECOND_US)


FaultShare = Annotated[float, Field(ge=0, le=0.9, strict=True)]


@dataclass(frozen=True, config=PLATFORM)
class LinkFaults:
    """Shares of messages that are lost, duplicated or delayed."""

    lost: FaultShare = 0.0
    """Share of messages that are lost."""
    doubled: FaultShare = 0.0
    """Share of messages that arrive twice."""
    delayed: FaultShare = 0.0
    """Share of messages that arrive later."""
    delay_s: PositiveSeconds = 1.0
    """Maximum delay."""
    delay_us = Microseconds("delay_s")

    @property
    def any(self) -> bool:
        return bool(self.lost or self.doubled or self.delayed)


NO_LINK_FAULTS = LinkFaults()


@dataclasses.dataclass(frozen=True, slots=True)
class Outage:
    """From `start_us` until before `end_us`."""

    start_us: Time
    end_us: Time
