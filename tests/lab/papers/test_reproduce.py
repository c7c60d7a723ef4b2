"""Windows of a log that have the size of GM's workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.lab.papers.reproduce import JOBS, TASKS, windows_of
from grid.model.errors import InputError


def log_of(path: Path, sizes: list[int]) -> Path:
    """Jobs a second apart, with these processors."""
    rows = (f"{n} {n} 0 60 {size} -1 -1 {size} 60 -1 1 1 1 1 1 1 -1 -1\n"
            for n, size in enumerate(sizes, 1))  # fmt: skip
    path.write_text("".join(rows))
    return path


def test_windows_have_the_nearest_totals_without_wide_jobs(tmp_path: Path) -> None:
    """The first 1,500 jobs have 16 tasks each and 152 one more; then come jobs of one task."""
    first = [17] * (TASKS - 16 * JOBS) + [16] * (JOBS - (TASKS - 16 * JOBS))
    log = log_of(tmp_path / "log.swf", [65, *first, *[1] * JOBS])
    one, two = windows_of(log)
    assert (one.tasks, one.from_s) == (TASKS, 2.0)
    assert one.before_s == 2.0 + JOBS == two.from_s
    assert two.tasks == JOBS


def test_a_short_log_has_no_window(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1500 consecutive jobs"):
        windows_of(log_of(tmp_path / "log.swf", [1] * 10))
