"""Compiled code is used only for the sources that it was compiled from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grid.compiled_code import keep_apart, kept_text, state_of


def test_only_kernels_and_what_they_import_name_the_cache_folder(tmp_path: Path) -> None:
    root = tmp_path / "package"
    (root / "inner").mkdir(parents=True)
    constants, other = root / "constants.py", root / "other.py"
    kernel = root / "inner" / "one.py"
    constants.write_text("A = 1\n")
    other.write_text("B = 1\n")
    kernel.write_text("from package.constants import A\n\n\n@kernel()\ndef f(): ...\n")
    before = state_of(root)
    other.write_text("B = 2\n")
    os.utime(kernel, (0, 0))
    assert state_of(root) == before
    constants.write_text("A = 2\n")
    changed = state_of(root)
    assert changed != before
    kernel.write_text(kernel.read_text() + "C = 1\n")
    assert state_of(root) not in (before, changed)


def test_unused_folders_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    old, new = (tmp_path / "__pycache__" / f"compiled-{age}" for age in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    monkeypatch.setattr("sys.modules", {})
    keep_apart(tmp_path)
    assert (old.exists(), new.exists()) == (False, True)
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "__pycache__" / state_of(tmp_path))


def test_read_only_sources_are_cached_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    monkeypatch.setattr("sys.modules", {})
    keep_apart(tmp_path)
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "cache" / "grid" / state_of(tmp_path))


def test_a_text_is_made_once_for_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "new" / "folder"))
    made = iter(["first", "second", "third", "fourth", "fifth"])
    assert kept_text("a.js", made.__next__) == "first"
    assert kept_text("a.js", made.__next__) == "first"
    assert kept_text("b.js", made.__next__) == "second"
    assert sorted(one.name for one in (tmp_path / "new" / "folder").iterdir()) == ["a.js", "b.js"]
    (tmp_path / "new" / "folder" / "b.js").write_text("")
    assert [kept_text("b.js", made.__next__) for _ in range(2)] == ["third", "third"]
    # Where nothing can be kept it is made each time.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert [kept_text("a.js", made.__next__) for _ in range(2)] == ["fourth", "fifth"]
