"""What is compiled ahead of a run: each piece once, whatever becomes of the others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grid.runtime import compiling
from grid.runtime.compiling import compiled_already, compiling_ahead
from grid.scenario.warm_up import WarmUp

PIECES = [
    WarmUp("good", partial(divmod, 7, 2)),  # type: ignore[arg-type]
    WarmUp("bad", partial(divmod, 7, 0)),  # type: ignore[arg-type]
    WarmUp("no pickle", lambda: None),
    WarmUp("other", partial(divmod, 8, 2)),  # type: ignore[arg-type]
]
GRID: Any = None


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(compiling, "warm_ups", lambda _: PIECES)
    monkeypatch.setattr(compiling.os, "cpu_count", lambda: 3)
    return tmp_path


@pytest.mark.usefixtures("cache")
def test_what_fails_is_left_to_the_run_and_the_rest_is_not_done_again() -> None:
    said: list[str] = []
    with compiling_ahead(GRID, wanted=True) as wait:
        wait(said.append)
    missing = [one.name for one in PIECES if not compiling._mark(one.name).exists()]
    assert missing == ["bad", "no pickle"]
    assert said[0] == "compiling 1 of 3"
    again = compiling.CompilingAhead(GRID)
    assert len(again._workers) == 0


def test_nothing_is_begun_where_nothing_is_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with compiling_ahead(GRID, wanted=False) as wait:
        assert wait is compiled_already
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with compiling_ahead(GRID, wanted=True) as wait:
        assert wait is compiled_already
    assert list(cache.iterdir()) == []


@pytest.mark.usefixtures("cache")
def test_a_run_that_ends_before_ends_the_compilers() -> None:
    ahead = compiling.CompilingAhead(GRID)
    ahead.stop()
    assert all(worker.returncode is not None for worker in ahead._workers)
    assert len(ahead._workers) == 3
