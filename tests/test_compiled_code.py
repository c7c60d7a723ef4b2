"""What numba compiled is used for the sources that it was compiled from, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grid.compiled_code import cache_folder, keep_apart


def test_another_folder_once_a_source_has_changed(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    source = tmp_path / "inner" / "one.py"
    source.write_text("A = 1\n")
    before = cache_folder(tmp_path)
    assert cache_folder(tmp_path) == before
    source.write_text("A = 22\n")
    assert cache_folder(tmp_path) != before


def test_folders_that_nobody_uses_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    old, new = (tmp_path / "__pycache__" / f"compiled-{age}" for age in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    monkeypatch.setattr("sys.modules", {})
    keep_apart(tmp_path)
    assert (old.exists(), new.exists()) == (False, True)
    assert os.environ["NUMBA_CACHE_DIR"] == str(cache_folder(tmp_path))


def test_a_folder_of_the_users_own_is_left_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")
    keep_apart(tmp_path)
    assert os.environ["NUMBA_CACHE_DIR"] == "elsewhere"
