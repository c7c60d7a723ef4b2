"""The page of a run in progress, served by a process of its own so as not to slow it down.

A thread of the run passes looks to that process. While the thread is blocked, the run is not
looked at and continues.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from grid.model.errors import RunFailed
from grid.model.interventions import Action
from grid.results.look import Beginning, Look
from grid.runtime.progress import Display, RunProgress

LOOK_SECONDS = 0.25
"""Least real time between two looks."""
MAX_SHARE = 0.01
"""Of the run's time that is spent on looks."""
START_SECONDS = 60.0
NICENESS = 5
END_SECONDS = 1.5
"""For which pages are still served after the end, so that they show it."""


class LivePage(RunProgress):
    """Shows a run on a page, and its progress on a display; `show_address` gets the address."""

    wants_looks = True

    def __init__(
        self, connection: Connection, show_address: Callable[[str], None], display: Display
    ) -> None:
        super().__init__(display)
        self._connection = connection
        self._show_address = show_address
        self._outbox: queue.Queue[Look | None] = queue.Queue()
        self._next = self._asked = 0.0
        self._sender = threading.Thread(target=self._send, daemon=True)

    def begin(self, beginning: Beginning) -> None:
        """Show the run. Raises RunFailed if its page cannot be served."""
        try:
            self._connection.send(beginning)
            found = self._connection.recv() if self._connection.poll(START_SECONDS) else None
        except (EOFError, OSError):
            found = None
        if not isinstance(found, str):
            raise RunFailed(f"its page cannot be served: {found or 'the server did not start'}")
        self._show_address(found)
        self._sender.start()

    def is_due(self) -> bool:
        self._asked = time.monotonic()
        return self._asked >= self._next and not self._outbox.unfinished_tasks

    def look(self, look: Look) -> None:
        self._outbox.put(look)
        now = time.monotonic()
        self._next = now + max(LOOK_SECONDS, (now - self._asked) / MAX_SHARE)

    def requests(self) -> list[Action]:
        """The interventions that the page requested since the last call."""
        requested: list[Action] = []
        with suppress(EOFError, OSError):
            while self._connection.poll():
                requested.append(self._connection.recv())
        return requested

    def end(self) -> None:
        """Pass on what is left; no look follows."""
        self._outbox.put(None)
        if self._sender.is_alive():
            self._sender.join(END_SECONDS)

    def _send(self) -> None:
        # A server that has ended does not affect the run.
        with suppress(OSError):
            while (look := self._outbox.get()) is not None:
                self._connection.send(look)
                self._outbox.task_done()


@contextmanager
def live_page(
    show_address: Callable[[str], None], display: Display, port: int = 0
) -> Iterator[LivePage]:
    """A page that shows what runs in the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs, port), daemon=True)
    server.start()
    theirs.close()
    page = LivePage(ours, show_address, display)
    try:
        yield page
    finally:
        page.end()
        ours.close()
        server.join(2 * END_SECONDS)
        server.kill()
        server.join()


def _serve(connection: Connection, port: int) -> None:
    """Serve the page of the run that the connection reports, until it is closed."""
    # Ctrl-C is for the run, which ends this process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # The run has priority.
    os.nice(NICENESS)
    from grid.integrations.watch.server import Page
    from grid.integrations.watch.views import Running

    with suppress(EOFError, OSError):
        view = Running(connection.recv(), connection.send)
        try:
            page = Page(view, port)
        except OSError as error:
            connection.send(error)
            return
        connection.send(page.address)
        serving = threading.Thread(target=page.serve, daemon=True)
        serving.start()
        with suppress(EOFError):
            while True:
                view.take(connection.recv())
        time.sleep(END_SECONDS)
        page.end()
        serving.join(END_SECONDS)
