"""From the bytes of a log, a job a line, to integers, in one compiled pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Ints
from grid.model.compiled import inner, kernel

Bytes = npt.NDArray[np.uint8]

TIME, SIZE, WHOLE, TEXT = 0, 1, 2, 3
"""Kinds of field: seconds, kept as microseconds; a size, rounded to a whole number; a whole number
(12.0 is one, 12.5 is a mistake); text, as its place in the block (see `place_of`)."""

NOT_A_NUMBER, TOO_LARGE, NOT_WHOLE, WRONG_COUNT, NOT_TEXT = 1, 2, 3, 4, 5
"""Kinds of mistake."""

MISTAKE_COLUMNS = 5
"""Of a row of mistakes: line, kind, field (or the number of fields found), first byte, end."""

_UNKNOWN = -1
_TAB, _RETURN, _NEWLINE, _SPACE, _DELETE = 9, 13, 10, 32, 127
_PLUS, _MINUS, _POINT, _ZERO = 43, 45, 46, 48
_PLACE_BITS = 31
_MILLION = 1_000_000
_CLEARLY_TOO_LARGE = 10**17


@kernel()
def parse_lines(
    block: Bytes,
    first_line: int,
    comment_mark: int,
    kinds: Ints,
    limits: Ints,
    rows: Ints,
    row_lines: Ints,
    comments: Ints,
    mistakes: Ints,
) -> tuple[int, int, int, int, int]:
    """Parse whole lines; returns (rows, comments, mistakes, blank lines, next line's number).

    `block` holds the text; comments begin with the byte `comment_mark`; `kinds` and `limits`
    (fields,) say what each field is and the number that its absolute value must stay below.
    Filled in: `rows` (n, fields) and `row_lines` (n,) with the jobs and their line numbers,
    `comments` (n, 2) with where each comment begins and ends, `mistakes` (m, 5). It stops when
    `mistakes` is full; a line with a mistake has no row.
    """
    fields = len(kinds)
    tokens = np.empty(fields, np.int64), np.empty(fields, np.int64)
    row = comment = problems = blank = position = 0
    line = first_line
    while position < len(block) and problems < len(mistakes):
        end = position
        while end < len(block) and block[end] != _NEWLINE:
            end += 1
        start = _skip_blanks(block, position, end)
        if start == end:
            blank += 1
        elif block[start] == comment_mark:
            comments[comment, 0] = start
            comments[comment, 1] = end
            comment += 1
        else:
            before = problems
            count = _split(block, start, end, *tokens)
            if count != fields:
                problems = _add_mistake(mistakes, problems, line, WRONG_COUNT, count, start, end)
            else:
                problems = _fill(block, *tokens, kinds, limits, rows[row], mistakes, problems, line)
            if problems == before:
                row_lines[row] = line
                row += 1
            elif _is_not_text(block, start, end):
                mistakes[before, 1] = NOT_TEXT
                return row, comment, before + 1, blank, line
        line += 1
        position = end + 1
    return row, comment, problems, blank, line


@inner()
def _skip_blanks(block: Bytes, position: int, end: int) -> int:
    while position < end and _is_blank(block[position]):
        position += 1
    return position


@inner()
def _is_blank(byte: int) -> bool:
    # Tab, vertical tab, form feed, carriage return and space.
    return byte == _SPACE or (_TAB <= byte <= _RETURN and byte != _NEWLINE)


@inner()
def _is_not_text(block: Bytes, start: int, end: int) -> bool:
    for position in range(start, end):
        byte = block[position]
        if (byte < _SPACE and not _is_blank(byte)) or byte == _DELETE:
            return True
    return False


@inner()
def _split(block: Bytes, position: int, end: int, starts: Ints, ends: Ints) -> int:
    """How many tokens the line has; where each begins and ends, for as many as there is room."""
    count = 0
    while position < end:
        start = position
        while position < end and not _is_blank(block[position]):
            position += 1
        if count < len(starts):
            starts[count] = start
            ends[count] = position
        count += 1
        position = _skip_blanks(block, position, end)
    return count


@inner()
def _fill(
    block: Bytes,
    starts: Ints,
    ends: Ints,
    kinds: Ints,
    limits: Ints,
    row: Ints,
    mistakes: Ints,
    problems: int,
    line: int,
) -> int:
    """Fill `row` with the values of the tokens; returns how many mistakes there are then."""
    for field in range(len(kinds)):
        start, end = starts[field], ends[field]
        row[field], kind = _value(block, start, end, kinds[field], limits[field])
        if kind != 0 and problems < len(mistakes):
            problems = _add_mistake(mistakes, problems, line, kind, field, start, end)
    return problems


@inner()
def _add_mistake(
    mistakes: Ints, problems: int, line: int, kind: int, field: int, start: int, end: int
) -> int:
    mistakes[problems, 0] = line
    mistakes[problems, 1] = kind
    mistakes[problems, 2] = field
    mistakes[problems, 3] = start
    mistakes[problems, 4] = end
    return problems + 1


@inner()
def _value(block: Bytes, start: int, end: int, kind: int, limit: int) -> tuple[int, int]:
    if kind != TEXT:
        return _number(block, start, end, kind, limit)
    if end - start == 2 and block[start] == _MINUS and block[start + 1] == _ZERO + 1:
        return _UNKNOWN, 0
    if _is_not_text(block, start, end):
        return 0, NOT_TEXT
    return (start << _PLACE_BITS) | end, 0


def place_of(value: int) -> slice:
    """Where in its block the text stands that a field of kind TEXT was read from."""
    return slice(value >> _PLACE_BITS, value & ((1 << _PLACE_BITS) - 1))


@inner()
def _number(block: Bytes, position: int, end: int, kind: int, limit: int) -> tuple[int, int]:
    """The value of a token, and what is wrong with it (0: nothing).

    Digits with at most one sign and one decimal point; no exponent. Decimals past the sixth only
    round (half away from zero). The unknown -1 is -1 in every field, also where seconds become
    microseconds.
    """
    negative = block[position] == _MINUS
    if negative or block[position] == _PLUS:
        position += 1
    whole = digits = 0
    while position < end and _is_digit(block[position]):
        if whole < _CLEARLY_TOO_LARGE:
            whole = whole * 10 + _digit(block[position])
        digits += 1
        position += 1
    millionths = 0
    if position < end and block[position] == _POINT:
        millionths, decimals = _millionths(block, position + 1, end)
        digits += decimals
        position += 1 + decimals
    if position < end or digits == 0:
        return 0, NOT_A_NUMBER
    if whole >= limit:
        return 0, TOO_LARGE
    if negative and whole == 1 and millionths == 0:
        return _UNKNOWN, 0
    if kind == WHOLE and millionths != 0:
        return 0, NOT_WHOLE
    value = whole
    if kind == TIME:
        value = whole * _MILLION + millionths
    elif kind == SIZE and 2 * millionths >= _MILLION:
        value = whole + 1
    return (-value if negative else value), 0


@inner()
def _is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _ZERO + 9


@inner()
def _digit(byte: int) -> int:
    """What a digit stands for, as an integer that does not overflow, compiled or not."""
    return int(np.int64(byte)) - _ZERO


@inner()
def _millionths(block: Bytes, start: int, end: int) -> tuple[int, int]:
    """The digits behind a decimal point as a number of millionths, and how many they are."""
    value = 0
    place = _MILLION
    position = start
    while position < end and _is_digit(block[position]):
        if place > 1:
            place //= 10
            value += place * _digit(block[position])
        elif place == 1:
            value += 1 if block[position] >= _ZERO + 5 else 0
            place = 0
        position += 1
    return value, position - start


def empty_rows(block: bytes, fields: int, comment_mark: bytes) -> tuple[Ints, Ints, Ints]:
    """Room for all rows, line numbers and comments that `parse_lines` can find in `block`."""
    # A field needs a byte and a separator, so short lines cannot make the room large.
    most = min(block.count(b"\n") + 1, len(block) // (2 * fields) + 1)
    return (
        np.empty((most, fields), np.int64),
        np.empty(most, np.int64),
        np.empty((block.count(comment_mark), 2), np.int64),
    )
