"""Where numba keeps what it has compiled: in a folder for each state of the sources. What else
takes long to make is kept there, too.

Numba looks only at the file that a function stands in. A function that has taken in another one
from another file would go on as it was after that file has changed, and a user who updates the
package would run old code.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

UNUSED_SECONDS = 24 * 3600.0


def keep_apart(root: Path) -> None:
    """Have numba use a folder for the sources below `root` as they are.

    It is in the folder that NUMBA_CACHE_DIR names, else beside the sources, else, where nothing
    can be written there, in the user's cache. Without any of these it is a folder that is removed
    when this process ends. What this process starts uses it, too.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "grid"
    if given:
        place = Path(given)
    elif os.access(root, os.W_OK):
        place = root / "__pycache__"
    elif _can_be_made(cache):
        place = cache
    else:
        place = _until_the_end()
    name = state_of(root)
    if place.name == name:
        return
    folder = place / name
    if not folder.exists():
        _drop_old(folder.parent)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = str(folder)


def _can_be_made(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _until_the_end() -> Path:
    """A folder of this process, which takes it along when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="grid-"))
    owner = os.getpid()

    def remove() -> None:
        # A process that was forked has the same to do at its end.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def state_of(root: Path) -> str:
    """The name of the folder for the sources below `root`: another one once any has changed."""
    state = hashlib.sha256()
    for source in sorted(root.rglob("*.py")):
        facts = source.stat()
        state.update(f"{source.relative_to(root)} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return f"compiled-{state.hexdigest()[:16]}"


def kept_text(name: str, make: Callable[[], str]) -> str:
    """What `make` gives, or what it gave to an earlier process under that name."""
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    with suppress(OSError, UnicodeDecodeError):
        # A machine that went down may have left it empty.
        if kept := (folder / name).read_text(encoding="utf-8"):
            return kept
    text = make()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        # Whole or not at all, for others may read it now.
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            written = Path(fresh) / name
            written.write_text(text, encoding="utf-8")
            written.replace(folder / name)
    return text


def _drop_old(folder: Path) -> None:
    """Remove what other states have left, but for new ones, which may be in use."""
    for other in folder.glob("compiled-*"):
        if time.time() - other.stat().st_mtime > UNUSED_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
