"""A sweep that is watched: what its page is told, and that it is the same sweep."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from grid.integrations.watch.beside import page_beside
from grid.integrations.watch.sweep import MOST_ROWS, SweepShown
from grid.lab.experiment import load_experiment
from grid.lab.sweep import Place, Sweep, run_sweep
from grid.results.sweep_look import Cell, SweepBeginning, SweepNews
from tests.integrations.watch.small_runs import get, served
from tests.lab.report import chromium
from tests.lab.report.small_reports import EXPERIMENT, SCENARIO

HERE = Place(in_process=True)
WITH_METRICS = EXPERIMENT + "metrics: [response_time_mean, hops_mean]\n"
OF_A_TRACE = """\
parameters: {trace: good.swf}
vos: [{name: a, clusters: [{processors: 2}], workload: {trace: "${trace}", enters: cluster}}]
"""


class Told:
    """Takes what a sweep tells."""

    def __init__(self) -> None:
        self.news: list[SweepNews] = []

    def __call__(self, told: SweepBeginning | SweepNews) -> None:
        if isinstance(told, SweepBeginning):
            self.beginning, self.shown = told, SweepShown(told)
        else:
            self.news.append(told)
            self.shown.take(told)


def swept(folder: Path, text: str = WITH_METRICS, scenario: str = SCENARIO) -> tuple[Sweep, Told]:
    (folder / "scenario.yaml").write_text(scenario)
    (folder / "experiment.yaml").write_text(text)
    told = Told()
    file = folder / "experiment.yaml"
    done = run_sweep(load_experiment(file), file, folder / "sweep", HERE, tell=told)
    return done, told


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sweep, Told]:
    return swept(tmp_path_factory.mktemp("swept"))


def figures(done: Sweep, metric: str) -> dict[tuple[str, ...], list[float]]:
    """The grid's figures of a sweep by the values of its axes, from its folder."""
    content = json.loads((done.folder / "sweep.json").read_text())
    found: dict[tuple[str, ...], list[float]] = {}
    for case in content["cases"]:
        record = json.loads((done.folder / "runs" / f"{case['key']}.json").read_text())
        point = tuple(map(str, case["point"].values()))
        found.setdefault(point, []).append(record["metrics"]["grid"][metric])
    return found


def test_the_table_has_the_means_of_the_runs(sweep: tuple[Sweep, Told]) -> None:
    done, told = sweep
    answer = told.shown.answer()
    assert answer["metrics"] == ["response time, mean (s)", "hops, mean"]
    assert (answer["runs"], answer["done"], answer["failed"], answer["over"]) == (12, 12, 0, True)
    expected = figures(done, "response_time_mean")
    for point, runs, spreads in answer["rows"]:
        values = expected.pop(tuple(map(str, point)))
        assert runs == 3 == answer["seeds"]
        assert spreads[0] == pytest.approx([fmean(values), min(values), max(values)])
    assert not expected


def test_runs_that_were_there_before_are_told_at_once(sweep: tuple[Sweep, Told]) -> None:
    done, first = sweep
    told = Told()
    file = done.folder.parent / "experiment.yaml"
    again = run_sweep(load_experiment(file), file, done.folder, HERE, tell=told)
    assert again.kept == 12
    assert len(told.news[0].cells) == 12
    rows = told.shown.answer()["rows"]
    for row, expected in zip(rows, first.shown.answer()["rows"], strict=True):
        assert row[:2] == expected[:2]
        for one, other in zip(row[2], expected[2], strict=True):
            assert one == pytest.approx(other)


def test_results_come_one_by_one_and_the_time_left_with_them(sweep: tuple[Sweep, Told]) -> None:
    _, told = sweep
    shown = SweepShown(told.beginning)
    assert shown.answer()["left_s"] is None
    counts = []
    for one in told.news[:-1]:
        shown.take(one)
        answer = shown.answer()
        counts.append(sum(runs for _, runs, _ in answer["rows"]))
        assert counts[-1] == answer["done"]
        assert (answer["left_s"] is None) == (answer["done"] == 0)
    assert counts == sorted(counts)
    assert set(counts) == set(range(13))


def test_it_is_told_which_jobs_are_measured(tmp_path: Path, sweep: tuple[Sweep, Told]) -> None:
    assert sweep[1].shown.answer()["measured"] == ""
    scenario = SCENARIO + "metrics: {submitted_from_s: 0.5}\n"
    _, told = swept(tmp_path, scenario=scenario)
    expected = "Metrics of jobs are over those submitted from 0.5 s on."
    assert told.shown.answer()["measured"] == expected


def test_a_run_that_fails_is_told(tmp_path: Path) -> None:
    good = "1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"
    (tmp_path / "good.swf").write_text(good)
    (tmp_path / "bad.swf").write_text(good + "2 0 x\n")
    text = "name: f\nscenario: scenario.yaml\naxes: {trace: [good.swf, bad.swf]}\nseeds: 2\n"
    done, told = swept(tmp_path, text, scenario=OF_A_TRACE)
    answer = told.shown.answer()
    assert answer["failed"] == len(done.failures) == len(answer["failures"]) > 0
    assert "seed 1" in answer["failures"][0]
    assert answer["over"]


def test_a_watched_sweep_writes_the_same(tmp_path: Path, sweep: tuple[Sweep, Told]) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "experiment.yaml").write_text(WITH_METRICS)
    file = tmp_path / "experiment.yaml"
    alone = run_sweep(load_experiment(file), file, tmp_path / "alone", HERE)
    one, other = ((where / "results.csv").read_text() for where in (alone.folder, sweep[0].folder))
    assert one == other


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_sweep_on_ray_tells_the_same(tmp_path: Path, sweep: tuple[Sweep, Told]) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "experiment.yaml").write_text(WITH_METRICS)
    file, told = tmp_path / "experiment.yaml", Told()
    run_sweep(load_experiment(file), file, tmp_path / "sweep", Place(), tell=told)
    answer, expected = told.shown.answer(), sweep[1].shown.answer()
    assert (answer["done"], answer["failed"], answer["over"]) == (12, 0, True)
    for row, right in zip(answer["rows"], expected["rows"], strict=True):
        assert row[:2] == right[:2]
        for one, other in zip(row[2], right[2], strict=True):
            assert one == pytest.approx(other)


def test_the_time_in_which_workers_start_is_no_time_of_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("grid.integrations.watch.sweep.time.monotonic", lambda: clock[0])
    shown = SweepShown(SweepBeginning("s", ("n",), ((1,),), 4, ("wait_mean",)))
    for at, done, running in ((0.0, 0, 0), (30.0, 0, 2), (31.0, 0, 2), (32.0, 1, 2)):
        clock[0] = at
        shown.take(SweepNews(4, 0, done, 0, running))
    assert shown.answer()["left_s"] == 6.0


def test_a_page_beside_a_sweep_shows_it_until_it_is_over(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    file, addresses = tmp_path / "experiment.yaml", list[str]()
    with page_beside(addresses.append) as page:
        run_sweep(load_experiment(file), file, tmp_path / "sweep", HERE, tell=page.tell)
        while not (answer := json.loads(get(addresses[0], "sweep")[1]))["over"]:
            pass
        assert answer["done"] == 12
        assert get(addresses[0])[0] == 200
        assert get(addresses[0], "sweep", Origin="null")[0] == 403
        assert get(addresses[0], "wish")[0] == 404


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1920, "light")])
def test_its_page_in_a_browser(
    browser: chromium.Browser, sweep: tuple[Sweep, Told], width: int, scheme: str
) -> None:
    _, told = sweep
    shown = SweepShown(told.beginning)
    with served(shown) as address:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.ask("Emulation.setEmulatedMedia", features=features)
        browser.show(address, width)
        browser.wait_for("document.querySelectorAll('#table tbody tr').length === 4")
        assert browser.value("document.getElementById('bar').value") == 0
        for one in told.news[:6]:
            shown.take(one)
        browser.wait_for("document.getElementById('what').textContent.includes('5 of 12')")
        shown.take(told.news[-1]._replace(failures=("ttl=1, seed 2: no",), failed=1, done=11))
        browser.wait_for("document.getElementById('what').textContent.includes('is over')")
        browser.wait_for("!document.getElementById('failed').hidden")
        assert browser.value("document.documentElement.scrollWidth") <= width
        assert browser.complaints == []
        assert all(url.startswith((address, "data:")) for url in browser.requests)


def test_a_table_that_is_too_long_is_cut() -> None:
    points = tuple((number,) for number in range(MOST_ROWS + 7))
    shown = SweepShown(SweepBeginning("long", ("n",), points, 1, ("wait_mean",)))
    cell = Cell(MOST_ROWS + 6, {"wait_mean": float("nan")})
    shown.take(SweepNews(len(points), 0, 1, 0, 2, (cell, Cell(0, {}))))
    answer = shown.answer()
    assert (len(answer["rows"]), answer["more"]) == (MOST_ROWS, 7)
    assert answer["rows"][0] == [[0], 1, [None]]
