"""Tables of jobs are made of what converts to their columns, and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from grid.model.job_table import JobTable


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("made", [list, np.array])
def test_what_is_no_integer_makes_no_column(wrong: float, made: type) -> None:
    columns = {"number": [1, 2], "processors": [1, 1], "estimate_us": [9, 9], "run_us": [5.0, 7.0]}
    table = JobTable.of(submit_us=made([0.0, 3.0]), **columns)
    assert table.submit_us.tolist() == [0, 3]
    with pytest.raises((ArithmeticError, ValueError)):
        JobTable.of(submit_us=made([0.0, wrong]), **columns)
