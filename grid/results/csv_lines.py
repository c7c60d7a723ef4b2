"""Lines of a CSV file, all of a batch by one compiled loop: they are most of what a run writes.

A line is texts that all lines have (columns of one value, and the commas around them), and between
these the values of the other columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grid.model.arrays import Bools, Ints, SomeInts
from grid.model.compiled import inner, kernel
from grid.model.time import SECOND_US

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.uint64]
Ends = npt.NDArray[np.int32]
Texts = tuple[Ints, Bytes]
"""Offsets and characters: text i is at offsets[i] to before offsets[i + 1]."""


class Times(NamedTuple):
    """A column of times in microseconds, null where they are not `known`."""

    times_us: Ints
    known: Bools


Column: TypeAlias = pa.Array | Times
"""Whole numbers, floats, texts or names (a dictionary); or times."""

WHOLE, TIME, TEXT = range(3)
"""What the values of a column are to the loop: numbers, microseconds, or numbers of texts."""

_NO_VALUE = np.int64(-(2**63))
_LONGEST = 21
"""Characters of a number or a time: a sign, 13 digits, a point and six more."""
_POWERS = np.array([10**power for power in range(20)], np.uint64)
_PAIRS = np.frombuffer("".join(f"{pair:02}" for pair in range(100)).encode(), np.uint8)


def csv_lines(columns: Mapping[str, Column]) -> memoryview:
    """The rows of the columns as lines, without quotes, and with nothing where a value is null.

    Times are seconds with six decimal places, floats as short as they can be. No text may have a
    comma, a quote or the end of a line in it.
    """
    fixed, kinds, values, texts = [b""], [], [], []
    for place, column in enumerate(columns.values()):
        fixed[-1] += b"," if place else b""
        one = _one_value(column)
        if one is not None:
            fixed[-1] += one
            continue
        fixed.append(b"")
        kind, numbers, own = _values(column)
        kinds.append(kind)
        values.append(numbers)
        texts.append(own)
    fixed[-1] += b"\n"
    rows = max(map(_length, columns.values()))
    block = np.array(values, np.int64).reshape(len(values), rows)
    offsets, characters = _together([_texts_of(fixed), *texts], block, len(fixed))
    # The last place, which is that of no text, is what no value counts for.
    lengths, of_texts = np.append(np.diff(offsets), 0), np.array(kinds, np.int64) == TEXT
    room = rows * (len(b"".join(fixed)) + _LONGEST * len(kinds))
    room += int(lengths[np.maximum(block[of_texts], -1)].sum())
    lines = np.empty(room, np.uint8)
    end = write_lines(
        np.array(kinds, np.int64), block, offsets.astype(np.uint64), characters, lines
    )
    return lines[:end].data


def _length(column: Column) -> int:
    return len(column.times_us if isinstance(column, Times) else column)


def _one_value(column: Column) -> bytes | None:
    """What all rows have; None where they differ."""
    if isinstance(column, Times):
        return _one_time(*column)
    if column.null_count == len(column):
        return b""
    if column.null_count:
        return None
    if pa.types.is_string(column.type):
        return None if len(_texts_in(column)[1]) else b""
    numbers = column.indices if pa.types.is_dictionary(column.type) else column
    plain = numbers.to_numpy()
    return None if (plain != plain[0]).any() else str(column[0].cast(pa.string())).encode()


def _one_time(times_us: Ints, known: Bools) -> bytes | None:
    if not known.any():
        return b""
    if not known.all() or (times_us != times_us[0]).any():
        return None
    seconds, rest_us = divmod(abs(int(times_us[0])), SECOND_US)
    return f"{'-' if times_us[0] < 0 else ''}{seconds}.{rest_us:06}".encode()


def _values(column: Column) -> tuple[int, Ints, Texts]:
    """The kind of a column, its values, and its texts, which are numbered from zero."""
    none = _texts_of([])
    if isinstance(column, Times):
        return TIME, np.where(column.known, column.times_us, _NO_VALUE), none
    if pa.types.is_dictionary(column.type):
        names = _texts_of([name.encode() for name in column.dictionary.to_pylist()])
        return TEXT, _numbers(column.indices), names
    if pa.types.is_integer(column.type):
        return WHOLE, _numbers(column), none
    texts = column if pa.types.is_string(column.type) else column.cast(pa.string())
    rows = np.arange(len(texts))
    if texts.null_count:
        rows[texts.is_null().to_numpy(zero_copy_only=False)] = _NO_VALUE
    return TEXT, rows, _texts_in(texts)


def _numbers(column: pa.Array) -> Ints:
    filled: Ints = column.cast(pa.int64()).fill_null(_NO_VALUE).to_numpy()
    return filled


def _texts_of(texts: list[bytes]) -> Texts:
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return offsets, np.frombuffer(b"".join(texts), np.uint8)


def _texts_in(column: pa.Array) -> Texts:
    _, offsets, characters = column.buffers()
    mine = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    all_of_it = np.frombuffer(characters if characters is not None else b"", np.uint8)
    return (mine - mine[0]).astype(np.int64), all_of_it[mine[0] : mine[-1]]


def _together(texts: list[Texts], block: Ints, first: int) -> Texts:
    """All texts as one; the values of columns of texts now count those of the columns before.

    The first of `texts` are no column's; so many they are.
    """
    offsets, characters = [texts[0][0]], [texts[0][1]]
    number, size = first, int(texts[0][0][-1])
    for row, (its_offsets, its_characters) in enumerate(texts[1:]):
        if len(its_offsets) > 1:
            column = block[row]
            column[column != _NO_VALUE] += number
            number += len(its_offsets) - 1
            offsets.append(its_offsets[1:] + size)
            characters.append(its_characters)
            size += len(its_characters)
    return np.concatenate(offsets), np.concatenate(characters)


@kernel(allocates=False)
def write_lines(kinds: Ints, values: Ints, offsets: Places, texts: Bytes, lines: Bytes) -> int:
    """Writes a line for each row into `lines`, and says where the last one ends.

    `values` has shape (columns, rows). Before the value of each column comes the text of its
    number; the one after that number is the end of each line.

    Places are unsigned: others might count from the end, and each byte would ask whether they do.
    """
    end = np.uint64(0)
    columns, rows = values.shape
    for row in range(rows):
        for column in range(columns):
            end = _copy(offsets, texts, column, lines, end)
            value = values[column, row]
            if value == _NO_VALUE:
                continue
            if kinds[column] == TEXT:
                end = _copy(offsets, texts, value, lines, end)
            else:
                end = _write_number(value, kinds[column] == TIME, lines, end)
        end = _copy(offsets, texts, columns, lines, end)
    return int(end)


@kernel(allocates=False)
def write_intervals(
    begin: SomeInts, count: SomeInts, first: SomeInts, last: SomeInts, offsets: Ends, texts: Bytes
) -> None:
    """Writes each row's `count` intervals of whole numbers, from `begin` on, as "0-3 5".

    `offsets`, of shape (rows + 1,), and `texts` make an array of texts.
    """
    end = np.uint64(0)
    one = np.uint64(1)
    offsets[0] = 0
    for row in range(len(begin)):
        for place in range(begin[row], begin[row] + count[row]):
            if place > begin[row]:
                texts[end] = 32
                end += one
            end = _write_digits(np.uint64(first[place]), one, texts, end)
            if last[place] != first[place]:
                texts[end] = 45
                end = _write_digits(np.uint64(last[place]), one, texts, end + one)
        offsets[row + 1] = end


@inner(allocates=False)
def _copy(offsets: Places, texts: Bytes, number: int, lines: Bytes, end: np.uint64) -> np.uint64:
    first = offsets[number]
    length = offsets[number + 1] - first
    for place in range(length):
        lines[end + place] = texts[first + place]
    after: np.uint64 = end + length
    return after


@inner(allocates=False)
def _write_number(value: int, is_time: bool, lines: Bytes, end: np.uint64) -> np.uint64:
    # Unsigned, for division by a number that is known is a multiplication then.
    left = np.uint64(-value if value < 0 else value)
    if value < 0:
        lines[end] = 45
        end += np.uint64(1)
    if not is_time:
        return _write_digits(left, np.uint64(1), lines, end)
    seconds = left // np.uint64(SECOND_US)
    end = _write_digits(seconds, np.uint64(1), lines, end)
    lines[end] = 46
    micros = left - seconds * np.uint64(SECOND_US)
    return _write_digits(micros, np.uint64(6), lines, end + np.uint64(1))


@inner(allocates=False)
def _write_digits(left: np.uint64, count: np.uint64, lines: Bytes, end: np.uint64) -> np.uint64:
    """At least `count` digits."""
    while count < np.uint64(19) and left >= _POWERS[count]:
        count += np.uint64(1)
    after = end + count
    place = after
    while place > end + np.uint64(1):
        rest = left // np.uint64(100)
        pair = np.uint64(2) * (left - rest * np.uint64(100))
        lines[place - np.uint64(2)] = _PAIRS[pair]
        lines[place - np.uint64(1)] = _PAIRS[pair + np.uint64(1)]
        place -= np.uint64(2)
        left = rest
    if place > end:
        lines[end] = np.uint8(np.uint64(48) + left)
    return after
