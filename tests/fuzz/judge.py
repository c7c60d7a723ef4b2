"""Rules that every command must follow for any input."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer.main
import typer.testing
from typer.testing import CliRunner

from grid.cli.app import app

MOST_LINES = 5
MOST_BYTES = 900 << 20
"""Limit of memory beyond that at the start; a command alone stays under 1 GiB."""
CPU_SECONDS = 20.0
HANGS_SECONDS = 300.0
"""A command that takes longer hangs, under any load."""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.truncate",
    "os.chmod", "os.chown", "shutil.rmtree", "shutil.move", "shutil.copyfile",
}  # fmt: skip
RUNS = {"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pty.spawn"}


class TookTooLong(BaseException):
    """Not an Exception, so that no handler catches it."""


@dataclass(slots=True)
class Verdict:
    """The outcome of a command; `wrong` has a line for each violated rule."""

    code: int
    lines: list[str]
    wrong: list[str] = field(default_factory=list)


class _Watch:
    """Records writes outside the `allowed` folders, and new processes.

    An audit hook cannot be removed, so all commands share one.
    """

    def __init__(self) -> None:
        self.allowed: tuple[str, ...] | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._record)

    def _record(self, event: str, args: tuple[Any, ...]) -> None:
        if self.allowed is None:
            return
        if event in RUNS:
            self.seen.append(f"{event} {args[:1]}")
        elif event == "open" and isinstance(args[2], int) and args[2] & WRITES:
            self._look(event, args[:1])
        elif event in CHANGES:
            self._look(event, args[:2])

    def _look(self, event: str, paths: Sequence[Any]) -> None:
        for path in paths:
            if isinstance(path, str | bytes | os.PathLike):
                # Calls of `Path` would be recorded, too.
                real = os.path.abspath(os.fsdecode(path))  # noqa: PTH100
                if not real.startswith(self.allowed or ()):
                    self.seen.append(f"{event} {real}")


_watch: list[_Watch] = []


@contextlib.contextmanager
def watched(*folders: Path) -> Iterator[list[str]]:
    """Yields the changes outside `folders` and the caches of the compiler, and new processes."""
    if not _watch:
        _watch.append(_Watch())
    cache = os.environ.get("NUMBA_CACHE_DIR", "")
    own = [str(folder.resolve()) for folder in folders]
    grid = str(Path(sys.modules["grid"].__file__ or "").parent)
    _watch[0].allowed = (*own, *([cache] if cache else []), grid, "/dev/null")
    _watch[0].seen = seen = []
    try:
        yield seen
    finally:
        _watch[0].allowed = None


@contextlib.contextmanager
def limited(
    cpu_seconds: float = CPU_SECONDS, hangs_seconds: float = HANGS_SECONDS
) -> Iterator[None]:
    """Raise TookTooLong after these times; end the process if that has no effect."""

    def stop(*_: object) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGPROF, stop), signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    signal.setitimer(signal.ITIMER_REAL, hangs_seconds)
    faulthandler.dump_traceback_later(2 * hangs_seconds + 60, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])


@contextlib.contextmanager
def undrawn() -> Iterator[None]:
    """Do not draw charts, which takes a hundred times as long as all the rest."""
    import vl_convert

    drawing = vl_convert.vegalite_to_svg, vl_convert.svg_to_png
    vl_convert.vegalite_to_svg = lambda *_, **__: "<svg/>"
    vl_convert.svg_to_png = lambda *_, **__: b""
    try:
        yield
    finally:
        vl_convert.vegalite_to_svg, vl_convert.svg_to_png = drawing


def peak_bytes(*, reset: bool = False) -> int:
    """The peak memory of this process since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def judged(command: Sequence[str], *folders: Path) -> Verdict:
    """Run `grid COMMAND` in this process. It may change files in `folders` only.

    Memory counts from that of this process, which runs other tests, too.
    """
    peak_bytes(reset=True)
    before = peak_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with watched(*folders) as seen, _commands_made_once():
            verdict = _run(lambda: CliRunner().invoke(app, list(command)))
    verdict.wrong += [f"outside of the run's folder: {one}" for one in seen]
    grown = peak_bytes() - before
    if grown > MOST_BYTES:
        verdict.wrong.append(f"{grown >> 20} MiB of memory")
    return verdict


@contextlib.contextmanager
def _commands_made_once() -> Iterator[None]:
    """Cache the commands of the app: to build them takes four times as long as a small check."""
    made: Any = typer.testing
    before = made._get_command
    made._get_command = _command_of
    try:
        yield
    finally:
        made._get_command = before


@functools.cache
def _command_of(app: typer.Typer) -> Any:
    return typer.main.get_command(app)


def _run(invoke: Callable[[], Any]) -> Verdict:
    began = time.process_time()
    try:
        with limited(CPU_SECONDS):
            done = invoke()
    except TookTooLong:
        return Verdict(-1, [], [f"no end after {time.process_time() - began:.0f} s of CPU"])
    lines = done.stderr.splitlines()
    verdict = Verdict(done.exit_code, lines)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        place = done.exception.__traceback__
        while place.tb_next is not None:
            place = place.tb_next
        where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
        verdict.wrong.append(f"a traceback: {done.exception!r:.300} at {where}")
    if done.exit_code not in (0, 1, 2):
        verdict.wrong.append(f"exit code {done.exit_code}")
    if len(lines) > MOST_LINES:
        verdict.wrong.append(f"{len(lines)} lines: {lines[0]}")
    if done.exit_code and not lines:
        verdict.wrong.append("no message")
    return verdict


def private_folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder for one input."""
    return tempfile.TemporaryDirectory(prefix="grid-fuzz-")
