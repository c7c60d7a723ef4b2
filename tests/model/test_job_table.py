"""Conversion of values to the columns of job tables."""

from __future__ import annotations

import numpy as np
import pytest

from grid.model.job_table import JobTable


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("made", [list, np.array])
def test_values_that_are_not_integers_are_refused(wrong: float, made: type) -> None:
    columns = {"number": [1, 2], "processors": [1, 1], "estimate_us": [9, 9], "run_us": [5.0, 7.0]}
    table = JobTable.of(submit_us=made([0.0, 3.0]), **columns)
    assert table.submit_us.tolist() == [0, 3]
    with pytest.raises((ArithmeticError, ValueError)):
        JobTable.of(submit_us=made([0.0, wrong]), **columns)
