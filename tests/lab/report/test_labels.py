"""Every figure of a report has a label, and every label has a definition in the reference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from fnmatch import fnmatchcase
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from grid.lab.report.axes import LOG
from grid.lab.report.page import Section, Table, html_page
from grid.lab.report.run_data import read_run
from grid.lab.report.terms import SERIES_LABELS, TERMS
from grid.lab.study import read_study
from grid.lab.sweep_texts import named
from grid.results.definitions import FILES, GROUPS, METRICS
from tests.test_documentation import module

PLAIN = {"", " ", "VO", "metric", "grid", "meaning", "value", "key of manifest.json"}
"""Headers of what is no figure."""
RARE = {"jobs of NAME", "one seed"}
"""A pattern, and what is in a legend only where some runs of a sweep failed."""
OF_METRICS = ("metric", "vo_metric", "difference_metric")
"""Lists of a page to choose a metric from."""
OF_FIGURES = ("color", "shape", "strokeDash", "opacity")
"""What in a chart has a legend."""


def labels_of(page: str) -> set[str]:
    """Headers of tables, rows and lists of metrics, titles and legends in charts."""
    found = set(re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page))
    for table in re.findall(r'<table class="prose"[^>]*>.*?<tbody>(.*?)</tbody>', page, re.S):
        found |= set(re.findall(r"<tr><td>(.*?)</td>", table))
    for signal, options in re.findall(r'<select data-signal="(\w+)"[^>]*>(.*?)</select>', page):
        if signal in OF_METRICS:
            found |= set(re.findall(r"<option[^>]*>(.*?)</option>", options))
    charts = re.findall(r'<figure.*?<script type="application/json" >(.*?)</script>', page, re.S)
    for chart in charts:
        found |= set(titles(json.loads(chart)))
    return {unescape(label.replace("<wbr>", "")) for label in found}


def titles(tree: Any) -> Iterator[str]:
    """The titles of a chart, its axes, its legends with what is in them, and its tooltips."""
    if isinstance(tree, list):
        for one in tree:
            yield from titles(one)
    if isinstance(tree, dict):
        yield from title(tree.get("title"))
        if tree.get("name") == "titles":
            yield from tree["value"].values()
        for channel in OF_FIGURES:
            yield from legend(tree.get(channel))
        for one in tree.values():
            yield from titles(one)


def title(given: Any) -> Iterator[str]:
    """The first line of a title, which the reader's choices may change but for that."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict) and isinstance(given.get("text"), str):
        yield given["text"]
    elif isinstance(given, dict) and isinstance(given.get("text"), dict):
        yield from re.findall(r"^\['([^']+)'", given["text"]["expr"])


def legend(encoding: Any) -> Iterator[str]:
    """What stands in the legend of a channel, if it has one."""
    if isinstance(encoding, dict) and encoding.get("legend") is not None:
        values = encoding["legend"].get("values", encoding.get("scale", {}).get("domain", ()))
        yield from (one for one in values if isinstance(one, str))


def names_in(folder: Path) -> set[str]:
    """What the user has named: VOs and clusters of a run; axes of a sweep, and their values."""
    if (folder / "metrics.json").exists():
        run = read_run(folder)
        return {*run.vos, *run.cluster_titles}
    study = read_study(folder)
    values = {named(axis, one) for axis, every in study.axes.items() for one in every}
    return {*study.axes, *values, *map(str, values)}


def definition_of(label: str, names: Set[str]) -> str | None:
    """What the reference must have for this label; None where nothing defines it."""
    for metric in METRICS.values():
        if label == metric.label:
            return f"({metric.title})"
    bare = re.sub(r" \([^()]*\)$", "", label)
    for name, shown in SERIES_LABELS.items():
        if label == shown:
            return f"`{name}` ({shown})"
    if label.startswith("jobs of ") and label.removeprefix("jobs of ") in names:
        return "jobs of NAME\n: "
    for term in TERMS:
        if label in (term, f"{term} (s)") or bare == term:
            return f"{term}\n: "
    for key in (*FILES["manifest"].columns, *FILES["jobs"].columns, *FILES["series"].columns):
        if fnmatchcase(label, key):
            return f"`{key}`"
    return None


def undefined(page: str, reference: str, names: Set[str] = frozenset()) -> set[str]:
    """The labels of a page that the reference does not define."""
    figures = labels_of(page) - PLAIN - names
    # A Gantt chart is titled by its cluster, and says what its rows are.
    figures = {label for label in figures if ": a row a " not in label}
    # An axis of a sweep has its name, and says if it is logarithmic.
    figures = {label.removesuffix(f" ({LOG})") for label in figures} - names
    return {
        label
        for label in figures
        if (wanted := definition_of(label, names)) is None or wanted not in reference
    }


@pytest.fixture(scope="module")
def reference() -> Iterator[str]:
    """All pages of the reference as one text."""
    with pytest.MonkeyPatch.context() as patch:
        yield "\n".join(module("reference_pages", patch).pages().values())


def texts_of(reports: Mapping[str, Path]) -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in reports.items()}


def test_every_label_of_a_report_is_defined_in_the_reference(
    reports: dict[str, Path], reference: str
) -> None:
    for name, page in texts_of(reports).items():
        assert len(labels_of(page)) > 20, name
        assert undefined(page, reference, names_in(reports[name].parent)) == set(), name


def test_the_reports_that_are_read_have_all_that_reports_can_show(
    reports: dict[str, Path],
) -> None:
    """Or the test above would not see what they lack."""
    shown = set().union(*map(labels_of, texts_of(reports).values()))
    metrics = {
        one.label
        for one in (
            *GROUPS["jobs"].metrics,
            *GROUPS["machines"].metrics,
            *GROUPS["decisions"].metrics,
        )
    }
    assert metrics - shown == set()
    assert set(SERIES_LABELS.values()) - shown == set()
    bare = {re.sub(r" \([^()]*\)$", "", label) for label in shown} | shown
    assert {*TERMS} - bare - RARE == set()
    assert any(label.startswith("jobs of vo") for label in shown)


PLANTED = {
    "a header": ('<th scope="col"', '<th scope="col">haste (s)</th><th scope="col"'),
    "a row": (
        "<tbody><tr><td>jobs submitted",
        "<tbody><tr><td>haste (s)</td></tr><tr><td>jobs submitted",
    ),
    "a choice": ("<option", '<option value="haste">haste (s)</option><option'),
    "a title": ('"title":"stretch"', '"title":"haste (s)"'),
    "a legend": ('"domain":["jobs of vo1"', '"domain":["haste (s)","jobs of vo1"'),
}
"""What is written over what, to have a label without a definition there."""


@pytest.mark.parametrize("place", PLANTED)
def test_a_label_without_a_definition_is_found(
    reports: dict[str, Path], reference: str, place: str
) -> None:
    page = reports["run"].read_text(encoding="utf-8")
    old, new = PLANTED[place]
    assert old in page
    planted = page.replace(old, new, 1)
    assert undefined(planted, reference, names_in(reports["run"].parent)) == {"haste (s)"}


def test_a_term_that_the_reference_has_not_is_found() -> None:
    page = html_page("a", "b", [Section("c", [Table(["VO", "haste (s)", "wait (s)"], [])])])
    assert undefined(page, "wait\n: From here to there.") == {"haste (s)"}
    assert undefined(page, "") == {"haste (s)", "wait (s)"}
