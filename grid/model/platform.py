"""The platform of a grid: machines, clusters, virtual organizations, distances and outages.

A *machine* is space-shared: a job holds a number of its CPUs from start to end. A pool of CPUs, as
in a batch log, is a cluster of one machine with that many CPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, get_args

import numpy as np

from grid.model.arrays import Ints
from grid.model.fields import (
    Architecture,
    Copies,
    Cost,
    Count,
    EstimateSource,
    Factor,
    Megabytes,
    Mips,
    Name,
    OperatingSystem,
    OverrunRule,
    PluginSettings,
    PriorityRule,
    Watts,
)
from grid.model.time import NEVER, SECOND_US, Time

OPERATING_SYSTEMS: tuple[str, ...] = get_args(OperatingSystem)
ARCHITECTURES: tuple[str, ...] = get_args(Architecture)
GANG_POLICIES = ("afcfs", "lgfs")
REFERENCE_MIPS = 1000.0
"""Speed of the CPU that run times refer to, by default."""


@dataclass(frozen=True, slots=True)
class SwitchOff:
    """A machine is switched off when it has been idle for longer than `after_us`.

    The next job that is started there holds its CPUs for `boot_us` before it begins. Each CPU draws
    `watts_off` while the machine is off and `watts_boot` while it boots.
    """

    after_us: Cost
    boot_us: Cost = 0
    watts_off: Watts = 0.0
    watts_boot: Watts = 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: `cpus` processors of `mips` million instructions a second each."""

    name: str
    cpus: Count
    mips: Mips = REFERENCE_MIPS
    operating_system: OperatingSystem = "linux"
    architecture: Architecture = "x86_64"
    ram_mb: Megabytes = 0.0
    disk_mb: Megabytes = 0.0
    cpu_type: str = ""
    licenses: tuple[str, ...] = ()
    """Names of the licenses whose software this machine can run."""
    watts_idle: Watts = 0.0
    """Power draw of each CPU while the machine is up and no job holds it."""
    watts_busy: Watts = 0.0
    """Power draw of each CPU while a job holds it, in place of `watts_idle`."""
    switch_off: SwitchOff | None = None
    """None: it is never switched off."""

    @property
    def most_ram_mb(self) -> float:
        """The most memory that one job may hold; without `ram_mb` there is no limit."""
        return self.ram_mb or math.inf

    @property
    def has_watts(self) -> bool:
        """Whether its power draw is given."""
        off = self.switch_off
        more = () if off is None else (off.watts_off, off.watts_boot)
        return any((self.watts_idle, self.watts_busy, *more))


@dataclass(frozen=True, slots=True)
class MachineOutage:
    """Machine number `machine` of its cluster is down from `start_us` until before `end_us`."""

    machine: int
    start_us: Time
    end_us: Time


@dataclass(frozen=True, slots=True)
class License:
    """A license of `copies` copies; a copy is held by a machine and shared by its jobs."""

    name: str
    copies: Copies


@dataclass(frozen=True, slots=True)
class PreemptionOverheads:
    """How long a job holds CPUs without progress each time that it resumes.

    Its state was written when it was suspended (`suspend_us`), and is then read on the same machine
    (`resume_us`) or moved to another one (`move_us`). All of it is paid at the resumption, since
    the CPUs were released at once.
    """

    suspend_us: Cost = 0
    resume_us: Cost = 0
    move_us: Cost = 0


class JobLimits(NamedTuple):
    """The most that one job may hold: CPUs, memory, and a bit mask over the cluster's licenses."""

    processors: int
    ram_mb: float
    licenses: int

    def allow(self, processors: int, ram_mb: float, licenses: int) -> bool:
        """Whether a job with these requests conforms to them."""
        enough = processors <= self.processors and ram_mb <= self.ram_mb
        return enough and licenses & ~self.licenses == 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines under one Local Dispatcher and its local policy.

    With `by_machine` a job is bound to the machine that the selection chose; without, the local
    policy may choose any machine of the cluster.
    """

    name: Name
    machines: tuple[Machine, ...]
    policy: str = "fcfs"
    policy_settings: PluginSettings = ()
    by_machine: bool = False
    licenses: tuple[License, ...] = ()
    overrun: OverrunRule = "kill"
    """Treatment of a job that exceeds its estimate: `kill` or `extend`."""
    estimates: EstimateSource = "user"
    """Run times that policies use: `user` (users' estimates), `exact` or `average`."""
    estimate_factor: Factor = 1.0
    """Multiplies users' estimates."""
    one_job_a_machine: bool = False
    """Whether a job holds its machine exclusively (C07)."""
    overheads: PreemptionOverheads = PreemptionOverheads()
    processor_choice: str | None = None
    """Under a gang policy, how the Local Dispatcher chooses queues; None: `ld`."""
    processor_choice_settings: PluginSettings = ()
    gang_policy: bool = False
    """Whether the policy is a third-party gang policy."""

    @property
    def processors(self) -> int:
        return sum(machine.cpus for machine in self.machines)

    @property
    def gangs(self) -> bool:
        """Whether each CPU has its own queue and runs one task of a job at a time."""
        return self.gang_policy or self.policy in GANG_POLICIES

    @property
    def widest(self) -> int:
        """The most CPUs that one job may hold."""
        if self.gangs:
            return self.processors
        return max(machine.cpus for machine in self.machines)

    @property
    def most_ram_mb(self) -> float:
        """The most memory that one job may hold; infinite where a machine sets no limit."""
        if self.gangs:
            return math.inf
        return max(machine.most_ram_mb for machine in self.machines)

    def license_bits(self, machine: Machine) -> int:
        """Which licenses of the cluster a job may ever use on the machine: a bit mask."""
        return sum(
            1 << number
            for number, license in enumerate(self.licenses)
            if license.copies > 0 and license.name in machine.licenses
        )

    def job_limits(self) -> tuple[JobLimits, ...]:
        """A job can run here if it conforms to any of these, which are those of machines."""
        if self.gangs:
            return (JobLimits(self.processors, math.inf, 0),)
        each = {
            JobLimits(one.cpus, one.most_ram_mb, self.license_bits(one)) for one in self.machines
        }
        ordered = sorted(each, key=lambda one: (one.licenses, -one.processors, -one.ram_mb))
        limits = []
        for _, alike in groupby(ordered, key=lambda one: one.licenses):
            most_ram_mb = -1.0
            for one in alike:
                # A machine with fewer CPUs counts if it has more memory than all before it.
                if one.ram_mb > most_ram_mb:
                    limits.append(one)
                    most_ram_mb = one.ram_mb
        return tuple(limits)


@dataclass(frozen=True, slots=True)
class Membership:
    """When a VO is in the grid and shares its resources."""

    joins_us: Time = 0
    leaves_us: Time = NEVER

    def holds(self, now: Time) -> bool:
        """Whether the VO is in the grid now."""
        return self.joins_us <= now < self.leaves_us


ALWAYS = Membership()


@dataclass(frozen=True, slots=True)
class VirtualOrganization:
    """A VO: its clusters and the plugins of its entities, each by name and settings."""

    name: Name
    clusters: tuple[Cluster, ...] = field(default=())
    selection: str = "partial"
    selection_settings: PluginSettings = ()
    cluster_choice: str = "least_load"
    cluster_choice_settings: PluginSettings = ()
    forwarding: str | None = None
    """Its own forwarding policy; None: that of the protocol."""
    forwarding_settings: PluginSettings = ()
    admission: str = "all"
    admission_settings: PluginSettings = ()
    priority: PriorityRule = "none"
    """Whose jobs start first: `local`, `remote` or `none`."""
    membership: Membership = ALWAYS


class Distances(NamedTuple):
    """Latencies from VO number `vo` to the others, and the bandwidth between VOs.

    `links` holds (VO, latency) of other latencies than `latency_us`. Bandwidth None: no limit.
    """

    vo: int
    latency_us: Time
    links: tuple[tuple[int, Time], ...] = ()
    bandwidth_mbps: float | None = None

    @property
    def longest_us(self) -> Time:
        """The longest latency to another VO."""
        return max([self.latency_us, *(latency_us for _, latency_us in self.links)])

    def hops_us(self, vos: Ints, megabytes: float) -> Ints:
        """Transfer time of a job with that input to each of `vos`, 0 to its own. Same shape."""
        hop_us = np.full(len(vos), self.latency_us, np.int64)
        for vo, latency_us in self.links:
            hop_us[vos == vo] = latency_us
        hop_us += transfer_us(megabytes, self.bandwidth_mbps)
        hop_us[vos == self.vo] = 0
        return hop_us


def transfer_us(megabytes: float, bandwidth_mbps: float | None) -> Time:
    """Transmission time of `megabytes` between two VOs, without the latency."""
    if bandwidth_mbps is None or megabytes <= 0.0:
        return 0
    return round(megabytes * 8.0 / bandwidth_mbps * SECOND_US)


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """Shares of messages in [0, 1) that are lost, doubled or delayed, by `delay_us` at most."""

    lost: float = 0.0
    doubled: float = 0.0
    delayed: float = 0.0
    delay_us: Time = 0

    @property
    def any(self) -> bool:
        return bool(self.lost or self.doubled or self.delayed)


NO_LINK_FAULTS = LinkFaults()


@dataclass(frozen=True, slots=True)
class Outage:
    """From `start_us` until before `end_us`."""

    start_us: Time
    end_us: Time
