"""Ray's own processes: kept from signals that mean us, and watched while we need them."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import ray
import ray._private.services

from grid.model.errors import RunFailed

_services: Any = ray._private.services

WATCH_SECONDS = 0.5
KNOCK_SECONDS = 5.0
NEEDED = ("gcs_server", "raylet")
MOST_PUT_OFF_SECONDS = 10.0
MOST_SILENT = 4
"""A cluster whose control process lets nobody in so many times in a row is gone."""


ENDED = (
    "a process of Ray has ended, without which it cannot go on: it was killed, or the machine had "
    "no memory; run it again, or with --in-process, which needs no Ray"
)

_ended = threading.Event()


class RayFailed(RunFailed):
    """Ray, or the machine under it, gave up in the middle of a run."""


@contextmanager
def own_groups() -> Iterator[list[int]]:
    """Processes that Ray starts meanwhile are not told to end when our process group is.

    They end with us, who need them until all is cleaned up. Gives the groups that they lead.
    """
    given = _services.ConsolePopen
    groups: list[int] = []

    def apart(*arguments: Any, **options: Any) -> Any:
        process = given(*arguments, process_group=0, **options)
        groups.append(process.pid)
        return process

    _services.ConsolePopen = apart
    try:
        yield groups
    finally:
        _services.ConsolePopen = given


def end(groups: list[int]) -> None:
    """End what is left of these process groups: some of Ray outlives the rest for a minute."""
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def keep_own_handler(number: signal.Signals) -> None:
    """Have Python handle a signal again, as before Ray, which shows a stack of its own for it."""
    handler = signal.getsignal(number)
    if callable(handler) and threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)


@contextmanager
def put_off(*numbers: signal.Signals) -> Iterator[None]:
    """Signals that come meanwhile are handled at the end, or at once if that is long in coming.

    For Ray, broken off while it ends, ends again at the exit of Python and changes its exit code.
    In another thread than the main one, which handles signals, nothing changes.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    latest = time.monotonic() + MOST_PUT_OFF_SECONDS
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if callable(handler) and time.monotonic() > latest:
            handler(number, frame)
        came.append(number)

    in_main = threading.current_thread() is threading.main_thread()
    ours = [number for number, handler in before.items() if in_main and callable(handler)]
    for number in ours:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
        if came:
            signal.raise_signal(came[0])


@contextmanager
def silenced() -> Iterator[None]:
    """What is written to the standard error meanwhile, by Ray's C++, is lost."""
    sys.stderr.flush()
    kept = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def watched() -> Iterator[None]:
    """Raises RayFailed soon after a process that Ray cannot do without has ended.

    Within the block that is a KeyboardInterrupt, for Ray lets no other error out of its waiting;
    who catches it has to ask `has_ended` first. Ray itself goes on for a minute, and then ends this
    process in the middle of whatever it does. In another thread than the main one nothing is
    watched, for there nothing can be raised.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    main, over, gone = threading.get_ident(), threading.Event(), _gone()
    _ended.clear()

    def watch() -> None:
        while not over.wait(WATCH_SECONDS):
            if gone():
                _ended.set()
                signal.pthread_kill(main, signal.SIGUSR1)
                return

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        # Whatever went wrong, that is why.
        if has_ended():
            raise RayFailed(ENDED) from None
        raise
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


def has_ended() -> bool:
    """Whether Ray has ended in the middle of a run, of which there is no result then."""
    return _ended.is_set()


def _gone() -> Callable[[], bool]:
    """What tells whether Ray has ended: by its processes here, else by its control process."""
    node: Any = ray._private.worker._global_node
    if node.all_processes:
        return lambda: any(kind in NEEDED for kind, _ in node.dead_processes())
    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    silent = 0

    def lets_nobody_in() -> bool:
        nonlocal silent
        try:
            socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()
            silent = 0
        except OSError:
            silent += 1
        return silent >= MOST_SILENT

    return lets_nobody_in
