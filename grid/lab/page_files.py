"""The pages of papers as files: written, found to be of other code, and renewed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grid.config.shipped import experiments_folder
from grid.lab.claims import Verdict, in_words
from grid.lab.code import code_version
from grid.lab.page_digest import judging_digest, page_digest
from grid.lab.pages import (
    SHORT,
    Judged,
    Judgement,
    markdown,
    markdown_row,
    sections,
    source_lines,
)
from grid.lab.papers import NAMES, paper
from grid.lab.place import Place
from grid.lab.report.labels import counted
from grid.lab.report.page import Section
from grid.lab.samples import (
    PageSamples,
    differing,
    read_samples,
    take_samples,
    write_samples,
)
from grid.lab.store import write_text

PAGES = experiments_folder() / "reproduced"
QUICK = (
    "QUICK: few repetitions, fewer values than the papers have, and no runs of their own for other "
    "readings; what is undecided here may be decided in full."
)
DIGEST = "Modules behind the figures: "
RENEWED = "Renewed: "


def tally(claims: Sequence[Judged]) -> str:
    """How many claims, and how many sub-claims have which verdict."""
    counts: Counter[Verdict] = Counter()
    for one in claims:
        counts += one.finding.counts
    return _tally(len(claims), counts)


def _tally(claims: int, counts: Mapping[Verdict, int]) -> str:
    total = sum(counts.values())
    parts = f"{total} sub-claim{'s' * (total != 1)}"
    return f"{counted(claims, 'claim')}, {parts}: {in_words(counts)}"


def _introduction(judgement: Judgement, quick: bool, renewed: str) -> list[str]:
    command = f"grid reproduce {judgement.paper.name}" + (" --quick" if quick else "")
    lines = [QUICK] if quick else []
    return [
        *lines,
        f"What `{command}` found, written by it and not by hand. {tally(judgement.judged)}. "
        "A sub-claim is one comparison at one setting. Runs with the same seed, and so the same "
        "jobs, are compared; where two figures stand, the interval is of the first less the "
        "second.",
        f"{DIGEST}{page_digest(judgement.paper)}",
        *([renewed] if renewed else []),
    ]


def write_page(folder: Path, judgement: Judgement, quick: bool, renewed: str = "") -> None:
    """The page of a paper, for those who read the project without running it.

    `renewed` says how it is known that its runs, made with other code, are this code's, too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for drawn in judgement.pictures:
        (folder / f"{drawn.name}.svg").write_bytes(drawn.svg)
    title = f"{judgement.paper.name}: {judgement.paper.short}"
    text = markdown(title, _introduction(judgement, quick, renewed), sections(judgement))
    write_text(folder / f"{judgement.paper.name}.md", text)
    if not quick:
        samples = take_samples(judgement.studies, judging_digest(judgement.paper))
        write_samples(folder, judgement.paper.name, samples)


def of_other_code(
    judgement: Judgement, place: Place, say: Callable[[str], None]
) -> tuple[list[str], str]:
    """Whether runs that were made with other code are this code's, too, by doing some again.

    Returns a line for each that has other figures now, and else what the page says of it.
    """
    if all(study.code == code_version() for study in judgement.studies.values()):
        return [], ""
    samples = take_samples(judgement.studies, judging_digest(judgement.paper))
    return differing(samples, place, say), _in_words(samples)


def write_index(folder: Path) -> None:
    """One page with the claims of all papers that have a page in the folder, read off these pages.

    So a paper that is reproduced alone leaves what is there of the others.
    """
    claims, counts, quick = 0, Counter[Verdict](), False
    parts = []
    for name in NAMES:
        path = folder / f"{name}.md"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        rows = re.findall(rf"^\| ({name}-\d+) (\|.*\|)$", text, re.MULTILINE)
        shown = re.search(r"claims?, [\d,]+ sub-claims?: (.*?)\. A sub-claim", text)
        if not rows or shown is None:
            continue
        claims += len(rows)
        counts += _counts(shown.group(1))
        quick = quick or QUICK in text.splitlines()
        table = [markdown_row(SHORT), markdown_row(["---"] * len(SHORT))]
        table += [f"| [{claim}]({name}.md) {cells}" for claim, cells in rows]
        parts.append(Section(name, [*source_lines(paper(name)), "\n".join(table)]))
    if not parts:
        return
    introduction = [QUICK] if quick else []
    introduction += [f"{_tally(claims, counts)}. What the verdicts mean:", MEANINGS]
    write_text(folder / "README.md", markdown("Papers reproduced", introduction, parts))


def _counts(words: str) -> Counter[Verdict]:
    """What `in_words` has put in words."""
    known = {one.value: one for one in Verdict} | {"hold": Verdict.HOLDS, "depend": Verdict.DEPENDS}
    counts: Counter[Verdict] = Counter()
    for phrase in words.split(", "):
        count, _, word = phrase.partition(" ")
        if word in known:
            counts[known[word]] += int(count)
    return counts


MEANINGS = (
    "**holds**: the interval of the comparison lies wholly where the paper claims; "
    "**contradicted**: wholly elsewhere; **undecided**: neither, and the page says how many "
    "repetitions would decide it, or between which values of an open quantity it is passed; "
    "**cannot hold**: a bound shows it; **depends**: on a quantity that the paper does not give, "
    "with the table over it; **not run**: it says why."
)


def missing_pages(folder: Path = PAGES, names: Sequence[str] = NAMES) -> list[str]:
    """A line for each paper that has no page."""
    paths = {name: folder / f"{name}.md" for name in names}
    return [
        f"{path}: there is no page; make it with: grid reproduce {name} --pages {folder}"
        for name, path in paths.items()
        if not path.is_file()
    ]


def stale_pages(folder: Path = PAGES, names: Sequence[str] = NAMES) -> list[str]:
    """A line for each page that is of other code than there is now, or of a quick reproduction."""
    found = []
    for name in names:
        path = folder / f"{name}.md"
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        shown = next((line.removeprefix(DIGEST) for line in lines if line.startswith(DIGEST)), "")
        now = page_digest(paper(name))
        if lines and shown != now:
            found.append(
                f"{path}: its figures are of other code: found {shown or 'no digest'}, "
                f"expected {now}"
            )
        if QUICK in lines:
            found.append(f"{path}: it is of a quick reproduction")
    return found


def renew(
    names: Sequence[str], folder: Path, place: Place, say: Callable[[str], None]
) -> list[str]:
    """Do the samples of each stale page again; those pages stand whose figures have not changed.

    Returns a line for each page that is still stale, and why. Raises InputError.
    """
    samples = read_samples(folder)
    left = []
    for name in names:
        path = folder / f"{name}.md"
        if not stale_pages(folder, [name]):
            continue
        why = _why_not_renewed(name, samples.get(name), place, say)
        if why:
            left += [f"{path}: {line}" for line in why]
        else:
            _note_renewal(path, samples[name])
            say(f"{path}: its figures are those of this code, too")
    return left


def _why_not_renewed(
    name: str, samples: PageSamples | None, place: Place, say: Callable[[str], None]
) -> list[str]:
    again = f"make it with: grid reproduce {name} --pages FOLDER"
    if samples is None:
        return [f"there are no samples of its runs; {again}"]
    if samples.judging != judging_digest(paper(name)):
        judge = f"--as-is --out RUNS judges runs that are there; else {again}"
        return [f"what judges and draws its figures has changed: {judge}"]
    say(f"{name}: its code has changed")
    return differing(samples, place, say)


def _note_renewal(path: Path, samples: PageSamples) -> None:
    """Write on a page what code its figures are of now, and how that is known."""
    name = path.stem
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(DIGEST):
            lines += [f"{DIGEST}{page_digest(paper(name))}", "", _in_words(samples)]
        elif line.startswith(RENEWED):
            del lines[-1]
        else:
            lines.append(line)
    write_text(path, "\n".join(lines) + "\n")


def _in_words(samples: PageSamples) -> str:
    return (
        f"{RENEWED}to check that the page is still true, {samples.count} of the {samples.runs:,} "
        "runs were repeated with the present code; the results did not change. Times on the real "
        "clock were not taken again."
    )
