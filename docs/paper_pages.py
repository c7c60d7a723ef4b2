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


def write_paper_pages(docs: Path) -> None:
    """The page of each paper, as `grid reproduce` has written it, with its figures."""
    folder = docs / "reproduced"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for made in (*REPRODUCED.glob("*.svg"), *REPRODUCED.glob("*.csv")):
        shutil.copyfile(made, folder / made.name)
    for name in papers():
        text = _page_of(name).read_text(encoding="utf-8")
        sentences = ROOT / f"scenarios/papers/{name}.yaml"
        shutil.copyfile(sentences, folder / sentences.name)
        text = text.replace(f"../../papers/{name}.yaml", f"{name}.yaml")
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def papers() -> list[str]:
    """Short names of the papers that have a page, in the order of the index."""
    index = (REPRODUCED / "README.md").read_text(encoding="utf-8")
    return list(dict.fromkeys(re.findall(r"^\| \[([A-Z0-9]+)-\d+\]", index, re.M)))


def _page_of(paper: str) -> Path:
    return REPRODUCED / f"{paper}.md"


def papers_page() -> str:
    """How to cite, and what is cited, from CITATION.cff."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    lines = [f"{MADE}# Papers and citations\n"]
    lines.append(
        f"{cited['message']} The file `CITATION.cff` in the repository contains the same data for "
        f"reference managers. State the commit of the repository and the digests of your runs.\n\n"
        f"> {citation(cited)}\n"
    )
    lines.append("## The papers that are reproduced, and the logs\n")
    lines += [f"- {citation(one)}" for one in cited["references"]]
    lines.append("\nThe documentation uses the short names for these papers.\n")
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
        f"`{year_and_commit}` in the clone prints YEAR and COMMIT. The entries are in UTF-8, for "
        f"biber. EG has no entry, since its text names no authors.\n",
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
    """The verdict on each claim, from the index of `grid reproduce`."""
    index = (REPRODUCED / "README.md").read_text(encoding="utf-8")
    rows = re.sub(r"\]\((\w+)\.md\)", r"](reproduced/\1.md)", index.partition("\n| claim")[2])
    names = "\n".join(f"reproduced/{paper}" for paper in papers())
    return [
        "## What we find\n",
        "`grid reproduce` repeats the experiments; see [how a verdict is reached]"
        "(explanation/papers.md). The verdict of a claim is that of its first sentence under the "
        "main reading. The page of each paper has all its sentences and the assumptions that "
        "change a verdict.\n",
        f"| claim{rows}",
        f"```{{toctree}}\n:hidden:\n\n{names}\n```\n",
        "**Ta** is the mean time between two jobs; **BF-rm** and **BF-unrm** are Flexible "
        "backfilling that remakes its reservation at each event, or keeps it; **PU**, **BU** "
        "and **MM** are partial utility, binary utility and matchmaking; **S1**, **S2**, **S3** "
        "are gangs without migration, with migration, and with migration and **aLD**, which sends "
        "a task to the queue with the least work.\n",
    ]


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
