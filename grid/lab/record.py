"""What is kept of one run of a sweep: a few kilobytes that all figures and claims come from."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grid.config.schema import Scenario
from grid.lab.paper_figures import paper_figures, slowdowns
from grid.model.arrays import Floats, Ints
from grid.model.errors import InputError, PluginFailed, RunFailed
from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US
from grid.results.machines import machine_cpus, ran
from grid.results.series import series
from grid.runtime.run import Run, execute

POINTS = 101

Record = dict[str, Any]

Work = tuple[int, Scenario, str, str]
"""The number of a run, its scenario, the file that mistakes are reported against, and what is
measured (see `attempt`)."""

Answer = tuple[Record, Record] | str
"""The record and the clock of a run, or why there are none."""


class Step(NamedTuple):
    """A run that has ended, by its number, with its answer; or just that time has passed.

    `is_first` is the step at which workers are ready for their first runs.
    """

    running: int
    number: int | None = None
    answer: Answer | None = None
    is_first: bool = False


def attempt(scenario: Scenario, file: str, measure: str = "run") -> Answer:
    """Run `scenario` here. What fails becomes one line, for the other runs go on.

    `measure` is `run`, for the figures of a run, or `knapsack`, for those of its choices.
    """
    try:
        if measure == "knapsack":
            from grid.lab.knapsack_choices import knapsack_choices

            return knapsack_choices(scenario, file)
        return perform(scenario, file)
    except PluginFailed as error:
        return f"{error}\n{error.details}".rstrip()
    except (InputError, RunFailed) as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


def perform(scenario: Scenario, file: str) -> tuple[Record, Record]:
    """Run `scenario` in this process: what came of it, and what was measured on the real clock.

    The first is the same in every run of the same scenario, seed and code, to the last bit.
    Raises InputError and RunFailed.
    """
    run = execute(scenario, file, in_process=True, compile_first=True)
    return record_of(run, scenario), clock_of(run)


def record_of(run: Run, scenario: Scenario) -> Record:
    """Scenario, digest, counts, metrics, quantiles, flows and courses of a run, as plain data.

    Quantiles are of the jobs that are measured, flows and courses of all. `more` are figures of
    the whole grid that `metrics.json` does not have.
    """
    kept = {name: run.manifest[name] for name in ("seed", "digest", "jobs", "messages")}
    return {
        "scenario": scenario.model_dump(mode="json"),
        **kept,
        "metrics": run.metrics,
        "more": paper_figures(run.results, run.directory, run.histories, run.measured),
        "quantiles": _quantiles(run.measured.of(run.results)),
        "flows": _flows(run.results, len(run.directory.vos)),
        "courses": _courses(run),
    }


def clock_of(run: Run) -> Record:
    """What the run cost: no two runs cost the same."""
    return {name: run.manifest[name] for name in ("cpu_seconds", "wall_seconds", "plan_seconds")}


def _quantiles(jobs: JobResults) -> dict[str, list[float]]:
    """Percentiles 0 to 100 of waits and slowdowns, all of them values of jobs; empty without any.

    By the inverse of the empirical distribution, so that they are steps of it.
    """
    wait = (jobs.outcome.start_us - jobs.submit_us)[ran(jobs)] / SECOND_US
    _, slowdown = slowdowns(jobs)
    share = np.linspace(0.0, 1.0, POINTS)
    return {
        name: np.quantile(values, share, method="inverted_cdf").tolist() if len(values) else []
        for name, values in (("wait_s", wait), ("slowdown", slowdown))
    }


def _flows(jobs: JobResults, vos: int) -> list[list[int]]:
    """The position of a VO, that of a VO that ran jobs of its users, and how many."""
    rows = ran(jobs)
    pair = jobs.vo[rows] * vos + jobs.placement.executed_vo[rows]
    pairs, counts = np.unique(pair, return_counts=True)
    return [[int(one) // vos, int(one) % vos, int(n)] for one, n in zip(pairs, counts, strict=True)]


def _courses(run: Run) -> dict[str, dict[str, list[float]]]:
    """How a run went, from the first submission to the last end.

    - `jobs_in_system`: jobs submitted and not ended, the rejected ones left out, at `POINTS`
      instants.
    - `utilization`: CPUs in use, over all CPUs; means over intervals (`grid.results.series`).
    - `utilization_percent`: processors of running jobs, in per cent of all, by interaction: a start
      or an end of a job (GM Fig. 3).
    - `response_time`: mean response time (s) of the jobs that completed first, by their number.
    """
    jobs = run.results
    rows = ran(jobs)
    if not rows.any():
        return {}
    submit, end = jobs.submit_us[rows], jobs.outcome.end_us[rows]
    instants = np.linspace(submit.min(), end.max(), POINTS)
    ones = np.ones(len(submit))
    in_system = _level(submit, end, ones, instants)
    over_time = series(jobs, run.directory, POINTS, run.histories)
    clusters = len(run.directory.clusters)
    busy = over_time.busy_cpus.reshape(clusters, -1).sum(axis=0)
    return {
        "jobs_in_system": {
            "time_s": (instants / SECOND_US).tolist(),
            "value": in_system.tolist(),
        },
        "utilization": {
            "time_s": over_time.time_s[: len(busy)].tolist(),
            "value": (busy / machine_cpus(run.directory).sum()).tolist(),
        },
        "utilization_percent": _utilization_by_interaction(jobs, machine_cpus(run.directory).sum()),
        "response_time": _response_by_jobs(jobs),
    }


def _level(
    begin_us: Ints,
    end_us: Ints,
    weight: Floats,
    instants: Floats,
) -> Floats:
    """Summed weights of what has begun and not ended at each instant."""
    return _reached(begin_us, weight, instants) - _reached(end_us, weight, instants)


def _reached(times: Ints, weight: Floats, instants: Floats) -> Floats:
    order = np.argsort(times, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    reached: Floats = sums[np.searchsorted(times[order], instants, side="right")]
    return reached


def _utilization_by_interaction(jobs: JobResults, cpus: float) -> dict[str, list[float]]:
    rows = ran(jobs)
    processors = jobs.processors[rows]
    times = np.concatenate([jobs.outcome.end_us[rows], jobs.outcome.start_us[rows]])
    changes = np.concatenate([-processors, processors])
    busy = np.cumsum(changes[np.argsort(times, kind="stable")])
    counts = np.unique(np.linspace(1, len(busy), POINTS).astype(np.int64))
    return {
        "interactions": counts.tolist(),
        "value": (100.0 * busy[counts - 1] / cpus).tolist(),
    }


def _response_by_jobs(jobs: JobResults) -> dict[str, list[float]]:
    completed = jobs.take(jobs.outcome.state == JobState.COMPLETED)
    if not len(completed):
        return {"jobs": [], "value": []}
    order = np.argsort(completed.outcome.end_us, kind="stable")
    response = (completed.outcome.end_us - completed.submit_us)[order] / SECOND_US
    means = np.cumsum(response) / np.arange(1, len(response) + 1)
    counts = np.unique(np.linspace(1, len(means), POINTS).astype(np.int64))
    return {"jobs": counts.tolist(), "value": means[counts - 1].tolist()}
