"""`grid report`: which page a folder gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from grid.lab.report.style import PICTURES
from grid.model.errors import InputError, input_error
from grid.results.run_folder import REPORT, SWEEP_FILE, check_file

NOT_FITTING = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    pa.ArrowException,
)  # fmt: skip
"""What comes of files each of which can be read, of another shape or of different runs. That
tables and texts fit together could only be told by doing all that a page does with them."""


def write_report(folder: Path, page: Path | None = None) -> Path:
    """Write the report of the run or sweep in `folder`; returns the page's path.

    The page is `report.html` in `folder` unless `page` says otherwise. Its pictures go into the
    folder `pictures` beside it, as PNG and SVG. Raises InputError.
    """
    page = folder / REPORT if page is None else page
    try:
        write = _writer(folder)
        check_file(page, "--out", ".html", ".htm")
        # A folder that somebody gave us may lead elsewhere.
        for path in (folder / REPORT, page.parent / PICTURES):
            if path.is_symlink():
                raise _mistake(path, "a link", "what a report wrote, or nothing there")
        # To draw them takes seconds.
        if (page.parent / PICTURES).is_file():
            path = page.parent / PICTURES
            raise _mistake(path, "a file", "a folder of pictures, or nothing there")
    except OSError as error:
        found = error.strerror or str(error)
        raise _mistake(folder, found, "paths that the file system takes") from None
    try:
        write(folder, page)
    except NOT_FITTING as error:
        raise not_fitting(folder, error) from error
    return page


def _writer(folder: Path) -> Callable[[Path, Path], None]:
    """What writes the page of this folder."""
    if not folder.is_dir():
        found = "a file" if folder.exists() else "no such folder"
        raise _mistake(folder, found, "the folder of a run or a sweep")
    if (folder / SWEEP_FILE).is_file():
        from grid.lab.sweep_page import write_sweep_page

        return write_sweep_page
    if (folder / "manifest.json").is_file():
        from grid.lab.report.run_page import write_run_page

        return write_run_page
    raise _mistake(folder, "a folder of something else", "the folder of a run or a sweep")


def not_fitting(folder: Path, error: Exception) -> InputError:
    """What is told where reading the files of a folder came to one of `NOT_FITTING`."""
    found = f"files that do not fit together ({type(error).__name__})"
    return _mistake(folder, found, "a run or a sweep as it was written")


def _mistake(path: Path, found: str, expected: str) -> InputError:
    return input_error("", found, expected, str(path))
