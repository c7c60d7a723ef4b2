"""A log repeated: the same jobs again, later, under numbers of their own."""

from __future__ import annotations

import numpy as np
import pytest

from grid.model.job import Option, Requirement, RequirementKind
from grid.model.job_table import COLUMNS, After, JobTable, Predecessors
from grid.model.time import NEVER
from grid.workload.jobs import repeated

ONCE = JobTable.of(
    number=[3, 7, 5],
    submit_us=[10, 20, 40],
    processors=[1, 2, 1],
    estimate_us=[5, 5, 5],
    run_us=[4, 5, 5],
    deadline_us=[100, NEVER, 200],
)


def test_each_time_begins_a_mean_gap_after_the_last() -> None:
    jobs = repeated(ONCE, 3)
    assert jobs.submit_us.tolist() == [10, 20, 40, 55, 65, 85, 100, 110, 130]
    assert jobs.number.tolist() == [3, 7, 5, 11, 15, 13, 19, 23, 21]
    assert jobs.deadline_us.tolist() == [100, NEVER, 200, 145, NEVER, 245, 190, NEVER, 290]
    assert jobs.run_us.tolist() == [4, 5, 5] * 3
    assert all(getattr(jobs, name).dtype == dtype for name, dtype in COLUMNS.items())


def test_jobs_wait_for_jobs_of_their_own_time() -> None:
    before = Predecessors.of([(), (3, After(5, data_mb=2.0)), ()], np.array([0, 9, 0]))
    asked = [(Requirement(RequirementKind.RAM, (Option(1.0, 1.0),)),), (), ()]
    once = JobTable(
        **{name: getattr(ONCE, name) for name in COLUMNS}, requirements=asked, predecessors=before
    )
    jobs = repeated(once, 2)
    assert jobs.predecessors is not None
    expected = [
        (1, After(3)),
        (1, After(5, data_mb=2.0)),
        (4, After(11)),
        (4, After(13, data_mb=2.0)),
    ]
    assert list(jobs.predecessors.rows()) == expected
    assert jobs.predecessors.think_us.tolist() == [0, 9, 0, 0, 9, 0]
    assert jobs.requirements == asked * 2


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [("submit_us", NEVER - 100, "virtual time ends"), ("number", 2**53, "job numbers are limited")],
)
def test_no_time_and_no_number_passes_its_limit(column: str, value: int, expected: str) -> None:
    columns = {name: getattr(ONCE, name) for name in COLUMNS}
    columns[column] = np.array([0, 1, value])
    with pytest.raises(ValueError, match=expected):
        repeated(JobTable(**columns), 1000)
