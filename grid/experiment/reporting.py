"""`grid report`: which page a folder gets."""

from __future__ import annotations

from pathlib import Path

from grid.experiment.store import SWEEP_FILE
from grid.model.errors import InputError, Mistake


def write_report(folder: Path, page: Path | None = None) -> Path:
    """Write the report of the run or sweep in `folder`; returns the page's path.

    The page is `report.html` in `folder` unless `page` says otherwise. Its pictures go into the
    folder `pictures` beside it, as PNG and SVG. Raises InputError.
    """
    if not folder.is_dir():
        raise _mistake(folder, "no such folder", "the folder of a run or a sweep")
    page = folder / "report.html" if page is None else page
    if not page.parent.is_dir():
        raise _mistake(page, "no such folder", "a path in a folder that is there")
    if (folder / SWEEP_FILE).is_file():
        from grid.experiment.sweep_page import write_sweep_page

        write_sweep_page(folder, page)
    elif (folder / "manifest.json").is_file():
        from grid.report.run_page import write_run_page

        write_run_page(folder, page)
    else:
        raise _mistake(folder, "a folder of something else", "the folder of a run or a sweep")
    return page


def _mistake(path: Path, found: str, expected: str) -> InputError:
    return InputError([Mistake(str(path), None, "", found, expected)])
