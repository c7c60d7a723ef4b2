"""One run from scenario to run folder: what `grid run` does, without the talking."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grid import __version__
from grid.model.job import JobState
from grid.model.job_results import JobResults, in_order
from grid.model.job_row import ClusterHistory
from grid.results.checkers import check
from grid.results.digest import digest
from grid.results.directory import Directory
from grid.results.metrics import Metrics, metrics
from grid.runtime.outcome import Progress, RunFailed, RunOutcome
from grid.runtime.pace import Pace
from grid.runtime.sequential import run_sequential
from grid.scenario.schema import Scenario
from grid.scenario.workload import realize

if TYPE_CHECKING:
    import pyarrow as pa

    from grid.runtime.live import LiveOutcome


class RunInvalid(RunFailed):
    """A run broke a rule that every run must keep: a bug of the emulator, never of its user."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished run: its jobs, its metrics, and how it was made (see `manifest.json`)."""

    scenario: Scenario
    results: JobResults
    directory: Directory
    metrics: Metrics
    manifest: dict[str, Any]
    histories: tuple[ClusterHistory, ...] = ()

    def __repr__(self) -> str:
        return f"<run of {self.scenario.name}: {len(self.results)} jobs>"

    def jobs(self) -> pa.Table:
        """The table of jobs with the columns of `jobs.parquet` (`grid.results.job_columns`)."""
        import pyarrow as pa

        from grid.results.cpu_assignment import assign_cpus
        from grid.results.job_columns import float_seconds, job_columns

        cpus = assign_cpus(self.results, self.directory)
        rows = slice(0, len(self.results))
        batch = job_columns(
            self.results, self.directory, self.scenario.name, cpus, rows, float_seconds
        )
        return pa.Table.from_batches([batch])


@dataclass(frozen=True, slots=True)
class Live:
    """What a live run needs beside its scenario. `journals` is a folder for its duration."""

    pace: Pace
    journals: Path


def execute(
    scenario: Scenario,
    file: str,
    *,
    in_process: bool,
    placement: str | None = None,
    address: str | None = None,
    transport: str = "sockets",
    live: Live | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run `scenario` and check what comes out. Raises InputError and RunFailed.

    `placement` is `vo` (default), `cluster`, `entity` (default of a live run), or a number of Ray
    actors to deal the VOs over.
    """
    cpu = time.process_time()
    grid, left_out = realize(scenario, file)
    read_seconds = time.process_time() - cpu
    placement = placement or ("vo" if live is None else "entity")
    number = int(placement) if placement.isdecimal() else None
    on_actors: dict[str, Any] = {
        "placement": "vo" if number else placement,
        "actors": number,
        "address": address,
        "progress": progress,
    }
    lived: LiveOutcome | None = None
    if in_process:
        outcome = run_sequential(grid, progress)
    elif live is not None:
        from grid.runtime.live import run_live

        lived = run_live(grid, live.journals, live.pace, **on_actors)
        outcome = lived.run
    else:
        from grid.runtime.windowed import run_windowed

        outcome = run_windowed(grid, transport=transport, **on_actors)
    directory, submitted = grid.directory, sum(grid.jobs_by_vo())
    # The jobs as they were submitted take as much room as what became of them.
    del grid
    results = in_order(outcome.chunks)
    unfinished = lived.unfinished if lived is not None else 0
    mistakes = check(results, directory, submitted - unfinished)
    mistakes += outcome.broken_rules(cut_short=unfinished > 0)
    if mistakes:
        raise RunInvalid("; ".join(mistakes[:5]))
    manifest = _manifest(scenario, results, outcome, left_out)
    manifest["runtime"] = "sequential" if in_process else "windowed" if live is None else "live"
    manifest["placement"] = None if in_process else placement
    if live is not None and lived is not None:
        manifest["live"] = lived.report(live.pace, results)
    manifest["cpu_seconds"] = {
        "read": round(read_seconds, 6),
        "run": round(outcome.cpu_seconds, 6),
    }
    figures = metrics(results, directory, outcome.figures, outcome.histories)
    return Run(scenario, results, directory, figures, manifest, tuple(outcome.histories))


def _manifest(
    scenario: Scenario, results: JobResults, outcome: RunOutcome, skipped: Counter[str]
) -> dict[str, Any]:
    counts = Counter(results.outcome.state.tolist())
    final = (JobState.COMPLETED, JobState.FAILED, JobState.REJECTED)
    jobs: dict[str, Any] = {state.name.lower(): counts.get(state.value, 0) for state in final}
    jobs["skipped"] = dict(sorted(skipped.items()))
    return {
        "version": __version__,
        "scenario": scenario.name,
        "seed": scenario.seed,
        "digest": digest(results),
        "jobs": jobs,
        "messages": outcome.messages,
        "snapshots": outcome.snapshots,
        "rounds": outcome.rounds,
        "actors": outcome.actors,
        "start_seconds": round(outcome.start_seconds, 6),
        "wall_seconds": round(outcome.wall_seconds, 6),
        "plan_seconds": outcome.plan_seconds(),
    }


def save(run: Run, folder: Path, workload_name: str) -> None:
    """Write the run's folder, whole or not at all."""
    from grid.results.files import write_run
    from grid.scenario.load import resolved_yaml

    write_run(
        folder,
        run.results,
        run.directory,
        run.metrics,
        resolved_yaml(run.scenario),
        run.manifest,
        workload_name,
        run.histories,
    )
