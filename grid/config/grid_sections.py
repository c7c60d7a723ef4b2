"""The sections of a scenario that apply to the whole grid: network, protocol, metrics, faults."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from grid.config.faults import FaultsSection
from grid.config.sections import Microseconds, PluginSection, Section
from grid.model.fields import Bandwidth, Count, Name, PluginName, PositiveSeconds, Seconds, Seed
from grid.model.measured_jobs import MeasuredJobs
from grid.model.time import NEVER, Time, from_seconds


class LinkSection(Section):
    """The latency between two VOs, in both directions, where it differs from the default."""

    between: tuple[Name, Name] = Field(description="Names of the two VOs.")
    latency_s: PositiveSeconds = Field(description="How long a message takes between them.")
    latency_us = Microseconds("latency_s")


class NetworkSection(Section):
    """How long messages take."""

    latency_s: PositiveSeconds = Field(
        default=0.05, description="How long a message takes between entities of different VOs."
    )
    local_latency_s: PositiveSeconds = Field(
        default=0.001, description="How long a message takes between entities of one VO."
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
    """How VOs inform each other and pass jobs on (PU 3.2)."""

    ttl: Annotated[int, Field(ge=0, le=1000, strict=True)] = Field(
        default=3, description="How many times a job may be forwarded from VO to VO."
    )
    forwarding: PluginSection | PluginName = Field(
        default="queue",
        description="The rule of forwarding: whether a job leaves its VO or stays, above all where "
        "no suitable resource is free. `queue`: it queues at the best one. `forward`: it goes to "
        "the best other VO, until its TTL is spent. `reject`: it is rejected. Others: see "
        "`grid parts forwarding`.",
    )
    avoid_loops: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="A job remembers the VOs that it has left, and is not sent there again.",
    )
    when_refused: Literal["next", "origin", "reject"] = Field(
        default="next",
        description="What a job does that another VO does not take in. `next`: it goes back to "
        "where it came from, and tries another VO. `origin`: it goes back to its own VO, takes "
        "what is free there, and else waits there. `reject`: it is rejected.",
    )
    information: PluginSection | PluginName = Field(
        default="all",
        description="The information overlay: which VOs hear of which others' status, and how. "
        "`all`: every VO publishes snapshots to all others. `none`: nobody hears anything. Others: "
        "see `grid parts information`.",
    )
    discount: PluginSection | PluginName = Field(
        default="no_correction",
        description="Correction of stale status of other VOs. `no_correction`: none. `drained`: "
        "less the work done since. `by_age`: the older, the less weight.",
    )
    snapshot_detail: Literal["full", "summary"] = Field(
        default="full",
        description="What VOs tell each other: a row for each resource, or two rows for a VO.",
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
        description="A run ends with an error if for so long no job has changed state, none runs "
        "and none is to be submitted, while messages go on. Default: 100 times all timings of the "
        "protocol.",
    )

    @property
    def snapshot_period_us(self) -> Time | None:
        """The snapshot period in microseconds, None if snapshots are not periodic."""
        return None if self.snapshot_period_s is None else from_seconds(self.snapshot_period_s)


class MetricsSection(Section):
    """Which jobs are measured, and metrics beside those that every run has."""

    submitted_from_s: Seconds = Field(
        default=0.0,
        description="Figures of jobs count only the jobs that were submitted at this virtual time "
        "or later, so that the warm-up is left out. Figures of machines and of decisions still "
        "count the whole run.",
    )
    submitted_until_s: PositiveSeconds | None = Field(
        default=None,
        description="Figures of jobs count only the jobs that were submitted before this virtual "
        "time. Default: no end.",
    )
    job: tuple[PluginSection | PluginName, ...] = Field(
        default=(), description="Metrics of jobs: each is a column of jobs.csv and jobs.parquet."
    )
    vo: tuple[PluginSection | PluginName, ...] = Field(
        default=(),
        description="Metrics of VOs: each is a figure of metrics.json, of every VO and the grid.",
    )
    cluster: tuple[PluginSection | PluginName, ...] = Field(
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
    seed: Seed = Field(default=1, description="All chance comes from it: same seed, same run.")
    network: NetworkSection = Field(default=NetworkSection(), description="How long messages take.")
    protocol: ProtocolSection = Field(
        default=ProtocolSection(), description="How VOs inform each other and pass jobs on."
    )
    faults: FaultsSection | None = Field(
        default=None, description="What goes wrong. Default: nothing."
    )
    metrics: MetricsSection = Field(
        default=MetricsSection(), description="Which jobs are measured, and metrics of yours."
    )
