"""Reports opened in a browser: nothing missing, nothing fetched, readable on small screens."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from grid.lab.report.picture import DARK, LIGHT
from grid.results.definitions import label_of
from tests.lab.report import chromium, small_reports

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="no Chromium on this machine")

WANTED = {
    "run": {"vos", "gantt-1", "utilization", "queued", "cdf-wait", "cdf-stretch", "flows"},
    "farm": {"gantt-1", "utilization", "queued", "license-use", "cdf-wait", "cdf-stretch"},
    "rich": {"vos", "gantt", "utilization", "lost-cpus", "power-w", "cdf-wait", "flows"},
    "rich_sweep": {"compare-energy-j", "cdf-wait-s", "differences", "flows", "vos"},
    "sweep": {
        "cdf-wait-s",
        "cdf-slowdown",
        "course-utilization",
        "compare-user-utility",
        "differences",
        "flows",
        "vos",
    },
}
MISALIGNED_HEADERS = """(() => {
  const left = (cell) => Math.round(cell.getBoundingClientRect().left);
  return [...document.querySelectorAll("table.prose")].filter((table) =>
    [0, 1].some((place) => left(table.tHead.rows[0].cells[place]) !==
      left(table.tBodies[0].rows[0].cells[place]))).length;
})()"""
"""How many tables of sentences have a header that is not above its column."""
FIRST_CHART = "document.querySelector('figure[data-chart]').getBoundingClientRect().top"
FAR = 1350
"""Pixels from the top, a screen and a half, within which the first chart of a page begins."""
SMALLEST_TEXT = 8.0
"""Pixels; smaller text in a chart is not read but guessed."""
MISPLACED = """(() => {
  const found = [];
  for (const chart of document.querySelectorAll("figure[data-chart]")) {
    const room = chart.querySelector(".chart").getBoundingClientRect();
    const texts = [...chart.querySelectorAll("svg text")].filter(
      (text) => text.textContent.trim() && getComputedStyle(text).opacity !== "0");
    const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
    for (const [text, box] of boxes)
      if (box.left < room.left - 1 || box.right > room.right + 1)
        found.push(`${chart.dataset.chart}: ${text} is cut`);
    const drawn = chart.querySelector("svg")?.getBoundingClientRect();
    for (const [text, box] of boxes)
      if (box.top < drawn.top - 2 || box.bottom > drawn.bottom + 2)
        found.push(`${chart.dataset.chart}: ${text} is cut above or below`);
    boxes.forEach(([one, a], place) => boxes.slice(place + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) found.push(`${chart.dataset.chart}: ${one} on ${other}`);
    }));
  }
  return found;
})()"""
"""Texts of charts that lie on each other or reach beyond their chart."""


SPILT = """[...document.querySelectorAll("td:first-child, th:first-child")].filter(
  (cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent)"""
"""Names of rows that overlap the next cell."""


def show(browser: chromium.Browser, page: Path, width: int, scheme: str = "light") -> None:
    """Load the page and wait until its charts are drawn."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.ask("Emulation.setEmulatedMedia", features=[feature])
    browser.show(page, width)
    drawn = "new Promise((done) => { (function look() {document.body.dataset.drawn ? done() : "
    drawn += "requestAnimationFrame(look)})() })"
    browser.ask("Runtime.evaluate", expression=drawn, awaitPromise=True, timeout=60_000)


@pytest.mark.parametrize(
    ("name", "width"),
    [*itertools.product(small_reports.NAMES, (400, 1280)), ("run", 1920), ("sweep", 1920)],
)
def test_a_report_is_whole_and_readable(
    reports: dict[str, Path], browser: chromium.Browser, name: str, width: int
) -> None:
    show(browser, reports[name], width)
    assert browser.value("window.innerWidth") == width
    assert browser.complaints == []
    fetched = [url for url in browser.requests if not url.startswith("data:")]
    assert fetched == [reports[name].resolve().as_uri()]
    charts = browser.value("[...document.querySelectorAll('figure')].map(f => f.dataset.chart)")
    drawn = browser.value("[...document.querySelectorAll('figure svg')].length")
    saved = {path.stem for path in (reports[name].parent / "pictures").glob("*.svg")}
    assert set(charts) == saved and drawn == len(charts)
    assert saved >= WANTED[name]
    assert {path.stem for path in (reports[name].parent / "pictures").glob("*.png")} == saved
    assert browser.value(MISPLACED) == []
    assert browser.value(FIRST_CHART) <= FAR
    browser.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.value(MISALIGNED_HEADERS) == 0
    assert browser.value(SPILT) == []
    sizes = "[...document.querySelectorAll('svg text')].map(t => parseFloat(getComputedStyle(t)"
    assert min(browser.value(sizes + ".fontSize))")) >= SMALLEST_TEXT
    # Wide tables scroll in themselves; the page does not.
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 14


def test_colours_follow_the_screen(reports: dict[str, Path], browser: chromium.Browser) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('figure svg text')).fill"
    show(browser, reports["run"], 1280)
    light = browser.value(paper), browser.value(ink)
    show(browser, reports["run"], 1280, "dark")
    assert (browser.value(paper), browser.value(ink)) == light[::-1] or (
        browser.value(paper) != light[0] and browser.value(ink) != light[1]
    )
    assert browser.complaints == []


def test_charts_and_texts_follow_a_choice(
    reports: dict[str, Path], browser: chromium.Browser
) -> None:
    show(browser, reports["run"], 1280)
    title = "document.querySelector('figure[data-chart=vos] svg .role-title text').textContent"
    assert browser.value(title) == label_of("wait_mean")
    choose = (
        "(async () => { const one = document.querySelector('select[data-signal=metric]');"
        "one.value = 'utilization'; one.dispatchEvent(new Event('change'));"
        "await new Promise((done) => setTimeout(done, 300)); })()"
    )
    browser.ask("Runtime.evaluate", expression=choose, awaitPromise=True)
    assert browser.value(title) == label_of("utilization")
    shown = "[...document.querySelectorAll('[data-when]')].filter(e => !e.hidden).length"
    assert browser.value(shown) == 1


def test_a_chart_is_saved_as_shown_in_the_colours_of_print(
    reports: dict[str, Path], browser: chromium.Browser
) -> None:
    show(browser, reports["run"], 1280, "dark")
    save = (
        "(async () => { const link = HTMLAnchorElement.prototype;"
        "link.click = function () { window.as = this.download; };"
        "const made = new Promise((done) => { URL.createObjectURL = (blob) => "
        "{ blob.text().then(done); return 'blob:made'; }; });"
        "const one = document.querySelector('select[data-signal=metric]');"
        "one.value = 'utilization'; one.dispatchEvent(new Event('change'));"
        "await new Promise((done) => setTimeout(done, 300));"
        "document.querySelector('figure[data-chart=vos] button').click();"
        "window.svg = await made; })()"
    )
    browser.ask("Runtime.evaluate", expression=save, awaitPromise=True)
    svg = browser.value("window.svg")
    assert browser.value("window.as") == "vos.svg"
    assert svg.startswith('<svg style="background: #fff" ') and "var(" not in svg
    assert label_of("utilization") in svg and LIGHT["ink"] in svg and DARK["ink"] not in svg
    assert browser.complaints == []


def test_a_table_is_saved_as_latex(reports: dict[str, Path], browser: chromium.Browser) -> None:
    show(browser, reports["sweep"], 1280)
    save = (
        "(async () => { HTMLAnchorElement.prototype.click = () => {};"
        "const made = new Promise((done) => { URL.createObjectURL = (blob) => "
        "{ blob.text().then(done); return 'blob:made'; }; });"
        "document.querySelector('button[data-save=tex]').click(); window.tex = await made; })()"
    )
    browser.ask("Runtime.evaluate", expression=save, awaitPromise=True)
    first, *rows = browser.value("window.tex").splitlines()
    assert first.startswith("\\begin{tabular}{l") and rows[-1] == "\\end{tabular}"
    assert any("$\\pm$" in row and row.endswith("\\\\") for row in rows)
    assert browser.complaints == []
