"""The page on papers: how to cite, what is cited, and what came of the claims."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from key_words import MADE

ROOT = Path(__file__).parents[1]
REPRODUCED = ROOT / "scenarios/experiments/reproduced"
VERDICTS = ("hold", "contradicted", "undecided", "cannot hold", "depend")


def write_paper_pages(docs: Path) -> None:
    """The page of each paper, as `grid reproduce` has written it, with its figures."""
    folder = docs / "reproduced"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for made in (*REPRODUCED.glob("*.svg"), *map(_page_of, papers())):
        shutil.copyfile(made, folder / made.name)


def papers() -> list[str]:
    """Short names of the papers, in the order of the index."""
    index = (REPRODUCED / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^## ([A-Z0-9]+)$", index, re.M)


def _page_of(paper: str) -> Path:
    return REPRODUCED / f"{paper}.md"


def papers_page() -> str:
    """How to cite, and what is cited, from CITATION.cff."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    lines = [f"{MADE}# Papers and citations\n"]
    lines.append(
        f"{cited['message']} The file `CITATION.cff` of the repository has all of this in a form "
        "that reference managers read. Name the commit of the repository and the digests of your "
        "runs.\n\n"
        f"> {citation(cited)}\n"
    )
    lines.append("## The papers that are reproduced, and the logs\n")
    lines += [f"- {citation(one)}" for one in cited["references"]]
    lines.append("\nThe short names stand for these papers in the whole documentation.\n")
    lines += bibtex(cited)
    lines += verdicts()
    return "\n".join(lines)


def bibtex(cited: Mapping[str, Any]) -> list[str]:
    """The same for BibTeX; without what has no authors that anybody knows."""
    year_and_commit = "git log -1 --date=format:%Y --format='%ad %H'"
    ours = {**cited, "year": "YEAR", "notes": f"Version {cited['version']}, commit COMMIT"}
    entries = [_entry("misc", "grid-emulator", ours)]
    for one in cited["references"]:
        name = re.match(r"([A-Z0-9]+) here", one["notes"]) or re.search(
            r"\((\S+)\.swf\)", one["title"]
        )
        if one["type"] == "conference-paper" and name:
            entries.append(_entry("inproceedings", name[1], {**one, "notes": ""}))
        elif one["type"] == "data" and name:
            entries.append(_entry("misc", name[1], one))
    return [
        "## BibTeX\n",
        f"`{year_and_commit}` in the clone says what to write for YEAR and COMMIT. Letters are in "
        "UTF-8, as biber takes them. EG has no entry, since its text names no authors.\n",
        "```bibtex",
        *entries,
        "```\n",
    ]


def _entry(kind: str, key: str, one: Mapping[str, Any]) -> str:
    people = [
        f"{{{person['name']}}}" if "name" in person
        else f"{person['family-names']}, {person['given-names']}"
        for person in one["authors"]
    ]  # fmt: skip
    fields = {
        "author": " and ".join(people),
        "title": f"{{{one['title']}}}",
        "booktitle": one.get("collection-title", ""),
        "pages": f"{one['start']}--{one['end']}" if "start" in one else "",
        "year": str(one.get("year", "")),
        "doi": one.get("doi", ""),
        "isbn": one.get("isbn", ""),
        "note": one["notes"].strip(),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


def verdicts() -> list[str]:
    """The claims of the papers and what came of each, from the index of `grid reproduce`."""
    index = (REPRODUCED / "README.md").read_text(encoding="utf-8")
    lines = ["## What we find\n"]
    lines.append(
        "`grid reproduce` runs it again. A sub-claim is one comparison at one setting; [how it is "
        "judged](explanation/papers-and-claims.md). Claims as a whole have no verdict: some say a "
        "dozen things. **The page of a paper has every sub-claim with the means that are compared, "
        "their difference and its interval, and the figures of the paper with our data.**\n"
    )
    lines += [index.splitlines()[2].partition(" What the verdicts")[0], ""]
    lines.append(f"| paper | claims | sub-claims | {' | '.join(VERDICTS)} |")
    lines.append("| --- " * (3 + len(VERDICTS)) + "|")
    lines += [_row_of(paper) for paper in papers()]
    names = "\n".join(f"reproduced/{paper}" for paper in papers())
    lines.append(f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n")
    rows = re.findall(r"^\| \[([A-Z0-9]+-\d+)\]\(.*?\) \|(.*)\|(.*)\|(.*)\|$", index, re.M)
    why = ", ".join(
        f"[{paper}](reproduced/{paper}.md#what-contradicts-the-paper-and-why)" for paper in papers()
    )
    failing = [
        claim
        for claim, *_, counts in rows
        if re.search("contradicted|cannot hold", counts.partition(". By what the paper")[0])
    ]
    lines.append(
        f"Of these {len(rows)} claims the following have sub-claims that are contradicted or "
        f"cannot hold: {', '.join(failing)}. Why, as far as we know, stands near the end of each "
        f"page, claim by claim: {why}.\n"
    )
    lines.append(
        "A text can be read in more ways than one. Counts before a semicolon are of our main "
        "[reading](explanation/papers-and-claims.md#readings), and so are those of the table "
        "above. After it stands how many sub-claims come out otherwise under other readings, such "
        "as *the opposite under another reading*.\n"
    )
    lines.append(
        "The papers' own words in the table: **Ta** is the mean time between two jobs; **MKP** a "
        "knapsack problem, of which jobs may run with the licenses that there are; **BF-rm** and "
        "**BF-unrm** are Flexible backfilling that makes its reservation anew at each event, or "
        "keeps it; **MM** is matchmaking, **BU** binary utility, **PU** as a scheduler the "
        "one of partial utility; **S1**, **S2**, **S3** are gangs without migration, with it, and "
        "with it and **aLD**, which sends a task where the fewest wait or run.\n"
    )
    lines += ["| claim | what the paper says | sub-claims |", "| --- | --- | --- |"]
    for row in rows:
        claim, says, _, counts = (cell.strip() for cell in row)
        page = f"reproduced/{claim.partition('-')[0]}.md"
        verdicts_of_it = counts.partition(". By what the paper")[0]
        lines.append(f"| [{claim}]({page}) | {says} | {verdicts_of_it} |")
    return [*lines, ""]


def _row_of(paper: str) -> str:
    """How many claims and sub-claims a paper has, and how many of these have each verdict."""
    counts = _page_of(paper).read_text(encoding="utf-8").splitlines()[2]
    claims, of_them = re.findall(r"(\d+) (?:sub-)?claims", counts)
    found = {verdict: re.search(rf"(\d+) {verdict}s?\b", counts) for verdict in VERDICTS}
    cells = [one[1] if one else "0" for one in found.values()]
    return f"| [{paper}](reproduced/{paper}.md) | {claims} | {of_them} | {' | '.join(cells)} |"


def citation(entry: Mapping[str, Any]) -> str:
    """One entry of CITATION.cff as text."""
    people = [
        one.get("name") or f"{one['given-names']} {one['family-names']}" for one in entry["authors"]
    ]
    pages = f"pages {entry['start']} to {entry['end']}" if "start" in entry else ""
    facts = [
        ", ".join(people), f"*{entry['title']}*", entry.get("collection-title", ""), pages,
        str(entry.get("year", "")), f"version {entry['version']}" if "version" in entry else "",
        f"DOI {entry['doi']}" if "doi" in entry else "",
        f"ISBN {entry['isbn']}" if "isbn" in entry else "",
    ]  # fmt: skip
    notes = f" {entry['notes'].strip()}" if "notes" in entry else ""
    return ". ".join(fact for fact in facts if fact) + "." + notes
