"""Files from outside, read whole within a limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grid.model.errors import ErrorLine, InputError, input_error


def read_text(path: Path, most: int, expected: str) -> str:
    """The text in a UTF-8 file of at most `most` bytes. Raises InputError."""
    line = None
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise ValueError("a larger file")
        return data.decode("utf-8-sig")
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
        found = "values nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise input_error("", f"invalid JSON ({found})", expected, str(path)) from None
    if not isinstance(content, dict):
        raise input_error("", "no mapping", expected, str(path))
    return content


def reason(error: OSError | ValueError) -> str:
    """The message of an error without the name of the file."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "a folder"
    return (isinstance(error, OSError) and error.strerror) or str(error)
