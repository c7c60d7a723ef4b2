"""`grid report`: which page a folder gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from grid.experiment.store import SWEEP_FILE
from grid.model.errors import InputError, Mistake
from grid.results.run_folder import try_to_write

_NOT_FITTING = (
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
    page = folder / "report.html" if page is None else page
    try:
        write = _writer(folder)
        if not page.parent.is_dir():
            raise _mistake(page, "no such folder", "a path in a folder that is there")
        if page.is_dir():
            raise _mistake(page, "a folder", "a file, or nothing there")
    except OSError as error:
        found = error.strerror or str(error)
        raise _mistake(folder, found, "paths that the file system takes") from None
    try_to_write(page.parent)
    try:
        write(folder, page)
    except _NOT_FITTING as error:
        found = f"files that do not fit together ({type(error).__name__})"
        raise _mistake(folder, found, "a run or a sweep as it was written") from error
    return page


def _writer(folder: Path) -> Callable[[Path, Path], None]:
    """What writes the page of this folder."""
    if not folder.is_dir():
        raise _mistake(folder, "no such folder", "the folder of a run or a sweep")
    if (folder / SWEEP_FILE).is_file():
        from grid.experiment.sweep_page import write_sweep_page

        return write_sweep_page
    if (folder / "manifest.json").is_file():
        from grid.report.run_page import write_run_page

        return write_run_page
    raise _mistake(folder, "a folder of something else", "the folder of a run or a sweep")


def _mistake(path: Path, found: str, expected: str) -> InputError:
    return InputError([Mistake(str(path), None, "", found, expected)])
