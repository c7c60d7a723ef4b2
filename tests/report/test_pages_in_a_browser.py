"""Reports opened in a browser: nothing missing, nothing fetched, readable on small screens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import grid
from grid.experiment.reporting import write_report
from tests.report import chromium

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="no Chromium on this machine")

WIDTHS = (400, 1280)
NAMES = ("run", "farm", "sweep")
WANTED = {
    "run": {"gantt", "utilization", "queued", "cdf-wait", "cdf-slowdown", "vo-map"},
    "farm": {"gantt", "utilization", "queued", "license-use", "cdf-wait", "cdf-slowdown"},
    "sweep": {"cdf-wait-s", "cdf-slowdown", "course-utilization", "compare-user-utility"},
}
SMALLEST_TEXT = 8.0
"""Pixels; smaller text in a picture is not read but guessed."""

SCENARIO = """\
parameters: {selection: partial}
vos:
  - name: vo
    count: 3
    selection: ${selection}
    clusters:
      - machines: {generator: partial_utility, count: 3}
workload:
  generator: partial_utility
  settings: {users: 5, jobs_per_user: 6, mean_interarrival_s: 2}
"""
FARM = """\
vos:
  - name: farm
    clusters:
      - policy: cs2
        machines: {generator: convergent, count: 6, settings: {licenses: 3}}
    workload:
      generator: convergent
      enters: cluster
      settings: {jobs: 60, mean_interarrival_s: 20}
"""
EXPERIMENT = """\
name: small
scenario: scenario.yaml
axes:
  selection: [partial, binary]
  protocol.ttl: [1, 3]
seeds: 3
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of a run, of one with licenses and preemption, and of a sweep."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "scenario.yaml").write_text(SCENARIO)
    (folder / "experiment.yaml").write_text(EXPERIMENT)
    grid.run(folder / "scenario.yaml", out=folder / "run")
    (folder / "farm.yaml").write_text(FARM)
    grid.run(folder / "farm.yaml", out=folder / "farm")
    grid.sweep(folder / "experiment.yaml", folder / "sweep", in_process=True)
    return {name: write_report(folder / name) for name in NAMES}


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    with chromium.browser() as page:
        yield page


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_whole_and_readable(
    pages: dict[str, Path], browser: chromium.Browser, name: str, width: int
) -> None:
    browser.show(pages[name], width)
    assert browser.value("window.innerWidth") == width
    assert browser.complaints == []
    fetched = [url for url in browser.requests if not url.startswith("data:")]
    assert fetched == [pages[name].resolve().as_uri()]
    images = browser.value(
        "[...document.images].map(i => [i.complete, i.naturalWidth, i.width, i.alt.length])"
    )
    saved = sorted((pages[name].parent / "pictures").glob("*.svg"))
    assert len(images) == len(saved)
    assert {path.stem for path in saved} >= WANTED[name]
    assert len(list((pages[name].parent / "pictures").glob("*.png"))) == len(saved)
    for complete, natural, shown, words in images:
        assert complete and natural > 0 and words > 10
        # The drawings' text is 10 points, that is 13.3 pixels, at their natural width.
        assert 13.3 * min(1.0, shown / natural) >= SMALLEST_TEXT
    # Wide tables scroll in themselves; the page does not.
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 14


def test_a_browser_would_complain(tmp_path: Path, browser: chromium.Browser) -> None:
    """What the test above looks for is seen when it is there."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<img src='none.png' alt='nothing'><script>nothing()</script>"
        "<div style='width: 2000px'>wide</div>"
    )
    browser.show(page, 400)
    assert len(browser.complaints) >= 2
    assert any(url.endswith("none.png") for url in browser.requests)
    assert browser.value("document.images[0].naturalWidth") == 0
    assert browser.value("document.documentElement.scrollWidth") > 400
