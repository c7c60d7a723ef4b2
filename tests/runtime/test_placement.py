"""VOs are placed on processes by their expected work."""

from __future__ import annotations

from typing import Any

from grid.runtime.placement import processes_of
from tests.config.grids import grid_of, vo

MANY: list[dict[str, Any]] = [{"submit_s": s, "run_s": 1} for s in range(6)]


def test_vos_are_placed_by_their_jobs_and_stay_together() -> None:
    jobs = MANY[:5]
    grid = grid_of(vos=[vo("a", 1, jobs), vo("b", 1, jobs[:2]), vo("c", 1, jobs[:2]), vo("d", 1)])
    process_of = processes_of(grid, "vo", 2)
    by_vo = {(v, p) for v, p in zip(grid.sites, process_of, strict=True)}
    assert by_vo == {(0, 0), (1, 1), (2, 1), (3, 1)}
    assert set(processes_of(grid, "vo", 9)) == {0, 1, 2, 3}
