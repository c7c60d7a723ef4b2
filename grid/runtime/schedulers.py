"""External schedulers of clusters with policy `batsim`: processes and their ZeroMQ sockets.

An error of a scheduler ends the run, with a line that names it. After a return to a checkpoint, the
scheduler is started again and receives all messages so far; if it answers differently, the run
fails.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from grid.config.build import Grid
from grid.model.errors import PluginFailed, input_error, need, shorten
from grid.policies.batsim.policy import Batsim, Message, Scheduler

LOOK_MS = 100
"""How often to see whether a scheduler that has not answered still runs."""
FAREWELL_SECONDS = 5.0
_DIE_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Becomes the scheduler, which ends when the one that started it does, however that comes."""


class SchedulerTime(NamedTuple):
    """What a scheduler cost a run, on the real clock."""

    place: str
    scheduler: str
    messages: int
    total_s: float
    longest_s: float


class Schedulers:
    """The conversations of a run, or of a process of it."""

    def __init__(self) -> None:
        self._conversations: list[Conversation] = []

    def connect(self, place: str, policy: Any) -> None:
        """If the policy of the cluster `place` needs a scheduler, let it have one."""
        if isinstance(policy, Batsim):
            conversation = Conversation(place, policy.scheduler)
            self._conversations.append(conversation)
            policy.connect(conversation.ask, place)

    def times(self) -> list[SchedulerTime]:
        """What each cost, by its cluster."""
        return sorted(one.time for one in self._conversations)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Around the run: send its end to the schedulers, and leave no process behind."""
        try:
            yield
            for one in self._conversations:
                one.say_farewell()
        finally:
            for one in self._conversations:
                one.close()


class Conversation:
    """Carries messages to the scheduler of the cluster `place`, and its answers back."""

    def __init__(self, place: str, scheduler: Scheduler) -> None:
        self._place = place
        self._scheduler = scheduler
        self._said: list[tuple[bytes, bytes]] = []
        self._total_s = self._longest_s = 0.0
        self._messages = 0
        self._last_now = 0.0
        self._set_idle()

    def _set_idle(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: Any = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._last_lines: deque[str] = deque(maxlen=20)

    def __getstate__(self) -> dict[str, Any]:
        live = ("_process", "_socket", "_folder", "_listener", "_last_lines")
        return {name: value for name, value in vars(self).items() if name not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_idle()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    @property
    def time(self) -> SchedulerTime:
        shown = self._scheduler.command or self._scheduler.endpoint
        return SchedulerTime(self._place, shown, self._messages, self._total_s, self._longest_s)

    def ask(self, message: Message) -> Any:
        """The answer to the message. Raises PluginFailed."""
        if self._socket is None:
            self._open()
        data = json.dumps(message, separators=(",", ":")).encode()
        started = time.perf_counter()
        answer = self._exchange(data)
        seconds = time.perf_counter() - started
        self._messages += 1
        self._total_s += seconds
        self._longest_s = max(self._longest_s, seconds)
        self._last_now = message["now"]
        self._said.append((data, answer))
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise self._failed(f"replied {shorten(answer)}, expected JSON") from None

    def say_farewell(self) -> None:
        """The run is over."""
        if self._socket is None:
            return
        ends = {"timestamp": self._last_now, "type": "SIMULATION_ENDS", "data": {}}
        with suppress(PluginFailed):
            self._exchange(json.dumps({"now": self._last_now, "events": [ends]}).encode())
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(FAREWELL_SECONDS)

    def close(self) -> None:
        """Close the socket, and kill the process and its children."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._listener.join(FAREWELL_SECONDS)
            self._process = None
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _open(self) -> None:
        import zmq

        endpoint = self._scheduler.endpoint
        if not endpoint:
            self._folder = tempfile.TemporaryDirectory(prefix="grid-")
            endpoint = f"ipc://{self._folder.name}/scheduler"
            self._start(endpoint)
        self._socket = zmq.Context.instance().socket(zmq.REQ)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise self._failed(f"cannot be contacted: {error}") from None
        for data, answer in self._said:
            if self._exchange(data) != answer:
                raise self._failed("replied differently to the same input")

    def _start(self, endpoint: str) -> None:
        words = [word.replace("{endpoint}", endpoint) for word in self._words()]
        if shutil.which(words[0]) is None:
            raise self._failed("cannot be started: there is no such command")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise self._failed(f"cannot be started: {error}") from None
        stream = self._process.stderr
        self._listener = threading.Thread(target=self._listen, args=(stream,), daemon=True)
        self._listener.start()

    def _words(self) -> list[str]:
        try:
            return shlex.split(self._scheduler.command)
        except ValueError as error:
            raise self._failed(f"cannot be started: {error}") from None

    def _listen(self, stream: Any) -> None:
        """Keep the last lines of what it says, and never let it wait to be heard."""
        with stream:
            for line in stream:
                text = line.decode(errors="replace").strip()
                if text:
                    self._last_lines.append(text)

    def _exchange(self, data: bytes) -> bytes:
        import zmq

        patience_s = self._scheduler.patience_s
        deadline = time.monotonic() + patience_s
        try:
            self._socket.send(data)
            while not self._socket.poll(LOOK_MS):
                if self._process is not None and self._process.poll() is not None:
                    # What it said before it went may still be under way.
                    if self._socket.poll(LOOK_MS):
                        break
                    raise self._failed(self._last_words())
                if time.monotonic() > deadline:
                    raise self._failed(f"did not reply within {patience_s:g} s")
            answer: bytes = self._socket.recv()
            return answer
        except zmq.ZMQError as error:
            raise self._failed(f"cannot be contacted: {error}") from None

    def _last_words(self) -> str:
        assert self._process is not None
        self._listener.join(FAREWELL_SECONDS)
        last = f": {shorten(self._last_lines[-1], 200)}" if self._last_lines else ""
        return f"ended with code {self._process.returncode} before the run did{last}"

    def _failed(self, what: str) -> PluginFailed:
        shown = self._scheduler.command or self._scheduler.endpoint
        return PluginFailed(f"cluster {self._place}: the scheduler {shown!r} {what}")


def check_schedulers(grid: Grid, *, live: bool) -> None:
    """Raises InputError where the grid's schedulers cannot be asked in such a run.

    MissingExtra where they could not be spoken to in any.
    """
    for vo in grid.vos:
        for cluster in vo.clusters:
            if not isinstance(grid.policy_of(cluster), Batsim):
                continue
            place = f"cluster {vo.name}/{cluster.name}"
            if live:
                expected = "a run in virtual time: journals lack the state of schedulers"
                raise input_error(f"{place}: policy", "batsim in a live run", expected)
            need(f"policy batsim of {place}", "batsim", "zmq")
