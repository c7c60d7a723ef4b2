"""Files that appear whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PARTIAL = ".partial"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write instead of `path`; it takes its place when all went well.

    Where `path` is a symbolic link, it stays one, to the new file.
    """
    path = path.resolve()
    with replacing_folder(path.parent) as folder:
        yield folder / path.name


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into; its files take their places in `folder` when all went well."""
    was_there = folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".", suffix=PARTIAL, dir=folder))
    try:
        yield partial
        for path in sorted(partial.iterdir()):
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if not was_there:
            with suppress(OSError):  # It is not empty: all went well.
                folder.rmdir()
