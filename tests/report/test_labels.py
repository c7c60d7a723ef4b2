"""Every figure of a report has a label, and every label has a definition in the reference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from grid.report.page import Section, Table, html_page
from grid.results.column_definitions import JOB_COLUMNS, MANIFEST_KEYS, SERIES_COLUMNS
from grid.results.definitions import METRICS
from grid.results.report_terms import SERIES_LABELS, TERMS
from tests.test_documentation import module

PLAIN = {"", " ", "VO", "metric", "grid", "meaning", "value", "key of manifest.json"}
"""Headers of what is no figure."""
OF_THE_STUDY = {"selection", "protocol.ttl", "partial", "binary"}
"""Axes of the sweep in `small_reports`, and their values."""


def labels_of(page: str) -> set[str]:
    """The headers of tables, what rows of metrics are called, and the titles in charts."""
    found = set(re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page))
    for table in re.findall(r'<table class="prose">.*?<tbody>(.*?)</tbody>', page, re.S):
        found |= set(re.findall(r"<tr><td>(.*?)</td>", table))
    charts = re.findall(r'<figure.*?<script type="application/json" >(.*?)</script>', page, re.S)
    for chart in charts:
        found |= set(titles(json.loads(chart)))
    return {unescape(label) for label in found}


def titles(tree: Any) -> Iterator[str]:
    """The titles of a chart, its axes, its legends and what appears beside the pointer."""
    if isinstance(tree, list):
        for one in tree:
            yield from titles(one)
    if isinstance(tree, dict):
        if isinstance(tree.get("title"), str):
            yield tree["title"]
        if tree.get("name") == "titles":
            yield from tree["value"].values()
        for one in tree.values():
            yield from titles(one)


def definition_of(label: str) -> str | None:
    """What the reference must have for this label; None where nothing defines it."""
    for metric in METRICS.values():
        if label == metric.label:
            return f"({metric.title})"
    bare = re.sub(r" \([^()]*\)$", "", label)
    for name, shown in SERIES_LABELS.items():
        if label == shown:
            return f"`{name}` ({shown})"
    for term in TERMS:
        if label in (term, f"{term} (s)") or bare == term:
            return f"{term}\n: "
    for key in (*MANIFEST_KEYS, *JOB_COLUMNS, *SERIES_COLUMNS):
        if fnmatchcase(label, key):
            return f"`{key}`"
    return None


def undefined(page: str, reference: str) -> set[str]:
    """The labels of a page that the reference does not define."""
    figures = labels_of(page) - PLAIN - OF_THE_STUDY
    # A Gantt chart is titled by its cluster, and says what its rows are.
    figures = {label for label in figures if ": a row a " not in label}
    return {
        label
        for label in figures
        if (wanted := definition_of(label)) is None or wanted not in reference
    }


def test_every_label_of_a_report_is_defined_in_the_reference(
    reports: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = "\n".join(module("reference_pages", monkeypatch).pages().values())
    for name, path in reports.items():
        page = path.read_text(encoding="utf-8")
        assert len(labels_of(page)) > 20, name
        assert undefined(page, reference) == set(), name


def test_a_label_without_a_definition_is_found() -> None:
    page = html_page("a", "b", [Section("c", [Table(["VO", "haste (s)", "wait (s)"], [])])])
    assert undefined(page, "wait\n: From here to there.") == {"haste (s)"}
    assert undefined(page, "") == {"haste (s)", "wait (s)"}
