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
from dataclasses import dataclass
from typing import Any

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


@dataclass(order=True, slots=True)
class SchedulerTime:
    """Messages to a scheduler of a run, and the real time that they took."""

    place: str
    scheduler: str
    messages: int = 0
    total_s: float = 0.0
    longest_s: float = 0.0


class Schedulers:
    """The external schedulers of a run, or of a process of it."""

    def __init__(self) -> None:
        self._conversations: list[Conversation] = []

    def connect(self, place: str, policy: Any) -> None:
        """Connect the policy of the cluster `place` to its scheduler, if it has one."""
        if isinstance(policy, Batsim):
            conversation = Conversation(place, policy.scheduler)
            self._conversations.append(conversation)
            policy.connect(conversation.ask, place)

    def times(self) -> list[SchedulerTime]:
        """The time of each, by its cluster."""
        return sorted(one.time for one in self._conversations)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Around the run: send its end to the schedulers, and leave no process behind."""
        try:
            yield
            for one in self._conversations:
                one.end()
        finally:
            for one in self._conversations:
                one.close()


class Conversation:
    """Carries messages to the scheduler of the cluster `place`, and its answers back."""

    def __init__(self, place: str, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._said: list[tuple[bytes, bytes]] = []
        shown = scheduler.command or scheduler.endpoint
        self.time = SchedulerTime(place, shown)
        self._last_now = 0.0
        self._peer: _Peer | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_peer": None}

    def ask(self, message: Message) -> Any:
        """The answer to the message. Raises PluginFailed."""
        try:
            return self._ask(message)
        except _Failed as error:
            raise PluginFailed(
                f"cluster {self.time.place}: the scheduler {self.time.scheduler!r} {error}"
            ) from None

    def _ask(self, message: Message) -> Any:
        if self._peer is None:
            self._peer = _Peer(self._scheduler)
            for data, answer in self._said:
                if self._peer.exchange(data) != answer:
                    raise _Failed("replied differently to the same input")
        data = json.dumps(message, separators=(",", ":")).encode()
        started = time.perf_counter()
        answer = self._peer.exchange(data)
        seconds = time.perf_counter() - started
        self.time.messages += 1
        self.time.total_s += seconds
        self.time.longest_s = max(self.time.longest_s, seconds)
        self._last_now = message["now"]
        self._said.append((data, answer))
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise _Failed(f"replied {shorten(answer)}, expected JSON") from None

    def end(self) -> None:
        """Send the end of the run."""
        if self._peer is not None:
            ends = {"timestamp": self._last_now, "type": "SIMULATION_ENDS", "data": {}}
            with suppress(_Failed):
                self._peer.exchange(json.dumps({"now": self._last_now, "events": [ends]}).encode())
            self._peer.wait()

    def close(self) -> None:
        """Close the connection, and kill the process and its children."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None


class _Failed(Exception):
    """What a scheduler did wrong."""


class _Peer:
    """A scheduler that was contacted: its socket, and its process if it was started here."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._patience_s = scheduler.patience_s
        self._socket: Any = None
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._last_lines: deque[str] = deque(maxlen=20)
        try:
            self._connect(scheduler)
        except _Failed:
            self.close()
            raise

    def _connect(self, scheduler: Scheduler) -> None:
        import zmq

        endpoint = scheduler.endpoint
        if not endpoint:
            self._folder = tempfile.TemporaryDirectory(prefix="grid-")
            endpoint = f"ipc://{self._folder.name}/scheduler"
            self._start(scheduler.command, endpoint)
        self._socket = zmq.Context.instance().socket(zmq.REQ)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise _Failed(f"cannot be reached: {error}") from None

    def _start(self, command: str, endpoint: str) -> None:
        try:
            words = [word.replace("{endpoint}", endpoint) for word in shlex.split(command)]
            if shutil.which(words[0]) is None:
                raise _Failed("cannot be started: command not found")
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _Failed(f"cannot be started: {error}") from None
        stream = self._process.stderr
        self._listener = threading.Thread(target=self._listen, args=(stream,), daemon=True)
        self._listener.start()

    def _listen(self, stream: Any) -> None:
        """Keep the last lines of the standard error, which must not block the process."""
        with stream:
            for line in stream:
                text = line.decode(errors="replace").strip()
                if text:
                    self._last_lines.append(text)

    def exchange(self, data: bytes) -> bytes:
        """The answer to a message. Raises _Failed."""
        import zmq

        deadline = time.monotonic() + self._patience_s
        try:
            self._socket.send(data)
            while not self._socket.poll(LOOK_MS):
                if self._process is not None and self._process.poll() is not None:
                    # Its last answer may be in transit.
                    if self._socket.poll(LOOK_MS):
                        break
                    self._listener.join(FAREWELL_SECONDS)
                    last = f": {shorten(self._last_lines[-1], 200)}" if self._last_lines else ""
                    code = self._process.returncode
                    raise _Failed(f"ended with code {code} before the run did{last}")
                if time.monotonic() > deadline:
                    raise _Failed(f"did not reply within {self._patience_s:g} s")
            answer: bytes = self._socket.recv()
            return answer
        except zmq.ZMQError as error:
            raise _Failed(f"cannot be reached: {error}") from None

    def wait(self) -> None:
        """Wait for the end of its process, for a limited time."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(FAREWELL_SECONDS)

    def close(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._listener.join(FAREWELL_SECONDS)
        if self._socket is not None:
            self._socket.close(linger=0)
        if self._folder is not None:
            self._folder.cleanup()


def check_schedulers(grid: Grid, *, live: bool) -> None:
    """Raises InputError for external schedulers in a live run, MissingExtra without pyzmq."""
    for vo in grid.vos:
        for cluster in vo.clusters:
            if not isinstance(grid.policy_of(cluster), Batsim):
                continue
            place = f"cluster {vo.name}/{cluster.name}"
            if live:
                expected = "a run in virtual time: journals lack the state of schedulers"
                raise input_error(f"{place}: policy", "batsim in a live run", expected)
            need(f"policy batsim of {place}", "batsim", "zmq")
