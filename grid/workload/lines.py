"""Logs as lines of text: decompression, comments, and records of a fixed number of fields."""

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
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from grid.model.arrays import Floats, Ints
from grid.model.errors import ErrorLine, InputError, shorten
from grid.model.plugins.settings import expected
from grid.model.time import SECOND_US
from grid.workload.logs import (
    KEEP_BYTES,
    MOST_ERRORS,
    TEXT,
    TIME,
    UNKNOWN,
    WHOLE,
    Log,
    LogFormat,
    log_error,
    names_of,
)

BLOCK_BYTES = 1 << 20
"""Text that is parsed at once, up to the end of a line."""
OF_A_TABLE = (
    ' separated by spaces (to convert a table, see "Replay a real log" in the documentation)'
)
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,2})?")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")

_Model = TypeVar("_Model", bound=BaseModel)
Repair = Callable[[list[bytes], int, bool], list[bytes]]
"""Converts the fields of a line of a dialect, by its number and whether it is the first record, to
the format's own form; no fields for a line that is no record."""


def read_text(path: Path, layout: LogFormat, repair: Repair | None = None) -> Log:
    """The log in a file of text.

    Raises InputError for a file that cannot be read, lines with a wrong number of fields, fields
    that are not numbers or absurdly large, and a log without a job.
    """
    reader = _Reader(path, layout, repair)
    comments: list[bytes] = []
    number = blank_lines = 0
    for block in _blocks(read_whole(path)):
        numbered: list[tuple[int, bytes]] = []
        for line in block.replace(b"\r", b" ").removesuffix(b"\n").split(b"\n"):
            number += 1
            text = line.lstrip()
            if not text:
                blank_lines += 1
            elif text.startswith(layout.comment_mark):
                comments.append(text.lstrip(layout.comment_mark))
            else:
                numbered.append((number, text))
        reader.add(numbered)
        if len(reader.errors) == MOST_ERRORS or reader.is_hopeless:
            break
    if reader.errors:
        raise InputError(reader.errors)
    if not any(map(len, reader.values)):
        raise log_error(path, "no job", "at least one job")
    columns = np.concatenate(reader.values)
    names = {
        field: names_of(columns, field, [text.decode("utf-8", "replace") for text in known])
        for field, known in reader.texts.items()
    }
    lines = np.array(reader.lines, np.int64)
    return Log(path, columns, lines, _header(comments), blank_lines, names=names, format=layout)


class _Reader:
    """Parses blocks of lines. A block with a deviating line is parsed again, line by line."""

    def __init__(self, path: Path, layout: LogFormat, repair: Repair | None) -> None:
        self._path, self._layout, self._repair = path, layout, repair
        self.values: list[Ints] = []
        self.lines: list[int] = []
        self.texts: dict[int, dict[bytes, int]] = {
            field: {} for field, kind in enumerate(layout.kinds) if kind == TEXT
        }
        """The number of each text, by field."""
        self._numeric = [field for field in range(len(layout.fields)) if field not in self.texts]
        self.errors: list[ErrorLine] = []
        self.is_hopeless = False
        """Whether the file is no log of this kind, so that further errors do not help."""

    def add(self, numbered: Sequence[tuple[int, bytes]]) -> None:
        """Add the records of these lines, or up to MOST_ERRORS errors in all."""
        values = self._columns([text for _, text in numbered])
        if values is None:
            numbered = list(self._sound(numbered))
            values = self._columns([text for _, text in numbered])
            assert values is not None, "lines without errors can be parsed"
        self.values.append(values)
        self.lines += [number for number, _ in numbered]

    def _columns(self, lines: list[bytes]) -> Ints | None:
        """The values of these lines, None if any is not in the format's own form."""
        layout = self._layout
        values = np.empty((len(lines), len(layout.fields)), np.int64)
        if not lines:
            return values
        rows: list[list[bytes]] = []
        if self.texts:
            rows = [line.split() for line in lines]
            is_sound = all(len(row) == len(layout.fields) for row in rows)
            if not is_sound or _CONTROL.search(b" ".join(lines)):
                return None
            lines = [b" ".join([row[field] for field in self._numeric]) for row in rows]
        try:
            if not re.search(rb"\d", lines[0]):
                raise ValueError("no number")  # numpy warns of a text without values.
            numbers = np.loadtxt(lines, comments=None, ndmin=2, encoding="ascii")
        except ValueError:
            return None
        if numbers.shape != (len(lines), len(self._numeric)):
            return None
        for field, column in zip(self._numeric, numbers.T, strict=True):
            scaled = _scaled(column, layout.kinds[field], layout.limits[field])
            if scaled is None:
                return None
            values[:, field] = scaled
        for field, known in self.texts.items():
            values[:, field] = [
                UNKNOWN if text == b"-1" else known.setdefault(text, len(known) + 1)
                for text in (row[field] for row in rows)
            ]
        return values

    def _sound(self, numbered: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """The lines without errors, in the format's own form."""
        for number, text in numbered:
            fields = text.split()
            if self._repair is not None:
                is_first = not self.lines and number == numbered[0][0]
                fields = self._repair(fields, number, is_first)
            if fields and self._is_valid(number, text, fields):
                yield number, b" ".join(fields)
            if self.is_hopeless or len(self.errors) >= MOST_ERRORS:
                return

    def _is_valid(self, number: int, record: bytes, fields: list[bytes]) -> bool:
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
                if expected and len(self.errors) < MOST_ERRORS:
                    found = shorten(text.decode("utf-8", "replace"))
                    self._add(number, layout.name(position), found, expected)
        if _CONTROL.search(record) and (len(self.errors) > before or self.texts):
            self.errors[:] = []
            self._add(number, "", "binary data", "text")
            self.is_hopeless = True
        return len(self.errors) == before and not self.is_hopeless

    def _problem(self, position: int, text: bytes) -> str:
        kind, limit = self._layout.kinds[position], self._layout.limits[position]
        if kind == TEXT:
            return ""
        if not _NUMBER.fullmatch(text):
            return "a decimal number like 12 or 12.5"
        if abs(float(text)) >= limit:
            return f"a number below {limit}"
        return "an integer" if kind == WHOLE and not float(text).is_integer() else ""

    def _add(self, line: int, field: str, found: str, expected: str) -> None:
        self.errors.append(ErrorLine(str(self._path), line, field, found, expected))


def _scaled(column: Floats, kind: int, limit: int) -> Ints | None:
    """A field of numbers in the unit of its kind; None if one is not valid."""
    whole = np.trunc(column)
    if not (np.abs(column) < limit).all() or (kind == WHOLE and (column != whole).any()):
        return None
    if kind == TIME:
        # Apart, since whole microseconds of centuries exceed the precision of a float.
        scaled = whole.astype(np.int64) * SECOND_US
        scaled += np.rint((column - whole) * SECOND_US).astype(np.int64)
    else:
        scaled = np.trunc(column + np.copysign(0.5, column)).astype(np.int64)
    return np.where(column == UNKNOWN, UNKNOWN, scaled)


def _header(comments: Sequence[bytes]) -> dict[str, str]:
    """Comments of the form `Key: value`; indented ones continue the value of the last key.

    Several values of one key are on lines of their own.
    """
    values: dict[str, list[str]] = {}
    last_key = ""
    for comment in comments:
        text = comment.decode("utf-8", KEEP_BYTES)
        key, colon, value = text.partition(":")
        if text[:2].isspace():
            key, value = last_key, text
        elif not colon or not key.replace(" ", "").isalnum():
            last_key = ""
            continue
        last_key, value = key.strip(), value.strip()
        if last_key and value:
            values.setdefault(last_key, []).append(value)
    return {key: "\n".join(lines) for key, lines in values.items()}


# Files


def read_whole(path: Path, first_bytes: int | None = None) -> bytes:
    """The text of `path`, or its beginning, plain or compressed (by its first bytes).

    Raises InputError for a file that is missing, a directory or a device, truncated or corrupt
    data, and NUL bytes.
    """
    try:
        # A pipe or a device may never end, so it is rejected before it is opened.
        if not stat.S_ISREG(path.stat().st_mode):
            found = "a directory" if path.is_dir() else "a device or pipe"
            raise log_error(path, found, "a log file")
        with path.open("rb") as file:
            stream = _decompressed(path, file)
            text: bytes = stream.read() if first_bytes is None else stream.read(first_bytes)
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
    if 0 in text:
        raise log_error(path, "binary data (a NUL byte)", "text")
    return text.removeprefix(BOM_UTF8)


def read_json(path: Path, text: bytes, model: type[_Model]) -> _Model:
    """A file of JSON. Raises InputError, with the place in the file as field."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field, found = ".".join(map(str, first["loc"])), shorten(first["input"])
        raise log_error(path, found, expected(dict(first)), field=field) from None


def _blocks(text: bytes) -> Iterator[bytes]:
    """Whole lines, many at a time."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + BLOCK_BYTES) + 1 or len(text)
        yield text[start:end]
        start = end


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
