"""The record of one run of a sweep, a few kilobytes, and the version of the code behind it."""

from __future__ import annotations

import hashlib
import json
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grid.config.schema import Scenario
from grid.lab.paper_figures import paper_figures, slowdowns
from grid.model.errors import InputError, OutOfMemory, PluginFailed, RunFailed
from grid.model.job_results import JobResults
from grid.model.plugins.registry import plugged_in
from grid.model.time import SECOND_US
from grid.results.machines import machine_cpus, ran
from grid.results.series import series
from grid.runtime.run import Run, execute, versions

if TYPE_CHECKING:
    from grid.lab.experiment import PlannedRun

POINTS = 101

Record = dict[str, Any]

Answer = tuple[Record, Record] | str
"""The record and the clock of a run, or its error."""


def attempt(run: PlannedRun) -> Answer:
    """Execute a run in this process. Errors become one line, since other runs continue.

    Only a lack of memory is raised: this process could not make further runs.
    """
    try:
        if run.measure == "knapsack":
            from grid.lab.knapsack_choices import knapsack_choices

            return knapsack_choices(run.scenario, run.file)
        done = execute(run.scenario, run.file, in_process=True, compile_first=True)
        return record_of(done, run.scenario), clock_of(done)
    except (MemoryError, OutOfMemory):
        raise
    except PluginFailed as error:
        return f"{error}\n{error.details}".rstrip()
    except (InputError, RunFailed) as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


def record_of(run: Run, scenario: Scenario) -> Record:
    """Scenario, digest, counts, metrics, quantiles, flows and courses of a run, as plain data.

    The same for the same scenario, seed and code, to the last bit. Quantiles are of the measured
    jobs, flows and courses of all. `more` are metrics of the grid that `metrics.json` lacks.
    """
    results, vos, rows = run.results, len(run.directory.vos), ran(run.results)
    # Submitting VO and executing VO, and the number of jobs.
    pair = results.vo[rows] * vos + results.placement.executed_vo[rows]
    flows = zip(*map(np.ndarray.tolist, np.unique(pair, return_counts=True)), strict=True)
    kept = {name: run.manifest[name] for name in ("seed", "digest", "jobs", "messages")}
    return {
        "scenario": scenario.model_dump(mode="json"),
        **kept,
        "metrics": run.metrics,
        "more": paper_figures(run.results, run.directory, run.histories, run.measured),
        "quantiles": _quantiles(run.measured.of(run.results)),
        "flows": [[*divmod(one, vos), count] for one, count in flows],
        "courses": _courses(run),
    }


def clock_of(run: Run) -> Record:
    """The real-clock times of the run, which differ between runs."""
    return {name: run.manifest[name] for name in ("cpu_seconds", "wall_seconds", "plan_seconds")}


def _quantiles(jobs: JobResults) -> dict[str, list[float]]:
    """Percentiles 0 to 100 of waits and slowdowns; empty without jobs.

    By the inverse of the empirical distribution, so that all are values of jobs.
    """
    wait = (jobs.outcome.start_us - jobs.submit_us)[ran(jobs)] / SECOND_US
    _, slowdown = slowdowns(jobs)
    share = np.linspace(0.0, 1.0, POINTS)
    return {
        name: np.quantile(values, share, method="inverted_cdf").tolist() if len(values) else []
        for name, values in (("wait_s", wait), ("slowdown", slowdown))
    }


def _courses(run: Run) -> dict[str, dict[str, list[float]]]:
    """Time series from the first submission to the last end.

    - `jobs_in_system`: jobs submitted and not ended, without rejected ones, at `POINTS` instants.
    - `utilization`: CPUs in use over all CPUs; means over intervals (`grid.results.series`).
    """
    rows = ran(run.results)
    if not rows.any():
        return {}
    submit = np.sort(run.results.submit_us[rows])
    end = np.sort(run.results.outcome.end_us[rows])
    instants = np.linspace(submit[0], end[-1], POINTS)
    begun, ended = (np.searchsorted(one, instants, side="right") for one in (submit, end))
    over_time = series(run.results, run.directory, POINTS, run.histories)
    busy = over_time.busy_cpus.reshape(len(run.directory.clusters), -1).sum(axis=0)
    share = busy / machine_cpus(run.directory).sum()
    times = {"jobs_in_system": instants / SECOND_US, "utilization": over_time.time_s[: len(busy)]}
    values = {"jobs_in_system": (begun - ended).astype(np.float64), "utilization": share}
    return {name: {"time_s": time.tolist(), "value": values[name].tolist()}
            for name, time in times.items()}  # fmt: skip


@cache
def code_version() -> str:
    """16 hexadecimal digits of a hash of all code that a run's result depends on."""
    plugged = [
        (point.name, point.value, "" if point.dist is None else point.dist.version)
        for point in plugged_in()
    ]
    text = json.dumps([versions(), plugged], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
