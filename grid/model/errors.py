"""What is wrong with somebody's input, said in one line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: where it stands, what was found there and what was expected."""

    file: str
    line: int | None
    field: str
    found: str
    expected: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        name = f" {self.field}:" if self.field else ""
        return f"{where}:{name} found {self.found}, expected {self.expected}"


class InputError(Exception):
    """A scenario or trace that cannot be used. The CLI prints each mistake and exits with 2."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("\n".join(str(mistake) for mistake in mistakes))
        self.mistakes = mistakes


def shorten(found: object, limit: int = 60) -> str:
    """`found` as it may stand in a message: on one line, printable, and not too long."""
    text = repr(found)
    return text if len(text) <= limit else text[: limit - 1] + "…"
