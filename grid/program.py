"""The start of the `grid` command: who presses Ctrl-C before it is loaded sees no traceback."""

from __future__ import annotations

import os
import signal
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Entry point of the `grid` command. Loading the rest takes some tenths of a second."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    for number, handler in before.items():
        # A shell that starts something in the background may have it ignore Ctrl-C.
        if handler != signal.SIG_IGN:
            signal.signal(number, _end)
    from grid.cli.app import main as loaded

    for number, handler in before.items():
        signal.signal(number, handler)
    loaded()


def _end(*_: Any) -> None:
    """At once, without what an exception would meet in the code that is being loaded."""
    os.write(2, b"interrupted. Nothing was written.\n")
    os._exit(130)
