"""The clock that plans are measured by: it stands still while numba compiles.

What a run needs is compiled before it begins. But a policy that somebody plugged in may call
compiled code of ours, or of its own, and the first plan would then take seconds that are no plan.
"""

from __future__ import annotations

import time

from numba.core import event


class _Compiling(event.Listener):
    """Adds up the processor time for which this thread was compiling."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._depth = 0
        self._began_s = 0.0

    def on_start(self, event: event.Event) -> None:
        del event
        if self._depth == 0:
            self._began_s = time.thread_time()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        del event
        self._depth -= 1
        if self._depth == 0:
            self.spent_s += time.thread_time() - self._began_s


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def plan_time() -> float:
    """Processor seconds of this thread, less what compiling took."""
    return time.thread_time() - _compiling.spent_s
