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
    """Set NUMBA_CACHE_DIR to a folder for the kernel modules below `root` as they are.

    It is below the folder that NUMBA_CACHE_DIR names, else next to the sources, else, if they are
    read-only, in the user's cache, else a temporary folder of this process. Child processes use it.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    parent = Path(given) if given else _writable(root)
    name = state_of(root)
    if parent.name == name:
        return
    if not (parent / name).exists():
        _drop_old(parent)
    os.environ["NUMBA_CACHE_DIR"] = str(parent / name)
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = str(parent / name)


def _writable(root: Path) -> Path:
    if os.access(root, os.W_OK):
        return root / "__pycache__"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "grid"
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK):
            return cache
    folder = Path(tempfile.mkdtemp(prefix="grid-"))
    owner = os.getpid()

    def remove() -> None:
        # A forked child runs the same exit handlers.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def state_of(root: Path) -> str:
    """The name of the cache folder for the kernel modules below `root` as they are.

    It hashes the modules with compiled functions and the modules that they import from, whose
    constants and functions numba compiles into its callers. Other edits keep the folder.
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
    """The result of `make`, or what an earlier process stored under that name."""
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    with suppress(OSError, UnicodeDecodeError):
        # Empty after a crash of the machine.
        if kept := (folder / name).read_text(encoding="utf-8"):
            return kept
    text = make()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        # Atomic, since other processes may read it now.
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            written = Path(fresh) / name
            written.write_text(text, encoding="utf-8")
            written.replace(folder / name)
    return text


def _drop_old(folder: Path) -> None:
    """Remove folders of other contents that no process has written to for a day."""
    for other in folder.glob("compiled-*"):
        if time.time() - other.stat().st_mtime > UNUSED_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
