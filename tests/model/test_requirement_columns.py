"""Requirements as columns equal the same requirements as a list of tuples."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.model.job import Option, Requirement, RequirementKind
from grid.model.job_table import JobTable, OfJob, RequirementColumns, concatenate, joined
from grid.workload.generators import table_problems
from grid.workload.jobs import repeated

_shares = st.floats(0, 1)
_requirements = st.builds(
    Requirement,
    st.sampled_from(RequirementKind),
    st.lists(st.builds(Option, st.floats(-1e9, 1e9), _shares), max_size=3).map(tuple),
    _shares,
)
_lists = st.lists(st.lists(_requirements, max_size=3).map(tuple), max_size=6)


def columns_of(jobs: Sequence[OfJob]) -> RequirementColumns:
    """The columns, one value after the other."""
    first_requirement, first_option = [0], [0]
    kind, weight, value, utility = [], [], [], []
    for wanted in jobs:
        for one in wanted:
            kind.append(int(one.kind))
            weight.append(one.weight)
            value += [option.value for option in one.options]
            utility += [option.utility for option in one.options]
            first_option.append(len(value))
        first_requirement.append(len(kind))
    return RequirementColumns(
        np.array(first_requirement),
        np.array(kind, np.int8),
        np.array(weight, float),
        np.array(first_option),
        np.array(value, float),
        np.array(utility, float),
    )


def table(requirements: list[OfJob] | RequirementColumns, first: int = 0) -> JobTable:
    count = len(requirements)
    ones = np.ones(count)
    return JobTable.of(
        requirements,
        number=first + np.arange(count),
        submit_us=np.arange(count),
        processors=ones,
        estimate_us=ones,
        run_us=ones,
    )


@given(_lists, st.data())
def test_columns_are_read_like_the_list(jobs: list[OfJob], data: st.DataObject) -> None:
    columns = columns_of(jobs)
    assert list(columns) == jobs and len(columns) == len(jobs)
    for rows in data.draw(st.lists(st.slices(len(jobs)), max_size=5)):
        assert columns[rows] == jobs[rows]
    assert [type(one.kind) for one in sum(columns, ())] == [RequirementKind] * sum(map(len, jobs))
    assert list(pickle.loads(pickle.dumps(columns))) == jobs


@given(_lists, _lists, st.data())
def test_tables_with_columns_are_sliced_and_concatenated_like_lists(
    jobs: list[OfJob], others: list[OfJob], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(jobs) - 1), max_size=8)) if jobs else []
    taken = table(columns_of(jobs)).take(np.array(rows, np.intp))
    assert list(taken.requirements or [()] * len(rows)) == [jobs[row] for row in rows]
    both = [*jobs, *others]
    assert list(joined([columns_of(jobs), columns_of(others)])) == both
    for second in (columns_of(others), others):
        whole = concatenate([table(columns_of(jobs)), table(second, len(jobs))])
        assert list(whole.requirements or [()] * len(both)) == both
        again = repeated(whole, 3)
        assert list(again.requirements or [()] * len(both) * 3) == both * 3


@pytest.mark.parametrize(
    "changed",
    [
        {"value": np.array([1.0, np.nan])},
        {"utility": np.array([0.5, 1.5])},
        {"weight": np.array([1.0, -1.0])},
        {"first_option": np.array([0, 2, 2])},
    ],
)
def test_invalid_requirements_are_reported_with_their_row(changed: dict[str, np.ndarray]) -> None:
    speed = Requirement(RequirementKind.SPEED, (Option(1000.0, 0.5),))
    right = columns_of([(speed,), (speed,)])
    assert not list(table_problems((), table(right)))
    ((path, _, expected),) = table_problems((), table(replace(right, **changed)))
    assert path[0] == "requirements" and "finite values and utilities from 0 to 1" in expected
