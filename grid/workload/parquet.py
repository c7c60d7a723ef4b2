"""Logs as Parquet, for other programs: a column a field, with its unit in the name.

Unknown values are null, names are text, and the metadata has the format of the log (`log`) and its
header as JSON (`header`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from grid.model.arrays import Ints
from grid.model.errors import shorten
from grid.model.time import SECOND_US
from grid.workload.logs import GWF, SWF, TEXT, TIME, UNKNOWN, Log, LogFormat, log_error, names_of

_EXPECTED = "a log in Parquet"


def write_parquet(log: Log, path: Path) -> None:
    """Write all of `log`. Raises OSError."""
    columns = {}
    for field, name in enumerate(log.format.columns):
        values = log.columns[:, field]
        if log.format.kinds[field] == TEXT:
            names = log.names[field] | {UNKNOWN: None}
            texts = pa.array([names[one] for one in values.tolist()], pa.string())
            columns[name] = texts.dictionary_encode()
        else:
            columns[name] = pa.array(values, mask=values == UNKNOWN)
    about = {"log": log.format.key, "header": json.dumps(log.header)}
    table = pa.table(columns).replace_schema_metadata(about)
    pyarrow.parquet.write_table(table, path, compression="zstd")


def read_parquet(path: Path) -> Log:
    """A log that `write_parquet` wrote, or a file with its columns. Raises InputError.

    Its lines are its rows, counted from one.
    """
    layout, header, table = _table(path)
    columns = np.empty((len(table), len(layout.fields)), np.int64)
    names: dict[int, dict[int, str]] = {}
    for field, name in enumerate(layout.columns):
        column = table.column(name).combine_chunks()
        if layout.kinds[field] != TEXT:
            columns[:, field] = _integers(path, name, column, layout, field)
            continue
        if not pa.types.is_string(column.type):
            raise log_error(path, f"values of type {column.type}", "text", field=name)
        coded = column.dictionary_encode()
        texts = coded.dictionary.to_pylist()
        wrong = next((one for one in texts if one.split() != [one]), None)
        if wrong is not None:
            raise log_error(path, shorten(wrong), "a name without spaces", field=name)
        # Numbered from 1, in order of first appearance.
        columns[:, field] = coded.indices.cast(pa.int64()).fill_null(UNKNOWN - 1).to_numpy() + 1
        columns[coded.indices.is_null().to_numpy(zero_copy_only=False), field] = UNKNOWN
        names[field] = names_of(columns, field, texts)
    return Log(path, columns, np.arange(1, len(table) + 1), header, names=names, format=layout)


def _table(path: Path) -> tuple[LogFormat, dict[str, str], pa.Table]:
    """The format of the log, its header, and its columns."""
    if not path.is_file():
        raise log_error(path, "no such file", _EXPECTED)
    try:
        schema = pyarrow.parquet.read_schema(path)
        about = schema.metadata or {}
        layout = {b"swf": SWF, b"gwf": GWF}.get(about.get(b"log", b""))
        header = json.loads(about.get(b"header", b"{}")) if layout else None
        if layout is None or not isinstance(header, dict):
            raise log_error(path, "a Parquet file with other contents", _EXPECTED)
        for name in layout.columns:
            if schema.names.count(name) != 1:
                found = "no such column" if name not in schema.names else "two such columns"
                raise log_error(path, found, "one for each field of the log", field=name)
        table = pyarrow.parquet.read_table(path, columns=list(layout.columns))
        plain = [
            pa.field(one.name, pa.string()) if _is_text(one.type) else one for one in table.schema
        ]
        table = table.cast(pa.schema(plain))
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError, RecursionError) as error:
        found = f"an invalid Parquet file ({shorten(str(error))})"
        raise log_error(path, found, _EXPECTED) from None
    except json.JSONDecodeError:
        raise log_error(path, "a header that is not JSON", _EXPECTED) from None
    if len(table) == 0:
        raise log_error(path, "no job", "at least one job")
    return layout, {str(key): str(value) for key, value in header.items()}, table


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) or pa.types.is_large_string(kind))


def _integers(path: Path, name: str, column: pa.Array, layout: LogFormat, field: int) -> Ints:
    if not pa.types.is_integer(column.type):
        raise log_error(path, f"values of type {column.type}", "integers", field=name)
    try:
        values: Any = column.cast(pa.int64()).fill_null(UNKNOWN).to_numpy()
    except pa.ArrowInvalid:
        raise log_error(path, "a number beyond 64 bits", "less", field=name) from None
    limit = layout.limits[field] * (SECOND_US if layout.kinds[field] == TIME else 1)
    wrong = np.flatnonzero((values >= limit) | (values <= -limit))
    if len(wrong):
        row = int(wrong[0])
        raise log_error(path, str(values[row]), f"a number below {limit}", row + 1, name)
    return np.asarray(values, np.int64)
