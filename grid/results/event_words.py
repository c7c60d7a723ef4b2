"""What each word of the column `event` of events.parquet means."""

from __future__ import annotations

import inspect

from grid.model import messages, migration_messages
from grid.model.event import word_of
from grid.results.column_definitions import DECISIONS, Columns

NO_MESSAGE = ("Belief", "Entry")
"""What only travels within messages."""


def message_words() -> Columns:
    """Every message that entities send each other, by its word; its docstring says what it is."""
    found = {}
    for module in (messages, migration_messages):
        for name, one in vars(module).items():
            is_own = inspect.isclass(one) and one.__module__ == module.__name__
            if is_own and name not in NO_MESSAGE:
                about = (inspect.getdoc(one) or "").partition("\n\n")[0]
                found[word_of(one)] = ("", about.replace("\n", " "))
    return found


def event_words() -> Columns:
    """All words: messages, then decisions."""
    return {**message_words(), **DECISIONS}
