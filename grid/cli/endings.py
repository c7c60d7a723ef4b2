"""How every command ends: its exit code, one line for each error, and interruptions."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import NoReturn

import typer

from grid.model.errors import (
    ErrorLine,
    InputError,
    InvalidPlugin,
    OutOfMemory,
    PluginFailed,
    RunFailed,
)

MAX_LINES = 5
"""Of the errors of one command."""
PATIENCE_SECONDS = 10.0
"""After an interruption, the time to clean up in which others are ignored."""
NOTHING_WRITTEN = "interrupted. Nothing was written."


class ExitCode(IntEnum):
    """The exit codes of all commands, with their meanings."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = 0, "Success, or a live run that `--time-limit` ended."
    FAILED = (
        1,
        "Failure: a run, plugin or check failed, the disk is full, or Ray did not start. The last "
        "lines give the reason.",
    )
    WRONG_INPUT = (
        2,
        "Invalid input: an unknown or invalid file, key, option, job or Ray cluster. Up to five "
        "lines give the file, line, key, value found and value expected. Nothing was run.",
    )
    INTERRUPTED = (
        130,
        "Ctrl-C or SIGTERM. The last line states which results are kept and how to continue.",
    )


class _Interrupts:
    """SIGINT and SIGTERM as KeyboardInterrupt."""

    received = False
    _ignored_until = 0.0

    def handle(self, *_: object) -> None:
        self.received = True
        now = time.monotonic()
        if now >= self._ignored_until:
            self._ignored_until = now + PATIENCE_SECONDS
            raise KeyboardInterrupt

    def lost(self, lost: sys.UnraisableHookArgs) -> None:
        """End at once after an interruption in a C callback, which Python would discard.

        The compiler has such callbacks; an interruption there would leave a function uncompiled.
        """
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(lost)
            return
        os.write(2, f"{NOTHING_WRITTEN}\n".encode())
        os._exit(ExitCode.INTERRUPTED)


_interrupts = _Interrupts()


def handle_interrupts() -> None:
    """Raise KeyboardInterrupt on SIGINT, and on SIGTERM, which batch systems send to end jobs."""
    signal.signal(signal.SIGTERM, _interrupts.handle)
    # A shell may start a background process with SIGINT ignored.
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupts.handle)
    sys.unraisablehook = _interrupts.lost
    # Registered first, so called last: the interpreter then restores handlers that end the process.
    atexit.register(_ignore_signals)


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def is_interruption(error: BaseException) -> bool:
    """Whether the cause is an unreported interruption, which libraries may have converted."""
    reported = isinstance(error, typer.Exit | typer.Abort | SystemExit)
    return isinstance(error, KeyboardInterrupt) or (_interrupts.received and not reported)


@contextmanager
def endings(
    interrupted: Callable[[], str] | None = None,
    folder: Path | None = None,
    *,
    traceback: bool = False,
) -> Iterator[None]:
    """Turn errors into lines on stderr and exit codes.

    `interrupted` returns what is kept after an interruption. `folder` is named if the system does
    not name the file that could not be written. `traceback` shows where a plugin failed.
    """
    try:
        yield
    except InputError as error:
        wrong(lines_of(error, traceback=traceback))
    except InvalidPlugin as error:
        wrong([str(error)])
    except RunFailed as error:
        details = [error.details] if traceback and isinstance(error, PluginFailed) else []
        failed([str(error), *filter(None, details)])
    except MemoryError:
        failed([str(OutOfMemory("no run was in progress"))])
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise  # Such as `| head`: Typer ends silently.
        reason = error.strerror or str(error)
        if error.filename is not None:
            reason = f"{error.filename}: {reason}"
        elif folder is not None:
            reason = f"{folder}: could not be written: {reason}"
        failed([reason])
    except (KeyboardInterrupt, Exception) as error:
        if not is_interruption(error):
            raise
        kept = f"interrupted. {interrupted()}" if interrupted is not None else NOTHING_WRITTEN
        _end([kept], ExitCode.INTERRUPTED)


def runs_left(folder: Path) -> str:
    """What an interrupted sweep leaves in its folder."""
    if any(folder.rglob("runs/*.json")):
        return f"Finished runs are in {folder}; repeat the command to continue."
    return "No run was finished; repeat the command to start again."


@contextmanager
def naming_options(*arguments: str) -> Iterator[None]:
    """Report errors in these arguments under the names of their options."""
    try:
        yield
    except InputError as error:
        for number, one in enumerate(error.errors):
            if one.file in arguments:
                error.errors[number] = replace(one, file=f"--{one.file}")
        raise


def lines_of(error: InputError, *, traceback: bool = False) -> list[str]:
    """A line for each error, and with `traceback` the traceback of a plugin's error.

    An error that one line of a file causes at several paths, by `count` or an alias, is reported
    once.
    """
    alike: dict[tuple[object, ...], list[ErrorLine]] = {}
    for one in error.errors:
        field, expected = (re.sub(r"\.\d+(?=\.)", "", text) for text in (one.field, one.expected))
        alike.setdefault((one.file, one.line, field, one.found, expected), []).append(one)
    lines = []
    many = len(alike) > MAX_LINES
    for first, *others in list(alike.values())[: MAX_LINES - many]:
        lines.append(f"{first}{'  (and elsewhere)' if others else ''}")
        if traceback and first.details:
            lines.append(first.details)
    if many:
        lines.append(f"and {len(alike) - MAX_LINES + 1} more errors")
    return lines


def wrong(lines: list[str]) -> NoReturn:
    _end(lines, ExitCode.WRONG_INPUT)


def failed(lines: list[str]) -> NoReturn:
    _end(lines, ExitCode.FAILED)


def _end(lines: list[str], code: ExitCode) -> NoReturn:
    for line in lines:
        typer.echo(line, err=True)
    raise typer.Exit(code) from None
