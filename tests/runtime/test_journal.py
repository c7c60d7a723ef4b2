"""Journals: what was added is there, old entries go, and only one process at a time adds."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from grid.model.errors import InputError
from grid.model.records import Violation
from grid.runtime.codec import encode
from grid.runtime.journal import Journal, Superseded, entry_of, journals_in


def test_what_was_added_is_there_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.sqlite")
    journal.add([entry_of((1, "one"), False)], [])
    journal.add([entry_of({"two": 2.0}, False), entry_of([3], False)], [encode("first")])
    journal.close()
    again = Journal(tmp_path / "a.sqlite")
    assert again.entries() == [(1, "one"), {"two": 2.0}, [3]]
    assert list(again.records()) == ["first"]


def test_an_entry_that_stands_for_all_takes_their_place(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.sqlite")
    journal.add([entry_of("old", False), entry_of("state", True), entry_of("new", False)], ["1"])
    assert journal.entries() == ["state", "new"]
    assert list(journal.records()) == [1]


def test_who_opened_it_last_owns_it(tmp_path: Path) -> None:
    old = Journal(tmp_path / "a.sqlite")
    old.add([entry_of("before", False)], [])
    new = Journal(tmp_path / "a.sqlite")
    with pytest.raises(Superseded):
        old.add([entry_of("too late", False)], [encode(Violation("x", 1, "y"))])
    new.add([entry_of("after", False)], [])
    assert new.entries() == ["before", "after"]
    assert list(new.records()) == []


def test_a_folder_of_journals_belongs_to_one_run(tmp_path: Path) -> None:
    folder = tmp_path / "journals"
    folder.mkdir(mode=0o700)
    (folder / "of a killed run.sqlite").touch()
    (folder / "with a folder" / "in it").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path)
    with journals_in(folder):
        Journal(folder / "a.sqlite").add([], ["1"])
        with pytest.raises(InputError, match="a live run in progress"), journals_in(folder):
            pass
        assert list(Journal(folder / "a.sqlite").records()) == [1]
        assert sorted(path.name[:8] for path in folder.iterdir()) == ["a.sqlite"] * 3 + ["lock"]
    assert not folder.exists()
    assert tmp_path.exists()


def test_journals_where_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="expected a place"), journals_in(tmp_path / "file" / "j"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_journals_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "journals"
    with journals_in(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["link", "open to others", "file"])
def test_nothing_but_a_private_folder_is_taken_for_journals(what: str, tmp_path: Path) -> None:
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
    with pytest.raises(InputError, match="only you can use"), journals_in(folder):
        pass
    assert (victim / "precious").exists()
    assert folder.exists()


WRITER = """
import sys
from pathlib import Path
from grid.runtime.journal import Journal, entry_of
journal = Journal(Path(sys.argv[1]))
for number in range(10**9):
    journal.add([entry_of(number, False), entry_of(-number, False)], [str(number)])
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_all_that_it_had_added_and_nothing_half(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    for kill in range(3):
        before = len(Journal(path).entries())
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            told = [writer.stdout.readline() for _ in range(5 + kill)]
            os.kill(writer.pid, signal.SIGKILL)
            told += writer.stdout.readlines()
        journal = Journal(path)
        mine = journal.entries()[before:]
        assert len(mine) >= 2 * len([line for line in told if line.endswith("\n")])
        assert mine == [sign * number for number in range(len(mine) // 2) for sign in (1, -1)]
        assert len(list(journal.records())) == (before + len(mine)) // 2
        journal.close()
