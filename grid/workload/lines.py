"""Logs as lines of text: decompression, records of a fixed number of fields, and comments.

A log is read in blocks of whole lines, so that it need not fit into memory as text. numpy parses a
block at once; a block that it does not accept is parsed line by line, which finds the errors and
repairs dialects.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import stat
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.errors import ErrorLine, InputError, shorten
from grid.model.time import SECOND_US

BLOCK_BYTES = 1 << 20
"""Text that is read at once; also the longest line."""
UNKNOWN = -1
"""In every field of every format."""
KEEP_BYTES = "surrogateescape"
"""How bytes of headers that are not UTF-8 are read and written."""
MOST_ERRORS = 5
"""Errors of one log that are reported together."""
OF_A_TABLE = (
    ' separated by spaces (to convert a table, see "Replay a real log" in the documentation)'
)

TIME, SIZE, WHOLE, TEXT = range(4)
"""Kinds of fields: seconds, stored as microseconds; a size, rounded to an integer; an integer (12.0
is valid, 12.5 is not); text."""
TIME_LIMIT_S = 10**11
"""A time must be below this (3,000 years): a Unix time in milliseconds is an error."""
PROCESSOR_LIMIT = 10**8
NUMBER_LIMIT = 2**53

_EXACT_S = 2.0**31
"""Below this, a float represents each microsecond."""
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,2})?")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True, eq=False)
class LogFormat:
    """The fields of a format in their order, each with its kind and the limit of its values."""

    fields: tuple[str, ...]
    kinds: tuple[int, ...]
    limits: tuple[int, ...]
    comment_mark: bytes

    def name(self, position: int) -> str:
        """A field as in error messages."""
        return f"field {position + 1} ({self.fields[position]})"


class Records(NamedTuple):
    """Some records of a log: values (n, fields), their lines (n,), and text by field.

    The values of a field of text are 0.
    """

    values: Ints
    lines: Ints
    texts: dict[int, list[bytes]]
    blank_lines: int


Repair = Callable[[list[bytes], bool], list[bytes]]
"""Puts the fields of a line of a dialect, the first record or not, into the format's own form; no
fields for a line that is no record."""


def log_error(
    path: Path, found: str, expected: str, line: int | None = None, field: str = ""
) -> InputError:
    """The error of a log with one error."""
    return InputError([ErrorLine(str(path), line, field, found, expected)])


# Records


def iterate_records(
    path: Path, layout: LogFormat, header: dict[str, str], repair: Repair | None = None
) -> Iterator[Records]:
    """The records of a log in parts of about a megabyte of text.

    The comments are in `header` when all parts have been taken. Raises InputError for a file that
    cannot be read, a line with a wrong number of fields, a field that is not a number or absurdly
    large, and a log without a job. After an error it yields nothing more, but looks for further
    errors.
    """
    errors: list[ErrorLine] = []
    comments = _Comments()
    next_line, jobs = 1, 0
    for block in line_blocks(path):
        lines = block.replace(b"\r", b" ").removesuffix(b"\n").split(b"\n")
        numbers: Sequence[int] = range(next_line, next_line + len(lines))
        next_line += len(lines)
        blank = 0
        records = lines
        if layout.comment_mark in block or not all(map(bytes.strip, lines)):
            numbered = [(n, line) for n, line in zip(numbers, lines, strict=True) if line.strip()]
            blank = len(lines) - len(numbered)
            for _, line in numbered:
                if line.lstrip().startswith(layout.comment_mark):
                    comments.add(line.lstrip().lstrip(layout.comment_mark))
            numbered = [
                one for one in numbered if not one[1].lstrip().startswith(layout.comment_mark)
            ]
            numbers, records = [n for n, _ in numbered], [line for _, line in numbered]
        part = _parsed(records, numbers, layout)
        if part is None:
            parser = _LineParser(path, layout, repair, jobs == 0, MOST_ERRORS - len(errors))
            part = parser.parse(records, numbers)
            errors += parser.errors
            if len(errors) == MOST_ERRORS or parser.is_hopeless:
                break
        jobs += len(part.values)
        if not errors:
            yield part._replace(blank_lines=blank)
    header.update(comments.header())
    if errors:
        raise InputError(errors)
    if jobs == 0:
        raise log_error(path, "no job", "at least one job")


def _parsed(lines: list[bytes], numbers: Sequence[int], layout: LogFormat) -> Records | None:
    """The records of these lines, None if any is not in the format's own form."""
    if not lines:
        return _records(np.empty((0, len(layout.fields))), [], {}, layout)
    numeric = [field for field, kind in enumerate(layout.kinds) if kind != TEXT]
    texts: dict[int, list[bytes]] = {}
    if len(numeric) < len(layout.kinds):
        split = [line.split() for line in lines]
        if any(len(fields) != len(layout.fields) for fields in split):
            return None
        if _CONTROL.search(b" ".join(lines)):
            return None
        columns = zip(*split, strict=True)
        texts = {
            field: list(column)
            for field, column in enumerate(columns)
            if layout.kinds[field] == TEXT
        }
    try:
        values = np.loadtxt(
            lines, comments=None, ndmin=2, encoding="latin1", usecols=numeric if texts else None
        )
    except ValueError:
        return None
    if values.shape != (len(lines), len(numeric)):
        return None
    every = np.zeros((len(lines), len(layout.fields)))
    every[:, numeric] = values
    return _records(every, numbers, texts, layout)


def _records(
    values: Floats, numbers: Sequence[int], texts: dict[int, list[bytes]], layout: LogFormat
) -> Records | None:
    """The numbers in the units of their kinds; None if one is not valid or not exact."""
    converted = np.empty(values.shape, np.int64)
    for field, (kind, limit) in enumerate(zip(layout.kinds, layout.limits, strict=True)):
        column = values[:, field]
        whole = np.trunc(column)
        if not (np.abs(column) < limit).all():
            return None
        if kind == WHOLE and (column != whole).any():
            return None
        if kind == TIME and (np.abs(column) >= _EXACT_S).any():
            return None
        rounded = np.trunc(column + np.copysign(0.5, column))
        scaled = np.rint(column * SECOND_US) if kind == TIME else rounded
        converted[:, field] = np.where(column == UNKNOWN, UNKNOWN, scaled)
    return Records(converted, np.array(numbers, np.int64), texts, 0)


class _LineParser:
    """Parses lines one by one; finds up to `most` errors."""

    def __init__(
        self, path: Path, layout: LogFormat, repair: Repair | None, is_first: bool, most: int
    ) -> None:
        self._path, self._layout, self._repair = path, layout, repair
        self._is_first, self._most = is_first, most
        self.errors: list[ErrorLine] = []
        self.is_hopeless = False
        """Whether the file is no log of this kind, so that further errors say nothing."""

    def parse(self, lines: list[bytes], numbers: Sequence[int]) -> Records:
        """The records without errors, up to `most` errors."""
        kinds, rows, kept = self._layout.kinds, [], []
        for number, line in zip(numbers, lines, strict=True):
            fields = line.split()
            if self._repair is not None:
                fields = self._repair(fields, self._is_first)
            self._is_first = False
            if fields and self._check(number, line, fields):
                rows.append(fields)
                kept.append(number)
            if self.is_hopeless or len(self.errors) >= self._most:
                break
        values = np.zeros((len(rows), len(kinds)), np.int64)
        texts: dict[int, list[bytes]] = {}
        for field, kind in enumerate(kinds):
            column = [fields[field] for fields in rows]
            if kind == TEXT:
                texts[field] = column
            else:
                values[:, field] = [_exact(text, kind) for text in column]
        return Records(values, np.array(kept, np.int64), texts, 0)

    def _check(self, number: int, record: bytes, fields: list[bytes]) -> bool:
        layout, before = self._layout, len(self.errors)
        if len(fields) != len(layout.fields):
            found = f"{len(fields)} field{'s' * (len(fields) != 1)}"
            # With commas, it is a table, in which every line is wrong.
            self.is_hopeless = b"," in record
            commas, of_a_table = (" with commas", OF_A_TABLE) if self.is_hopeless else ("", "")
            self._add(number, "", f"{found}{commas}", f"{len(layout.fields)}{of_a_table}")
        else:
            for position, text in enumerate(fields):
                expected = self._problem(position, text)
                if expected and len(self.errors) < self._most:
                    found = shorten(text.decode("utf-8", "replace"))
                    self._add(number, layout.name(position), found, expected)
        if _CONTROL.search(record) and (len(self.errors) > before or TEXT in layout.kinds):
            self.errors[:] = []
            self._add(number, "", "binary data", "text")
            self.is_hopeless = True
        return not self.is_hopeless and len(self.errors) == before

    def _problem(self, position: int, text: bytes) -> str:
        kind, limit = self._layout.kinds[position], self._layout.limits[position]
        if kind == TEXT:
            return ""
        if not _NUMBER.fullmatch(text):
            return "a number in digits alone, such as 12 or 12.5"
        value = Decimal(text.decode())
        if abs(value) >= limit:
            return f"a number below {limit}"
        return "an integer" if kind == WHOLE and value != int(value) else ""

    def _add(self, line: int, field: str, found: str, expected: str) -> None:
        self.errors.append(ErrorLine(str(self._path), line, field, found, expected))


def _exact(text: bytes, kind: int) -> int:
    """The value of a field; decimals past the sixth round half up."""
    value = Decimal(text.decode())
    if value == UNKNOWN:
        return UNKNOWN
    return int((value * SECOND_US if kind == TIME else value).quantize(Decimal(1), ROUND_HALF_UP))


class _Comments:
    """Comments of the form `Key: value`; indented ones continue the value of the last key."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}
        self._last_key = ""

    def add(self, comment: bytes) -> None:
        text = comment.decode("utf-8", KEEP_BYTES)
        key, colon, value = text.partition(":")
        if text[:2].isspace():
            key, value = self._last_key, text
        elif not colon or not key.replace(" ", "").isalnum():
            self._last_key = ""
            return
        self._last_key, value = key.strip(), value.strip()
        if self._last_key and value:
            self._values.setdefault(self._last_key, []).append(value)

    def header(self) -> dict[str, str]:
        """By key; several values on lines of their own."""
        return {key: "\n".join(values) for key, values in self._values.items()}


# Files


def line_blocks(path: Path) -> Iterator[bytes]:
    """The lines of `path`, plain or compressed (by its first bytes), many at a time.

    Every block ends with a line end, except perhaps the last. Raises InputError for a file that is
    missing, a directory or a device, truncated or corrupt data, NUL bytes, and too long lines.
    """
    try:
        # A pipe or a device may never end, so it is rejected before it is opened.
        if not stat.S_ISREG(path.stat().st_mode):
            found = "a directory" if path.is_dir() else "a device or pipe"
            raise log_error(path, found, "a log file")
        with path.open("rb") as file:
            yield from _split_at_line_ends(path, _decompressed(path, file))
    except FileNotFoundError:
        raise log_error(path, "no such file", "a log file") from None
    except PermissionError:
        raise log_error(path, "no permission to read it", "a readable log file") from None
    except EOFError:
        raise log_error(path, "truncated compressed data", "a complete file") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise log_error(path, f"corrupt compressed data ({error})", "a valid file") from None
    except (OSError, ValueError) as error:
        raise log_error(path, f"unreadable ({error})", "a readable log file") from None


def _split_at_line_ends(path: Path, stream: Any) -> Iterator[bytes]:
    rest = b""
    is_first = True
    while block := stream.read(BLOCK_BYTES):
        if is_first:
            block, is_first = block.removeprefix(BOM_UTF8), False
        if 0 in block:
            raise log_error(path, "binary data (a NUL byte)", "text")
        block = rest + block
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        if len(rest) > BLOCK_BYTES:
            raise log_error(path, f"a line of more than {BLOCK_BYTES} bytes", "one job per line")
        if end:
            yield block[:end]
    if rest:
        yield rest


def _decompressed(path: Path, file: io.BufferedReader) -> Any:
    """The text of the file: gzip, bzip2, xz, zstd, a zip archive of one file, or plain."""
    magic = file.peek(6)[:6]
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if magic == b"\xfd7zXZ\x00":
        return lzma.LZMAFile(file)
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    if magic.startswith(b"PK\x03\x04"):
        archive = zipfile.ZipFile(file)
        members = [one for one in archive.infolist() if not one.is_dir()]
        if len(members) != 1 or members[0].flag_bits & 1:
            is_single = len(members) == 1
            found = "an encrypted archive" if is_single else f"{len(members)} files in it"
            raise log_error(path, found, "an archive with one log")
        return archive.open(members[0])
    return file
