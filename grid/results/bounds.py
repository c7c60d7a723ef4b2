"""The least and the largest value that a figure can have: where axes and intervals end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from grid.results.definitions import COUNT, METRICS, PERCENT, SHARE

OwnBounds = Mapping[str, Sequence[float | None]]
"""Of metrics that plug in, that say so: the least and the largest; None: there is none."""
_BOUNDS = {
    COUNT: (0.0, math.inf), SHARE: (0.0, 1.0), PERCENT: (0.0, 100.0), "1 or more": (1.0, math.inf),
    "at most 1, may be negative": (-math.inf, 1.0),
}  # fmt: skip


def bounds_of(name: str, own: OwnBounds) -> tuple[float, float]:
    """The least and the largest value of a figure, infinite where there is none."""
    if name in METRICS:
        return _BOUNDS[METRICS[name].values]
    least, most = own.get(name, (None, None))
    return -math.inf if least is None else least, math.inf if most is None else most
