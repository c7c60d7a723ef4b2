"""The page of a run that goes on: served by a process of its own, so that the run is not slowed.

The run hands over its looks to a thread that passes them on. While that one still waits for the
other process, the run is not looked at, and goes on. The other process tells it whether anybody
has the page open: where nobody has, it is looked at seldom.
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
from typing import Any, NamedTuple

from grid.model.errors import RunFailed
from grid.model.interventions import Asked
from grid.results.look import Beginning, Look
from grid.results.sweep_look import SweepBeginning, SweepNews

LOOK_SECONDS = 0.25
UNSEEN_SECONDS = 2.0
"""Between two looks, in real time: while somebody has the page open, and while nobody has."""
MOST_SHARE = 0.01
"""So much of its time a run spends on being looked at, and waits with the next look otherwise."""
STARTING_SECONDS = 60.0
NICENESS = 5
LAST_SECONDS = 1.5
"""After a run, pages have so long to see how it ended."""
AWAY_SECONDS = 5.0
"""A page that asked nothing for so long is not open, or nobody sees it."""


class Address(str):
    """Where a page is."""


class Audience(NamedTuple):
    """Whether anybody has the page open."""

    is_there: bool


class PageBeside:
    """Watches a run, and shows it on a page; `say` is told its address when the run begins."""

    def __init__(self, connection: Connection, say: Callable[[str], None]) -> None:
        self._connection = connection
        self._say = say
        self._outbox: queue.Queue[Look | SweepNews | None] = queue.Queue()
        self._next = self._last_asked = 0.0
        self._last_look = float("-inf")
        self._is_seen = False
        self._wishes: list[Asked] = []
        self._sender = threading.Thread(target=self._send, daemon=True)

    def tell(self, told: SweepBeginning | SweepNews) -> None:
        """Show a sweep, first its beginning. Raises RunFailed where its page cannot be served."""
        if isinstance(told, SweepBeginning):
            self.begin(told)
        else:
            self._outbox.put(told)

    def begin(self, beginning: Beginning | SweepBeginning) -> None:
        """Show the run. Raises RunFailed where its page cannot be served."""
        try:
            self._connection.send(beginning)
            found = self._connection.recv() if self._connection.poll(STARTING_SECONDS) else None
        except (EOFError, OSError):
            found = None
        if not isinstance(found, Address):
            raise RunFailed(f"its page cannot be served: {found or 'it did not start'}")
        self._say(found)
        self._sender.start()

    def is_due(self) -> bool:
        now = self._last_asked = time.monotonic()
        if now < self._next or self._outbox.unfinished_tasks:
            return False
        self._listen()
        if self._is_seen or now >= self._last_look + UNSEEN_SECONDS:
            return True
        self._next = now + LOOK_SECONDS
        return False

    def look(self, look: Look) -> None:
        self._outbox.put(look)
        now = self._last_look = time.monotonic()
        self._next = now + max(LOOK_SECONDS, (now - self._last_asked) / MOST_SHARE)

    def end(self) -> None:
        """No look follows."""
        self._outbox.put(None)
        if self._sender.is_alive():
            self._sender.join(LAST_SECONDS)

    def wishes(self) -> list[Asked]:
        """What was pressed on the page since the last call."""
        self._listen()
        wishes, self._wishes = self._wishes, []
        return wishes

    def _listen(self) -> None:
        """Take in what the server has to say."""
        with suppress(EOFError, OSError):
            while self._connection.poll():
                said = self._connection.recv()
                if isinstance(said, Audience):
                    self._is_seen = said.is_there
                else:
                    self._wishes.append(said)

    def _send(self) -> None:
        """Pass on what comes. A server that is gone does the run no harm."""
        with suppress(OSError):
            while (look := self._outbox.get()) is not None:
                self._connection.send(look)
                self._outbox.task_done()


@contextmanager
def page_beside(say: Callable[[str], None], port: int = 0) -> Iterator[PageBeside]:
    """A page that watches what runs in the block; `say` is told its address."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs, port), daemon=True)
    server.start()
    theirs.close()
    page = PageBeside(ours, say)
    try:
        yield page
    finally:
        page.end()
        ours.close()
        server.join(2 * LAST_SECONDS)
        server.kill()
        server.join()


class Line:
    """From the server to the run, for several threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._asked = 0.0
        self._audience = Audience(is_there=False)

    def wish(self, asked: Asked) -> None:
        with self._lock:
            self._connection.send(asked)

    def asked(self) -> None:
        """A page has asked something."""
        self._asked = time.monotonic()
        self.tell_audience()

    def tell_audience(self) -> None:
        """Tell the run if somebody has come, or all have gone."""
        with self._lock:
            audience = Audience(time.monotonic() < self._asked + AWAY_SECONDS)
            if audience != self._audience:
                self._audience = audience
                # A run that is over does not care.
                with suppress(OSError):
                    self._connection.send(audience)


def _serve(connection: Connection, port: int) -> None:
    """The other process: serve the page of what the connection tells of, until that is closed."""
    # Ctrl-C is for the run, which ends this.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # The run comes first.
    os.nice(NICENESS)
    from grid.integrations.watch.running import Running
    from grid.integrations.watch.server import Page
    from grid.integrations.watch.sweep import SweepShown

    with suppress(EOFError, OSError):
        first, line = connection.recv(), Line(connection)
        shown: Any
        if isinstance(first, SweepBeginning):
            shown = SweepShown(first)
        else:
            shown = Running(first, line.wish)
        try:
            page = Page(shown, port, line.asked)
        except OSError as error:
            connection.send(error)
            return
        connection.send(Address(page.address))
        serving = threading.Thread(target=page.serve, daemon=True)
        serving.start()
        with suppress(EOFError):
            while True:
                if connection.poll(AWAY_SECONDS):
                    shown.take(connection.recv())
                line.tell_audience()
        # Pages see how the run ended.
        time.sleep(LAST_SECONDS)
        page.end()
        serving.join(LAST_SECONDS)
