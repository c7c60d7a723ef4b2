"""VOs are placed on processes by their expected work."""

from __future__ import annotations

from typing import Any

from grid.runtime.placement import deal, expected_work_us
from tests.config.grids import grid_of, vo

MANY: list[dict[str, Any]] = [{"submit_s": s, "run_s": 1} for s in range(6)]


def test_vos_are_placed_by_their_jobs_and_stay_together() -> None:
    jobs = MANY[:5]
    grid = grid_of(vos=[vo("a", 1, jobs), vo("b", 1, jobs[:2]), vo("c", 1, jobs[:2]), vo("d", 1)])
    process_of = deal(grid, "vo", 2)
    by_vo = {(v, p) for v, p in zip(grid.sites, process_of, strict=True)}
    assert by_vo == {(0, 0), (1, 1), (2, 1), (3, 1)}
    assert set(deal(grid, "vo", 9)) == {0, 1, 2, 3}


def test_slow_policies_weigh_more() -> None:
    """Three jobs under CS 2.0 are as much work as six that are taken as they come, and more."""
    slow = [{"machines": [{}], "policy": "cs2"}]
    grid = grid_of(
        vos=[
            vo("a", 1, MANY),
            vo("b", 1, MANY[:3], clusters=slow),
            vo("c", 1, MANY[:3], clusters=slow),
        ]
    )
    work = expected_work_us(grid)
    assert work[0] < 2 * work[1]
    process_of = dict(zip(grid.sites, deal(grid, "vo", 2), strict=True))
    assert process_of[1] != process_of[2]
