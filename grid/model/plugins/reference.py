"""From `path/to/file.py:Name` or `package.module:Name` to the source that it names."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from grid.model.plugins.origin import short_path
from grid.model.plugins.source import Source

MAX_BYTES = 4 * 1024 * 1024


def is_reference(name: object) -> bool:
    """Does the text say where a part stands, and not what it is called?"""
    return isinstance(name, str) and ":" in name


def resolve_reference(reference: str, folders: Sequence[Path]) -> tuple[str, Source]:
    """The reference with an absolute path, and the source of its file.

    A file is looked for in the `folders`, in order; so is a module that is not installed. Raises
    ValueError with what was expected.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise ValueError("a name such as my_policy.py:MyPolicy")
    file = place if place.endswith(".py") else None
    if file is None:
        if not all(step.isidentifier() for step in place.split(".")):
            raise ValueError("a file such as my_policy.py, or a module, before the colon")
        installed = _installed(place)
        if installed is not None:
            shown = short_path(installed)
            return reference, Source(str(installed), shown, _text(installed), place)
        file = place.replace(".", "/") + ".py"
    tried = [folder / file for folder in folders]
    path = next((path for path in tried if path.is_file()), None)
    if path is None:
        kind = "a file" if place == file else "an installed module, or a file"
        where = "in the current folder or in the scenario's"
        raise ValueError(f"{kind} {file} {where}, or an absolute path")
    path = path.resolve()
    return f"{path}:{name}", Source(str(path), short_path(path), _text(path), written=file)


def _installed(module: str) -> Path | None:
    """The file of a module that can be imported."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"a file of at most {MAX_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"UTF-8 text in {path}") from None
