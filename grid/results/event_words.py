"""What each word of the column `event` of events.parquet means."""

from __future__ import annotations

import inspect

from grid.model import migration_messages as _declares_messages  # noqa: F401
from grid.model.event import word_of
from grid.model.messages import MESSAGES
from grid.results.column_definitions import DECISIONS, Columns


def message_words() -> Columns:
    """Every message that entities send each other, by its word; its docstring says what it is."""
    return {
        word_of(kind): ("", (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " "))
        for kind in MESSAGES
    }


def event_words() -> Columns:
    """All words: messages, then decisions."""
    return {**message_words(), **DECISIONS}
