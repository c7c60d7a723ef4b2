"""The page in a browser: all of it is drawn, its keys and its time line do what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import grid
from grid.config.load import load_scenario
from grid.integrations.watch.replay import Replay
from grid.integrations.watch.running import Running
from grid.model.interventions import Asked, Intervention, LiveFacts, Wish
from grid.results.look import Look
from grid.runtime.run import execute
from tests.integrations.watch.looking import Watching
from tests.integrations.watch.pressing import press
from tests.integrations.watch.small_runs import served, write_run
from tests.lab.report import chromium
from tests.lab.report.small_reports import SCENARIO

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="no Chromium on this machine")

GANTT = "document.getElementById('gantt')"
DRAWN = """document.querySelectorAll('#courses svg').length === 4
  && document.querySelector('#gantt svg, #gantt p') && document.querySelector('#states td')"""
TIME = "Number(document.getElementById('line').value)"


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(Replay(write_run(tmp_path_factory.mktemp("few"), 3))) as address:
        yield address


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(Replay(write_run(tmp_path_factory.mktemp("many"), 40))) as address:
        yield address


@pytest.fixture(params=["few", "many"])
def watched(request: pytest.FixtureRequest) -> str:
    """The address of a page with so many VOs."""
    address: str = request.getfixturevalue(request.param)
    return address


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
    # The chart of a cluster is drawn when somebody comes near it, who has to stay there.
    browser.wait_for("document.querySelectorAll('#courses svg').length === 4")
    browser.value(f"{GANTT}.scrollIntoView()")
    browser.wait_for(DRAWN)
    browser.value("scrollTo(0, 0)")


SCROLLED = """[document.documentElement, ...document.querySelectorAll('.chart')]
  .filter(one => { const inner = one.querySelector('svg, canvas');
    return one.scrollWidth > one.clientWidth || (one.classList.contains('chart') && inner
      && inner.getBoundingClientRect().width > one.getBoundingClientRect().width); }).length"""


OUTSIDE = """[...document.querySelectorAll('.node')].filter(node => { const a = node.
  getBoundingClientRect(); return a.left < 0 || a.right > innerWidth; }).length"""


def test_it_is_whole_on_small_and_large_screens(browser: chromium.Browser, watched: str) -> None:
    """Also on a screen whose size changes while the page is there."""
    show(browser, watched, 1920)
    browser.press("End")
    browser.wait_for("document.querySelectorAll('#events li').length > 20")
    for width, scheme in ((1920, "light"), (1280, "dark"), (400, "light")):
        set_screen(browser, width, scheme)
        # The charts are drawn anew, and a scroll bar may come.
        browser.wait_for(f"innerWidth === {width} && {DRAWN} && {SCROLLED} === 0")
        browser.wait_for(f"{OUTSIDE} === 0")
        size = "parseFloat(getComputedStyle(one).fontSize)"
        sizes = f"[...document.querySelectorAll('body *')].map(one => {size})"
        assert min(browser.value(sizes)) >= 10
    assert browser.value("document.getElementById('trouble').hidden")
    assert browser.complaints == []
    assert all(url.startswith((watched, "data:")) for url in browser.requests)


def test_a_hundredth_of_a_job_is_told_as_nearly_nothing(
    browser: chromium.Browser, few: str
) -> None:
    show(browser, few, 1280)
    browser.value("import('./words.js').then(words => { window.level = words.level; })")
    browser.wait_for("window.level !== undefined")
    told = browser.value("[0, 0.00008831, 0.256, 3.14159, 31.415, 12345.6].map(window.level)")
    assert told == ["0", "less than 0.01", "0.26", "3.14", "31.42", "12,346"]


def test_keys_move_in_time_and_play(browser: chromium.Browser, few: str) -> None:
    show(browser, few, 1280)
    assert browser.value(TIME) == 0
    browser.press("End")
    assert browser.value(TIME) == 10_000
    browser.press("ArrowLeft")
    assert browser.value(TIME) == 9900
    browser.press("Home")
    browser.press(" ")
    browser.wait_for(f"{TIME} > 20")
    browser.press(" ")
    assert browser.value("document.getElementById('play').textContent") == "Play"
    before = browser.value("document.getElementById('speed').selectedIndex")
    browser.press("+")
    assert browser.value("document.getElementById('speed').selectedIndex") == before + 1
    assert browser.complaints == []


def test_a_chosen_vo_is_shown_beside_the_grid(browser: chromium.Browser, watched: str) -> None:
    show(browser, watched, 1280)
    browser.press("End")
    browser.wait_for("document.querySelectorAll('#events li').length > 20")
    browser.value("document.querySelectorAll('.node')[1].click()")
    browser.wait_for("document.querySelector('#courses').textContent.includes('vo2')")
    assert browser.value("document.getElementById('vo').selectedOptions[0].text") == "vo2"
    browser.wait_for("document.querySelector('#states th:nth-child(3)')?.textContent === 'vo2'")
    browser.wait_for("document.getElementById('pointed').textContent.includes('of its jobs ran')")
    assert browser.value("document.getElementById('cluster').selectedOptions[0].text") == "vo2"
    assert browser.complaints == []


def test_the_job_of_an_event_is_told_up_to_the_moment(browser: chromium.Browser, few: str) -> None:
    show(browser, few, 1280)
    browser.press("End")
    browser.wait_for("document.querySelectorAll('#events li').length > 20")
    browser.value("document.querySelector('#events button').click()")
    lines = "document.querySelectorAll('#job-lines li').length"
    browser.wait_for(f"{lines} === 4")
    browser.press("Home")
    browser.wait_for(f"{lines} < 2")
    assert browser.complaints == []


def test_events_are_one_stop_and_arrows_go_through_them(
    browser: chromium.Browser, few: str
) -> None:
    """Who reads one goes on reading it when others come."""
    show(browser, few, 1280)
    browser.press("End")
    browser.wait_for("document.querySelectorAll('#events li').length > 20")
    assert browser.value("document.querySelectorAll('#events [tabindex=\"0\"]').length") == 1
    browser.value("document.querySelector('#events [tabindex=\"0\"]').focus()")
    for key in ("ArrowUp", "ArrowDown", "ArrowDown", "End", "ArrowDown", "Home", "ArrowDown"):
        browser.press(key)
    line = "document.activeElement.textContent"
    places = "[...document.querySelectorAll('#events button')]"
    assert browser.value(f"{places}.indexOf(document.activeElement)") == 1
    read = browser.value(line)
    latest = f"{places}[0].textContent"
    before = browser.value(latest)
    browser.value(
        "{ const line = document.getElementById('line'); line.value -= 1;"
        "line.dispatchEvent(new Event('input')); }"
    )
    browser.wait_for(f"{latest} !== {json.dumps(before)}")
    assert browser.value(line) == read
    assert browser.complaints == []


def test_long_names_of_many_vos_differ(browser: chromium.Browser, tmp_path: Path) -> None:
    """Where names begin alike, a box shows their ends, all of it."""
    (tmp_path / "scenario.yaml").write_text(
        SCENARIO.replace("- name: vo", "- name: site-of-the-north-", 1).replace(
            "count: 3\n    selection", "count: 20\n    selection"
        )
    )
    grid.run(tmp_path / "scenario.yaml", out=tmp_path / "run")
    with served(Replay(tmp_path / "run")) as address:
        show(browser, address, 400)
        titles = browser.value(
            "[...document.querySelectorAll('.node .title')].map(one =>"
            " one.scrollWidth > one.clientWidth ? 'cut' : one.textContent)"
        )
    assert len(set(titles)) == 20 and "cut" not in titles


def test_the_matrix_tells_who_ran_whose_jobs(browser: chromium.Browser, many: str) -> None:
    show(browser, many, 1280)
    browser.press("End")
    choose = (
        "{ const one = document.getElementById('view'); one.value = 'matrix';"
        "one.dispatchEvent(new Event('change')); document.querySelector('canvas').focus(); }"
    )
    browser.value(choose)
    browser.press("ArrowRight")
    browser.wait_for(
        "/jobs? of vo1 ran in vo2/.test(document.getElementById('pointed').textContent)"
    )
    # Flows are between VOs, and tell nothing of jobs that stayed.
    browser.press("ArrowDown")
    said = browser.value("document.getElementById('pointed').textContent")
    assert said == "vo2: jobs that stayed in their VO are not in this picture"
    assert browser.complaints == []


def test_a_server_that_ends_is_told(browser: chromium.Browser, tmp_path: Path) -> None:
    with served(Replay(write_run(tmp_path))) as address:
        show(browser, address, 1280)
    browser.press("End")
    browser.wait_for("document.getElementById('trouble').textContent.includes('has ended')")


def test_the_page_of_a_run_that_is_set_up_says_so_until_time_passes(
    browser: chromium.Browser, tmp_path: Path
) -> None:
    """Compiling takes half a minute the first time: nothing moves, and nothing is wrong."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    file, watching = tmp_path / "scenario.yaml", Watching()
    execute(load_scenario(file), str(file), in_process=True, watcher=watching)
    run = Running(watching.beginning)
    with served(run) as address:
        show(browser, address, 1280)
        browser.wait_for("document.getElementById('what').textContent.includes('being set up')")
        later = next(look for look in watching.looks if look.now_us > 0)
        run.take(later._replace(is_over=False))
        browser.wait_for("document.getElementById('what').textContent.includes('goes on; shown')")


def test_the_chart_of_a_cluster_is_asked_for_when_somebody_comes_near(
    browser: chromium.Browser, tmp_path: Path
) -> None:
    """Of a run that goes on: the server loads much for it."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    file, watching = tmp_path / "scenario.yaml", Watching()
    execute(load_scenario(file), str(file), in_process=True, watcher=watching)
    run = Running(watching.beginning)
    run.take(watching.looks[0]._replace(is_over=False))

    def is_asked() -> bool:
        return any("/gantt?" in url for url in browser.requests)

    with served(run) as address:
        set_screen(browser, 400, "light")
        browser.show(address, 400)
        browser.wait_for("document.querySelectorAll('#courses svg').length === 4")
        assert not is_asked()
        browser.value(f"{GANTT}.scrollIntoView()")
        browser.wait_for(DRAWN)
        assert is_asked()


def test_each_button_asks_once_more_and_wishes_what_it_says(
    browser: chromium.Browser, tmp_path: Path
) -> None:
    """On the page of a live run whose looks are those of a run in virtual time."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    file, watching, wishes = tmp_path / "scenario.yaml", Watching(), list[Asked]()
    execute(load_scenario(file), str(file), in_process=True, watcher=watching)
    entities = ("vo1/cluster/cluster", "vo2/scheduler")
    facts = LiveFacts(1.0, entities, (3, 0, 3))
    run = Running(watching.beginning._replace(live=facts), wishes.append)
    look = watching.looks[0]._replace(is_over=False, more={"messages late, p50 (ms)": 1.5})
    run.take(look)
    with served(run) as address:
        show(browser, address, 1280)
        browser.wait_for("document.getElementById('figures').textContent.includes('late, p50')")
        clusters = "document.querySelectorAll('#wish-cluster option').length"
        assert browser.value(clusters) == 2
        for id in ("pause", "heal", "kill", "vo", "machine", "cut"):
            press(browser, id, "No")
        press(browser, "vo", "Escape")
        assert wishes == []
        for id in ("pause", "heal", "kill", "vo", "machine", "cut"):
            press(browser, id, "Yes")
        browser.wait_for("document.getElementById('wished').textContent.includes('Cut vo1 off')")
        assert [one.refused for one in wishes] == [""] * 6
        assert [one.wish for one in wishes] == [
            Wish("pause"),
            Wish("heal"),
            Wish("kill", entity=entities[0]),
            Wish("take_vo_down", vo="vo1"),
            Wish("take_machine_down", vo="vo1", cluster="cluster", machine=0),
            Wish("cut_off", vo="vo1", other="vo2"),
        ]
        done = [
            Intervention(1, 2_000_000, 2.0, wishes[0].wish),
            Intervention(2, 2_000_000, 3.0, wishes[3].wish),
        ]
        run.take(look._replace(done=tuple(done)))
        browser.wait_for("document.querySelectorAll('#done-lines li').length === 2")
        browser.wait_for("document.getElementById('lasting').textContent.includes('vo1 was taken')")
        assert "go on" in browser.value("document.getElementById('wish-pause').textContent")
        browser.value("document.getElementById('wish-number').value = 77")
        press(browser, "machine", "Yes")
        browser.wait_for("document.getElementById('trouble').textContent.includes('machine')")
        # The answers that come all the time do not take it away.
        answers = "Number(document.body.dataset.answers)"
        browser.wait_for(f"{answers} > {browser.value(answers) + 5}")
        assert "machine" in browser.value("document.getElementById('trouble').textContent")
        browser.value(
            "{ const one = document.getElementById('wish-other'); one.value = 'vo1';"
            "one.dispatchEvent(new Event('change')); }"
        )
        assert browser.value("document.getElementById('wish-cut').disabled")
        number = "{{ const one = document.getElementById('wish-number'); one.value = '{}';"
        number += "one.dispatchEvent(new Event('input')); }}"
        for text, is_disabled in (("", True), ("-1", True), ("1.5", True), ("2", False)):
            browser.value(number.format(text))
            assert browser.value("document.getElementById('wish-machine').disabled") is is_disabled
        press(browser, "vo", "Yes")
        browser.wait_for("document.getElementById('trouble').textContent.includes('down already')")
        # The run hears of what was refused, too, to write it down.
        assert [(one.wish.what, one.wish.machine) for one in wishes[6:]] == [
            ("take_machine_down", 77), ("take_vo_down", -1),
        ]  # fmt: skip
        assert all(one.refused for one in wishes[6:])
        why = "the actor of vo1/cluster/cluster was not killed: it is being started again"
        run.take(look._replace(done=tuple(done), undone=(why,)))
        browser.wait_for(f"document.getElementById('trouble').textContent.includes('{why}')")
        assert browser.value("document.getElementById('wished').textContent") == ""
        run.take(look._replace(is_over=True))
        browser.wait_for("document.getElementById('wishes').hidden")
        browser.wait_for("document.getElementById('trouble').hidden")
        # The browser itself tells of the wishes that were refused.
        assert len(browser.complaints) == 2


def test_a_run_that_goes_on_is_followed(browser: chromium.Browser, tmp_path: Path) -> None:
    """From nothing known at all, over its present, to its end; and back in time meanwhile."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    looks: list[Look] = []
    watching = Watching()
    watching.look = looks.append  # type: ignore[method-assign]
    file = tmp_path / "scenario.yaml"
    execute(load_scenario(file), str(file), in_process=True, watcher=watching)
    first, last = looks[0], looks[-1]
    with served(watching.run) as address:
        show(browser, address, 1280)
        watching.run.take(first._replace(now_us=first.now_us // 2))
        browser.wait_for("document.getElementById('figures').textContent.includes('30 of 30')")
        browser.wait_for("document.querySelectorAll('#messages dt').length > 3")
        browser.press("Home")
        browser.wait_for("document.getElementById('what').textContent.includes('End shows')")
        browser.press("End")
        watching.run.take(last)
        browser.wait_for("document.getElementById('what').textContent.includes('is over')")
        browser.wait_for(f"{TIME} === 10000")
        assert browser.complaints == []
