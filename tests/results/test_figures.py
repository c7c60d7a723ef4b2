"""Values of clusters put together."""

from __future__ import annotations

from grid.model.records import ClusterFigure
from grid.results.metrics import combine

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


def test_counts_add_up_and_a_share_is_a_ratio_of_sums() -> None:
    assert combine(FIGURES) == {"moves": 5, "usage": 50.0, "idle": None}
    assert combine(one for one in FIGURES if one.cluster == 0) == {"moves": 2, "usage": 25.0}
