"""Log files as blocks of whole lines, so that no log has to fit into memory as text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grid.model.errors import ErrorLine, InputError

BLOCK_BYTES = 1 << 20
"""How much text is looked at at once; also the longest line that is taken for one."""

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC, ZIP_MAGIC = b"\x28\xb5\x2f\xfd", b"PK\x03\x04"


def mistake(
    path: Path, found: str, expected: str, line: int | None = None, field: str = ""
) -> InputError:
    """The error of a log with one mistake."""
    return InputError([ErrorLine(str(path), line, field, found, expected)])


def line_blocks(path: Path) -> Iterator[bytes]:
    """The lines of `path`, plain or compressed (its first bytes say how), many at a time.

    Every block ends with a line end, save perhaps the last one of the file. Raises InputError for
    what cannot be read: missing, a directory or device, not permitted, truncated or corrupt data,
    NUL bytes, a line longer than a block.
    """
    try:
        # A pipe or a device may never end, so it is refused before it is opened.
        if not stat.S_ISREG(path.stat().st_mode):
            found = "a directory" if path.is_dir() else "a device or pipe"
            raise mistake(path, found, "a log file")
        with path.open("rb") as file:
            yield from _split_at_line_ends(path, file)
    except FileNotFoundError:
        raise mistake(path, "no such file", "a log file") from None
    except PermissionError:
        raise mistake(path, "no permission to read it", "a readable log file") from None
    except EOFError:
        raise mistake(path, "compressed data that breaks off", "a complete file") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise mistake(path, f"corrupt compressed data ({error})", "a sound file") from None
    except (OSError, ValueError) as error:
        raise mistake(path, f"unreadable ({error})", "a readable log file") from None


def _split_at_line_ends(path: Path, file: io.BufferedReader) -> Iterator[bytes]:
    stream = _decompressed(path, file)
    rest = b""
    is_first = True
    while block := stream.read(BLOCK_BYTES):
        if is_first:
            # Some editors begin a text so, and it is no part of it.
            block, is_first = block.removeprefix(BOM_UTF8), False
        if 0 in block:
            raise mistake(path, "binary data (a NUL byte)", "text")
        block = rest + block
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        if len(rest) > BLOCK_BYTES:
            found = f"a line of more than {BLOCK_BYTES} bytes"
            raise mistake(path, found, "a job a line")
        if end:
            yield block[:end]
    if rest:
        yield rest


def _decompressed(path: Path, file: io.BufferedReader) -> Any:
    """The text of the file: gzip, bzip2, xz, zstd, a zip archive of one file, or plain."""
    magic = file.peek(6)[:6]
    if magic.startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if magic == b"\xfd7zXZ\x00":
        return lzma.LZMAFile(file)
    if magic.startswith(ZSTD_MAGIC):
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")
    if magic.startswith(ZIP_MAGIC):
        archive = zipfile.ZipFile(file)
        members = [one for one in archive.infolist() if not one.is_dir()]
        if len(members) != 1 or members[0].flag_bits & 1:
            found = "an encrypted archive" if len(members) == 1 else f"{len(members)} files in it"
            raise mistake(path, found, "an archive of one log")
        return archive.open(members[0])
    return file
