"""Faults injected on the page of a live run: every job ends once, and the run records them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grid.config.load import load_scenario
from grid.integrations.watch.page_process import live_page
from grid.integrations.watch.views import Replay
from grid.model.job import JobState
from grid.model.time import SECOND_US
from grid.results.checkers import check
from grid.results.events import EventFile
from grid.results.history import ClusterLog, job_history
from grid.results.run_folder import read_interventions
from grid.runtime.clock import Pace
from grid.runtime.progress import Display
from grid.runtime.run import Live, Run, execute, save
from tests.integrations.watch.pages import get, intervene

SCENARIO = Path(__file__).parents[2] / "runtime" / "fault_scenarios" / "two.yaml"
SPEEDUP = 4.0
MOST_SECONDS = 400
"""Ten actors start slowly on a busy machine."""


class Script:
    """Injects faults from a thread while the run is in progress."""

    def __init__(self, presses: Callable[[Script], None]) -> None:
        self._presses = presses
        self.thread = threading.Thread(target=self._go, daemon=True)
        self.error: BaseException | None = None
        self.address = ""

    def start(self, address: str) -> None:
        self.address = address
        self.thread.start()

    def frame(self) -> Any:
        return json.loads(get(self.address, "frame?time=1e9")[1])

    def wait_for(self, condition: Callable[[Any], bool]) -> Any:
        """The first frame of which the condition holds."""
        end = time.monotonic() + MOST_SECONDS
        while not condition(frame := self.frame()):
            assert time.monotonic() < end, frame
            threading.Event().wait(0.1)
        return frame

    def inject(self, what: str, **fields: Any) -> float:
        """Intervene, and wait for the effect; returns its virtual time in seconds."""
        before = len(self.frame()["done"])
        status, text = intervene(self.address, {"what": what, **fields})
        assert status == 200, text
        frame = self.wait_for(lambda frame: len(frame["done"]) > before)
        return float(frame["done"][before][0])

    def _go(self) -> None:
        try:
            self._presses(self)
        except BaseException as error:
            self.error = error


def run_with(folder: Path, presses: Callable[[Script], None]) -> Run:
    script = Script(presses)
    with live_page(script.start, Display()) as page:
        run = execute(
            load_scenario(SCENARIO),
            str(SCENARIO),
            live=Live(Pace(SPEEDUP), folder / "journals"),
            placement="vo",
            observer=page,
            events=True,
        )
        script.thread.join(MOST_SECONDS)
    assert script.error is None, script.error
    save(run, folder / "run")
    return run


def check_recorded(folder: Path) -> None:
    """All interventions are in the run's folder, and on the page of `grid watch`."""
    done = read_interventions(folder)
    assert [one.action.what for one in done] == [
        "take_machine_down", "cut_off", "take_vo_down", "kill", "kill", "pause", "go_on", "heal",
    ]  # fmt: skip
    noticed = [one.time_us for one in done if one.action.what != "kill"]
    assert noticed == sorted(noticed)
    reports = [words for _, words in Replay(folder).about()["done"]]
    assert len(reports) == 8
    assert not any(words.startswith("did not") for words in reports)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_every_job_ends_once_under_injected_faults(tmp_path: Path) -> None:
    at: dict[str, float] = {}

    def presses(script: Script) -> None:
        script.wait_for(lambda frame: frame["to"] > 1)
        at["machine"] = script.inject("take_machine_down", vo="north", cluster="cluster", machine=0)
        at["cut"] = script.inject("cut_off", vo="north", other="south")
        at["vo"] = script.inject("take_vo_down", vo="south")
        script.inject("kill", entity="south/scheduler")
        script.inject("kill", entity="north/cluster/cluster")
        assert len(script.frame()["lasting"]) == 3
        script.wait_for(lambda frame: frame["figures"]["actors restarted"] >= 2)
        asked = {"what": "take_vo_down", "vo": "south"}, {"what": "kill", "entity": "nowhere"}
        assert [intervene(script.address, one)[0] for one in asked] == [400, 400]
        script.inject("pause")
        stands = script.wait_for(lambda frame: frame["done"][-1][1] == "the clock was stopped")
        script.wait_for(lambda frame: frame["to"] == script.frame()["to"] > stands["to"])
        still = script.frame()
        assert script.frame()["to"] == still["to"]
        assert not still["over"]
        script.inject("go_on")
        script.wait_for(lambda frame: frame["to"] > max(still["to"], at["vo"] + 10))
        at["heal"] = script.inject("heal")
        last = script.wait_for(lambda frame: frame["over"])
        assert sum(last["states"][0]) == 0 and last["lasting"] == []
        assert sum(last["states"][1]) == 5

    run = run_with(tmp_path, presses)
    results = run.results
    assert check(results, run.directory, len(results)) == []
    assert set(results.outcome.state.tolist()) == {JobState.COMPLETED}
    live = run.manifest["live"]
    assert (live["unfinished"], live["kills"], live["interventions"]) == (0, 2, 8)
    check_recorded(tmp_path / "run")
    # Each job ends once by its events, too, and the machine was down at the recorded times.
    events = EventFile(tmp_path / "run")
    for vo, number in zip(results.vo.tolist(), results.number.tolist(), strict=True):
        key = (run.directory.vos[vo], number)
        words = [line.event.event for line in job_history(key, events.of_job(key))]
        assert words.count("end") == words.count("submit_job") == 1
    north = next(facts for facts in events.clusters if facts.vo == "north")
    ((machine, down_us, up_us),) = ClusterLog(north, events.of_cluster(north)).facts.outages
    assert machine == 0
    assert at["machine"] <= down_us / SECOND_US < at["heal"] <= up_us / SECOND_US
    # No job crosses while the VOs are cut off, and none starts on a machine that is down. A killed
    # or late actor takes its machine down later than requested.
    start_s = results.outcome.start_us / SECOND_US
    host = results.placement.executed_vo
    moved = (host != results.vo) & (results.submit_us / SECOND_US > at["cut"])
    assert (start_s[moved] >= at["heal"]).all()
    on_north = (host == 0) & (results.outcome.start_us > down_us)
    assert (start_s[on_north] >= at["heal"]).all()
    assert np.count_nonzero(start_s >= at["heal"]) > 0
