"""Logs as Parquet, for other programs: a column a field, with its unit in the name.

Unknown values are null, names are text, and the metadata has the format of the log (`log`) and its
header as JSON (`header`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from grid.model.arrays import Bools, Ints
from grid.model.errors import shorten
from grid.model.time import SECOND_US
from grid.workload.lines import TEXT, TIME, UNKNOWN, LogFormat, log_error
from grid.workload.logs import GWF, SWF, Log, names_of

_UNITS = {
    "used memory": "_kb",
    "requested memory": "_kb",
    "used network": "_kb_per_s",
    "requested network": "_kb_per_s",
    "used disk": "_mb",
    "requested disk": "_mb",
}
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]+")
_EXPECTED = "a log in Parquet"
MOST_ROWS = 10_000_000
LEAST_BYTES_A_ROW = 4
"""Equal rows take almost no space in a file, and much in memory."""
MOST_UNPACKED_BYTES = 1 << 29
MOST_NAME = 1000
"""Characters of a name."""


def write_parquet(log: Log, path: Path) -> None:
    """Write all of `log`. Raises OSError."""
    columns = {}
    for field, kind in enumerate(log.format.kinds):
        values = log.columns[:, field]
        unknown = values == UNKNOWN
        if kind == TEXT:
            column = _dictionary(values, unknown, log.names[field])
        else:
            column = pa.array(values, mask=unknown)
        columns[_column_name(log.format, field)] = column
    about = {"log": "gwf" if log.is_gwf else "swf", "header": json.dumps(log.header)}
    table = pa.table(columns).replace_schema_metadata(about)
    pyarrow.parquet.write_table(table, path, compression="zstd")


def read_parquet(path: Path) -> Log:
    """A log that `write_parquet` wrote, or a file with its columns. Raises InputError.

    Its lines are its rows, counted from one.
    """
    kind, header = _about(path)
    layout = GWF if kind == "gwf" else SWF
    table = _table(path, layout)
    columns = np.empty((len(table), len(layout.fields)), np.int64)
    names: dict[int, dict[int, str]] = {}
    for field, field_kind in enumerate(layout.kinds):
        name = _column_name(layout, field)
        column = table.column(name)
        if field_kind == TEXT:
            columns[:, field], texts = _numbered(path, name, column)
            names[field] = names_of(columns, field, texts)
        else:
            columns[:, field] = _integers(path, name, column)
            _check_limit(path, name, columns[:, field], layout, field)
    return Log(path, columns, np.arange(1, len(table) + 1), header, names=names, format=layout)


def _column_name(layout: LogFormat, field: int) -> str:
    name = layout.fields[field]
    unit = "_us" if layout.kinds[field] == TIME else _UNITS.get(name, "")
    return name.replace(" ", "_") + unit


def _dictionary(values: Ints, unknown: Bools, names: dict[int, str]) -> pa.DictionaryArray:
    numbers = np.array(sorted(names), np.int64)
    codes = np.searchsorted(numbers, values).astype(np.int32)
    texts = pa.array([names[number] for number in numbers.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=unknown), texts)


def _about(path: Path) -> tuple[str, dict[str, str]]:
    """The format of the log and its header. Raises InputError for too large files."""
    if not path.is_file():
        raise log_error(path, "no such file", _EXPECTED)
    with _sound(path):
        metadata = pyarrow.parquet.read_metadata(path)
        about = metadata.metadata or {}
    most = min(MOST_ROWS, path.stat().st_size // LEAST_BYTES_A_ROW)
    if metadata.num_rows > most:
        raise log_error(path, f"{metadata.num_rows} rows", f"at most {most} in a file of its size")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > MOST_UNPACKED_BYTES:
        raise log_error(path, f"{unpacked} bytes unpacked", f"at most {MOST_UNPACKED_BYTES}")
    kind = about.get(b"log", b"").decode("utf-8", "replace")
    try:
        header = dict(json.loads(about.get(b"header", b"{}")))
    except (TypeError, ValueError, RecursionError):
        kind = ""
    if kind not in ("swf", "gwf"):
        raise log_error(path, "a Parquet file with other contents", _EXPECTED)
    if metadata.num_rows == 0:
        raise log_error(path, "no job", "at least one job")
    return kind, {str(key): str(value) for key, value in header.items()}


def _table(path: Path, layout: LogFormat) -> pa.Table:
    """The columns of the log; text as dictionaries, since one long name may be in many rows."""
    names = [_column_name(layout, field) for field in range(len(layout.fields))]
    texts = [name for name, kind in zip(names, layout.kinds, strict=True) if kind == TEXT]
    with _sound(path):
        there = pyarrow.parquet.read_schema(path).names
        for name in names:
            if there.count(name) != 1:
                found = "no such column" if name not in there else "two such columns"
                raise log_error(path, found, "one for each field of the log", field=name)
        return pyarrow.parquet.read_table(path, columns=names, read_dictionary=texts)


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Raise InputError for what is not valid Parquet."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        found = f"an invalid Parquet file ({shorten(str(error))})"
        raise log_error(path, found, _EXPECTED) from None


def _integers(path: Path, name: str, column: pa.ChunkedArray) -> Any:
    if not pa.types.is_integer(column.type):
        raise log_error(path, f"values of type {column.type}", "integers", field=name)
    try:
        return column.cast(pa.int64()).fill_null(UNKNOWN).to_numpy()
    except pa.ArrowInvalid:
        raise log_error(path, "a number beyond 64 bits", "less", field=name) from None


def _check_limit(path: Path, name: str, values: Ints, layout: LogFormat, field: int) -> None:
    limit = int(layout.limits[field])
    if layout.kinds[field] == TIME:
        limit *= SECOND_US
    wrong = np.flatnonzero((values >= limit) | (values <= -limit))
    if len(wrong):
        row = int(wrong[0])
        raise log_error(path, str(values[row]), f"a number below {limit}", row + 1, name)


def _numbered(path: Path, name: str, column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Names as numbers from 1, in order of first appearance, and the names."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise log_error(path, f"values of type {kind}", "text", field=name)
    numbers: dict[str, int] = {}
    chunks = [_chunk_numbered(path, name, chunk, numbers) for chunk in column.chunks]
    return np.concatenate(chunks), list(numbers)


def _chunk_numbered(path: Path, name: str, chunk: pa.Array, numbers: dict[str, int]) -> Ints:
    """The numbers of the names in a part of a column; adds new names to `numbers`."""
    coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    indices = coded.indices.cast(pa.int64())
    known = indices.drop_null().to_numpy()
    if len(known) and not 0 <= known.min() <= known.max() < len(coded.dictionary):
        # pyarrow does not validate indices of a damaged file.
        raise log_error(path, "a name that its dictionary does not have", _EXPECTED, field=name)
    codes = indices.fill_null(-1).to_numpy()
    used, first = np.unique(codes, return_index=True)
    number_of = np.full(len(coded.dictionary) + 1, UNKNOWN)
    for code in used[np.argsort(first)].tolist():
        if code >= 0 and coded.dictionary[code].is_valid:
            text = _name(path, name, coded.dictionary[code])
            number_of[code] = numbers.setdefault(text, len(numbers) + 1)
    numbered: Ints = number_of[codes]
    return numbered


def _name(path: Path, column: str, value: pa.Scalar) -> str:
    try:
        text: str = value.as_py()
    except UnicodeDecodeError:
        raise log_error(path, "bytes that are not text", "UTF-8", field=column) from None
    if len(text) > MOST_NAME or not _NAME.fullmatch(text):
        expected = f"a name without spaces, of at most {MOST_NAME} characters"
        raise log_error(path, shorten(text), expected, field=column)
    return text
