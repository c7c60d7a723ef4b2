"""Run the experiments of papers, judge their claims, write their pages: `grid reproduce`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml  # type: ignore[import-untyped]

from grid.config.shipped import experiments_folder
from grid.lab.experiment import load_experiment
from grid.lab.papers.judge import Judgement, Verdict, judge
from grid.lab.papers.page import write_index, write_page
from grid.lab.papers.paper import NAMES, Paper, load_paper
from grid.lab.report.page import consistent
from grid.lab.study import Study, read_study
from grid.lab.sweep import Report, Workers, no_report, run_sweep
from grid.model.errors import ErrorLine, InputError, input_error
from grid.model.time import SECOND_US
from grid.results.run_folder import SWEEP_FILE, check_place
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import read_swf

EXPERIMENTS = experiments_folder()
WINDOWS = "gang-migration-windows"
TRACES = "GRID_TRACES"
"""The environment variable of a folder with the log behind the shipped page."""
LOG = "NASA-iPSC-1993-3.1-cln.swf.gz"
FAILURES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RunOptions:
    workers: Workers = field(default_factory=Workers)
    quick: bool = False
    report: Report = no_report
    as_is: bool = False
    """Judge the runs that are there, and run nothing."""
    seeds: int | Sequence[int] | None = None
    """Repetitions of every experiment: how many, or which."""
    trace: Path | None = None
    """The log for the windows of GM."""


@dataclass(slots=True)
class Reproduction:
    """The judgements by paper, and why experiments could not be run."""

    judgements: list[Judgement] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    @property
    def not_judged(self) -> list[str]:
        return [claim for one in self.judgements for claim, found in one.claims.items()
                if found.verdict is Verdict.NOT_RUN]  # fmt: skip


Request = tuple[Paper, tuple[str, ...]]
"""A paper with the requested claims."""


def wanted_claims(names: Sequence[str]) -> list[Request]:
    """The papers with the claims that `names` (of papers or claims) select; all if empty.

    Raises InputError for an unknown name.
    """
    papers = [load_paper(name) for name in NAMES]
    known = {*NAMES, *(claim for one in papers for claim in one.claims)}
    chosen = [name.upper() for name in names]
    unknown = [given for given, name in zip(names, chosen, strict=True) if name not in known]
    if unknown:
        expected = f"a paper ({', '.join(NAMES)}) or a claim, for example PU-1"
        raise InputError(
            [ErrorLine("reproduce", None, "", repr(name), expected) for name in unknown]
        )
    found = []
    for one in papers:
        whole = not chosen or one.name in chosen
        claims = tuple(claim for claim in one.claims if whole or claim in chosen)
        if claims:
            found.append((one, claims))
    return found


def reproduce(
    names: Sequence[str],
    out: Path,
    options: RunOptions,
    report: Callable[[str], None],
    pages: Path | None = None,
) -> Reproduction:
    """Run what the claims need and judge them; runs that are in `out` are not repeated.

    `report` receives a line for each experiment, then one for each claim. A paper whose claims
    are all judged gets its page in `pages`. Raises InputError.
    """
    requests = wanted_claims(names)
    for folder in filter(None, (out, pages)):
        check_place(folder)
    out.mkdir(parents=True, exist_ok=True)
    done = Reproduction()
    studies = _studies(requests, out, options, done, report)
    for paper, claims in requests:
        # Only files that were there before can be at fault.
        with consistent(out) if options.as_is else nullcontext():
            judgement = judge(paper, claims, studies)
        done.judgements.append(judgement)
        for claim, found in judgement.claims.items():
            measured = paper.claims[claim].kind == "measurement"
            report(f"{claim}: {'measurement' if measured else found}. {paper.claims[claim].text}.")
        write_page(out, judgement)
        if pages is not None and len(claims) == len(paper.claims):
            write_page(pages, judgement)
    for folder in filter(None, (out, pages)):
        write_index(folder, done.judgements)
    return done


def _studies(
    requests: Sequence[Request],
    out: Path,
    options: RunOptions,
    done: Reproduction,
    report: Callable[[str], None],
) -> dict[str, Study]:
    """The studies of all experiments, run if need be; `done` gets what could not be run."""
    names = [name for one, claims in requests
             for name in one.experiments(claims, readings=not options.quick)]  # fmt: skip
    found: dict[str, Study] = {}
    with ExitStack() as stack:
        if not options.as_is and not options.workers.in_process:
            from grid.runtime.cluster import ray_cluster

            # One Ray for all experiments: it takes seconds to start.
            stack.enter_context(ray_cluster(options.workers.address, options.workers.cpus))
        for name in dict.fromkeys(names):
            folder = out / name
            try:
                if not options.as_is:
                    _sweep(name, folder, options, report)
                elif not (folder / SWEEP_FILE).is_file():
                    raise input_error("", "no runs", "those of a reproduction", name)
            except InputError as error:
                done.not_run.append(f"{name}: {error.errors[0]}")
                report(f"not run: {done.not_run[-1]}")
                continue
            found[name] = read_study(folder)
            if not options.as_is:
                reasons = dict.fromkeys(why for _, why in found[name].absent)
                done.not_run += [f"{name}: {why}" for why in reasons]
    return found


def _sweep(name: str, folder: Path, options: RunOptions, report: Callable[[str], None]) -> None:
    given = _experiment(name, options.trace)
    experiment = load_experiment(given, quick=options.quick, seeds=options.seeds)
    report(f"runs of {name}: {experiment.runs:,}")
    sweep = run_sweep(
        experiment, EXPERIMENTS / f"{name}.yaml", folder, options.workers, options.report,
        partly=True,
    )  # fmt: skip
    for failure in sweep.failures[:FAILURES_SHOWN]:
        report(f"failed: {name}: {failure}")


def _experiment(name: str, trace: Path | None) -> dict[str, Any] | Path:
    """The experiment as its file has it, or with the log's windows. Raises InputError."""
    file = EXPERIMENTS / f"{name}.yaml"
    if name != WINDOWS:
        return file
    folder = os.environ.get(TRACES)
    log = Path(folder) / LOG if trace is None and folder else trace
    if log is None or not log.is_file():
        expected = f"a log: --trace LOG, or {LOG} in the folder of {TRACES}"
        raise input_error("trace", "none", expected, name)
    tree: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    tree["scenario"] = str((file.parent / tree["scenario"]).resolve())
    tree["set"]["trace"] = str(log.resolve())
    found = windows_of(log)
    tree["axes"]["window"] = {
        label: {"from": one.from_s, "until": one.before_s}
        for label, one in zip(("first", "second"), found, strict=False)
    }
    return tree


# Windows of a log with the size of GM's workload, chosen by their totals alone

JOBS, TASKS, WIDEST = 1500, 24_152, 64
"""GM VII-A: jobs and tasks of the workload, and the processors of its larger cluster."""
MOST_WINDOWS = 2


class Window(NamedTuple):
    """The jobs of at most WIDEST processors submitted from `from_s` on and before `before_s`."""

    from_s: float
    before_s: float
    tasks: int


def windows_of(log: Path, count: int = MOST_WINDOWS) -> list[Window]:
    """The disjoint windows of JOBS consecutive jobs whose tasks are nearest to TASKS.

    Of equally near ones the earlier is taken. Windows that begin or end between jobs of the same
    second are left out, since a filter by time cannot separate them. Raises InputError if there is
    no window.
    """
    jobs, _ = jobs_from_log(read_swf(log), max_processors=WIDEST)
    submit_us = jobs.submit_us
    totals = np.concatenate([[0], np.cumsum(jobs.processors)])
    tasks = totals[JOBS:] - totals[:-JOBS]
    before = np.concatenate([[-1], submit_us])[: len(tasks)]
    behind = np.append(submit_us, submit_us[-1:] + SECOND_US)[JOBS : JOBS + len(tasks)]
    last = submit_us[JOBS - 1 : JOBS - 1 + len(tasks)]
    separate = (before < submit_us[: len(tasks)]) & (last < behind)
    found: dict[int, Window] = {}
    for start in np.argsort(np.abs(tasks - TASKS), kind="stable").tolist():
        if separate[start] and all(abs(start - other) >= JOBS for other in found):
            ends_s = float(submit_us[start]) / SECOND_US, float(last[start]) / SECOND_US + 1.0
            found[start] = Window(*ends_s, int(tasks[start]))
        if len(found) == count:
            break
    if not found:
        expected = f"{JOBS} consecutive jobs of at most {WIDEST} processors"
        raise input_error("", f"{len(jobs)} jobs", expected, str(log))
    return list(found.values())
