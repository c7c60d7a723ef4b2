"""Run the experiments of papers, judge their claims, write their pages: `grid reproduce`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped]

from grid.config.shipped import experiments_folder
from grid.lab.experiment import load_experiment
from grid.lab.papers.judge import Judgement, Verdict, judge
from grid.lab.papers.page import write_index, write_page
from grid.lab.papers.paper import NAMES, Paper, load_paper
from grid.lab.report.page import NOT_FITTING, not_fitting
from grid.lab.study import Study, read_study
from grid.lab.sweep import Place, Progress, Wanted, run_sweeps
from grid.model.errors import ErrorLine, InputError
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
class How:
    """How experiments are run."""

    place: Place = field(default_factory=Place)
    quick: bool = False
    progress: Progress | None = None
    as_is: bool = False
    """Judge the runs that are there, and run nothing."""
    seeds: int | Sequence[int] | None = None
    """Repetitions of every experiment: how many, or which."""
    trace: Path | None = None
    """The log of which GM takes windows."""


@dataclass(slots=True)
class Reproduction:
    """The judgements by paper, and why experiments could not be run."""

    judgements: list[Judgement] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    @property
    def not_judged(self) -> list[str]:
        """The claims without any run."""
        return [claim for one in self.judgements for claim, found in one.claims.items()
                if found.verdict is Verdict.NOT_RUN]  # fmt: skip


Wish = tuple[Paper, tuple[str, ...]]
"""A paper with the claims that are asked for."""


def wanted_claims(names: Sequence[str]) -> list[Wish]:
    """The papers with the claims that `names` (of papers or claims) select; all if empty.

    Raises InputError for an unknown name.
    """
    papers = [load_paper(name) for name in NAMES]
    known = {*NAMES, *(claim for one in papers for claim in one.claims)}
    chosen = [name.upper() for name in names]
    unknown = [given for given, name in zip(names, chosen, strict=True) if name not in known]
    if unknown:
        expected = f"a paper ({', '.join(NAMES)}) or a claim such as PU-1"
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
    names: Sequence[str], out: Path, how: How, say: Callable[[str], None], pages: Path | None = None
) -> Reproduction:
    """Run what the claims need and judge them; runs that are in `out` are not repeated.

    `say` receives a line for each experiment, then one for each claim. A paper whose claims
    are all judged gets its page in `pages`. Raises InputError.
    """
    chosen = wanted_claims(names)
    for folder in filter(None, (out, pages)):
        check_place(folder)
    out.mkdir(parents=True, exist_ok=True)
    done = Reproduction()
    wanted = _wanted(chosen, out, how, done, say)
    for one in () if how.as_is else wanted:
        say(f"will run {one.folder.name}: {one.experiment.runs:,} runs")
    with _one_ray(how):
        studies = _studies(wanted, how, done, say)
    for paper, claims in chosen:
        try:
            judgement = judge(paper, claims, studies)
        except NOT_FITTING as error:
            # Only files that were there before can be at fault.
            if not how.as_is:
                raise
            raise not_fitting(out, error) from error
        done.judgements.append(judgement)
        for claim, found in judgement.claims.items():
            measured = paper.claims[claim].kind == "measurement"
            say(f"{claim}: {'measurement' if measured else found}. {paper.claims[claim].text}.")
        write_page(out, judgement)
        if pages is not None and len(claims) == len(paper.claims):
            write_page(pages, judgement)
    if pages is not None:
        write_index(pages, done.judgements)
    write_index(out, done.judgements)
    return done


def _experiment(name: str, how: How) -> dict[str, Any] | Path:
    """The experiment as its file has it, or with the log's windows. Raises InputError."""
    file = EXPERIMENTS / f"{name}.yaml"
    if name != WINDOWS:
        return file
    log = how.trace
    if log is None and os.environ.get(TRACES):
        log = Path(os.environ[TRACES]) / LOG
    if log is None or not log.is_file():
        expected = f"a log: --trace LOG, or {LOG} in the folder of {TRACES}"
        raise InputError([ErrorLine(name, None, "trace", "none", expected)])
    tree: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    tree["scenario"] = str((file.parent / tree["scenario"]).resolve())
    tree["set"]["trace"] = str(log.resolve())
    found = windows_of(log)
    tree["axes"]["window"] = {
        label: {"from": one.from_s, "until": one.before_s}
        for label, one in zip(("first", "second"), found, strict=False)
    }
    return tree


def _wanted(
    chosen: Sequence[Wish], out: Path, how: How, done: Reproduction, say: Callable[[str], None]
) -> list[Wanted]:
    names = [name for one, claims in chosen
             for name in one.experiments(claims, readings=not how.quick)]  # fmt: skip
    wanted = []
    for name in dict.fromkeys(names):
        file = EXPERIMENTS / f"{name}.yaml"
        if how.as_is and (out / name / SWEEP_FILE).is_file():
            wanted.append(Wanted(load_experiment(file), file, out / name, partly=True))
            continue
        try:
            experiment = load_experiment(_experiment(name, how), quick=how.quick, seeds=how.seeds)
        except InputError as error:
            done.not_run.append(f"{name}: {error.errors[0]}")
            say(f"not run: {done.not_run[-1]}")
            continue
        wanted.append(Wanted(experiment, file, out / name, partly=True))
    return wanted


@contextmanager
def _one_ray(how: How) -> Iterator[None]:
    """One Ray for all experiments: it takes seconds to start."""
    if how.place.in_process or how.as_is:
        yield
        return
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(how.place.address, how.place.cpus):
        yield


def _studies(
    wanted: Sequence[Wanted], how: How, done: Reproduction, say: Callable[[str], None]
) -> dict[str, Study]:
    found: dict[str, Study] = {}
    if how.as_is:
        there = [one for one in wanted if (one.folder / SWEEP_FILE).is_file()]
        done.not_run += [f"{one.folder.name}: there are no runs" for one in wanted
                         if one not in there]  # fmt: skip
        return {one.folder.name: read_study(one.folder) for one in there}
    for one, swept in zip(wanted, run_sweeps(wanted, how.place, how.progress), strict=True):
        name = one.folder.name
        if isinstance(swept, InputError):
            done.not_run.append(f"{name}: {swept.errors[0]}")
            continue
        for failure in swept.failures[:FAILURES_SHOWN]:
            say(f"failed: {name}: {failure}")
        found[name] = read_study(one.folder)
        reasons = [why for _, why in found[name].absent]
        done.not_run += [f"{name}: {why}" for why in dict.fromkeys(reasons)]
    return found


# Windows of a log with the size of GM's workload, chosen by their totals alone

JOBS, TASKS, WIDEST = 1500, 24_152, 64
"""GM VII-A: jobs and tasks of the workload, and the processors of its larger cluster."""
MOST_WINDOWS = 2


@dataclass(frozen=True, slots=True)
class Window:
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
    starts = np.arange(len(tasks))
    separate = (before < submit_us[: len(tasks)]) & (submit_us[starts + JOBS - 1] < behind)
    found: list[Window] = []
    taken: list[int] = []
    for start in np.argsort(np.abs(tasks - TASKS), kind="stable").tolist():
        if len(found) == count:
            break
        if separate[start] and all(abs(start - other) >= JOBS for other in taken):
            taken.append(start)
            last_us = int(submit_us[start + JOBS - 1])
            found.append(
                Window(
                    int(submit_us[start]) / SECOND_US,
                    last_us / SECOND_US + 1.0,
                    int(tasks[start]),
                )
            )
    if not found:
        expected = f"{JOBS} consecutive jobs of at most {WIDEST} processors"
        raise InputError([ErrorLine(str(log), None, "", f"{len(jobs)} jobs", expected)])
    return found
