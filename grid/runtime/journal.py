"""The stable storage of an entity: one SQLite file of pickled objects, in a private folder.

An entry is durable when `add` returns. A checkpoint replaces all entries before it. The process
that opened a journal last owns it: for any other process that still runs, `add` raises
`Superseded`.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from grid.model.errors import InputError, input_error

_TABLES = """
create table if not exists owner (number integer not null);
create table if not exists entry (number integer primary key, body blob not null);
create table if not exists record (number integer primary key, body blob not null);
insert into owner select 0 where not exists (select * from owner);
"""
BUSY_SECONDS = 60.0
LOCK = "lock"
SUFFIX = ".sqlite"

Entry = tuple[bytes, bool]
"""A saved object, pickled, and whether it is a checkpoint."""


class Superseded(Exception):
    """Another process has opened the journal since."""


class Journal:
    """The journal at `path`, made if it is not there.

    `opened` counts how often it was opened, and is the number of its owner.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._db.execute("pragma journal_mode = wal")
        # Synced at every commit, not only when the log is folded into the file.
        self._db.execute("pragma synchronous = full")
        self._db.executescript(
            f"begin immediate; {_TABLES} update owner set number = number + 1; commit"
        )
        (self.opened,) = self._db.execute("select number from owner").fetchone()

    def entries(self) -> list[bytes]:
        """The last checkpoint and the entries after it, in order, pickled."""
        return [body for (body,) in self._db.execute("select body from entry order by number")]

    def records(self) -> Iterator[Any]:
        """All records, in order."""
        for (body,) in self._db.execute("select body from record order by number"):
            yield pickle.loads(body)

    def add(self, entries: Sequence[Entry], records: Sequence[Any]) -> None:
        """Save all in one transaction. Raises Superseded."""
        db = self._db
        db.execute("begin immediate")
        try:
            if db.execute("select number from owner").fetchone() != (self.opened,):
                raise Superseded
            for body, is_checkpoint in entries:
                if is_checkpoint:
                    db.execute("delete from entry")
                db.execute("insert into entry (body) values (?)", (body,))
            bodies = ((pickle.dumps(one, pickle.HIGHEST_PROTOCOL),) for one in records)
            db.executemany("insert into record (body) values (?)", bodies)
            db.execute("commit")
        except BaseException:
            db.execute("rollback")
            raise

    def close(self) -> None:
        self._db.close()


def journal_path(folder: Path, position: int) -> Path:
    """The journal of the entity at a position in the sorted names of a grid."""
    return folder / f"{position:06d}{SUFFIX}"


@contextmanager
def journals_in(folder: Path) -> Iterator[None]:
    """Lock `folder`, private to this user and empty at first, and remove it after the block.

    Its content is that of a run that was killed. Its parent is removed, too, if it was made here
    and is empty. Raises InputError if another run has the folder, or if it cannot be made or is not
    private.
    """
    made = not folder.parent.exists()
    try:
        with _lock(folder):
            try:
                _empty(folder)
                yield
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        if made:
            with suppress(OSError):
                folder.parent.rmdir()


def remove_journals(folder: Path) -> None:
    """Remove the journals of a killed run."""
    if folder.is_dir():
        with suppress(InputError), journals_in(folder):
            pass


def _lock(folder: Path) -> IO[bytes]:
    """The lock of `folder`, a private one, held until it is closed."""
    path = str(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=stat.S_IRWXU)
        found = folder.lstat()
        mode = found.st_mode & ~stat.S_ISGID
        if (mode, found.st_uid) != (stat.S_IFDIR | stat.S_IRWXU, os.geteuid()):
            expected = "a new path, or a folder (no link) that only you can access (mode 700)"
            raise input_error("", "a different file with that name", expected, path)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        held = os.fdopen(os.open(folder / LOCK, flags, 0o600), "wb")
    except OSError as error:
        reason = error.strerror or str(error)
        raise input_error("", reason, "a place for a private folder of journals", path) from None
    try:
        # The kernel releases the lock of a process that is killed.
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise input_error("", "a live run in progress", "no other live run", path) from None
    return held


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()
