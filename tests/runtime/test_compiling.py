"""What is compiled ahead of a run: each piece once, whatever becomes of the others."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grid.config.warm_up import WarmUp
from grid.runtime import compiling
from grid.runtime.compiling import CompilingAhead, InterpretedFallback, compiling_ahead

PIECES = [
    WarmUp("good", partial(divmod, 7, 2)),  # type: ignore[arg-type]
    WarmUp("bad", partial(divmod, 7, 0)),  # type: ignore[arg-type]
    WarmUp("no pickle", lambda: None),
    WarmUp("other", partial(divmod, 8, 2)),  # type: ignore[arg-type]
]


def grid_of(jobs: int) -> Any:
    return SimpleNamespace(jobs_by_vo=lambda: [1, jobs - 1])


SMALL = grid_of(20)


def test_what_compiles_does_not_look_for_modules_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "pickle.py").write_text("raise RuntimeError('a file of the user was imported')\n")
    path = pickle.dumps(sys.path)
    done = subprocess.run(
        compiling.WORKER, input=path, capture_output=True, cwd=tmp_path, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(compiling, "warm_ups", lambda _: PIECES)
    monkeypatch.setattr(compiling, "usable_cpus", lambda: 3)
    return tmp_path


@pytest.fixture
def fifo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One more piece is under way until somebody writes here; nobody does, but for the test."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    slow = WarmUp("slow", partial(Path.read_text, path))  # type: ignore[arg-type]
    monkeypatch.setattr(compiling, "warm_ups", lambda _: [PIECES[0], slow])
    yield path


@pytest.mark.usefixtures("cache")
def test_what_fails_is_left_to_the_run_and_the_rest_is_not_done_again() -> None:
    said: list[str] = []
    with compiling_ahead() as ahead:
        ahead.begin(SMALL, first=True)
        assert ahead.meanwhile(said.append) is None
        assert ahead.was_before
    missing = [one.name for one in PIECES if not compiling._mark(one.name).exists()]
    assert missing == ["bad", "no pickle"]
    assert said[0] == "compiling 1 of 3"
    again = CompilingAhead()
    again.begin(SMALL, first=True)
    assert len(again._workers) == 0


def test_nothing_is_begun_where_nothing_is_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with compiling_ahead() as ahead:
        ahead.begin(SMALL, first=False)
        assert ahead.meanwhile(print) is None
    assert list(cache.iterdir()) == []


def test_where_nothing_can_be_written_the_run_compiles_for_itself(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "a file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache / "a file"))
    with compiling_ahead() as ahead:
        ahead.begin(SMALL, first=False)
        assert ahead.meanwhile(lambda _: None) is None
        assert ahead._workers == []


@pytest.mark.usefixtures("cache")
def test_a_run_that_ends_before_ends_the_compilers(fifo: Path) -> None:
    with compiling_ahead() as ahead:
        ahead.begin(SMALL, first=False)
        assert len(ahead._workers) == 2
    assert all(worker.returncode is not None for worker in ahead._workers)
    assert ahead.is_done
    assert not list(fifo.parent.glob("under-way-*"))


@pytest.mark.usefixtures("cache", "fifo")
def test_a_small_run_does_not_wait_and_its_results_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with compiling_ahead() as ahead:
        ahead.begin(SMALL, first=False)
        meanwhile = ahead.meanwhile(said.append)
        assert meanwhile is not None
        assert not ahead.was_before
        assert said == []
        ahead.run_begins(said.append)
        assert said[0].startswith("running, compiling ")
        assert ahead.is_plain()
        assert meanwhile()
        # Nobody waits for what the run could do without, however long it took.
        with monkeypatch.context() as only_here:
            only_here.setattr(InterpretedFallback, "__call__", lambda _: pytest.fail("it may wait"))
            ahead.run_is_over()
            assert ahead.is_plain()
    assert not ahead.is_plain()
    assert not meanwhile()
    assert said[-1] != "running"


@pytest.mark.usefixtures("cache")
def test_a_run_that_takes_longer_waits_for_compiled_code(
    fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "PLAIN_SECONDS", -1.0)
    said: list[str] = []

    def tell(stage: str) -> None:
        said.append(stage)
        if [one for one in said if one.endswith(", before the run goes on")] == [stage]:
            fifo.write_text("go on")

    with compiling_ahead() as ahead:
        ahead.begin(SMALL, first=False)
        meanwhile = ahead.meanwhile(said.append)
        ahead.run_begins(tell)
        assert meanwhile is not None
        assert said[0].startswith("running, compiling ")
        assert not ahead.is_plain()
        assert any(one.startswith("compiling 2 of 2, before") for one in said)
        assert not meanwhile()
        assert ahead.is_done
        assert not ahead.is_plain()
    assert said[-1] == "running"


@pytest.mark.usefixtures("cache")
def test_many_jobs_wait_at_once(fifo: Path) -> None:
    with compiling_ahead() as ahead:
        ahead.begin(grid_of(compiling.MOST_PLAIN_JOBS + 1), first=False)
        fifo.write_text("go on")
        assert ahead.meanwhile(lambda _: None) is None
        assert ahead.is_done


def test_another_machine_compiles_what_it_calls(tmp_path: Path) -> None:
    assert not InterpretedFallback(tmp_path / "under-way-1")()
