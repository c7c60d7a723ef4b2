"""The section of a scenario that says what is measured."""

from __future__ import annotations

from pydantic import Field, model_validator

from grid.config.sections import PartName, PartSection, PositiveSeconds, Seconds, Section


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
    job: tuple[PartSection | PartName, ...] = Field(
        default=(), description="Metrics of jobs: each is a column of jobs.csv and jobs.parquet."
    )
    vo: tuple[PartSection | PartName, ...] = Field(
        default=(),
        description="Metrics of VOs: each is a figure of metrics.json, of every VO and the grid.",
    )
    cluster: tuple[PartSection | PartName, ...] = Field(
        default=(), description="Metrics of clusters: each is a column of series.parquet."
    )

    @model_validator(mode="after")
    def _until_after_from(self) -> MetricsSection:
        if self.submitted_until_s is not None and self.submitted_until_s <= self.submitted_from_s:
            raise ValueError("`submitted_until_s` above `submitted_from_s`")
        return self
