"""One run from a scenario or a grid to its folder: what `grid run` does, without the output."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from grid import __version__
from grid.config.build import Grid
from grid.config.plugins import metric_meanings, metrics_of
from grid.config.schema import Scenario
from grid.config.traces import hashes_of_logs
from grid.config.workload import realize
from grid.model.compiled import compile_kernels
from grid.model.errors import RunFailed, input_error, need, only_on_ray, shorten
from grid.model.interventions import Intervention
from grid.model.job import FINAL_STATES, JobState
from grid.model.job_results import ALL_JOBS, JobResults, MeasuredJobs
from grid.model.records import ClusterHistory, JobsLeft, facts_of
from grid.model.time import NEVER, to_seconds
from grid.results.checkers import check, digest
from grid.results.look import NO_OBSERVER, Observer
from grid.results.machines import Directory, machine_cpus
from grid.results.metric_plugins import MoreColumns, add_vo_metrics, more_columns
from grid.results.metrics import Metrics, metrics
from grid.results.workflows import Workflows
from grid.runtime.clock import Pace
from grid.runtime.interventions import with_outages
from grid.runtime.measurement import collecting_rarely
from grid.runtime.observers import beginning_of
from grid.runtime.outcome import RunOutcome
from grid.runtime.schedulers import check_schedulers
from grid.runtime.sequential import run_sequential, warm_up
from grid.runtime.slurm import check_real_clusters
from grid.sources import sources

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from grid.results.events import EventSpool
    from grid.runtime.live import LiveOutcome

PLACEMENTS = ("vo", "cluster", "entity")
MOST_DIGITS = 6
"""Limit of the digits of a number of Ray actors."""
_NO_SCENARIO = "# The grid of this run was built in Python, not from a scenario.\n"


class RunInvalid(RunFailed):
    """A run violated an invariant: a bug in the emulator, not in its input."""


class JobsNeverStarted(RunFailed):
    """A policy left jobs waiting for ever, though machines were free."""


class Stalled(RunFailed):
    """A run made no progress and was ended; `run` has its partial results."""

    def __init__(self, line: str, run: Run) -> None:
        super().__init__(line)
        self.run = run


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished run.

    - `name`: that of the scenario or grid.
    - `scenario`: the scenario, with all defaults filled in; None if a Grid was run.
    - `metrics`: as in `metrics.json`, for the `grid` and each of its `vos`.
    - `manifest`: metadata of the run, and the `digest` of its results (`manifest.json`).
    - `jobs()`: the table of jobs in pandas; `jobs_table()`: the same in pyarrow.
    - `results`, `directory`, `histories`: the same as columns of microseconds.
    - `measured`: which jobs the job metrics cover.
    """

    name: str
    scenario: Scenario | None
    results: JobResults
    directory: Directory
    metrics: Metrics
    manifest: dict[str, Any]
    histories: tuple[ClusterHistory, ...] = ()
    more: MoreColumns = field(default_factory=MoreColumns)
    events: EventSpool | None = None
    interventions: tuple[Intervention, ...] = ()
    measured: MeasuredJobs = ALL_JOBS

    def __repr__(self) -> str:
        return f"<run of {self.name}: {len(self.results)} jobs>"

    def jobs(self) -> pd.DataFrame:
        """A row for each job, with the columns of `jobs.parquet`, as a pandas DataFrame.

        Times are seconds; names, such as `vo` and `state`, are categories. Raises ImportError if
        pandas is not installed.
        """
        need("run.jobs(), unlike run.jobs_table(),", "pandas", "pandas")
        return self.jobs_table().to_pandas()

    def jobs_table(self) -> pa.Table:
        """A row for each job, with the columns of `jobs.parquet` (`grid.results.tables`).

        Times are seconds. Batsim's columns come first: `job_id`, `workload_name`,
        `submission_time`, `requested_number_of_resources`, `requested_time`, `success`, ...
        """
        from grid.results.tables import job_table

        return job_table(self.results, self.directory, self.name, self.more.job)


@dataclass(frozen=True, slots=True)
class Live:
    """Settings of a live run. `journals` is a folder for its duration."""

    pace: Pace
    journals: Path


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a grid: in this process, else on Ray actors, in virtual time or `live`.

    `placement` is `vo` (default), `cluster`, `entity` (default of a live run), or a number of Ray
    actors for all VOs. With `compile_first`, kernels are compiled before the run. With `events`,
    the run's folder has all of them. Raises InputError.
    """

    in_process: bool = False
    placement: str | int | None = None
    address: str | None = None
    live: Live | None = None
    compile_first: bool = False
    events: bool = False
    observer: Observer = NO_OBSERVER

    def __post_init__(self) -> None:
        placed = self.placed
        number = placed.isdecimal() and len(placed) <= MOST_DIGITS and int(placed) > 0
        if placed not in PLACEMENTS and not number:
            most = 10**MOST_DIGITS - 1
            expected = f"{', '.join(PLACEMENTS)} or a number of Ray actors from 1 to {most}"
            raise input_error("placement", shorten(placed), expected)
        if self.in_process:
            only_on_ray(placement=self.placement, address=self.address)

    @property
    def waits_for_code(self) -> bool:
        """Whether kernels are compiled before the run."""
        return self.compile_first or self.live is not None

    @property
    def runtime(self) -> str:
        """As the manifest has it."""
        return "sequential" if self.in_process else "windowed" if self.live is None else "live"

    @property
    def placed(self) -> str:
        """The placement, given or by default."""
        if self.placement is not None:
            return str(self.placement)
        return "vo" if self.live is None else "entity"


def execute(scenario: Scenario, file: str, **settings: Any) -> Run:
    """Run `scenario` and check what comes out. Raises InputError and RunFailed.

    Errors in the scenario name `file`; `settings` are those of `RunOptions`.
    """
    how = RunOptions(**settings)
    cpu = time.process_time()
    how.observer.stage("reading the workload")
    with collecting_rarely():
        grid, left_out = realize(scenario, file)
    # Logs may have been removed when the run ends.
    made = made_from(scenario)
    read_seconds = time.process_time() - cpu
    execution = _execute(grid, how, file)
    # The submitted jobs take as much memory as the results.
    del grid
    if execution.outcome.spool is not None:
        gc.collect()
    run = _checked(execution, how)
    run.manifest.update(made)
    run.manifest["jobs"]["skipped"] = dict(sorted(left_out.items()))
    run.manifest["cpu_seconds"]["read"] = round(read_seconds, 6)
    job, vo, cluster = metrics_of(scenario)
    if vo:
        add_vo_metrics(vo, run.metrics, run.measured.of(run.results), run.directory)
    more = more_columns(job, cluster, run.results, run.directory)
    return _unless_stalled(replace(run, scenario=scenario, more=more))


def execute_grid(grid: Grid, **settings: Any) -> Run:
    """Run a grid that was made in Python; otherwise as `execute`."""
    how = RunOptions(**settings)
    return _unless_stalled(_checked(_execute(grid, how, grid.name), how))


def _unless_stalled(run: Run) -> Run:
    """Raises Stalled if the run was ended without progress."""
    if "stalled" in run.manifest:
        raise Stalled(run.manifest["stalled"], run)
    return run


class _Execution(NamedTuple):
    """The outcome of a run, and the facts of its grid that checks need."""

    name: str
    source: str
    seed: int
    outcome: RunOutcome
    live: LiveOutcome | None
    directory: Directory
    submitted: int
    may_pass_the_end: bool
    events: EventSpool | None
    measured: MeasuredJobs
    workflows: Workflows | None


def _execute(grid: Grid, how: RunOptions, source: str) -> _Execution:
    """Run it in the runtime that `how` selects."""
    if how.waits_for_code:
        how.observer.stage("compiling")
        compile_kernels()
        warm_up(grid)
    check_schedulers(grid, live=how.live is not None)
    check_real_clusters(grid, live=how.live is not None)
    spool = spool_of(grid) if how.events else None
    number = int(how.placed) if how.placed.isdecimal() else None
    on_actors: dict[str, Any] = {
        "placement": "vo" if number else how.placed,
        "actors": number,
        "address": how.address,
        "observer": how.observer,
        "spool": spool,
        "compile_first": how.waits_for_code,
    }
    lived: LiveOutcome | None = None
    if how.observer.wants_looks:
        pace = None if how.live is None else how.live.pace
        how.observer.begin(beginning_of(grid, how.runtime, pace))
    if how.in_process:
        how.observer.stage("running")
        outcome = run_sequential(grid, spool=spool, observer=how.observer)
    elif how.live is not None:
        from grid.runtime.live import run_live

        lived = run_live(grid, how.live.journals, how.live.pace, **on_actors)
        outcome = lived.run
    else:
        from grid.runtime.windowed import run_windowed

        outcome = run_windowed(grid, **on_actors)
    return _Execution(
        grid.name,
        source,
        grid.seed,
        outcome,
        lived,
        grid.directory,
        submitted=sum(grid.jobs_by_vo()),
        may_pass_the_end=grid.may_pass_the_end,
        events=spool,
        measured=grid.settings.metrics.measured,
        workflows=grid.workflows,
    )


def _checked(execution: _Execution, how: RunOptions) -> Run:
    """The run, if it kept all rules. Raises RunInvalid and JobsNeverStarted."""
    outcome, lived, directory = execution.outcome, execution.live, execution.directory
    interventions = () if lived is None else lived.interventions
    if interventions:
        directory = with_outages(directory, interventions)
    how.observer.stage("checking the results")
    results = outcome.results()
    if outcome.stalled is None:
        _refuse_broken(execution, results, directory)
    manifest = manifest_of(execution.name, execution.seed, results, outcome)
    if outcome.stalled is not None:
        manifest["stalled"] = outcome.stalled
    manifest["cpus"] = int(machine_cpus(directory).sum())
    manifest["compiled_before"] = outcome.interpreted_seconds == 0
    manifest["runtime"] = how.runtime
    manifest["placement"] = None if how.in_process else how.placed
    if how.live is not None and lived is not None:
        manifest["live"] = lived.report(how.live.pace, results)
    counted = outcome.figures, outcome.histories, outcome.decisions
    figures = metrics(results, directory, *counted, execution.measured, execution.workflows)
    if not execution.measured.are_all:
        from_s, until_s = execution.measured.interval_s
        manifest["measured"] = {
            "jobs": figures["grid"]["jobs_submitted"],
            "submitted_from_s": from_s,
            "submitted_until_s": until_s,
        }
    manifest["cpu_seconds"] = {"read": 0.0, "run": round(outcome.cpu_seconds, 6)}
    return Run(
        execution.name,
        None,
        results,
        directory,
        figures,
        manifest,
        tuple(outcome.histories),
        events=execution.events,
        interventions=interventions,
        measured=execution.measured,
    )


def _refuse_broken(execution: _Execution, results: JobResults, directory: Directory) -> None:
    """Raises RunInvalid, JobsNeverStarted, and InputError if jobs outlive virtual time."""
    outcome, late = execution.outcome, execution.may_pass_the_end
    unfinished = execution.live.unfinished if execution.live is not None else 0
    if outcome.jobs_left and not unfinished and not late:
        raise JobsNeverStarted("; ".join(_never_started(outcome.jobs_left, directory)))
    errors = check(results, directory, execution.submitted - unfinished)
    errors += outcome.broken_rules(cut_short=unfinished > 0)
    if errors and late:
        found = "jobs that outlast virtual time"
        expected = f"jobs that end before {to_seconds(NEVER):.3g} s"
        raise input_error("workload", found, expected, execution.source)
    if errors:
        raise RunInvalid("; ".join(errors[:5]))


def _never_started(left: Sequence[JobsLeft], directory: Directory) -> Iterator[str]:
    """A line for each of the first clusters."""
    for cluster, policy, jobs, first in sorted(left)[:5]:
        entry = directory.clusters[cluster]
        which = f" (one is job {first[1]} of {first[0]})" if first is not None else ""
        yield (
            f"policy {policy} never started {jobs} jobs{which} that wait in cluster {entry.name} "
            f"of {directory.vos[entry.vo]}, where no further events occur"
        )


LIBRARIES = ("numba", "numpy", "ray", "scipy")


def versions() -> dict[str, Any]:
    """The versions of the emulator and of its libraries."""
    others = {"python": python_version()} | {name: version(name) for name in LIBRARIES}
    return {"version": __version__, "sources": sources(), "versions": others}


def made_from(scenario: Scenario) -> dict[str, Any]:
    """Hashes of the parts and logs of a scenario, and what its metrics mean. Raises InputError."""
    return {
        "plugins": scenario.plugins.hashes(),
        "logs": hashes_of_logs(scenario),
        "meanings": metric_meanings(scenario),
    }


def manifest_of(name: str, seed: int, results: JobResults, outcome: RunOutcome) -> dict[str, Any]:
    """The results of the run called `name` and their costs, with the digest."""
    counts = np.bincount(results.outcome.state, minlength=len(JobState)).tolist()
    jobs = {state.name.lower(): counts[state.value] for state in FINAL_STATES} | {"skipped": {}}
    return {
        **versions(),
        "scenario": name,
        "seed": seed,
        "digest": digest(results),
        "jobs": jobs,
        "messages": outcome.messages,
        "snapshots": outcome.snapshots,
        "rounds": outcome.rounds,
        "actors": outcome.actors,
        "start_seconds": round(outcome.start_seconds, 6),
        "wall_seconds": round(outcome.wall_seconds, 6),
        "plan_seconds": outcome.plan_seconds(),
        "plans_not_measured": outcome.plans_not_measured(),
        "schedulers": {
            one.place: {
                "scheduler": one.scheduler,
                "messages": one.messages,
                "total": round(one.total_s, 6),
                "max": round(one.longest_s, 6),
            }
            for one in sorted(outcome.schedulers)
        },
    }


def spool_of(grid: Grid) -> EventSpool:
    """An empty file of events for a run of `grid`."""
    from grid.results.events import EventSpool

    outages = iter(entry.outages for entry in grid.directory.clusters)
    platform = [
        asdict(facts_of(vo.name, cluster, grid.plugins.shown(cluster.policy.name), next(outages)))
        for vo in grid.vos
        for cluster in vo.clusters
    ]
    return EventSpool(grid.names, grid.direct, platform)


def save(run: Run, folder: Path) -> None:
    """Write the run's folder atomically; its events once."""
    from grid.config.load import resolved_yaml
    from grid.results.run_folder import write_run

    write_run(
        folder,
        run.results,
        run.directory,
        run.metrics,
        _NO_SCENARIO if run.scenario is None else resolved_yaml(run.scenario),
        run.manifest,
        run.name,
        run.histories,
        run.more,
        run.events,
        run.interventions,
    )
