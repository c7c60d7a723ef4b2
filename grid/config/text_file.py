"""Files from outside, read whole: within a limit, and none that may never end."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from grid.model.errors import ErrorLine, InputError


def refuse_no_file(path: Path) -> None:
    """Raises OSError or ValueError, saying what there is, unless it is a regular file.

    A pipe waits for its other end, and a device may give for ever.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ValueError("no such file") from None
    if stat.S_ISDIR(mode):
        raise ValueError("a folder")
    if not stat.S_ISREG(mode):
        raise ValueError("a socket" if stat.S_ISSOCK(mode) else "a device or pipe")
    if not os.access(path, os.R_OK):
        raise ValueError("a file that may not be read")


def read_bytes(path: Path, most: int) -> bytes:
    """All that is in a regular file. Raises OSError or ValueError, saying what there is instead."""
    refuse_no_file(path)
    # It may have been replaced by a pipe since; that is no reason to wait for one.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError("a larger file")
    return data


def read_text(path: Path, most: int, expected: str) -> str:
    """The text in a UTF-8 file of at most `most` bytes. Raises InputError."""
    line = None
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        found, expected = f"the byte 0x{error.object[error.start]:02x}", "UTF-8 text"
    except (OSError, ValueError) as error:
        found = reason(error)
    raise InputError([ErrorLine(str(path), line, "", found, expected)])


def read_mapping(path: Path, most: int, expected: str) -> dict[str, Any]:
    """The mapping in a JSON file. Raises InputError."""
    try:
        content = json.loads(read_text(path, most, expected))
    except (ValueError, RecursionError) as error:
        found = "values nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InputError(
            [ErrorLine(str(path), None, "", f"broken JSON ({found})", expected)]
        ) from None
    if not isinstance(content, dict):
        raise InputError([ErrorLine(str(path), None, "", "no mapping", expected)])
    return content


def reason(error: OSError | ValueError) -> str:
    """The message of an error without the name of the file."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
