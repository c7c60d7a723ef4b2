"""Detection of runs in which messages continue but jobs make no progress.

The detector is pure: from time to time a runtime calls `progress_of` for each logical process, all
at the same virtual time, and passes the reports to `StallDetector.check`. While a run is stalled no
job changes, so partial results do not depend on the time of the check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grid.kernel.process import LogicalProcess
from grid.model.time import Time, to_seconds

LEAST_MESSAGES = 1000
"""Fewer messages since the last change of a job are no stall: the clock may jump."""
MOST_NAMED = 5


class JobProgress(NamedTuple):
    """Progress of the jobs that an entity is responsible for; its method `job_progress` returns it.

    `changes` counts changes of a job's state so far. With `is_due`, a job runs or is to be
    submitted, and will change at a known time. `waiting` are jobs without a resource, by VO and
    number.
    """

    changes: int = 0
    is_due: bool = False
    waiting: Sequence[tuple[str, int]] = ()


class ProcessProgress(NamedTuple):
    """Progress of one logical process. `waiting` has (entity, VO, job number).

    `kinds` counts messages by name, from when counting began.
    """

    changes: int
    is_due: bool
    waiting: tuple[tuple[str, str, int], ...]
    messages: int
    kinds: Mapping[str, int]


def progress_of(process: LogicalProcess) -> ProcessProgress:
    """The progress of all entities of a process. An entity that is down is due to restart."""
    changes, is_due = 0, False
    waiting: list[tuple[str, str, int]] = []
    for name, entity in process.entities().items():
        inner: Any = entity
        while hasattr(inner, "entity"):
            inner = inner.entity
        if inner is None:
            is_due = True
        elif hasattr(inner, "job_progress"):
            one: JobProgress = inner.job_progress()
            changes += one.changes
            is_due = is_due or one.is_due
            waiting += ((name, *key) for key in one.waiting)
    if process.kinds is None and not is_due:
        process.count_kinds()
    kinds = {kind.__name__: count for kind, count in (process.kinds or {}).items()}
    return ProcessProgress(changes, is_due, tuple(waiting), process.messages, kinds)


class StallDetector:
    """Finds a stall: for `span_us` of virtual time no job has changed although messages continued.

    None switches it off. The span must be longer than any wait of the protocol.
    """

    def __init__(self, span_us: Time | None) -> None:
        self._span_us = span_us
        self._changes = -1
        self._since_us: Time = 0
        self._messages = 0
        self._kinds: Counter[str] = Counter()

    def is_due(self, now: Time) -> bool:
        """Whether `check` may find anything at `now`: a span has passed since the last change."""
        return self._span_us is not None and now - self._since_us >= self._span_us

    def check(self, now: Time, processes: Sequence[ProcessProgress]) -> str | None:
        """One line that describes the stall, if the run is stalled at `now`."""
        changes = sum(one.changes for one in processes)
        messages = sum(one.messages for one in processes)
        kinds: Counter[str] = Counter()
        for one in processes:
            kinds.update(one.kinds)
        if any(one.is_due for one in processes) or changes != self._changes:
            self._changes, self._since_us = changes, now
            self._messages, self._kinds = messages, kinds
            return None
        if not self.is_due(now) or messages - self._messages < LEAST_MESSAGES:
            return None
        waiting = sorted(key for one in processes for key in one.waiting)
        return _line(self._since_us, now, waiting, sorted(kinds - self._kinds))


def _line(
    since_us: Time, now: Time, waiting: Sequence[tuple[str, str, int]], repeated: Sequence[str]
) -> str:
    jobs = [f"job {number} of {vo} in {name.partition('/')[0]}" for name, vo, number in waiting]
    named = ", ".join(jobs[:MOST_NAMED])
    if len(jobs) > MOST_NAMED:
        named += f" and {len(jobs) - MOST_NAMED} more"
    return (
        f"no progress: no job has changed state from {to_seconds(since_us):g} to "
        f"{to_seconds(now):g} s of virtual time; {named or 'no job'} waits; "
        f"messages that repeat: {', '.join(repeated)}"
    )
