"""The cache folder of compiled code: one for each content of the kernel modules.

Numba's own cache checks only the file in which a function is defined. A function that inlines
another module's function or constant would stay stale after an edit of that module.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

UNUSED_SECONDS = 24 * 3600.0
_COMPILED = re.compile(rb"^@(?:kernel|inner|inlined|njit|_njit)\b", re.MULTILINE)
_IMPORTED = re.compile(rb"^from (\S+) import", re.MULTILINE)


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
    """The name of the cache folder for the kernel modules below `root` as they are.

    Hashed are the contents of all modules with compiled functions and of the modules that they
    import by name: numba compiles their constants and functions into its callers. An edit anywhere
    else keeps the folder.
    """
    package = root.name
    contents = {path: path.read_bytes() for path in sorted(root.rglob("*.py"))}
    kernels = [path for path, content in contents.items() if _COMPILED.search(content)]
    hashed = dict.fromkeys(kernels)
    for path in kernels:
        for module in _IMPORTED.findall(contents[path]):
            parts = module.decode().split(".")
            if parts[0] == package:
                hashed[root.joinpath(*parts[1:]).with_suffix(".py")] = None
                hashed[root.joinpath(*parts[1:], "__init__.py")] = None
    state = hashlib.sha256()
    for path in sorted(hashed):
        if path in contents:
            state.update(f"{path.relative_to(root)}\n".encode() + contents[path])
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
