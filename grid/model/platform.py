"""What a grid is made of: machines, clusters, virtual organizations.

A *machine* is space-shared: a job holds a number of its CPUs from start to end. A pool of
processors, as a batch log has it, is a cluster of one machine with that many CPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, get_args

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
from grid.model.time import NEVER, Time

OPERATING_SYSTEMS: tuple[str, ...] = get_args(OperatingSystem)
ARCHITECTURES: tuple[str, ...] = get_args(Architecture)
GANG_POLICIES = ("afcfs", "lgfs")
REFERENCE_MIPS = 1000.0
"""Speed on which estimates are given where neither job nor trace names another."""


@dataclass(frozen=True, slots=True)
class SwitchOff:
    """A machine is switched off when it has been idle for longer than `after_us`.

    The next job that is started there holds its CPUs for `boot_us` before it begins. Each CPU of
    the machine draws `watts_off` while it is off and `watts_boot` while it boots.
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
    """What each CPU draws while no job holds it and the machine is up."""
    watts_busy: Watts = 0.0
    """What each CPU draws while a job holds it: this instead of `watts_idle`."""
    switch_off: SwitchOff | None = None
    """When it is switched off; None: never."""

    @property
    def most_ram_mb(self) -> float:
        """The most memory that one job may hold; without `ram_mb` there is no limit."""
        return self.ram_mb or math.inf

    @property
    def has_watts(self) -> bool:
        """Whether anything is known of what it draws."""
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
    """For how long a job holds CPUs without getting on, each time that it is started again.

    Its state was written when it was suspended (`suspend_us`), and is now read on the same machine
    (`resume_us`) or brought to another one (`move_us`). The job pays for all of it when it starts
    again, since whoever took its CPUs had them at once.
    """

    suspend_us: Cost = 0
    resume_us: Cost = 0
    move_us: Cost = 0


class JobLimits(NamedTuple):
    """The most that one job may hold: CPUs, memory, and which licenses, as a bit mask over those
    of the cluster."""

    processors: int
    ram_mb: float
    licenses: int

    def allow(self, processors: int, ram_mb: float, licenses: int) -> bool:
        """Whether a job that asks for so much keeps to them."""
        enough = processors <= self.processors and ram_mb <= self.ram_mb
        return enough and licenses & ~self.licenses == 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines under one Local Dispatcher and its local policy.

    `by_machine` says what the selection chooses: with it a job is bound to the machine that was
    selected for it; without it the local policy is free to take any machine of the cluster.
    """

    name: Name
    machines: tuple[Machine, ...]
    policy: str = "fcfs"
    policy_settings: PluginSettings = ()
    by_machine: bool = False
    licenses: tuple[License, ...] = ()
    overrun: OverrunRule = "kill"
    """What becomes of a job that passes its estimate: `kill` or `extend`."""
    estimates: EstimateSource = "user"
    """What policies know of run times: `user` (what users say), `exact` or `average`."""
    estimate_factor: Factor = 1.0
    """Multiplies what users say."""
    one_job_a_machine: bool = False
    """Whether a job has its machine to itself, whatever CPUs it leaves idle (C07)."""
    overheads: PreemptionOverheads = PreemptionOverheads()
    processor_choice: str | None = None
    """Under a gang policy, how the Local Dispatcher chooses queues; None: `ld`."""
    processor_choice_settings: PluginSettings = ()
    gang_policy: bool = False
    """Whether the policy is a gang policy that another plugged in."""

    @property
    def processors(self) -> int:
        return sum(machine.cpus for machine in self.machines)

    @property
    def gangs(self) -> bool:
        """Whether each CPU is a processor with a queue of its own, and each task of a job on one
        of its own, whatever machine it belongs to."""
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
        """A job can run here if it keeps to some of these, which are those of machines."""
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
                # What has fewer CPUs counts if it has more memory than all before it.
                if one.ram_mb > most_ram_mb:
                    limits.append(one)
                    most_ram_mb = one.ram_mb
        return tuple(limits)


@dataclass(frozen=True, slots=True)
class Membership:
    """When a VO is in the grid, where VOs share their resources."""

    joins_us: Time = 0
    leaves_us: Time = NEVER

    def holds(self, now: Time) -> bool:
        """Whether the VO is in the grid now."""
        return self.joins_us <= now < self.leaves_us


ALWAYS = Membership()


@dataclass(frozen=True, slots=True)
class VirtualOrganization:
    """A VO: its clusters, the selection of its Local Scheduler, the choice of its Grid Dispatcher.

    A part that plugs in is given by its name and its settings.
    """

    name: Name
    clusters: tuple[Cluster, ...] = field(default=())
    selection: str = "partial"
    selection_settings: PluginSettings = ()
    cluster_choice: str = "least_load"
    cluster_choice_settings: PluginSettings = ()
    forwarding: str | None = None
    """Its own rule of forwarding; None: that of the protocol."""
    forwarding_settings: PluginSettings = ()
    admission: str = "all"
    admission_settings: PluginSettings = ()
    priority: PriorityRule = "none"
    """Whose jobs start first, where some have to wait: `local`, `remote` or `none`."""
    membership: Membership = ALWAYS
