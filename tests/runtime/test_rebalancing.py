"""VOs are rebalanced over the processes of a windowed run without effect on the results."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from grid.config.build import Grid
from grid.model.job_results import in_order
from grid.runtime.placement import better_dealing
from grid.runtime.run import spool_of
from grid.runtime.safe_times import is_over
from grid.runtime.sequential import run_sequential
from grid.runtime.window import Window, rebalanced
from grid.runtime.windowed import run_windowed
from tests.results.random_runs import played, random_grid
from tests.runtime.rounds import grants_of, mixed_rounds
from tests.runtime.test_windowed import Killer, grid_of, result


class Redealt:
    """Runs a grid in several windows whose entities are rebalanced after every few rounds."""

    def __init__(self, grid: Grid, processes: int, draw: Random) -> None:
        self.grid, self.processes, self.draw = grid, processes, draw
        self.spool = spool_of(grid)
        self.dealings = 0
        self.chunks: list[object] = []
        self.messages = self.snapshots = 0
        self.shown: list[tuple[int, int]] = []
        """Jobs that a watcher was shown when they ended: (VO, number)."""
        self.shown_messages = 0

    def play(self, path: Path) -> None:
        """Writes the events of the run."""
        process_of = self.any_dealing()
        windows = [
            Window(self.grid, number, process_of, events=True, is_watched=True)
            for number in range(self.processes)
        ]
        while not self._some_rounds(windows, process_of):
            process_of = self.any_dealing()
            windows = self._dealt(windows, process_of)
        self.shown_messages = self._look(windows)
        for number, window in enumerate(windows):
            outcome = window.outcome()
            self.spool.add(self.stream(number), outcome.events)
            self.chunks += outcome.chunks
            self.messages += outcome.messages
            self.snapshots += outcome.snapshots
        self.spool.write(path, in_order(self.chunks), self.grid.directory)  # type: ignore[arg-type]

    def stream(self, number: int) -> int:
        """Events of a window are in order of time only up to a new dealing."""
        return self.dealings * self.processes + number

    def any_dealing(self) -> list[int]:
        """By entity, not by VO: what holds for this holds for VOs."""
        return [self.draw.randrange(self.processes) for _ in self.grid.names]

    def _some_rounds(self, windows: list[Window], process_of: list[int]) -> bool:
        """Whether the run is over."""
        left = self.draw.randint(1, 6)
        grants = grants_of(self.grid.network, process_of, self.processes)
        for reports in mixed_rounds(windows, grants):
            left -= 1
            if left == 0 and not is_over(reports):
                return False
        return True

    def _look(self, windows: list[Window]) -> int:
        """As a watcher does; how many messages it is shown to have been handled so far."""
        looks = [window.look() for window in windows]
        for news in (news for look in looks for news in look.ended):
            self.shown += zip(news.vo.tolist(), news.number.tolist(), strict=True)
        return sum(sum(look.messages.values()) for look in looks)

    def _dealt(self, windows: list[Window], process_of: list[int]) -> list[Window]:
        if self.draw.random() < 0.5:
            self._look(windows)
        saved = [window.save() for window in windows]
        for number, one in enumerate(saved):
            self.spool.add(self.stream(number), one.events)
            self.chunks += one.chunks
        self.dealings += 1
        states = rebalanced(self.grid, [one.state for one in saved], process_of)
        return [
            Window(self.grid, number, process_of, state, events=True)
            for number, state in enumerate(states)
        ]


def test_rebalancing_changes_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are the same; messages, snapshots and ended jobs are counted once."""
    monkeypatch.setattr(Window, "EVENTS_AT_A_TIME", 7)
    draw, dealings = Random(1), 0
    for _ in range(2):
        grid = random_grid(draw)
        expected = run_sequential(grid)
        results, spool = played(grid)
        spool.write(tmp_path / "one", results, grid.directory)
        for processes in (1, 2, 3):
            run = Redealt(grid, processes, draw)
            run.play(tmp_path / "some")
            assert (tmp_path / "some").read_bytes() == (tmp_path / "one").read_bytes()
            assert (run.messages, run.snapshots) == (expected.messages, expected.snapshots)
            assert run.shown_messages == expected.messages
            ended = zip(results.vo.tolist(), results.number.tolist(), strict=True)
            assert sorted(run.shown) == sorted(ended)
            dealings += run.dealings
    assert dealings > 10


def test_vos_are_rebalanced_if_that_pays() -> None:
    assert better_dealing([0, 0, 1, 1], [4.0, 3.0, 0.5, 0.5]) == [0, 1, 1, 1]
    assert better_dealing([0, 1, 0, 1], [4.0, 3.0, 0.2, 0.2]) is None
    # By too little, of too little, or where there is nothing to deal.
    assert better_dealing([0, 0, 1], [1.0, 0.05, 1.0]) is None
    assert better_dealing([0, 0, 1, 1], [0.04, 0.03, 0.005, 0.005]) is None
    assert better_dealing([0, 0], [4.0, 3.0]) is None


@pytest.mark.thorough
@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_run_with_a_bad_placement_is_rebalanced(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same result, also if actors are killed."""
    grid = grid_of("partial-utility", "vos.0.count=6", "workload.settings.users=60")

    def badly(grid: Grid, _placement: str, _actors: int) -> list[int]:
        return [int(vo == 0) for vo in grid.sites]

    monkeypatch.setattr("grid.runtime.windowed.deal", badly)
    monkeypatch.setattr("grid.runtime.windowed.ROUNDS_A_PAUSE", 2)
    monkeypatch.setattr("grid.runtime.placement.ENOUGH_SECONDS", 0.0)
    monkeypatch.setattr("grid.runtime.windowed.DEATHS_IN_A_ROW", 100)
    killer = Killer(3, seed=3)
    outcome = run_windowed(grid, actors=2, rounds_a_checkpoint=20, observer=killer, profile=True)
    assert killer.left == 0
    expected = run_sequential(grid)
    assert result(outcome) == result(expected)
    assert outcome.messages == expected.messages
    assert outcome.rebalanced >= 1
