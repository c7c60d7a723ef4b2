"""Equal tables have equal digests, and whatever differs in one bit does not."""

from __future__ import annotations

import hashlib
import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.model.job_results import JobResults, columns_of, in_order
from grid.results.checkers import DIGEST_COLUMNS, digest
from tests.results.results_tables import changed, flat, job, table, tables

ROWS = [job(1, 0, 1, 5), job(2, 0, 2, 6, vo=1), job(3, 4, 5, 9.5)]


def test_the_digest_is_that_of_the_columns_packed_by_hand() -> None:
    state = hashlib.sha256()
    rows = flat(table(ROWS))
    for name in DIGEST_COLUMNS:
        column = [getattr(row, name) for row in rows]
        code = "d" if name == "utility" else "q"
        dtype = "<f8" if name == "utility" else "<i8"
        state.update(f"{name} {dtype} 3\n".encode() + struct.pack(f"<3{code}", *column))
    assert digest(table(ROWS)) == state.hexdigest()


def test_chunks_in_any_order_have_one_digest() -> None:
    whole = digest(table(ROWS))
    assert (
        digest(in_order([columns_of(ROWS[2:]), columns_of([]), columns_of(ROWS[1::-1])])) == whole
    )


@pytest.mark.parametrize("name", DIGEST_COLUMNS)
def test_one_changed_value_in_any_column_changes_the_digest(name: str) -> None:
    results = table(ROWS)
    column = results.columns()[name].copy()
    column[1] = np.nextafter(column[1], 2.0) if name == "utility" else column[1] + 1
    assert digest(changed(results, **{name: column})) != digest(results)


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_recording_never_matters(results: JobResults, shuffler: random.Random) -> None:
    order = list(range(len(results)))
    shuffler.shuffle(order)
    shuffled = results.take(np.array(order, np.intp))
    assert digest(in_order([shuffled])) == digest(results)
