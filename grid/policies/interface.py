"""What a local policy sees, what it answers, and how it is found by name.

A policy is asked once an instant, after all completions and arrivals of that instant, and answers
with a plan. It holds no clock, no file and no randomness of its own; what it wants to remember
between two instants (a schedule, reservations, the last matching) it keeps in itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobRequest
from grid.model.time import NEVER, Time

Slots = Ints
"""Indexes into the columns of `JobColumns`. A slot is reused after its job has ended."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobColumns(JobRequest[Ints, Floats, Bools]):
    """The jobs of one cluster by slot: all that a policy may know of a job, as columns.

    Beside the columns below it has those of `grid.model.job.JobRequest`: `user`, `submit_us`,
    `processors`, `estimate_us`, `deadline_us`, `reference_mips`, `licenses`, `input_mb`, `ram_mb`,
    `checkpointable`. Times are microseconds of virtual time, durations microseconds on a CPU of
    `reference_mips`. Policies read and never write. The true run time is not here.
    """

    serial: Ints
    """Order of arrival at this cluster; names a job for ever, while its slot is used again."""
    arrival_us: Ints
    bound_machine: Ints
    """The only machine it may run on; -1: any."""
    machine: Ints
    """Where it runs, or ran when it was preempted; -1: it never ran."""
    start_us: Ints
    """When it was last started; NEVER before its first start."""
    expected_end_us: Ints
    """For a running job: when it ends if its estimate is right. Always after the present."""
    done_us: Ints
    """How much of `estimate_us` is behind it and kept, as of its last start or preemption."""


@dataclass(slots=True, eq=False)
class MachineColumns:
    """The machines of one cluster, as columns of shape (machines,). They never change."""

    cpus: Ints
    mips: Floats
    licenses: Ints
    """Bit mask of the licenses whose software the machine can run."""
    cpu_type: Ints
    speed_order: Ints
    """Machines by falling MIPS, ties by falling CPUs, then by position."""


@dataclass(slots=True, eq=False)
class ClusterView:
    """One cluster at one instant. Arrays are the cluster's own: read them, do not keep them."""

    now: Time
    machines: MachineColumns
    free: Ints
    """Free CPUs of each machine, shape (machines,). A machine that is down has none."""
    jobs: JobColumns
    queue: Slots
    """Waiting jobs, preempted ones included, in order of arrival."""
    running: Slots
    """Running jobs by (expected end, serial)."""
    arrived: Slots
    """Jobs that came since the last plan; all of them are in `queue`."""
    ended: Slots
    """Slots whose jobs ended since the last plan; their columns are as they were then."""
    license_copies_free: Ints


@dataclass(slots=True)
class Plan:
    """What the cluster is to do at this instant, in this order: preempt, reject, start.

    `start` holds (slot, machine) pairs. `reserve` holds (slot, machine, start) of promised starts,
    as a list or as an array of shape (promises, 3), and is for the record only. `wake_us` asks for
    a plan at that instant even if nothing happens. A policy that had nothing to do says so with
    `made`: such plans are timed apart.
    """

    start: list[tuple[int, int]] = field(default_factory=list)
    preempt: list[int] = field(default_factory=list)
    reject: list[int] = field(default_factory=list)
    reserve: list[tuple[int, int, Time]] | Slots = field(default_factory=list)
    wake_us: Time = NEVER
    made: bool = True


class Policy(Protocol):
    """A local policy. One instance serves one cluster and may remember what it likes."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        """What to do at `now`. Called once an instant, after its completions and arrivals."""
        ...


PolicyFactory = Callable[[Mapping[str, Any]], Policy]
"""Makes a policy from the settings its scenario gives it; raises ValueError for a wrong one."""
