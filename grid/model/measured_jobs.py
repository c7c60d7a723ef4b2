"""Which jobs the figures of a run are of: all, or those that come after a warm-up."""

from __future__ import annotations

from dataclasses import dataclass

from grid.model.job_results import JobResults
from grid.model.time import NEVER, Time, to_seconds


@dataclass(frozen=True, slots=True)
class MeasuredJobs:
    """The jobs submitted from `from_us` on and before `until_us`, in virtual time.

    A run begins with an empty grid and ends with one. Jobs at both ends wait less than jobs in
    between, so that means over all jobs are not those of the steady state.
    """

    from_us: Time = 0
    until_us: Time = NEVER

    @property
    def are_all(self) -> bool:
        """Whether no job can be left out."""
        return self.from_us == 0 and self.until_us == NEVER

    @property
    def interval_s(self) -> tuple[float, float | None]:
        """From when on and until when, in seconds; None: to the end."""
        until_s = None if self.until_us == NEVER else to_seconds(self.until_us)
        return to_seconds(self.from_us), until_s

    def of(self, jobs: JobResults) -> JobResults:
        """Those of `jobs`, in the same order."""
        if self.are_all:
            return jobs
        return jobs.take((jobs.submit_us >= self.from_us) & (jobs.submit_us < self.until_us))


ALL_JOBS = MeasuredJobs()
