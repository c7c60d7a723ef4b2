"""The papers' experiments run, their claims judged, their figures drawn: `grid reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grid
from grid.experiment.cases import load_experiment
from grid.experiment.claims import Claim, Finding, Paper, Studies, Verdict, judged
from grid.experiment.papers import NAMES, paper
from grid.experiment.store import SWEEP_FILE, write_text
from grid.experiment.study import Study, read_study
from grid.experiment.sweep import Place, Progress, Wanted, run_sweeps
from grid.model.errors import InputError, Mistake
from grid.report.labels import counted
from grid.report.page import Block, Section, Table, html_page
from grid.report.run_page import PICTURES
from grid.report.style import Picture

EXPERIMENTS = Path(grid.__file__).parents[1] / "scenarios" / "experiments"
QUICK = (
    "QUICK: few repetitions and fewer values than the papers have; intervals are wide, and a claim "
    "that does not hold here may hold in full."
)
FAILURES_SHOWN = 3
HEADERS = ("claim", "what the paper says", "its figure", "ours", "verdict")


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what was found."""

    claim: Claim
    finding: Finding

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts that stand under HEADERS."""
        verdict = str(self.finding.verdict)
        if self.finding.reason:
            verdict += f": {self.finding.reason}"
        return (self.claim.name, self.claim.text, self.claim.paper, self.finding.ours, verdict)

    def __str__(self) -> str:
        name, text, figure, ours, _ = self.cells
        line = f"{name}: {self.finding.verdict}. {text}. Paper: {figure}. Ours: {ours}."
        return f"{line} ({self.finding.reason}.)" if self.finding.reason else line


@dataclass(frozen=True, slots=True)
class How:
    """How experiments are run: where, how many at once, and who is told of the progress."""

    address: str | None = None
    cpus: int | None = None
    in_process: bool = False
    quick: bool = False
    progress: Progress | None = None
    as_is: bool = False
    """Judge the runs that are there, whatever code they were made with, and do no others."""


def wanted_claims(names: Sequence[str]) -> list[tuple[Paper, tuple[Claim, ...]]]:
    """The papers with their claims that `names` stand for, all if there is none.

    A name is a paper's or a claim's, in any case. Raises InputError for another one.
    """
    papers = [paper(name) for name in NAMES]
    known = {one.name for one in papers} | {c.name for one in papers for c in one.claims}
    chosen = [name.upper() for name in names]
    wrong = [given for given, name in zip(names, chosen, strict=True) if name not in known]
    if wrong:
        expected = f"a paper ({', '.join(NAMES)}) or a claim such as PU-1"
        raise InputError([Mistake("reproduce", None, "", repr(name), expected) for name in wrong])
    found = []
    for one in papers:
        is_whole = not chosen or one.name in chosen
        claims = tuple(claim for claim in one.claims if is_whole or claim.name in chosen)
        if claims:
            found.append((one, claims))
    return found


def reproduce(
    names: Sequence[str], out: Path, how: How, say: Callable[[str], None], pages: Path | None = None
) -> list[Judged]:
    """Run what the claims need, judge them, and leave tables and pictures in `out`.

    `say` is told a line for each claim as soon as it is judged. Runs that are in `out` already are
    not done again. In the folder `pages` each paper whose claims are all judged gets a page in
    Markdown, ID.md, with its figures beside it. Raises InputError.
    """
    chosen = wanted_claims(names)
    out.mkdir(parents=True, exist_ok=True)
    everything: list[Judged] = []
    sections: list[Section] = []
    # Paper by paper, so that one knows what is known; where that takes minutes, all at once.
    together = [chosen] if how.quick else [[one] for one in chosen]
    with _one_ray(how):
        for papers in together:
            claims = [claim for _, some in papers for claim in some]
            studies = _studies(claims, out, how, say)
            for one, some in papers:
                found = [Judged(claim, judged(claim, studies)) for claim in some]
                for verdict in found:
                    say(str(verdict))
                pictures = list(one.figures(studies))
                for drawn in pictures:
                    drawn.save(out / PICTURES)
                everything += found
                sections.append(Section(f"{one.name}: {one.title}", _blocks(found, pictures)))
                _write(out, everything, sections, how.quick)
                if pages is not None and len(some) == len(one.claims):
                    _write_page(pages, one, found, pictures, studies, how.quick)
    return everything


@contextmanager
def _one_ray(how: How) -> Iterator[None]:
    """One Ray for all experiments: it takes seconds to start."""
    if how.in_process or how.as_is:
        yield
        return
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(how.address, how.cpus):
        yield


def _studies(claims: Sequence[Claim], out: Path, how: How, say: Callable[[str], None]) -> Studies:
    """Run the experiments of all these claims, as one."""
    names = list(dict.fromkeys(name for claim in claims for name in claim.experiments))
    files = [EXPERIMENTS / f"{name}.yaml" for name in names]
    wanted: list[Wanted] = []
    absent: dict[str, str] = {}
    for name, file in zip(names, files, strict=True):
        try:
            experiment = load_experiment(file, quick=how.quick)
        except InputError as error:
            absent[name] = str(error.mistakes[0])
            continue
        wanted.append(Wanted(experiment, file, out / name, partly=True))
    if how.as_is:
        there = {name: out / name for name in names if (out / name / SWEEP_FILE).is_file()}
        return Studies({name: read_study(folder) for name, folder in there.items()}, {})
    found: dict[str, Study] = {}
    place = Place(how.address, how.cpus, how.in_process)
    for one, done in zip(wanted, run_sweeps(wanted, place, how.progress), strict=True):
        name = one.folder.name
        if isinstance(done, InputError):
            absent[name] = str(done.mistakes[0])
            continue
        for failure in done.failures[:FAILURES_SHOWN]:
            say(f"failed: {name}: {failure}")
        found[name] = read_study(one.folder)
    return Studies(found, absent)


def tally(everything: Sequence[Judged]) -> str:
    """How many claims have which verdict."""
    counts = [
        (verdict, sum(one.finding.verdict == verdict for one in everything)) for verdict in Verdict
    ]
    return f"{len(everything)} claims: " + ", ".join(
        f"{count} {verdict}" for verdict, count in counts if count
    )


def markdown(everything: Sequence[Judged], *, quick: bool) -> str:
    """The verdicts as a table in Markdown."""
    lines = [f"{tally(everything)}.", ""]
    if quick:
        lines = [QUICK, "", *lines]
    lines += [f"| {' | '.join(HEADERS)} |", f"| {' | '.join('---' for _ in HEADERS)} |"]
    for one in everything:
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in one.cells]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _write_page(
    folder: Path,
    one: Paper,
    found: Sequence[Judged],
    pictures: Sequence[Picture],
    studies: Studies,
    quick: bool,
) -> None:
    """The page of a paper, for those who read the project without running it."""
    folder.mkdir(parents=True, exist_ok=True)
    told = [
        f"`scenarios/experiments/{name}.yaml`: {counted(len(study.runs), 'run')}, "
        f"{counted(len({seed for _, seed, _ in study.runs}), 'seed')}, "
        f"intervals of {100 * study.level:g} %, {_cpu_seconds(study):,.0f} CPU seconds in all, "
        f"code {study.code}"
        for name in one.experiments
        if (study := studies.found.get(name)) is not None
    ]
    command = f"grid reproduce {one.name}" + (" --quick" if quick else "")
    lines = [
        f"# {one.name}: {one.title}",
        "",
        f"What `{command}` found, written by it and not by hand. Intervals belong to means and to "
        "differences paired by seed.",
        "",
        *(f"- {line}" for line in told),
        "",
        markdown(found, quick=quick),
    ]
    for drawn in pictures:
        (folder / f"{drawn.name}.svg").write_bytes(drawn.svg)
        lines += [f"![{drawn.caption}]({drawn.name}.svg)", "", drawn.caption, ""]
    write_text(folder / f"{one.name}.md", "\n".join(lines))


def _cpu_seconds(study: Study) -> float:
    """What the runs cost that have a clock, compiling not counted."""
    return sum(sum(clock["cpu_seconds"].values()) for clock in study.clocks.values())


def _blocks(found: Sequence[Judged], pictures: Sequence[Picture]) -> list[Block]:
    return [Table(HEADERS, [one.cells for one in found], prose=True), *pictures]


def _write(
    out: Path, everything: Sequence[Judged], sections: Sequence[Section], quick: bool
) -> None:
    introduction = f"{tally(everything)}. Verdicts are computed from the runs."
    if quick:
        introduction = f"{QUICK} {introduction}"
    page = html_page("Papers reproduced", introduction, sections)
    write_text(out / "report.html", page)
    write_text(out / "claims.md", markdown(everything, quick=quick))
