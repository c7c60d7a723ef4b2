"""How every command ends: its exit code, and a line for what went wrong."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from types import FrameType
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


class ExitCode(IntEnum):
    """The exit codes of all commands, with their meanings."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = 0, "Everything that was asked for is done, or a live run was ended by `--time-limit`."
    FAILED = (
        1,
        "Something could not be done: a run or a part failed, a rule was broken, a disk was full, "
        "Ray did not start. What and why stands in the last lines.",
    )
    WRONG_INPUT = (
        2,
        "The input is wrong: a file, a key, an option; or what it names is not there, such as a "
        "job or a Ray cluster. There is a line for each mistake, in all at most five: file, line, "
        "key, what was found, what was expected. Nothing was run.",
    )
    INTERRUPTED = 130, "Ctrl-C or SIGTERM. The last line says what is kept, and how to go on."


PATIENCE_SECONDS = 10.0
"""After an interruption, the time to clean up in which no other one is heard."""


AGAIN_SECONDS = 0.05

_NOT_TO_BE_BROKEN_OFF = ("llvmlite.", "numba.")
"""Modules of the compiler. Broken off, even where it only reads what was compiled before, they may
leave a function without code, and a call of that is a crash."""


class _Interrupts:
    """SIGINT and SIGTERM as KeyboardInterrupt; `heard` if there was one.

    Once a command `works`, it says itself what is left after one.
    """

    heard = works = False
    _deaf_until = 0.0

    def hear(self, _: int, frame: FrameType | None) -> None:
        self.heard = True
        now = time.monotonic()
        if now < self._deaf_until:
            return
        if _makes_code(frame):
            self._say_again()
            return
        self._deaf_until = now + PATIENCE_SECONDS
        raise KeyboardInterrupt

    def lost(self, lost: sys.UnraisableHookArgs) -> None:
        """One that came in a callback of C, such as the compiler's, ends nothing: say it again."""
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(lost)
            return
        self._deaf_until = 0.0
        self._say_again()

    @staticmethod
    def _say_again() -> None:
        again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGTERM))
        again.daemon = True
        again.start()


def _makes_code(frame: FrameType | None) -> bool:
    """Whether the compiler turns a function into machine code there, or reads it from its cache."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_NOT_TO_BE_BROKEN_OFF):
            return True
        frame = frame.f_back
    return False


_interrupts = _Interrupts()


def hear_interrupts() -> None:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt: batch systems end a job by SIGTERM.

    Many press Ctrl-C twice, and the second must not break off what cleans up after the first.
    """
    signal.signal(signal.SIGTERM, _interrupts.hear)
    # A shell that starts something in the background may have it ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupts.hear)
    sys.unraisablehook = _interrupts.lost


def hear_no_more() -> None:
    """From now on SIGINT and SIGTERM change nothing: all is done, or told, and Python ends.

    It leaves them to the system then, and the exit code would be theirs.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) == _interrupts.hear:
            signal.signal(number, signal.SIG_IGN)


def is_interruption(error: BaseException) -> bool:
    """Whether that is one, not told yet. What was interrupted may come out as any error."""
    told = isinstance(error, typer.Exit | typer.Abort | SystemExit) or not _interrupts.heard
    return isinstance(error, KeyboardInterrupt) or not told


def tell_interruption() -> None:
    """Of one that came before a command began to work, or when its work was done."""
    typer.echo(
        "interrupted." if _interrupts.works else "interrupted. Nothing was written.", err=True
    )


MOST_LINES = 5
"""On the mistakes of one file: as many as anybody reads."""


@contextmanager
def endings(
    interrupted: str | Callable[[], str] = "Nothing was written.",
    folder: Path | None = None,
    *,
    traceback: bool = False,
) -> Iterator[None]:
    """Around the work of a command: errors become lines on stderr and exit codes.

    `interrupted` says what is left after an interruption, or finds it out then. `folder` is where a
    file could not be written that the system does not name. With `traceback`, a part that was
    plugged in shows where it failed.
    """
    _interrupts.works = True
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
        failed([str(OutOfMemory("no run was going on"))])
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            # Such as `| head`: the command ends without a word, as others do.
            raise
        said = error.strerror or str(error)
        if error.filename is not None:
            said = f"{error.filename}: {said}"
        elif folder is not None:
            said = f"{folder}: could not be written: {said}"
        failed([said])
    except (KeyboardInterrupt, Exception) as error:
        if not is_interruption(error):
            raise
        left = interrupted if isinstance(interrupted, str) else interrupted()
        typer.echo(f"interrupted. {left}", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def runs_left(folder: Path) -> str:
    """What is left in the folder of a sweep, or of several, after an interruption."""
    if any(folder.rglob("runs/*.json")):
        return f"Finished runs are in {folder}; the same command goes on."
    return "No run was finished; the same command begins again."


@contextmanager
def naming_options(*arguments: str) -> Iterator[None]:
    """Mistakes in these arguments of what is called become ones in options of their names."""
    try:
        yield
    except InputError as error:
        raise InputError(
            [
                replace(one, file=f"--{one.file}") if one.file in arguments else one
                for one in error.errors
            ]
        ) from None


@contextmanager
def naming_folder(folder: Path) -> Iterator[None]:
    """What the system cannot write, and gives no name, becomes RunFailed with that of the folder.

    So it is told after the display is gone, as the last line.
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        said = error.strerror or str(error)
        raise RunFailed(f"{folder}: could not be written: {said}") from None


def _nobody_reads() -> bool:
    """Whether standard output is a pipe whose reader has gone."""
    poll = select.poll()
    poll.register(1, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def lines_of(error: InputError, *, traceback: bool = False) -> list[str]:
    """A line for each mistake; with `traceback`, what is known of the part that made it, too.

    What one line of a file has done at several places, by `count` or an alias, is told once.
    """
    alike: dict[tuple[object, ...], list[ErrorLine]] = {}
    for one in error.errors:
        field, expected = (re.sub(r"\.\d+(?=\.)", "", text) for text in (one.field, one.expected))
        alike.setdefault((one.file, one.line, field, one.found, expected), []).append(one)
    lines = []
    many = len(alike) > MOST_LINES
    for first, *others in list(alike.values())[: MOST_LINES - many]:
        lines.append(f"{first}{' (and at other places)' if others else ''}")
        if traceback and first.details:
            lines.append(first.details)
    if many:
        lines.append(f"and {len(alike) - MOST_LINES + 1} more")
    return lines


def wrong(lines: list[str]) -> NoReturn:
    """Print mistakes of the user and end."""
    _end(lines, ExitCode.WRONG_INPUT)


def failed(lines: list[str]) -> NoReturn:
    """Print what could not be done and end."""
    _end(lines, ExitCode.FAILED)


def _end(lines: list[str], code: ExitCode) -> NoReturn:
    for line in lines:
        typer.echo(line, err=True)
    raise typer.Exit(code) from None
