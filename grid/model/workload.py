"""The schema of workloads."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from grid.model.fields import (
    ARCHITECTURES,
    OPERATING_SYSTEMS,
    PROPERTIES,
    Amounts,
    Architecture,
    Cpus,
    Megabytes,
    Name,
    OperatingSystem,
    OwnSeed,
    PluginName,
    PluginOf,
    PositiveSeconds,
    Property,
    Seconds,
    Section,
    Switch,
    Whole,
)
from grid.model.job import JobRequest, Option, Requirement, RequirementKind

Utility = Annotated[float, Field(ge=0, le=1, strict=True)]


class OptionSection(Section):
    """An acceptable value of a requirement and its utility."""

    value: Annotated[float, Field(strict=True)] | OperatingSystem | Architecture
    """A name for `operating_system` and `architecture`; the largest number of seconds for
    `execution_time`; the smallest number of MIPS for `speed`, CPUs for `cores`, MB for `ram` and
    `disk`, and the smallest amount of a resource."""
    utility: Utility = 1.0
    """Utility of a resource that fulfils this option. A resource with a total utility of 0 is not
    eligible."""


class RequirementSection(Section):
    """A requirement with its options, the preferred one first."""

    kind: Property | Name
    """The required property, or the name of a resource of machines. `execution_time` is the user's
    estimate at the speed of the resource, without waiting; `cores` is the number of CPUs that one
    job may hold."""
    options: Annotated[tuple[OptionSection, ...], Field(min_length=1)]
    """Acceptable values. The utility of the requirement is the highest utility among the options
    that the resource fulfils."""
    weight: Utility = 1.0
    """Weight of this requirement. The utility of a resource is the sum of weight times utility,
    divided by the number of requirements, so it is below 1 if a weight is below 1. No resource is
    eligible for a job whose only requirement has weight 0."""

    @property
    def requirement(self) -> Requirement:
        """The requirement of a job, with indexes for names of systems and architectures."""
        named = {"operating_system": OPERATING_SYSTEMS, "architecture": ARCHITECTURES}
        values = named.get(self.kind)
        options = [
            Option(
                float(values.index(str(option.value)) if values else option.value), option.utility
            )
            for option in self.options
        ]
        is_property = self.kind in PROPERTIES
        kind = RequirementKind[self.kind.upper()] if is_property else self.kind
        return Requirement(kind, tuple(options), self.weight)


_COLUMNS = {column.name: column for column in dataclasses.fields(JobRequest)}


def of_column(name: str, **changes: Any) -> Any:
    """The key of a job that is the column of that name, with its limits, default and text."""
    column = _COLUMNS[name]
    facts: dict[str, Any] = {
        "default": column.default,
        "description": column.metadata["key"],
        "strict": True,
    }
    if not isinstance(column.default, bool):
        facts["ge"], facts["le"] = column.metadata["limits"]
    return Field(**(facts | changes))


class AfterSection(Section):
    """A job that must end before another one is submitted, or just its number."""

    job: Annotated[int, Field(ge=0, le=2**53, strict=True)]
    """Its number."""
    vo: str | None = None
    """The VO whose users submit it. Default: the same VO or, if it has no such job, the first one
    that does."""
    state: Literal["ok", "any"] = "ok"
    """Required final state. `ok`: completed; if it fails, is rejected or is cancelled, the waiting
    job is cancelled. `any`: any state."""
    data_mb: Annotated[float, Field(ge=0, le=1e9, strict=True)] = 0.0
    """Output that the waiting job reads, in megabytes. It is transferred from the VO where this job
    ran to the one where the waiting job is assigned a resource, if these differ."""

    @model_validator(mode="before")
    @classmethod
    def _of_number(cls, given: Any) -> Any:
        return {"job": given} if isinstance(given, int) else given


MOST_SIZES = 64


class MoldableSection(Section):
    """Other numbers of CPUs that a job may run on: its cluster chooses one when the job starts.

    The job's times apply to its own `cpus`, which remain possible. On n CPUs, they are multiplied
    by the speed-up on `cpus` divided by that on n.
    """

    cpus: tuple[Cpus, ...] = ()
    """The numbers of CPUs; at most 64."""
    min_cpus: Cpus | None = None
    """The smallest number of CPUs. With `max_cpus`, allows every number between them, instead of
    `cpus`."""
    max_cpus: Cpus | None = None
    """The largest number of CPUs."""
    speedup: Literal["amdahl", "downey"] = "amdahl"
    """The speed-up model: Amdahl's law, or Downey's model with average parallelism A and variance
    sigma."""
    serial_fraction: Annotated[float, Field(ge=0, le=1, strict=True)] = 0.0
    """Share of the work that runs on one CPU, for Amdahl's law."""
    parallelism: Annotated[float, Field(ge=1, le=1e7, strict=True)] | None = None
    """Average parallelism A, for Downey's model. Default: the job's `cpus`."""
    sigma: Annotated[float, Field(ge=0, le=1e6, strict=True)] = 1.0
    """Coefficient of variance of the parallelism, for Downey's model; 0: linear speed-up up to
    A."""

    @model_validator(mode="after")
    def _is_one_choice(self) -> MoldableSection:
        bounds = self.min_cpus, self.max_cpus
        if (bounds[0] is None) != (bounds[1] is None):
            raise ValueError("both `min_cpus` and `max_cpus`")
        numbers = (self.max_cpus or 0) - (self.min_cpus or 0)
        if not 0 <= numbers < MOST_SIZES or len(self.cpus) > MOST_SIZES:
            raise ValueError(f"1 to {MOST_SIZES} numbers of CPUs, `min_cpus` at most `max_cpus`")
        given = [bool(self.cpus), bounds[0] is not None, bool(getattr(self, "factors", ()))]
        if sum(given) != 1:
            raise ValueError("`cpus`, or `min_cpus` and `max_cpus`")
        fields = MoldableSection.model_fields
        other = {"amdahl": ("parallelism", "sigma"), "downey": ("serial_fraction",)}[self.speedup]
        if any(getattr(self, key) != fields[key].default for key in other):
            raise ValueError(f"no {' or '.join(f'`{key}`' for key in other)} with {self.speedup}")
        return self


class JobSection(Section):
    """One job."""

    number: Annotated[int, Field(ge=0, le=2**53, strict=True)] | None = None
    """Number of the job. Default: its position in the list, from 1."""
    user: int = of_column("user", default=0)
    submit_s: Seconds = 0.0
    """When the user submits it. With `after`, the earliest time of submission, unless cancelled."""
    after: tuple[AfterSection, ...] = ()
    """Jobs that must end before it is submitted."""
    cpus: Cpus = 1
    """CPUs that it holds from start to end."""
    run_s: PositiveSeconds
    """Run time on a CPU of 1000 MIPS. At m MIPS, it is multiplied by 1000 / m."""
    estimate_s: PositiveSeconds | None = None
    """The user's estimate on the same CPU. Default: the run time."""
    predicted_s: PositiveSeconds | None = None
    """The run time that the local policy plans with instead of the estimate. The job is still
    killed at the estimate. Default: the estimate."""
    cancel_after_s: PositiveSeconds | None = None
    """The user cancels it this long after submission if it has not started by then. It ends as
    `cancelled`. Default: never."""
    deadline_s: PositiveSeconds | None = None
    """Deadline, in seconds after submission. Default: none."""
    input_mb: float = of_column("input_mb", le=1e9)
    ram_mb: Megabytes = 0.0
    """Memory that it holds from start to end, in megabytes. It runs on a machine with that much
    free memory, or on one without `ram_mb`."""
    resources: Amounts = Field(default_factory=dict)
    """Amounts of resources that it holds from start to end, such as `{gpus: 2}`. A machine or its
    cluster must have them."""
    resources_per_task: Amounts = Field(default_factory=dict)
    """Amounts for each of its tasks (one per CPU), in addition to `resources`."""
    moldable: MoldableSection | None = None
    """Other numbers of CPUs that the job may run on. Default: none."""
    checkpointable: bool = of_column("checkpointable")
    power: float = of_column("power", le=1000)
    requirements: tuple[RequirementSection, ...] = ()
    """Requirements on the resource, which the selection evaluates."""


class TraceFilterSection(Section):
    """Selects the jobs of a trace that meet all conditions. Times are those in the trace; jobs keep
    them unless `shift_s` is set."""

    from_s: Seconds | None = None
    """Only jobs submitted at this time or later."""
    before_s: Seconds | None = None
    """Only jobs submitted before this time."""
    users: tuple[Whole, ...] | None = None
    """Only jobs of users with these numbers."""
    without_users: tuple[Whole, ...] = ()
    """Exclude jobs of users with these numbers, for example users who submit bursts."""
    min_cpus: Cpus | None = None
    """Only jobs with at least this number of CPUs."""
    max_cpus: Cpus | None = None
    """Only jobs with at most this number of CPUs."""
    statuses: tuple[Whole, ...] | None = None
    """Only jobs with these statuses, as in the log: 0 failed, 1 completed, 5 cancelled, ...
    Default: any status, all jobs with a run time."""

    sites: tuple[Annotated[int, Field(ge=-1, strict=True)], ...] | None = None
    """Only jobs with one of these values in the field that `route` names: with `vos_from_trace`,
    the VOs with these numbers. -1: unknown."""

    @model_validator(mode="after")
    def _has_time(self) -> TraceFilterSection:
        until = self.before_s
        if self.from_s is not None and until is not None and self.from_s >= until:
            raise ValueError("`from_s` less than `before_s`")
        if self.users and set(self.users) <= set(self.without_users):
            raise ValueError("some of the `users` not in `without_users`")
        if (self.min_cpus or 0) > (self.max_cpus or math.inf):
            raise ValueError("`min_cpus` no more than `max_cpus`")
        return self


Share = Annotated[float, Field(gt=0, le=1, strict=True)]
DrawnShare = Annotated[
    Share, Field(description="Share of the jobs that have one, chosen at random.")
]


class DrawnRequirementSection(RequirementSection):
    """A requirement of a share of the jobs."""

    share: DrawnShare = 1.0
    order: Literal["as_written", "drawn"] = "as_written"
    """`drawn`: for each job, the values are randomly permuted among the options, so users prefer
    different values; the order of utilities is unchanged."""
    at_most: Annotated[int, Field(ge=1, le=1000, strict=True)] | None = None
    """Each job keeps only its first options; their number is random, up to this value."""


class DrawnDeadlineSection(Section):
    """Deadlines, as random multiples of the estimate, counted from submission."""

    share: DrawnShare = 1.0
    least: Annotated[float, Field(gt=0, le=1e6, strict=True)]
    """Smallest multiple of the estimated run time at 1,000 MIPS, even on slower machines."""
    most: Annotated[float, Field(gt=0, le=1e6, strict=True)]
    """Largest multiple. The distribution is uniform."""

    @model_validator(mode="after")
    def _in_order(self) -> DrawnDeadlineSection:
        if self.least > self.most:
            raise ValueError(f"`least` ({self.least:g}) no more than `most` ({self.most:g})")
        return self


class DrawnInputSection(Section):
    """Input data, whose size is lognormal."""

    share: DrawnShare = 1.0
    mean_mb: Annotated[float, Field(gt=0, le=1e9, strict=True)]
    """Mean size."""
    cv: Annotated[float, Field(ge=0, le=100, strict=True)] = 1.0
    """Standard deviation divided by the mean."""


class DrawnCancellationSection(Section):
    """Cancellations of jobs that have waited for too long."""

    share: DrawnShare = 1.0
    least_s: PositiveSeconds
    """Shortest time from submission to cancellation."""
    most_s: PositiveSeconds
    """Longest time. The distribution is uniform."""

    @model_validator(mode="after")
    def _in_order(self) -> DrawnCancellationSection:
        if self.least_s > self.most_s:
            raise ValueError(f"`least_s` ({self.least_s:g}) no more than `most_s`")
        return self


class DrawnResourceSection(Section):
    """An amount of a resource, drawn at random with equal probability."""

    share: DrawnShare = 1.0
    amounts: Annotated[
        tuple[Annotated[float, Field(ge=0, le=1e9, strict=True)], ...], Field(min_length=1)
    ]
    """Amounts to draw from."""
    per_task: Switch = False
    """Whether the amount is per task (one task per CPU)."""


class DrawnMoldableSection(MoldableSection):
    """Sizes of a share of the jobs. Memory from a log and `per_task` amounts scale with the
    CPUs."""

    share: DrawnShare = 1.0
    factors: Annotated[
        tuple[Annotated[float, Field(gt=0, le=1000, strict=True)], ...],
        Field(max_length=MOST_SIZES),
    ] = ()
    """Multiples of the job's own CPUs, such as `[0.5, 2]`, rounded; instead of `cpus`."""


class AttributesSection(Section):
    """Attributes added to the jobs of a log or generator, drawn from the seed.

    Each attribute has its own random stream. With `entry_point: cluster` requirements are an error,
    since no selection evaluates them, and input is not transferred.
    """

    seed: OwnSeed = None
    resolution_s: Annotated[float, Field(ge=1e-6, le=1e6, strict=True)] | None = None
    """Resolution of a log with truncated times, such as 1 for records in whole seconds. A
    submission is drawn at random between its time in the log and this much later, in the log's
    order. A run time is the difference of two times drawn in this way. Default: times as in the
    log."""
    requirements: tuple[DrawnRequirementSection, ...] = ()
    """Requirements with their utilities, which replace the jobs' own requirements. Each is drawn
    independently."""
    deadline: DrawnDeadlineSection | None = None
    """Deadlines, which replace the jobs' own deadlines."""
    cancel_after: DrawnCancellationSection | None = None
    """Cancellations of jobs that have not started, as `cancel_after_s`."""
    input: DrawnInputSection | None = None
    """Input data that is transferred with jobs from VO to VO."""
    resources: dict[Name, DrawnResourceSection] = Field(default_factory=dict)
    """Amounts of resources that jobs hold, by name; `ram_mb` is memory. They replace the jobs' own
    amounts."""
    moldable: DrawnMoldableSection | None = None
    """Numbers of CPUs that jobs may run on."""
    checkpointable: Share | None = None
    """Share of the jobs that are checkpointable, drawn at random. Default: as given by the jobs;
    jobs of a log are not checkpointable."""


class WorkloadSection(Section):
    """The source of jobs: exactly one of a trace, a generator or a list of jobs."""

    trace: str | None = None
    """Path of a log, relative to the current folder or to that of the scenario: .gwf, .parquet
    (written by `grid trace --to`), .json (Batsim or WfCommons), or with any other name, SWF or the
    output of `sacct --parsable2`; plain or compressed (gzip, bzip2, xz, zstd, zip)."""
    route: Literal["partition", "group", "user", "queue", "site", "vo"] | None = None
    """The field of the trace by which jobs of the grid's workload are routed: its values in
    ascending order, -1 (unknown) first, go to the VOs in turn. Required for a trace of several VOs.
    For GWF only: `site`, where the job was submitted (OrigSiteID), and `vo` (VOID)."""
    bound_machines: dict[int, Annotated[int, Field(ge=0, strict=True)]] = Field(
        default_factory=dict
    )
    """For each value of the `route` field, the position (from 0) of the only machine that may run
    these jobs. Models partitions of a cluster with `resource: machine`. Only with `entry_point:
    cluster`."""
    filter: TraceFilterSection | None = None
    """Which jobs of the trace are used. Default: all."""
    shift_s: Annotated[float, Field(ge=-1e11, le=1e11, strict=True)] | None = None
    """Time added to the submission times of the selected jobs. It may be negative: `-604800` with
    the filter's
    `from_s: 604800` starts the second week at 0. Default: 0."""
    interarrival_factor: Annotated[float, Field(ge=1e-6, le=1e6, strict=True)] | None = None
    """Multiplies the times between submissions of the trace; values below 1 raise the load.
    Default: 1."""
    repeat: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 1
    """Number of times that the trace is replayed, back to back. Each repetition begins one mean
    interarrival time after the previous one and continues its job numbers."""
    cpus: Literal["requested", "allocated"] = "requested"
    """The field of the trace that gives a job's CPUs; if it is unknown, the other field is used.
    `grid trace` reports how many jobs differ."""
    memory: Literal["requested", "used"] | None = None
    """The field of the trace that is read as `ram_mb`: kilobytes per processor, times processors.
    Default: none, so jobs need no memory."""
    gres: tuple[Name, ...] = ()
    """Names of the resources that jobs in sacct records hold, according to ReqTRES or else
    AllocTRES: `gpu` for `gres/gpu=2`. Default: none."""
    cancelled: Literal["left_out", "wait"] = "left_out"
    """Jobs of the trace that were cancelled while they waited: status 5, no run time, a wait and a
    requested time. `wait`: they wait and are cancelled after the same time; a job that starts
    earlier runs for its requested time."""
    prediction_field: Annotated[int, Field(ge=19, le=1000, strict=True)] | None = None
    """Position of an additional field, after the 18 standard ones, of an SWF log. It contains the
    run time in seconds that policies plan with; the requested time remains the limit. Default:
    none."""
    cut_at_estimate: Switch = True
    """A job that ran longer than its estimate in the trace runs for its estimate. `false`: it runs
    as long as in the trace, and `overrun` of its cluster applies."""
    waits_for_predecessors: Switch = False
    """A job with predecessors in the SWF log is submitted once these have ended, in any VO and
    state, and the log's think time has passed. Other jobs are submitted at the time in the log.
    Tasks of WfCommons always wait for their parents to complete."""
    generator: Annotated[PluginName | None, PluginOf("job_generators")] = None
    """Name of the job generator."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the generator."""
    seed: OwnSeed = None
    jobs: tuple[JobSection, ...] | None = None
    """A list of jobs."""
    attributes: AttributesSection | None = None
    """Attributes added to the jobs, for example requirements."""
    entry_point: Literal["scheduler", "cluster"] = "scheduler"
    """Where jobs enter: at the VO's Local Scheduler, or directly at its only cluster. In the latter
    case there is no selection, forwarding, admission or message, and settings for these are
    errors."""

    @model_validator(mode="after")
    def _one_source(self) -> WorkloadSection:
        sources = {"trace": self.trace, "generator": self.generator, "jobs": self.jobs}
        given = [name for name, source in sources.items() if source is not None]
        if len(given) != 1:
            raise ValueError("exactly one of `trace`, `generator` and `jobs`")
        fields = type(self).model_fields
        for source, keys in _KEYS_OF_SOURCES.items():
            for key in keys if source not in given else ():
                is_set = key in self.model_fields_set
                if is_set and getattr(self, key) != fields[key].get_default(
                    call_default_factory=True
                ):
                    raise ValueError(f"`{key}` only with `{source}`")
        if self.filter is not None and self.filter.sites is not None and self.route is None:
            raise ValueError("a `route` for the `sites` of the `filter`")
        if self.bound_machines and (self.route is None or self.entry_point == "scheduler"):
            raise ValueError("`bound_machines` only with a `route` and `entry_point: cluster`")
        if self.waits_for_predecessors and self.entry_point == "cluster":
            raise ValueError("`waits_for_predecessors` only with `entry_point: scheduler`")
        if self.entry_point == "cluster" and any(job.after for job in self.jobs or ()):
            raise ValueError("`after` only with `entry_point: scheduler`")
        return self


_KEYS_OF_SOURCES = {
    "generator": ("settings", "seed"),
    "trace": (
        "route", "bound_machines", "filter", "shift_s", "interarrival_factor",
        "waits_for_predecessors", "repeat", "cpus", "memory", "gres", "cut_at_estimate",
        "cancelled", "prediction_field",
    ),
}  # fmt: skip
