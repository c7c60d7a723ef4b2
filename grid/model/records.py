"""Records of entities next to the results of jobs: metrics, histories, events, violations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import NamedTuple

from pydantic.dataclasses import dataclass

from grid.model.arrays import Floats, Ints
from grid.model.job import MEMORY, Amounts, JobKey
from grid.model.platform import Cluster, MachineOutage
from grid.model.time import Time


class ClusterFigure(NamedTuple):
    """A metric of a cluster that does not follow from the table of jobs, recorded at the end.

    `cluster` is a position in the grid's directory. `grid.results.metrics` defines each metric and
    how values of several clusters are aggregated.
    """

    cluster: int
    figure: str
    value: float


class VoFigure(NamedTuple):
    """A sum of an entity of VO number `vo`, recorded at the end; see `ClusterFigure`."""

    vo: int
    figure: str
    value: float


class HeldTimes(NamedTuple):
    """When jobs held CPUs of machines that may be switched off. Shapes (times,).

    From `start_us` until before `end_us` (NEVER: still) `machine` was held by jobs, or booted for
    one that has left it. It booted until `ready_us`, which is `start_us` if it was on.
    """

    machine: Ints
    start_us: Ints
    ready_us: Ints
    end_us: Ints


class Draw(NamedTuple):
    """Changes of the power draw of a cluster for jobs, above that of idle CPUs. Shapes (steps,).

    It changes by `watts` at `time_us`, in any order.
    """

    time_us: Ints
    watts: Floats


class Levels(NamedTuple):
    """The state of a cluster from each of `time_us` on. Shapes (rows,).

    `busy` of its CPUs were in use. For gangs, `smallest` is the size of the smallest one that does
    not run (above the number of CPUs without one); `licenses` of the `copies` were held. For gangs
    on machines with outages, `down` CPUs are down from each of `down_us` on; shapes (changes,).
    `held` has the times of machines that may be switched off, if any may be.

    `busy_us` is the CPU time for which jobs have held each machine, shape (machines,), and `draw`
    their power draw; None if both follow from the ends of jobs. `held`, `busy_us` and `draw` are of
    the whole run, other columns of the rows since they were last read.
    """

    time_us: Ints
    busy: Ints
    smallest: Ints | None = None
    licenses: Ints | None = None
    copies: int = 0
    down_us: Ints | None = None
    down: Ints | None = None
    held: HeldTimes | None = None
    busy_us: Floats | None = None
    draw: Draw | None = None


class ClusterHistory(NamedTuple):
    """The levels of a cluster over time, recorded at the end.

    `cluster` is a position in the grid's directory; it has `processors`.
    """

    cluster: int
    processors: int
    levels: Levels


class PlanTimes(NamedTuple):
    """Durations of plans of a cluster on the real clock, in seconds. Not part of the results.

    All were made while fewer than `below` jobs waited, and at least half as many. A negative
    `below` means that plans were not timed: in compiled code, or in a live run.
    """

    policy: str
    below: int
    plans: int
    total_s: float
    longest_s: float


class JobsLeft(NamedTuple):
    """Jobs that the `policy` of a cluster never started.

    `cluster` is a position in the grid's directory; `first` is one of them, if its name is known.
    """

    cluster: int
    policy: str
    jobs: int
    first: JobKey | None = None


class Violation(NamedTuple):
    """An entity violated the protocol: a bug in the emulator, not in its input."""

    entity: str
    time_us: Time
    rule: str
    is_left_over: bool = False
    """Whether the rule is that nothing is left at the end."""


# Events

MESSAGE, DECISION = "message", "decision"


class Event(NamedTuple):
    """One message that an entity handled, or one decision that it made.

    The fields are the columns of events.parquet, which `grid.results.definitions` defines;
    None for columns that do not apply.
    """

    time_us: Time
    entity: str
    kind: str
    event: str
    peer: str | None = None
    vo: str | None = None
    job: int | None = None
    call: str | None = None
    to_vo: str | None = None
    resource: int | None = None
    cluster: str | None = None
    machine: int | None = None
    processors: int | None = None
    resources: str | None = None
    licenses: int | None = None
    estimate_us: Time | None = None
    ttl: int | None = None
    hops: int | None = None
    utility: float | None = None
    waits: bool | None = None
    free_cpus: float | None = None
    age_us: Time | None = None
    load: float | None = None
    state: str | None = None
    preemptions: int | None = None
    restarts: int | None = None


def resources_text(held: Amounts) -> str:
    """Amounts of resources in `Event.resources`: `gpus=2,ram_mb=512`."""
    return ",".join(f"{name}={amount:g}" for name, amount in held)


def resources_of(text: str | None) -> dict[str, float]:
    """The amounts of an `Event.resources`."""
    pairs = [one.split("=") for one in text.split(",")] if text else []
    return {name: float(amount) for name, amount in pairs}


def word_of(message: type) -> str:
    """The name of the events of a class of messages: `forward_job` for `ForwardJob`."""
    return _word(message.__name__)


@cache
def _word(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


@dataclass(frozen=True)
class ClusterFacts:
    """A cluster as readers of a run's events need it, as plain data.

    Shapes (machines,). If it runs gangs, all machines are one. `resources` are the amounts of
    machines by name, `shared` those of the cluster. `machine_licenses` are bit masks over
    `licenses`, which are (name, copies). `outages` are (machine, from,
    until before). If it runs gangs, `cpus_of` has the CPUs of each machine.
    """

    vo: str
    name: str
    policy: str
    cpus: tuple[int, ...]
    resources: Mapping[str, Sequence[float]] = field(default_factory=dict)
    shared: Mapping[str, float] = field(default_factory=dict)
    machine_licenses: tuple[int, ...] = ()
    licenses: tuple[tuple[str, int], ...] = ()
    outages: tuple[tuple[int, Time, Time], ...] = ()
    gangs: bool = False
    one_job_per_machine: bool = False
    cpus_of: tuple[int, ...] = ()

    @property
    def entity(self) -> str:
        return f"{self.vo}/cluster/{self.name}"


def facts_of(
    vo: str, cluster: Cluster, policy: str, outages: tuple[MachineOutage, ...]
) -> ClusterFacts:
    """The facts of a cluster whose policy has that name."""
    names = [one.name for one in cluster.licenses]
    machines = () if cluster.gangs else cluster.machines
    cpus = tuple(one.cpus for one in cluster.machines)
    of_machines = [name for name in cluster.resource_names if name not in cluster.resources]
    # JSON has no infinite number.
    amounts = {
        name: [one.limits.get(name, -1.0 if name == MEMORY else 0.0) for one in cluster.machines]
        for name in of_machines
    }
    if cluster.gangs:
        amounts = {name: [-1.0 if -1.0 in of else sum(of)] for name, of in amounts.items()}
    return ClusterFacts(
        vo,
        cluster.name,
        policy,
        cpus=(cluster.processors,) if cluster.gangs else cpus,
        resources=amounts,
        shared=cluster.resources,
        machine_licenses=tuple(sum(1 << names.index(n) for n in one.licenses) for one in machines),
        licenses=tuple((one.name, one.copies) for one in cluster.licenses),
        outages=tuple((one.machine, one.start_us, one.end_us) for one in outages),
        gangs=cluster.gangs,
        one_job_per_machine=cluster.one_job_per_machine,
        cpus_of=cpus if cluster.gangs else (),
    )
