"""The page on papers: how to cite, what is cited, and what came of the claims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from key_words import MADE

ROOT = Path(__file__).parents[1]


def papers_page() -> str:
    """How to cite, and what is cited, from CITATION.cff."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    lines = [f"{MADE}# Papers and citations\n"]
    lines.append(
        f"{cited['message']} The file `CITATION.cff` of the repository has all of this in a form "
        "that reference managers read. Name the version and the digests of your runs.\n\n"
        f"> {citation(cited)}\n"
    )
    lines.append("## The papers that are reproduced, and the logs\n")
    lines += [f"- {citation(one)}" for one in cited["references"]]
    lines.append("\nThe short names stand for these papers in the whole documentation.\n")
    lines += verdicts()
    return "\n".join(lines)


def verdicts() -> list[str]:
    """The claims of the papers and what came of each, from the index of `grid reproduce`."""
    index = (ROOT / "scenarios/experiments/reproduced/README.md").read_text(encoding="utf-8")
    lines = ["## What we find\n"]
    lines.append(
        "[How claims are judged](explanation/papers-and-claims.md). A sub-claim is one comparison "
        "at one setting. The tables behind this one are in the folder "
        "`scenarios/experiments/reproduced` of the repository, a page for each paper.\n"
    )
    lines += [index.splitlines()[2].partition(" What the verdicts")[0], ""]
    rows = re.findall(r"^\| \[([A-Z0-9]+-\d+)\]\(.*?\) \|(.*)\|(.*)\|(.*)\|$", index, re.M)
    failing = [
        claim
        for claim, *_, counts in rows
        if re.search("contradicted|cannot hold", counts.partition(". By what the paper")[0])
    ]
    lines.append(
        f"Of these {len(rows)} claims the following have sub-claims that are contradicted or "
        f"cannot hold: {', '.join(failing)}.\n"
    )
    lines += ["| claim | what the paper says | sub-claims |", "| --- | --- | --- |"]
    for row in rows:
        claim, says, _, counts = (cell.strip() for cell in row)
        lines.append(f"| {claim} | {says} | {counts.partition('. By what the paper')[0]} |")
    return [*lines, ""]


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
