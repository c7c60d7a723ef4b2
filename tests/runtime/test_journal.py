"""Journals: what was added is there, old entries go, and only one process at a time adds."""

from __future__ import annotations

import pickle
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from grid.model.errors import InputError
from grid.runtime.journal import Entry, Journal, Superseded, journals_in


def entry(saved: Any, is_checkpoint: bool = False) -> Entry:
    return pickle.dumps(saved), is_checkpoint


def entries(journal: Journal) -> list[Any]:
    return [pickle.loads(body) for body in journal.entries()]


def test_entries_and_records_come_back_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.sqlite")
    journal.add([entry("old")], ["first"])
    journal.add([entry((1, "one")), entry({"two": 2.0})], ["second"])
    journal.close()
    again = Journal(tmp_path / "a.sqlite")
    assert entries(again) == ["old", (1, "one"), {"two": 2.0}]
    again.add([entry("older"), entry("state", True), entry("new")], [])
    assert entries(again) == ["state", "new"]
    assert list(again.records()) == ["first", "second"]


def test_a_journal_cut_in_a_write_has_all_whole_writes_before(tmp_path: Path) -> None:
    """As after a crash of the machine: of a write in progress, any part may be on disk."""
    path, sizes = tmp_path / "a.sqlite", []
    journal = Journal(path)
    for number in range(6):
        sizes.append(Path(f"{path}-wal").stat().st_size)
        journal.add([entry((number, "x" * 3000)), entry(number)], [number])
    whole = Path(f"{path}-wal").read_bytes()
    for written in range(1, 6):
        for size in (sizes[written], (sizes[written] + len(whole)) // 2, len(whole) - 1):
            copy = tmp_path / f"{written}-{size}.sqlite"
            shutil.copy(path, copy)
            Path(f"{copy}-wal").write_bytes(whole[:size])
            read = Journal(copy)
            records = list(read.records())
            assert records == list(range(len(records))) and written <= len(records) < 6
            assert [one for one in entries(read) if isinstance(one, int)] == records
            read.add([entry("resumed")], ["resumed"])
            assert entries(read)[-1] == "resumed"
            read.close()


def test_the_process_that_opened_a_journal_last_owns_it(tmp_path: Path) -> None:
    old = Journal(tmp_path / "a.sqlite")
    old.add([entry("before")], [])
    new = Journal(tmp_path / "a.sqlite")
    with pytest.raises(Superseded):
        old.add([entry("too late")], ["too late"])
    new.add([entry("after")], [])
    assert entries(new) == ["before", "after"]
    assert list(new.records()) == []


def test_a_folder_of_journals_belongs_to_one_run(tmp_path: Path) -> None:
    folder = tmp_path / "journals"
    folder.mkdir(mode=0o700)
    (folder / "of a killed run.sqlite").touch()
    (folder / "with a folder" / "in it").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path)
    with journals_in(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        Journal(folder / "a.sqlite").add([], [1])
        with pytest.raises(InputError, match="a live run in progress"), journals_in(folder):
            pass
        assert list(Journal(folder / "a.sqlite").records()) == [1]
        assert sorted(path.name[:8] for path in folder.iterdir()) == ["a.sqlite"] * 3 + ["lock"]
    assert not folder.exists()
    assert tmp_path.exists()


@pytest.mark.parametrize("what", ["link", "open to others", "file", "in a file"])
def test_only_a_private_folder_is_used_for_journals(what: str, tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "journals"
    victim.mkdir(mode=0o700)
    (victim / "precious").touch()
    match what:
        case "link":
            folder.symlink_to(victim)
        case "open to others":
            folder.mkdir(mode=0o755)
        case "file":
            folder.touch()
        case "in a file":
            folder = victim / "precious" / "journals"
    with pytest.raises(InputError, match="journals"), journals_in(folder):
        pass
    assert (victim / "precious").exists()
