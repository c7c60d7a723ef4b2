"""CITATION.cff names the project, and the papers as the judged claims do."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from grid import __version__
from grid.lab.papers.paper import NAMES, load_paper

ROOT = Path(__file__).parents[2]


def test_the_citation_is_of_this_version_and_names_the_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == __version__
    assert [list(author) for author in cited["authors"]] == [["name"]]
    by_title = {one["title"]: one for one in cited["references"]}
    for name in NAMES:
        source = load_paper(name).source
        if not source.title:
            continue
        one = by_title[source.title]
        people = [f"{who['given-names']} {who['family-names']}" for who in one["authors"]]
        authors = re.sub(r" \(.*?\)", "", source.authors)
        assert (", ".join(people), one["year"]) == (authors, source.year)
    assert all(one["title"] and one["authors"] for one in cited["references"])


def test_contributing_names_what_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:grid|scripts|tests|scenarios)/[\w./-]*)`", text)
    assert len(paths) > 10
    for path in paths:
        assert (ROOT / path).exists(), path
