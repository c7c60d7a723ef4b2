"""Figures of clusters put together."""

from __future__ import annotations

from grid.model.records import ClusterFigure
from grid.results.machines import ClusterEntry, Directory
from grid.results.metrics import combine

GRID = Directory(
    ("a", "b"), (ClusterEntry(0, "x", (1,)), ClusterEntry(1, "y", (1,)), ClusterEntry(1, "z", (1,)))
)
FIGURES = [
    ClusterFigure(0, "moves", 2),
    ClusterFigure(2, "moves", 3),
    ClusterFigure(0, "usage.part", 1.0),
    ClusterFigure(0, "usage.whole", 4.0),
    ClusterFigure(1, "usage.part", 3.0),
    ClusterFigure(1, "usage.whole", 4.0),
    ClusterFigure(2, "idle.part", 0.0),
    ClusterFigure(2, "idle.whole", 0.0),
]


def test_counts_add_up_and_shares_are_of_the_sums() -> None:
    assert combine(FIGURES, GRID, None) == {"moves": 5, "usage": 50.0, "idle": None}


def test_a_vo_has_the_figures_of_its_own_clusters() -> None:
    assert combine(FIGURES, GRID, 0) == {"moves": 2, "usage": 25.0}
    assert combine(FIGURES, GRID, 1) == {"moves": 3, "usage": 75.0, "idle": None}
