"""What numba compiled is used for the sources that it was compiled from, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
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
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "__pycache__" / state_of(tmp_path))


def test_in_a_folder_of_the_users_own_states_are_apart_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old code of another version has run for ever. What a process starts stays where it is."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setattr("sys.modules", {})
    folder = tmp_path / "own" / state_of(tmp_path)
    for _ in range(2):
        keep_apart(tmp_path)
        assert os.environ["NUMBA_CACHE_DIR"] == str(folder)


def test_where_nothing_can_be_written_beside_the_sources_it_is_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    monkeypatch.setattr("sys.modules", {})
    keep_apart(tmp_path)
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "cache" / "grid" / state_of(tmp_path))


def test_where_nothing_at_all_can_be_kept_it_is_a_folder_until_the_end(tmp_path: Path) -> None:
    """As for another user in a container: a run compiles, and leaves nothing behind."""
    (tmp_path / "file").write_text("")
    program = """
import os
os.access = lambda *_: False
import grid
from pathlib import Path
folder = Path(os.environ["NUMBA_CACHE_DIR"])
folder.mkdir()
print(folder.parent)
if os.fork() == 0:
    raise SystemExit
os.wait()
assert folder.is_dir()
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    program = f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    made = Path(done.stdout.strip().splitlines()[-1])
    assert made.parent == tmp_path
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


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
