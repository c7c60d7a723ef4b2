"""Where numba keeps what it has compiled: in a folder for each state of the sources.

Numba looks only at the file that a function stands in. A function that has taken in another one
from another file would go on as it was after that file has changed, and a user who updates the
package would run old code.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

UNUSED_SECONDS = 24 * 3600.0


def keep_apart(root: Path) -> None:
    """Have numba use the folder for the sources below `root`, unless NUMBA_CACHE_DIR is set."""
    if "NUMBA_CACHE_DIR" in os.environ or not os.access(root, os.W_OK):
        return
    folder = cache_folder(root)
    if not folder.exists():
        _drop_old(folder.parent)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = str(folder)


def cache_folder(root: Path) -> Path:
    """The folder for the sources below `root` as they are: another one once any has changed."""
    state = hashlib.sha256()
    for source in sorted(root.rglob("*.py")):
        facts = source.stat()
        state.update(f"{source.relative_to(root)} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return root / "__pycache__" / f"compiled-{state.hexdigest()[:16]}"


def _drop_old(folder: Path) -> None:
    """Remove what other states have left, but for new ones, which may be in use."""
    for other in folder.glob("compiled-*"):
        if time.time() - other.stat().st_mtime > UNUSED_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
