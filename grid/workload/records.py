"""What logs of all formats have in common: records of a fixed number of fields, and comments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.errors import ErrorLine, InputError, shorten
from grid.workload import parse
from grid.workload.log_file import line_blocks

UNKNOWN = -1
"""In every field of every format."""

KEEP_BYTES = "surrogateescape"
"""How bytes of headers that are not UTF-8 are read and written."""

MOST_MISTAKES = 5
"""So many mistakes of one log are reported at once."""

OF_A_TABLE = (
    ' with blanks between: the documentation says how to make them of a table ("A log with other '
    'columns")'
)

TIME_LIMIT_S = 10**11
"""A time must stay below this (3,000 years): a Unix time in milliseconds is a mistake."""

PROCESSOR_LIMIT = 10**8
NUMBER_LIMIT = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class LogFormat:
    """The fields of a format in their order, each with its kind (see `parse`) and its limit."""

    fields: tuple[str, ...]
    kinds: Ints
    limits: Ints
    comment_mark: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Some records of a log: values (n, fields), the lines (n,) they stand on, and their text."""

    values: Ints
    lines: Ints
    block: bytes
    blank_lines: int


def iterate_records(
    path: Path,
    layout: LogFormat,
    header: dict[str, str],
    rewrite: Callable[[bytes, bool], bytes] | None = None,
) -> Iterator[Records]:
    """The records of a log in parts of about a megabyte of text.

    The comments are in `header` when all parts have been taken. A block with errors is parsed again
    after `rewrite(block, is_first)`, which puts lines of a dialect into the format's own form.
    Raises InputError for a file that cannot be read, a line with a wrong number of fields, a field
    that is not a number or absurdly large, and a log without a job. After a mistake it yields
    nothing more, but goes on to look for further mistakes.
    """
    mistakes: list[ErrorLine] = []
    values: dict[str, list[str]] = {}
    last_key = ""
    next_line, jobs = 1, 0
    for block in line_blocks(path):
        most = MOST_MISTAKES - len(mistakes)
        parsed = _parsed(block, layout, next_line, most)
        if rewrite is not None and parsed.problems:
            block = rewrite(block, jobs == 0)
            parsed = _parsed(block, layout, next_line, most)
        rows, lines, comments, room, found, remarks, problems, blank, next_line = parsed
        for start, end in comments[:remarks].tolist():
            # Bytes that are not UTF-8 come back as they were when the log is written.
            comment = block[start:end].lstrip(layout.comment_mark).decode("utf-8", KEEP_BYTES)
            last_key = _add_to_header(values, last_key, comment)
        mistakes += [_mistake(path, layout, block, row) for row in room[:problems].tolist()]
        if mistakes and mistakes[0].expected.endswith(OF_A_TABLE):
            raise InputError(mistakes[:1])
        if problems and room[problems - 1, 1] == parse.NOT_TEXT:
            # All other mistakes come of reading as a log what is none.
            raise InputError(mistakes[-1:])
        if len(mistakes) == MOST_MISTAKES:
            break
        jobs += found
        if not mistakes:
            yield Records(rows[:found].copy(), lines[:found].copy(), block, blank)
    header.update((key, "\n".join(lines_of_key)) for key, lines_of_key in values.items())
    if mistakes:
        raise InputError(mistakes)
    if jobs == 0:
        raise InputError([ErrorLine(str(path), None, "", "no job", "at least one job")])


class _Parsed(NamedTuple):
    """What `parse.parse_lines` found in a block."""

    rows: Ints
    lines: Ints
    comments: Ints
    room: Ints
    found: int
    remarks: int
    problems: int
    blank: int
    next_line: int


def _parsed(block: bytes, layout: LogFormat, next_line: int, most: int) -> _Parsed:
    room = np.empty((most, parse.MISTAKE_COLUMNS), np.int64)
    rows, lines, comments = parse.empty_rows(block, len(layout.fields), layout.comment_mark)
    counts = parse.parse_lines(
        np.frombuffer(block, np.uint8),
        next_line,
        layout.comment_mark[0],
        layout.kinds,
        layout.limits,
        rows,
        lines,
        comments,
        room,
    )
    return _Parsed(rows, lines, comments, room, *counts)


def field_name(layout: LogFormat, position: int) -> str:
    """A field as a mistake speaks of it."""
    return f"field {position + 1} ({layout.fields[position]})"


def _add_to_header(values: dict[str, list[str]], last_key: str, comment: str) -> str:
    """Take a comment in; returns the key to which an indented comment would be added next."""
    key, colon, value = comment.partition(":")
    if comment[:2].isspace():
        key, value = last_key, comment
    elif not colon or not key.replace(" ", "").isalnum():
        return ""
    key, value = key.strip(), value.strip()
    if key and value:
        values.setdefault(key, []).append(value)
    return key


def _mistake(path: Path, layout: LogFormat, block: bytes, row: list[int]) -> ErrorLine:
    line, kind, number, start, end = row
    found = shorten(block[start:end].decode("utf-8", "replace"))
    name = ""
    if kind == parse.NOT_TEXT:
        found, expected = "binary data", "text"
    elif kind == parse.WRONG_COUNT:
        found, expected = f"{number} field{'s' * (number != 1)}", f"{len(layout.fields)}"
        if b"," in block[start:end]:
            found, expected = f"{found} with commas", f"{expected}{OF_A_TABLE}"
    else:
        name = field_name(layout, number)
        expected = {
            parse.NOT_A_NUMBER: "a number in digits alone, such as 12 or 12.5",
            parse.NOT_WHOLE: "a whole number",
            parse.TOO_LARGE: f"a number below {layout.limits[number]}",
        }[kind]
    return ErrorLine(str(path), line, name, found, expected)
