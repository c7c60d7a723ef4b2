"""Compiling before a first run, side by side: processes that fill numba's cache on disk.

numba compiles one function at a time, whatever the threads. What a run needs is compiled in a few
processes of their own, and the run finds it on disk. Without them, it would compile it itself.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from grid.runtime.outcome import Stage
from grid.scenario.build import Grid
from grid.scenario.warm_up import warm_ups

FEWEST = 2
"""With less to compile than this, the run does it itself: a process takes a second to start."""
TICK_SECONDS = 0.1
WORKER = (
    sys.executable,
    "-c",
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from grid.runtime.compiling import work; work()",
)
"""The command line of a process that compiles."""


class CompilingAhead:
    """What `grid` needs that was not compiled here before is being compiled."""

    def __init__(self, grid: Grid) -> None:
        self._todo: deque[tuple[Path, bytes]] = deque()
        for one in warm_ups(grid):
            mark = _mark(one.name)
            # The run compiles what can't be handed over, such as a class of a notebook.
            with suppress(Exception):
                if not mark.exists():
                    self._todo.append((mark, pickle.dumps(one.call)))
        self._all = len(self._todo)
        self._done = 0
        count = min(os.cpu_count() or 1, self._all) if self._all >= FEWEST else 0
        self._workers = [_start_worker() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._feed, args=(worker,), daemon=True)
            for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, stage: Stage) -> None:
        """Until all is compiled; says how far it is."""
        while any(thread.is_alive() for thread in self._threads):
            stage(f"compiling {min(self._done + 1, self._all)} of {self._all}")
            time.sleep(TICK_SECONDS)

    def stop(self) -> None:
        self._todo.clear()
        for worker, thread in zip(self._workers, self._threads, strict=True):
            worker.kill()
            thread.join()
            with suppress(BrokenPipeError):
                worker.communicate()

    def _feed(self, worker: subprocess.Popen[bytes]) -> None:
        """Hand over one after the other, until there is no more or the worker has died."""
        assert worker.stdin is not None and worker.stdout is not None
        with suppress(OSError, IndexError):
            pickle.dump(sys.path, worker.stdin)
            while self._todo:
                mark, call = self._todo.popleft()
                worker.stdin.write(call)
                worker.stdin.flush()
                if not worker.stdout.readline():
                    return
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
                self._done += 1


@contextmanager
def compiling_ahead(grid: Grid, wanted: bool) -> Iterator[Callable[[Stage], None]]:
    """Begin, if that is wanted, to compile what a run of `grid` needs.

    What it gives is to be called before the run, and waits for it.
    """
    if not wanted or not _is_kept():
        yield compiled_already
        return
    ahead = CompilingAhead(grid)
    try:
        yield ahead.wait
    finally:
        ahead.stop()


def compiled_already(stage: Stage) -> None:
    """Where nothing is compiled ahead there is nothing to wait for."""


def work() -> None:
    """A worker: compile what comes in, a line out for each."""
    while True:
        try:
            call = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        call()
        print(flush=True)


def _start_worker() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _is_kept() -> bool:
    """Whether anything is compiled at all, and kept on disk in a folder of ours."""
    plain = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return not plain and "NUMBA_CACHE_DIR" in os.environ


def _mark(name: str) -> Path:
    """A file beside what is compiled that says that this has been."""
    digest = hashlib.sha256(f"{version('numba')} {name}".encode()).hexdigest()
    return Path(os.environ["NUMBA_CACHE_DIR"]) / f"whole-{digest[:16]}"
