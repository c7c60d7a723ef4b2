"""Compiling for a first run, side by side: processes that fill numba's cache on disk.

numba compiles one function at a time, whatever the threads. What a run needs is compiled in a few
processes of their own, and the run finds it on disk. Without them, it would compile it itself.

A run in virtual time does not wait for them at first. It calls what is not compiled yet as plain
Python, with the same results, and if it is small it is over long before they are. Only what takes
longer than `PLAIN_SECONDS` waits then.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from grid.config.build import Grid
from grid.config.warm_up import warm_ups
from grid.model.compiled import plain_while
from grid.runtime.cpus import usable_cpus
from grid.runtime.outcome import Stage, tell_nobody

FEWEST = 2
"""With less to compile than this, the run does it itself: a process takes a second to start."""
PLAIN_SECONDS = 5.0
"""So much CPU time of its own a process of a run takes without compiled code, before it waits for
it. Such small runs are over by then, and what else the CPUs do takes nothing of it."""
MOST_PLAIN_JOBS = 10_000
"""With more jobs than this a run waits at once: plain Python would be far from its end by then."""
NICENESS = 3
"""Of the processes that compile. With as many of them as CPUs, a run that does not wait has a CPU
of its own; one that does wait has them go on even where all CPUs are busy."""
TICK_SECONDS = 0.05
WORKER = (
    sys.executable,
    # Not from the current folder, where a file of the user's may be called `pickle.py`.
    "-P",
    "-c",
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from grid.runtime.compiling import work; work()",
)
"""The command line of a process that compiles."""


class InterpretedFallback:
    """Says to a process of a run whether to do without compiled code, while `file` is there.

    It is on the machine where the code is compiled; other machines compile what they call.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._until_s: float | None = None
        """Of this process's CPU time."""

    def __call__(self) -> bool:
        while self._file.exists():
            if not self.is_used_up():
                return True
            time.sleep(TICK_SECONDS)
        return False

    def is_used_up(self) -> bool:
        """Whether this process waits from now on, if anything is still being compiled."""
        now_s = time.process_time()
        if self._until_s is None:
            self._until_s = now_s + PLAIN_SECONDS
        return now_s >= self._until_s


class CompilingAhead:
    """What a run needs that was not compiled here before is being compiled, once that has begun."""

    def __init__(self) -> None:
        self._todo: deque[tuple[Path, bytes]] = deque()
        self._all = self._done = self._at_work = 0
        self._counting = threading.Lock()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        self._tell: Stage = tell_nobody
        self._file: Path | None = None
        self._meanwhile: InterpretedFallback | None = None
        self._first = self._is_over = False
        self._waits = False

    def begin(self, grid: Grid, *, first: bool) -> None:
        """Begin to compile what a run of `grid` needs.

        The run waits for it if that is to be `first`, or where it has many jobs.
        """
        self._first = first or sum(grid.jobs_by_vo()) > MOST_PLAIN_JOBS
        if not _is_kept():
            return
        for one in warm_ups(grid):
            mark = _mark(one.name)
            # The run compiles what can't be handed over, such as a class of a notebook.
            with suppress(Exception):
                if not mark.exists():
                    self._todo.append((mark, pickle.dumps(one.call)))
        self._all = len(self._todo)
        if self._all < FEWEST:
            return
        folder = Path(os.environ["NUMBA_CACHE_DIR"])
        file = folder / f"under-way-{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.touch()
        except OSError:
            # Nothing can be kept there, so the run compiles for itself.
            return
        self._file = file
        self._at_work = min(usable_cpus(), self._all)
        self._workers = [_start_worker() for _ in range(self._at_work)]
        self._threads = [
            threading.Thread(target=self._feed, args=(worker,), daemon=True)
            for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left that is being compiled."""
        return self._file is None or not self._file.exists()

    def meanwhile(self, stage: Stage) -> InterpretedFallback | None:
        """What the processes of the run are to ask, with `plain_while`; this one does from now on.

        None where all is compiled. If that is to be first, waits for it, and says how far it is.
        """
        while self._first and not self.is_done:
            stage(self._how_far())
            time.sleep(TICK_SECONDS)
        if self._file is not None and not self.is_done:
            self._meanwhile = InterpretedFallback(self._file)
        return self._meanwhile

    @property
    def was_before(self) -> bool:
        """Whether all was compiled before the run."""
        return self._meanwhile is None

    def run_begins(self, stage: Stage) -> None:
        """Say what is done: running, and how far the compiling is until that is over."""
        self._tell = stage
        self._say()

    def run_is_over(self) -> None:
        """What follows does not wait any more: the results of a small run are few."""
        self._is_over = True

    def is_plain(self) -> bool:
        """Whether this process is to call what is not compiled as plain Python; may wait."""
        if self._meanwhile is None:
            return False
        if not self._waits and self._meanwhile.is_used_up():
            self._waits = True
            self._say()
        return not self.is_done if self._is_over else self._meanwhile()

    def stop(self) -> None:
        self._is_over = True
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
                    break
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
                with self._counting:
                    self._done += 1
                    self._say()
        with self._counting:
            self._at_work -= 1
            if not self._at_work and self._file is not None:
                self._file.unlink(missing_ok=True)
                self._say()

    def _how_far(self) -> str:
        return f"compiling {min(self._done + 1, self._all)} of {self._all}"

    def _say(self) -> None:
        if self._is_over:
            return
        if self.is_done:
            self._tell("running")
        elif self._waits:
            self._tell(f"{self._how_far()}, before the run goes on")
        else:
            self._tell(f"running, {self._how_far()}")


@contextmanager
def compiling_ahead() -> Iterator[CompilingAhead]:
    """What is compiled for a run until the end of the block, which has all that the run does."""
    ahead = CompilingAhead()
    plain_while(ahead.is_plain)
    try:
        yield ahead
    finally:
        plain_while()
        ahead.stop()


def work() -> None:
    """A worker: compile what comes in, a line out for each."""
    os.nice(NICENESS)
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
