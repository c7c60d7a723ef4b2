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
    page = folder / "report.html" if page is None else page
    if not page.parent.is_dir():
        expected = "a path in a folder that is there"
        raise InputError([Mistake(str(page), None, "", "no such folder", expected)])
    if (folder / SWEEP_FILE).is_file():
        from grid.experiment.sweep_page import write_sweep_page

        write_sweep_page(folder, page)
        return page
    if (folder / "manifest.json").is_file():
        from grid.report.run_page import write_run_page

        write_run_page(folder, page)
        return page
    found = "no such folder" if not folder.is_dir() else "a folder of something else"
    raise InputError([Mistake(str(folder), None, "", found, "the folder of a run or a sweep")])
