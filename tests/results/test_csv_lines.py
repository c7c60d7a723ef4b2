"""Lines of a CSV file, beside what Arrow writes of the same columns."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from hypothesis import given
from hypothesis import strategies as st

from grid.results.csv_lines import Times, csv_lines

NAMES = ("north", "é", "")
TIMES = st.integers(-(2**62), 2**62)
FLOATS = st.floats(allow_nan=False)
WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
ROW = st.tuples(
    TIMES,
    st.booleans(),
    st.none() | WHOLE,
    st.none() | FLOATS,
    st.none() | st.sampled_from(range(len(NAMES))),
    st.none() | st.sampled_from(["0-3 5", "7", ""]),
)


def arrow_lines(columns: dict[str, pa.Array]) -> bytes:
    """The oracle."""
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    file = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(columns), file, options)
    return file.getvalue()


def columns_of(rows: list[tuple[Any, ...]], same: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns, and those for the oracle; the first `same` have the value of the first row."""
    fields = [list(values) for values in zip(*rows, strict=True)]
    for values in fields[:same]:
        values[:] = values[:1] * len(values)
    times, known, whole, floats, names, texts = fields
    both = {
        "whole": pa.array(whole, pa.int64()),
        "small": pa.array([value and value % 100 for value in whole], pa.int8()),
        "float": pa.array(floats, pa.float64()),
        "name": pa.DictionaryArray.from_arrays(pa.array(names, pa.int32()), pa.array(NAMES)),
        "text": pa.array(texts, pa.string()),
    }
    exact = [
        f"{Decimal(time).scaleb(-6):.6f}" if told else None
        for time, told in zip(times, known, strict=True)
    ]
    mine = Times(np.array(times, np.int64), np.array(known, np.bool_))
    return {"time": mine, **both}, {"time": pa.array(exact, pa.string()), **both}


@given(st.lists(ROW, min_size=1), st.integers(0, 6))
def test_lines_are_those_of_arrow(rows: list[tuple[Any, ...]], same: int) -> None:
    mine, oracle = columns_of(rows, same)
    assert bytes(csv_lines(mine)) == arrow_lines(oracle)


def test_a_part_of_an_array_of_texts() -> None:
    texts = pa.array(["a", "bc", "", "def"])[1:]
    assert bytes(csv_lines({"text": texts})) == b"bc\n\ndef\n"


def test_all_lengths_of_numbers() -> None:
    numbers = [digits * 10**power for power in range(18) for digits in (1, 9, -1)]
    lines = bytes(csv_lines({"number": pa.array(numbers)})).decode()
    assert lines == "".join(f"{number}\n" for number in numbers)
