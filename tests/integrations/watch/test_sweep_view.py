"""The page of a sweep: its numbers are those of the sweep's folder, and the sweep is the same."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from grid.integrations.watch.page_process import live_page
from grid.integrations.watch.sweep_view import SweepView
from grid.lab.experiment import load_experiment
from grid.lab.sweep import Sweep, Workers, run_sweep
from grid.results.look import Observer, SweepBeginning, SweepProgress
from tests.integrations.watch.pages import get, served, write_scenario
from tests.lab.report import chromium
from tests.lab.report.small_reports import EXPERIMENT, SCENARIO

HERE = Workers(in_process=True)
WITH_METRICS = EXPERIMENT + "metrics: [response_time_mean, hops_mean]\n"


class Reports(Observer):
    """Keeps what a sweep reports."""

    wants_looks = True

    def __init__(self) -> None:
        self.reports: list[SweepProgress] = []

    def begin_sweep(self, beginning: SweepBeginning) -> None:
        self.beginning, self.view = beginning, SweepView(beginning)

    def sweep(self, progress: SweepProgress) -> None:
        self.reports.append(progress)
        self.view.take(progress)


def swept(
    folder: Path, text: str = WITH_METRICS, scenario: str = SCENARIO, workers: Workers = HERE
) -> tuple[Sweep, Reports]:
    write_scenario(folder, scenario)
    file, reports = folder / "experiment.yaml", Reports()
    file.write_text(text)
    return run_sweep(load_experiment(file), file, folder / "sweep", workers, reports), reports


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sweep, Reports]:
    return swept(tmp_path_factory.mktemp("swept"))


def test_the_table_has_the_means_of_the_runs(sweep: tuple[Sweep, Reports]) -> None:
    done, reports = sweep
    answer = reports.view.answer()
    assert answer["metrics"] == ["response time, mean (s)", "hops, mean"]
    assert (answer["runs"], answer["done"], answer["failed"], answer["over"]) == (12, 12, 0, True)
    expected: dict[tuple[str, ...], list[float]] = {}
    for case in json.loads((done.folder / "sweep.json").read_text())["cases"]:
        record = json.loads((done.folder / "runs" / f"{case['key']}.json").read_text())
        point = tuple(map(str, case["point"].values()))
        expected.setdefault(point, []).append(record["metrics"]["grid"]["response_time_mean"])
    for point, runs, spreads in answer["rows"]:
        values = expected.pop(tuple(map(str, point)))
        assert runs == 3 == answer["seeds"]
        assert spreads[0] == pytest.approx([fmean(values), min(values), max(values)])
    assert not expected


def test_failed_runs_are_reported(tmp_path: Path) -> None:
    good = "1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"
    (tmp_path / "good.swf").write_text(good)
    (tmp_path / "bad.swf").write_text(good + "2 0 x\n")
    scenario = "parameters: {trace: good.swf}\nvos: [{name: a, clusters: [{cpus: 2}], "
    scenario += 'workload: {trace: "${trace}", entry_point: cluster}}]\n'
    text = "name: f\nscenario: scenario.yaml\naxes: {trace: [good.swf, bad.swf]}\nseeds: 2\n"
    done, reports = swept(tmp_path, text, scenario)
    answer = reports.view.answer()
    assert answer["failed"] == len(done.failures) == len(answer["failures"]) > 0
    assert "seed 1" in answer["failures"][0] and answer["over"]


def test_the_page_shows_the_sweep_until_it_ends(tmp_path: Path) -> None:
    write_scenario(tmp_path)
    file, addresses = tmp_path / "experiment.yaml", list[str]()
    file.write_text(EXPERIMENT.replace("seeds: 3", "seeds: 1"))
    with live_page(addresses.append) as page:
        run_sweep(load_experiment(file), file, tmp_path / "sweep", HERE, page)
        while not (answer := json.loads(get(addresses[0], "sweep")[1]))["over"]:
            pass
        assert answer["done"] == 4
        assert get(addresses[0])[0] == 200
        assert get(addresses[0], "intervene")[0] == 404


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1920, "light")])
def test_its_page_in_a_browser(
    browser: chromium.Browser, sweep: tuple[Sweep, Reports], width: int, scheme: str
) -> None:
    _, reports = sweep
    view = SweepView(reports.beginning)
    with served(view) as address:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.ask("Emulation.setEmulatedMedia", features=features)
        browser.show(address, width)
        browser.wait_for("document.querySelectorAll('#table tbody tr').length === 4")
        for one in reports.reports[:6]:
            view.take(one)
        browser.wait_for("document.getElementById('what').textContent.includes('5 of 12')")
        view.take(reports.reports[-1]._replace(failures=("ttl=1, seed 2: no",), failed=1, done=11))
        browser.wait_for("document.getElementById('what').textContent.includes('has ended')")
        browser.wait_for("!document.getElementById('failed').hidden")
        assert browser.value("document.documentElement.scrollWidth") <= width
        assert browser.complaints == []
        assert all(url.startswith((address, "data:")) for url in browser.requests)
