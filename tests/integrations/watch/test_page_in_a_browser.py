"""The page of a run in a browser: layout, keys, selection, following a run, injecting faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grid.integrations.watch.views import Replay, Running
from grid.model.interventions import Action, Intervention, LiveFacts
from tests.integrations.watch.pages import Watching, served, watched, write_run, write_scenario
from tests.lab.report import chromium

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="no Chromium on this machine")

GANTT = "document.getElementById('gantt')"
DRAWN = """document.querySelectorAll('#courses svg').length === 4
  && document.querySelector('#gantt svg, #gantt p') && document.querySelector('#states td')"""
AT_GANTT = f"({GANTT}.scrollIntoView(), {DRAWN})"
"""Scroll each time, since charts that are drawn later move the Gantt chart."""
TIME = "Number(document.getElementById('line').value)"
SCROLLED = """[document.documentElement, ...document.querySelectorAll('.chart')]
  .filter(one => { const inner = one.querySelector('svg, canvas');
    return one.scrollWidth > one.clientWidth || (one.classList.contains('chart') && inner
      && inner.getBoundingClientRect().width > one.getBoundingClientRect().width); }).length"""
OUTSIDE = """[...document.querySelectorAll('.node')].filter(node => { const a = node.
  getBoundingClientRect(); return a.left < 0 || a.right > innerWidth; }).length"""


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(Replay(write_run(tmp_path_factory.mktemp("few"), 3))) as address:
        yield address


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(Replay(write_run(tmp_path_factory.mktemp("many"), 40))) as address:
        yield address


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Watching:
    return watched(write_scenario(tmp_path_factory.mktemp("live")), in_process=True)[0]


def set_screen(browser: chromium.Browser, width: int, scheme: str) -> None:
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.ask("Emulation.setEmulatedMedia", features=features)
    browser.set_width(width)


def show(browser: chromium.Browser, address: str, width: int, scheme: str = "light") -> None:
    set_screen(browser, width, scheme)
    browser.show(address, width)
    # The Gantt chart is drawn when it is near the viewport.
    browser.wait_for("document.querySelectorAll('#courses svg').length === 4")
    browser.wait_for(AT_GANTT)
    browser.value("scrollTo(0, 0)")


def wait_for_text(browser: chromium.Browser, id: str, text: str) -> None:
    browser.wait_for(f"document.getElementById('{id}').textContent.includes('{text}')")


def press(browser: chromium.Browser, id: str, answer: str) -> None:
    """Press a button that injects a fault, and answer the dialog."""
    answered = "Number(document.getElementById('sure').dataset.answered ?? 0)"
    before = browser.value(answered)
    browser.value(f"document.getElementById('inject-{id}').click()")
    browser.wait_for("document.getElementById('sure').open")
    chosen = "#sure-yes" if answer == "Yes" else "#sure button"
    browser.value(f"document.querySelector('{chosen}').click()")
    browser.wait_for(f"{answered} > {before}")


@pytest.mark.parametrize("name", ["few", "many"])
def test_it_fits_small_and_large_screens(
    browser: chromium.Browser, name: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(name)
    show(browser, address, 1920)
    browser.press("End")
    browser.wait_for("document.querySelectorAll('#events li').length > 20")
    for width, scheme in ((1920, "light"), (1280, "dark"), (400, "light")):
        set_screen(browser, width, scheme)
        # The charts are redrawn, and a scroll bar may appear.
        browser.wait_for(f"innerWidth === {width} && {DRAWN} && {SCROLLED} === 0")
        browser.wait_for(f"{OUTSIDE} === 0")
        size = "parseFloat(getComputedStyle(one).fontSize)"
        sizes = f"[...document.querySelectorAll('body *')].map(one => {size})"
        assert min(browser.value(sizes)) >= 10
    assert browser.value("document.getElementById('trouble').hidden")
    assert browser.complaints == []
    assert all(url.startswith((address, "data:")) for url in browser.requests)


def test_keys_move_in_time_and_play(browser: chromium.Browser, few: str) -> None:
    show(browser, few, 1280)
    assert browser.value(TIME) == 0
    for key, time in (("End", 10_000), ("ArrowLeft", 9900), ("Home", 0)):
        browser.press(key)
        assert browser.value(TIME) == time
    browser.press(" ")
    browser.wait_for(f"{TIME} > 20")
    browser.press(" ")
    assert browser.value("document.getElementById('play').textContent") == "Play"
    before = browser.value("document.getElementById('speed').selectedIndex")
    browser.press("+")
    assert browser.value("document.getElementById('speed').selectedIndex") == before + 1
    assert browser.complaints == []


def test_a_vo_and_a_job_can_be_selected(browser: chromium.Browser, few: str) -> None:
    show(browser, few, 1280)
    browser.press("End")
    browser.wait_for("document.querySelectorAll('#events li').length > 20")
    browser.value("document.querySelectorAll('.node')[1].click()")
    wait_for_text(browser, "courses", "vo2")
    assert browser.value("document.getElementById('vo').selectedOptions[0].text") == "vo2"
    browser.wait_for("document.querySelector('#states th:nth-child(3)')?.textContent === 'vo2'")
    assert browser.value("document.getElementById('cluster').selectedOptions[0].text") == "vo2"
    assert browser.value("document.querySelectorAll('#events [tabindex=\"0\"]').length") == 1
    browser.value("document.querySelector('#events button').focus()")
    browser.press("ArrowDown")
    places = "[...document.querySelectorAll('#events button')]"
    assert browser.value(f"{places}.indexOf(document.activeElement)") == 1
    browser.value("document.activeElement.click()")
    lines = "document.querySelectorAll('#job-lines li').length"
    browser.wait_for(f"{lines} === 4")
    browser.value("document.activeElement.blur()")
    browser.press("Home")
    browser.wait_for(f"{lines} < 2")
    assert browser.complaints == []


def test_a_run_in_progress_is_followed_to_its_end(
    browser: chromium.Browser, live: Watching
) -> None:
    run = Running(live.beginning)
    first, last = live.looks[0], live.looks[-1]
    with served(run) as address:
        set_screen(browser, 400, "light")
        browser.show(address, 400)
        wait_for_text(browser, "what", "being set up")
        run.take(first._replace(is_over=False, now_us=first.now_us // 2 + 1))
        wait_for_text(browser, "what", "follows it")
        browser.wait_for("document.querySelectorAll('#courses svg').length === 4")
        # The server loads much for a Gantt chart, which is requested when it is near.
        assert not any("/gantt?" in url for url in browser.requests)
        browser.wait_for(AT_GANTT)
        assert any("/gantt?" in url for url in browser.requests)
        browser.wait_for("document.querySelectorAll('#messages dt').length > 3")
        browser.press("Home")
        wait_for_text(browser, "what", "press End")
        browser.press("End")
        run.take(last)
        wait_for_text(browser, "what", "has ended")
        browser.wait_for(f"{TIME} === 10000")
        assert browser.complaints == []
    wait_for_text(browser, "trouble", "has ended")


def test_buttons_inject_faults_after_confirmation(
    browser: chromium.Browser, live: Watching
) -> None:
    entities, requested = ("vo1/cluster/cluster", "vo2/scheduler"), list[Action]()
    facts = LiveFacts(1.0, entities, (3, 0, 3))
    run = Running(live.beginning._replace(live=facts), requested.append)
    look = live.looks[0]._replace(is_over=False, more={"messages late, p50 (ms)": 1.5})
    run.take(look)
    buttons = ("pause", "heal", "kill", "vo", "machine", "cut")
    with served(run) as address:
        show(browser, address, 1280)
        wait_for_text(browser, "figures", "late, p50")
        assert browser.value("document.querySelectorAll('#inject-cluster option').length") == 2
        for id in buttons:
            press(browser, id, "No")
        assert requested == []
        for id in buttons:
            press(browser, id, "Yes")
        wait_for_text(browser, "requested", "Cut vo1 off")
        assert requested == [
            Action("pause"),
            Action("heal"),
            Action("kill", entity=entities[0]),
            Action("take_vo_down", vo="vo1"),
            Action("take_machine_down", vo="vo1", cluster="cluster", machine=0),
            Action("cut_off", vo="vo1", other="vo2"),
        ]
        done = tuple(
            Intervention(number, 2_000_000, float(number), requested[place])
            for number, place in ((1, 0), (2, 3))
        )
        run.take(look._replace(done=done))
        browser.wait_for("document.querySelectorAll('#done-lines li').length === 2")
        wait_for_text(browser, "lasting", "vo1 was taken")
        wait_for_text(browser, "inject-pause", "Resume")
        browser.value("document.getElementById('inject-number').value = 77")
        press(browser, "machine", "Yes")
        wait_for_text(browser, "trouble", "machine")
        # Later answers do not remove it.
        answers = "Number(document.body.dataset.answers)"
        browser.wait_for(f"{answers} > {browser.value(answers) + 5}")
        wait_for_text(browser, "trouble", "machine")
        number = "{{ const one = document.getElementById('inject-number'); one.value = '{}';"
        number += "one.dispatchEvent(new Event('input')); }}"
        for text, is_disabled in (("", True), ("-1", True), ("2", False)):
            browser.value(number.format(text))
            disabled = browser.value("document.getElementById('inject-machine').disabled")
            assert disabled is is_disabled
        press(browser, "vo", "Yes")
        wait_for_text(browser, "trouble", "down already")
        assert len(requested) == 6
        reason = "the actor of vo1/cluster/cluster was not killed: it is being restarted"
        run.take(look._replace(done=done, undone=(reason,)))
        wait_for_text(browser, "trouble", reason)
        assert browser.value("document.getElementById('requested').textContent") == ""
        run.take(look._replace(is_over=True))
        browser.wait_for("document.getElementById('interventions').hidden")
        browser.wait_for("document.getElementById('trouble').hidden")
        # The browser itself reports the refused requests.
        assert len(browser.complaints) == 2
