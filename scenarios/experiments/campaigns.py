"""One user with daily campaigns among users who submit a job now and then, and their waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from grid.model.job_table import JobTable

DAY_S = 86_400.0
RUN_S, CPUS = 1800.0, 2
SUBMITS_CAMPAIGNS = 1


def campaigns(
    names: Sequence[str],
    vos: Any,  # noqa: ARG001
    rng: np.random.Generator,
    *,
    days: Annotated[int, Field(ge=1)] = 7,
    campaign: Annotated[int, Field(ge=1)] = 400,
    others: Annotated[int, Field(ge=1)] = 9,
    jobs_per_day: Annotated[int, Field(ge=1)] = 40,
) -> dict[str, JobTable]:
    """User 1 submits `campaign` jobs at 9:00 each day, `others` submit `jobs_per_day` at random."""
    tables = {}
    for name in names:
        starts = np.arange(days) * DAY_S
        daily = np.repeat(starts + 9 * 3600.0, campaign)
        steady = np.repeat(starts, others * jobs_per_day)
        steady = steady + rng.uniform(0.0, DAY_S, len(steady))
        user = np.concatenate([np.ones(len(daily)), 2 + np.arange(len(steady)) % others])
        submit_s = np.concatenate([daily, steady])
        order = np.argsort(submit_s, kind="stable")
        run_us = (rng.exponential(RUN_S, len(order)) * 1e6).astype(np.int64) + 1
        tables[name] = JobTable.of(
            number=np.arange(1, len(order) + 1),
            submit_us=(submit_s[order] * 1e6).astype(np.int64),
            processors=np.full(len(order), CPUS),
            run_us=run_us,
            estimate_us=2 * run_us,
            user=user[order].astype(np.int64),
        )
    return tables


def _mean_wait_s(results: Any, chosen: Any) -> float | None:
    started = chosen & (results.outcome.start_us >= 0)
    waited_us = (results.outcome.start_us - results.submit_us)[started]
    return float(waited_us.mean()) / 1e6 if len(waited_us) else None


def wait_of_others_s(results: Any, directory: Any) -> float | None:  # noqa: ARG001
    """The mean wait in seconds of jobs of users without campaigns."""
    return _mean_wait_s(results, results.user != SUBMITS_CAMPAIGNS)


def wait_in_campaigns_s(results: Any, directory: Any) -> float | None:  # noqa: ARG001
    """The mean wait in seconds of jobs of the user with campaigns."""
    return _mean_wait_s(results, results.user == SUBMITS_CAMPAIGNS)
