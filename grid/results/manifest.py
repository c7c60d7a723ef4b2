"""What is said of a run beside its results: `manifest.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import numpy as np

from grid.model.job import FINAL_STATES
from grid.results.table import JobResults


class JobCounts(TypedDict):
    """Jobs by final state, and those of the workload that were never submitted, by reason."""

    completed: int
    failed: int
    rejected: int
    skipped: dict[str, int]


class CpuSeconds(TypedDict):
    """Processor time of all processes: to read scenario and workload, and to run."""

    read: float
    run: float


class Manifest(TypedDict):
    """The content of `manifest.json`. Only `version`, `seed`, `digest` and `jobs` are results.

    `plan_seconds` is {"count", "mean", "max", "total"} of the real time that plans took, by policy;
    and, for each power of two N, {"count_below_N", "mean_below_N"} of those that were made while
    fewer than N jobs waited, and at least half as many.
    """

    version: str
    seed: int
    runtime: str
    placement: str
    digest: str
    jobs: JobCounts
    messages: int
    rounds: int
    wall_seconds: float
    cpu_seconds: CpuSeconds
    plan_seconds: dict[str, dict[str, float]]


def job_counts(results: JobResults, skipped: Mapping[str, int]) -> JobCounts:
    """The counts of a table, with what its workload left out."""
    counts = [int(np.count_nonzero(results.state == state)) for state in FINAL_STATES]
    completed, failed, rejected = counts
    return {
        "completed": completed,
        "failed": failed,
        "rejected": rejected,
        "skipped": dict(skipped),
    }
