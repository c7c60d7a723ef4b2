"""Figures of clusters put together into figures of VOs and of the grid."""

from __future__ import annotations

from collections.abc import Sequence

from grid.model.records import ClusterFigure
from grid.results.directory import Directory

PART, WHOLE = ".part", ".whole"
"""A cluster gives a share as two figures, `name.part` and `name.whole`: part of what whole."""


def combine(
    figures: Sequence[ClusterFigure], directory: Directory, vo: int | None
) -> dict[str, int | float | None]:
    """The figures of the clusters of VO number `vo`, or of all, as one.

    Counts are added up. A share is 100 * sum of parts / sum of wholes, in percent, under its plain
    name; None where the whole is nothing.
    """
    sums: dict[str, float] = {}
    for cluster, name, value in sorted(figures):
        if vo is None or directory.clusters[cluster].vo == vo:
            sums[name] = sums.get(name, 0) + value
    combined: dict[str, int | float | None] = {}
    for name, value in sums.items():
        if name.endswith(WHOLE):
            continue
        if name.endswith(PART):
            share = name.removesuffix(PART)
            whole = sums[share + WHOLE]
            combined[share] = 100.0 * value / whole if whole else None
        else:
            combined[name] = value
    return combined
