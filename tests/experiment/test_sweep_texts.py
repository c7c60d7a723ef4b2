"""How means are written beside their intervals."""

from __future__ import annotations

import pytest

from grid.experiment.statistics import mean_interval
from grid.experiment.sweep_texts import plus_minus


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, 3.0], "2.0 ± 2.5"),
        ([2.0, 2.0], "2 ± 0"),
        # The mean of three equal figures may differ from them in the last bit.
        ([6.2794117647058814, 6.2794117647058822, 6.2794117647058822], "6.279 ± 0"),
    ],
)
def test_a_mean_and_its_interval(values: list[float], text: str) -> None:
    assert plus_minus(mean_interval(values, 0.95)) == text
