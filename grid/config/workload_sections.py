"""The sections of a scenario that say which jobs there are."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from grid.config.sections import OwnSeed, PluginOf, Section, TakesEffect
from grid.model.fields import (
    Architecture,
    Count,
    Megabytes,
    OperatingSystem,
    PluginName,
    PositiveSeconds,
    Seconds,
    Switch,
    Whole,
)
from grid.model.job import Option, Requirement, RequirementKind
from grid.model.platform import ARCHITECTURES, OPERATING_SYSTEMS

Utility = Annotated[float, Field(ge=0, le=1, strict=True)]


class OptionSection(Section):
    """One acceptable value of a requirement and its utility."""

    value: Annotated[float, Field(strict=True)] | OperatingSystem | Architecture = Field(
        description="What the resource must be or have: a word for the operating system and the "
        "architecture; at most so many seconds for `execution_time`; at least so many MIPS for "
        "`speed`, CPUs for `cores`, MB for `ram` and `disk`."
    )
    utility: Utility = Field(
        default=1.0,
        description="What a resource that fulfils this option is worth to the user. A resource "
        "that is worth 0 in all will not do: the job does not run there.",
    )


class RequirementSection(Section):
    """A requirement with its options, the preferred one first."""

    kind: Literal[
        "operating_system", "architecture", "execution_time", "speed", "cores", "ram", "disk"
    ] = Field(
        description="What is required of the resource. `execution_time` is the user's estimate at "
        "the speed of the resource, without waiting; `cores` are those that one job may hold."
    )
    options: Annotated[tuple[OptionSection, ...], Field(min_length=1)] = Field(
        description="Values that will do. The requirement is worth the highest utility among "
        "those that the resource fulfils."
    )
    weight: Utility = Field(
        default=1.0,
        description="Factor of this requirement. The utility of a resource is the sum of weight "
        "times worth over the number of requirements, so it is below 1 if a weight is below 1. A "
        "job whose only requirement has weight 0 finds no place.",
    )

    @property
    def requirement(self) -> Requirement:
        """The same for a job; names of systems and architectures become their indexes."""
        named = {"operating_system": OPERATING_SYSTEMS, "architecture": ARCHITECTURES}
        values = named.get(self.kind)
        options = [
            Option(
                float(values.index(str(option.value)) if values else option.value), option.utility
            )
            for option in self.options
        ]
        return Requirement(RequirementKind[self.kind.upper()], tuple(options), self.weight)


class JobSection(Section):
    """One job, written by hand."""

    number: Annotated[int, Field(ge=0, le=2**53, strict=True)] | None = Field(
        default=None, description="Number of the job. Default: its place in the list, from 1."
    )
    user: Annotated[int, Field(ge=-1, le=2**53, strict=True)] = Field(
        default=0, description="Number of the user; -1: no user is named."
    )
    submit_s: Seconds = Field(default=0.0, description="When the user submits it.")
    cpus: Count = Field(default=1, description="CPUs that it holds from start to end.")
    run_s: PositiveSeconds = Field(
        description="How long it runs on a CPU of 1000 MIPS. On m MIPS it takes 1000 / m of that."
    )
    estimate_s: PositiveSeconds | None = Field(
        default=None,
        description="How long the user says that it runs, on the same CPU. Default: the run time.",
    )
    deadline_s: PositiveSeconds | None = Field(
        default=None,
        description="Time after the submission by which it should have ended. Default: none.",
    )
    input_mb: Megabytes = Field(
        default=0.0, description="Input that travels with it from VO to VO."
    )
    ram_mb: Megabytes = Field(
        default=0.0,
        description="Memory of its machine that it holds from start to end. It runs where so much "
        "is free, or on a machine without `ram_mb`.",
    )
    checkpointable: Switch = Field(
        default=False,
        description="It keeps all that it has done when it goes on on another machine, and when "
        "its machine was down. `preemption` says what that costs.",
    )
    power: Annotated[float, Field(ge=0, le=1000, strict=True)] = Field(
        default=1.0, description="Factor of the watts that a busy CPU of its machine draws."
    )
    requirements: Annotated[
        tuple[RequirementSection, ...], TakesEffect("jobs enter the cluster")
    ] = Field(
        default=(), description="What the user asks of the resource, for the selection to weigh."
    )


class TraceFilterSection(Section):
    """Which jobs of a trace are taken: those that meet all that is given. Times are the trace's,
    and jobs keep them, unless `shift_s` moves them: a later week of a log begins later, too."""

    from_s: Seconds | None = Field(default=None, description="Only jobs submitted then or later.")
    before_s: Seconds | None = Field(default=None, description="Only jobs submitted before then.")
    users: tuple[Whole, ...] | None = Field(
        default=None,
        description="Only jobs of the users of these numbers; `without_users` leaves some out.",
    )
    without_users: tuple[Whole, ...] = Field(
        default=(),
        description="No jobs of the users of these numbers: those whose bursts of jobs would "
        "decide all results, say.",
    )
    min_cpus: Count | None = Field(
        default=None, description="Only jobs of so many processors or more."
    )
    max_cpus: Count | None = Field(
        default=None, description="Only jobs of so many processors or fewer."
    )
    statuses: tuple[Whole, ...] | None = Field(
        default=None,
        description="Only jobs of these statuses, as the log has them: 0 failed, 1 completed, "
        "5 cancelled, ... Default: whatever their status is, all that have a run time.",
    )

    sites: tuple[Annotated[int, Field(ge=-1, strict=True)], ...] | None = Field(
        default=None,
        description="Only jobs with one of these values in the field that `route` names: with "
        "`vos_from_trace` the VOs of these numbers. -1 is an unknown one.",
    )

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


class AnnotatedRequirementSection(RequirementSection):
    """A requirement that some of the jobs get."""

    share: Share = Field(default=1.0, description="Share of the jobs that get it, drawn by lot.")
    order: Literal["as_written", "drawn"] = Field(
        default="as_written",
        description="`drawn`: for each job the values are dealt anew over the options, so that "
        "users prefer different ones; utilities stay in their places.",
    )
    at_most: Annotated[int, Field(ge=1, le=1000, strict=True)] | None = Field(
        default=None, description="Each job keeps 1 to so many of the options, the first ones."
    )


class AnnotatedDeadlineSection(Section):
    """Deadlines: so many estimates after the submission."""

    share: Share = Field(default=1.0, description="Share of the jobs that get one, drawn by lot.")
    least: Annotated[float, Field(gt=0, le=1e6, strict=True)] = Field(
        description="The deadline is at least so many estimated run times after the submission. "
        "Those are the times at 1,000 MIPS: on slower machines deadlines are no later."
    )
    most: Annotated[float, Field(gt=0, le=1e6, strict=True)] = Field(
        description="And at most so many; uniform between the two."
    )

    @model_validator(mode="after")
    def _in_order(self) -> AnnotatedDeadlineSection:
        if self.least > self.most:
            raise ValueError(f"`least` ({self.least:g}) no more than `most` ({self.most:g})")
        return self


class AnnotatedInputSection(Section):
    """Input data, whose size is lognormal."""

    share: Share = Field(default=1.0, description="Share of the jobs that get some, drawn by lot.")
    mean_mb: Annotated[float, Field(gt=0, le=1e9, strict=True)] = Field(description="Mean size.")
    cv: Annotated[float, Field(ge=0, le=100, strict=True)] = Field(
        default=1.0, description="Standard deviation over mean."
    )


class AnnotateSection(Section):
    """What jobs get beside what their log or generator has, by lot from the seed.

    What is drawn for one of these does not change what is drawn for another. With
    `entry_point: cluster`
    requirements are a mistake, for no selection looks at them, and input stays where it is.
    """

    seed: OwnSeed = None
    requirements: Annotated[
        tuple[AnnotatedRequirementSection, ...], TakesEffect("jobs enter the cluster")
    ] = Field(
        default=(),
        description="Requirements with their utilities, in place of those that jobs "
        "have. Each is drawn by itself.",
    )
    deadline: AnnotatedDeadlineSection | None = Field(
        default=None, description="Deadlines, in place of those that jobs have."
    )
    input: AnnotatedInputSection | None = Field(
        default=None, description="Input data that travels with jobs from VO to VO."
    )
    checkpointable: Share | None = Field(
        default=None,
        description="Share of the jobs, drawn by lot, that keep what they have done; the others "
        "do not. Default: as jobs have it, and jobs of a log do not.",
    )


class WorkloadSection(Section):
    """Where jobs come from: exactly one of a trace, a generator, a list of jobs."""

    trace: str | None = Field(
        default=None,
        description="Path of a log, looked for in the current folder, then in the scenario's: "
        ".gwf, .parquet (of `grid trace --to`), any other name: SWF, or what `sacct --parsable2` "
        "prints; plain or compressed (gzip, bzip2, xz, zstd, zip).",
    )
    route: Literal["partition", "group", "user", "queue", "site", "vo"] | None = Field(
        default=None,
        description="The field of the trace by which a grid's own workload is shared out: the "
        "first VO has the jobs of its lowest value, the next VO those of the next one, and so on, "
        "from the first VO again when all have one. -1, unknown, is a value like others, and the "
        "lowest. With several VOs a grid's own trace needs a route. For GWF only: `site`, where "
        "the job was submitted (OrigSiteID), and `vo` (VOID).",
    )
    filter: TraceFilterSection | None = Field(
        default=None, description="Which jobs of the trace are taken. Default: all."
    )
    shift_s: Annotated[float, Field(ge=-1e11, le=1e11, strict=True)] | None = Field(
        default=None,
        description="Every job that is taken of the trace is submitted so much later than the "
        "trace says; below 0, earlier: `-604800` with the filter's `from_s: 604800` lets the "
        "second week begin at 0. Default: as the trace has it.",
    )
    interarrival_factor: Annotated[float, Field(ge=1e-6, le=1e6, strict=True)] | None = Field(
        default=None,
        description="Multiplies the times between submissions of the trace; the first job comes "
        "when `shift_s` says. Below 1 the load grows. Default: as the trace has them.",
    )
    repeat: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = Field(
        default=1,
        description="The jobs of the trace come so many times, one time after the other. Each "
        "begins one mean time between submissions after the last, and goes on with its numbers.",
    )
    cpus: Literal["requested", "allocated"] = Field(
        default="requested",
        description="The field of the trace that gives a job's CPUs; the other one counts where it "
        "is unknown. `grid trace` reports how many jobs differ.",
    )
    memory: Literal["requested", "used"] | None = Field(
        default=None,
        description="The field of the trace that is read as `ram_mb`: kilobytes per processor, "
        "times processors. Default: none, so jobs need no memory.",
    )
    cut_at_estimate: Switch = Field(
        default=True,
        description="A job that ran longer than its user asked for in the trace runs only so "
        "long. `false`: it runs as long as in the trace, and `overrun` of its cluster says what "
        "becomes of it at its estimate.",
    )
    waits_for_predecessors: Switch = Field(
        default=False,
        description="A job for which the SWF log names a preceding job comes when that one has "
        "ended, in whichever VO, and the log's think time is over; others come at the log's time.",
    )
    generator: Annotated[PluginName | None, PluginOf("job_generators")] = Field(
        default=None, description="Name of the generator that makes the jobs."
    )
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of the generator.")
    seed: OwnSeed = None
    jobs: tuple[JobSection, ...] | None = Field(default=None, description="Jobs written by hand.")
    attributes: AnnotateSection | None = Field(
        default=None, description="What jobs get beside what they have: requirements and others."
    )
    entry_point: Literal["scheduler", "cluster"] = Field(
        default="scheduler",
        description="Where jobs enter: at the VO's Local Scheduler, or straight at its only "
        "cluster. There nobody selects, forwards or admits them, and no entity sends a message: "
        "settings for that are mistakes.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> WorkloadSection:
        sources = {"trace": self.trace, "generator": self.generator, "jobs": self.jobs}
        given = [name for name, source in sources.items() if source is not None]
        if len(given) != 1:
            raise ValueError("exactly one of `trace`, `generator` and `jobs`")
        fields = type(self).model_fields
        for source, keys in _KEYS_OF_SOURCES.items():
            for key in keys if source not in given else ():
                if getattr(self, key) != fields[key].get_default(call_default_factory=True):
                    raise ValueError(f"`{key}` only with `{source}`")
        if self.filter is not None and self.filter.sites is not None and self.route is None:
            raise ValueError("a `route` for the `sites` of the `filter`")
        if self.waits_for_predecessors and self.entry_point == "cluster":
            raise ValueError("`waits_for_predecessors` only with `entry_point: scheduler`")
        return self


_KEYS_OF_SOURCES = {
    "generator": ("settings", "seed"),
    "trace": (
        "route", "filter", "shift_s", "interarrival_factor", "waits_for_predecessors", "repeat",
        "cpus", "memory", "cut_at_estimate",
    ),
}  # fmt: skip
