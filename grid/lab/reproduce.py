"""The papers' experiments run, their claims judged, their pages written: `grid reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from grid.config.shipped import experiments_folder
from grid.lab.cases import load_experiment
from grid.lab.claims import Claim, Paper, Studies, Verdict, judged
from grid.lab.costs import Costs, Expected
from grid.lab.page_files import PAGES, QUICK, of_other_code, tally, write_index, write_page
from grid.lab.pages import (
    Judged,
    Judgement,
    cpu_seconds,
    markdown,
    sections,
)
from grid.lab.papers import NAMES, paper
from grid.lab.place import Place
from grid.lab.readings import compared, experiments_of, with_readings
from grid.lab.report.page import Section, html_page
from grid.lab.report.style import PICTURES
from grid.lab.reporting import NOT_FITTING, not_fitting
from grid.lab.store import write_text
from grid.lab.study import Study, read_study
from grid.lab.sweep import Progress, Wanted, run_sweeps
from grid.model.errors import InputError, Mistake
from grid.results.run_folder import SWEEP_FILE, check_place

EXPERIMENTS = experiments_folder()
FAILURES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class How:
    """How experiments are run: where, how much of them, and who sees the progress."""

    place: Place = field(default_factory=Place)
    quick: bool = False
    progress: Progress | None = None
    as_is: bool = False
    """Judge the runs that are there, whatever code they were made with, and do no others.

    For a page, some are done again if they were made with other code.
    """
    seeds: int | Sequence[int] | None = None
    """Repetitions of every experiment, instead of those that it gives: how many, or which."""


@dataclass(slots=True)
class Reproduction:
    """What came of it: a judgement a paper, and what could not be run."""

    judgements: list[Judgement] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    @property
    def claims(self) -> list[Judged]:
        """All claims that were judged."""
        return [one for judgement in self.judgements for one in judgement.judged]

    @property
    def is_complete(self) -> bool:
        """Was everything run that was asked for?"""
        unrun = any(one.finding.counts[Verdict.NOT_RUN] for one in self.claims)
        return not self.not_run and not unrun


def wanted_claims(names: Sequence[str]) -> list[tuple[Paper, tuple[Claim, ...]]]:
    """The papers with their claims that `names` stand for, all if there is none.

    A name is a paper's or a claim's, in any case. Raises InputError for another one.
    """
    papers = [paper(name) for name in NAMES]
    known = {one.name for one in papers} | {c.name for one in papers for c in one.claims}
    chosen = [name.upper() for name in names]
    unknown = [given for given, name in zip(names, chosen, strict=True) if name not in known]
    if unknown:
        expected = f"a paper ({', '.join(NAMES)}) or a claim such as PU-1"
        raise InputError([Mistake("reproduce", None, "", repr(name), expected) for name in unknown])
    found = []
    for one in papers:
        is_whole = not chosen or one.name in chosen
        claims = tuple(claim for claim in one.claims if is_whole or claim.name in chosen)
        if claims:
            found.append((one, claims))
    return found


def reproduce(
    names: Sequence[str], out: Path, how: How, say: Callable[[str], None], pages: Path | None = None
) -> Reproduction:
    """Run what the claims need, judge them, and leave tables and pictures in `out`.

    `say` gets what will be run and how long that took before, then a line for each claim as
    soon as it is judged. Runs that are in `out` already are not done again. In the folder `pages`
    each paper whose claims are all judged gets a page in Markdown, ID.md, with its figures beside
    it; and all pages that are there an index. Raises InputError.
    """
    chosen = wanted_claims(names)
    for folder in filter(None, (out, pages)):
        check_place(folder)
    out.mkdir(parents=True, exist_ok=True)
    done = Reproduction()
    costs = Costs.read(out, shipped=PAGES)
    # Paper by paper, so that one knows what is known; where that takes minutes, all at once.
    together = [chosen] if how.quick else [[one] for one in chosen]
    if not how.as_is:
        _announce(chosen, out, how, costs, say)
    with _one_ray(how):
        for papers in together:
            studies = _studies(papers, out, how, say, done)
            for one, claims in papers:
                try:
                    judgement = judge(one, claims, studies, quick=how.quick)
                except NOT_FITTING as error:
                    # Of what runs left that are done here, that would be a mistake of ours.
                    if not how.as_is:
                        raise
                    raise not_fitting(out, error) from error
                for claim in judgement.judged:
                    say(str(claim))
                for drawn in judgement.pictures:
                    drawn.save(out / PICTURES)
                done.judgements.append(judgement)
                if how.seeds is None:
                    took = {name: cpu_seconds(study) for name, study in judgement.studies.items()}
                    costs.note(how.quick, took)
                    costs.write(out)
                _write(out, done, how)
                if pages is not None and judgement.is_whole:
                    _leave_page(pages, judgement, how, say, done)
                    costs.write(pages, to_ship=True)
    if pages is not None:
        write_index(pages)
    return done


def _leave_page(
    pages: Path, judgement: Judgement, how: How, say: Callable[[str], None], done: Reproduction
) -> None:
    """Write the page of a paper, unless its runs are of code that gives other figures."""
    differing, renewed = of_other_code(judgement, how.place, say) if how.as_is else ([], "")
    for line in differing:
        say(f"of other code: {line}")
    done.not_run += differing
    if not differing:
        write_page(pages, judgement, how.quick, renewed)


def judge(
    one: Paper, claims: Sequence[Claim], studies: Studies, *, quick: bool = False
) -> Judgement:
    """The claims of a paper under the main reading and the others, and its pictures.

    A quick reproduction has no runs for readings that need their own: nothing is said of these.
    """
    found = []
    for claim in claims:
        main = judged(claim, studies)
        others = compared(claim, one.readings, studies)
        if quick:
            others = [other for other in others if set(other.finding.counts) != {Verdict.NOT_RUN}]
        found.append(Judged(claim, with_readings(main, others), tuple(others)))
    needed = experiments_of(claims, one.readings)
    own = {name: studies.found[name] for name in needed if name in studies.found}
    return Judgement(one, tuple(found), tuple(one.figures(studies)), own)


def _needed(one: Paper, claims: Sequence[Claim], quick: bool) -> list[str]:
    return experiments_of(claims, () if quick else one.readings)


def _wanted(
    papers: Sequence[tuple[Paper, Sequence[Claim]]], out: Path, how: How
) -> tuple[list[Wanted], dict[str, str]]:
    """The experiments of these claims, and why others cannot be read."""
    names = [name for one, claims in papers for name in _needed(one, claims, how.quick)]
    wanted: list[Wanted] = []
    absent: dict[str, str] = {}
    for name in dict.fromkeys(names):
        file = EXPERIMENTS / f"{name}.yaml"
        try:
            experiment = load_experiment(file, quick=how.quick, seeds=how.seeds)
        except InputError as error:
            absent[name] = str(error.mistakes[0])
            continue
        wanted.append(Wanted(experiment, file, out / name, partly=True))
    return wanted, absent


def _announce(
    papers: Sequence[tuple[Paper, Sequence[Claim]]],
    out: Path,
    how: How,
    costs: Costs,
    say: Callable[[str], None],
) -> None:
    """Say what will be run, and how long it took here."""
    wanted, _ = _wanted(papers, out, how)
    expected = Expected()
    for one in wanted:
        name, runs = one.folder.name, one.experiment.runs
        usual = load_experiment(EXPERIMENTS / f"{name}.yaml", quick=how.quick).runs
        line = expected.add(name, runs, costs, how.quick, runs / usual)
        say(f"will run {line}")
    say(expected.in_words(how.place.cpus if not how.place.in_process else 1))


@contextmanager
def _one_ray(how: How) -> Iterator[None]:
    """One Ray for all experiments: it takes seconds to start."""
    if how.place.in_process or how.as_is:
        yield
        return
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(how.place.address, how.place.cpus, watch=False):
        yield


def _studies(
    papers: Sequence[tuple[Paper, Sequence[Claim]]],
    out: Path,
    how: How,
    say: Callable[[str], None],
    done: Reproduction,
) -> Studies:
    """Run the experiments of all these claims, as one; note what could not be run."""
    wanted, absent = _wanted(papers, out, how)
    found: dict[str, Study] = {}
    if how.as_is:
        there = [one.folder for one in wanted if (one.folder / SWEEP_FILE).is_file()]
        missing = {one.folder.name: "it was not run" for one in wanted if one.folder not in there}
        found = {folder.name: read_study(folder) for folder in there}
        absent |= missing
    else:
        for one, swept in zip(wanted, run_sweeps(wanted, how.place, how.progress), strict=True):
            name = one.folder.name
            if isinstance(swept, InputError):
                absent[name] = str(swept.mistakes[0])
                continue
            for failure in swept.failures[:FAILURES_SHOWN]:
                say(f"failed: {name}: {failure}")
            found[name] = read_study(one.folder)
            reasons = [why for _, why in found[name].absent]
            done.not_run += [f"{name}: {why}" for why in dict.fromkeys(reasons)]
    done.not_run += [f"{name}: {why}" for name, why in absent.items()]
    for line in dict.fromkeys(done.not_run):
        say(f"not run: {line}")
    return Studies(found, absent)


def _repetitions(seeds: int | Sequence[int]) -> str:
    """Says which seeds all experiments had."""
    which = range(1, seeds + 1) if isinstance(seeds, int) else seeds
    first, last = which[0], which[-1]
    if list(which) == list(range(first, last + 1)):
        return f"Every experiment had the seeds {first} to {last}."
    return f"Every experiment had the seeds {', '.join(map(str, which))}."


def _write(out: Path, done: Reproduction, how: How) -> None:
    introduction = f"{tally(done.claims)}. Verdicts are computed from the runs."
    if how.seeds is not None:
        introduction += f" {_repetitions(how.seeds)}"
    if how.quick:
        introduction = f"{QUICK} {introduction}"
    parts = []
    for one in done.judgements:
        for section in sections(one):
            parts.append(Section(f"{one.paper.name}. {section.title}", section.blocks))
    write_text(out / "report.html", html_page("Papers reproduced", introduction, parts))
    write_text(out / "claims.md", markdown("Papers reproduced", [introduction], parts))
