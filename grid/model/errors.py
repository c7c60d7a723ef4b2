"""What is wrong with somebody's input, said in one line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

Path = tuple[str | int, ...]
"""The keys and positions that lead to a value."""
Problem = tuple[Path, str, str]
"""The path of a wrong value, what was found there, and what was expected."""

MAX_STEPS = 16
"""Steps of a path that a message shows; no key of a scenario lies deeper."""


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One thing that is wrong: where it stands, what was found there and what was expected."""

    file: str
    line: int | None
    field: str
    found: str
    expected: str
    details: str = dataclasses.field(default="", compare=False)
    """The traceback of a part that failed, for those who ask for it."""

    def __str__(self) -> str:
        # A path may hold anything but NUL, line ends too.
        file = self.file if self.file.isprintable() else shorten(self.file)
        where = file if self.line is None else f"{file}:{self.line}"
        name = f" {self.field}:" if self.field else ""
        return f"{where}:{name} found {self.found}, expected {self.expected}"


class InputError(Exception):
    """A scenario or trace that cannot be used. The CLI prints each mistake and exits with 2."""

    def __init__(self, problems: list[ErrorLine]) -> None:
        super().__init__(problems)
        self.errors = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.errors)


def input_error(field: str, found: str, expected: str, file: str = "") -> InputError:
    """An error of a single mistake in no line: of a `file`, or of an argument called `field`."""
    if not file:
        file, field = field, ""
    return InputError([ErrorLine(file, None, field, found, expected)])


def only_on_ray(**given: object) -> None:
    """Raises InputError for the first that is given: runs in one process have no use for it."""
    for name, value in given.items():
        if value is not None:
            found = f"{shorten(value)} for a run in one process"
            raise input_error(name, found, "a run on Ray, or nothing here")


def expected_name(name: str, known: Iterable[str], what: str) -> str:
    """What is expected instead of a `name` that is unknown: `what`, and the nearest of `known`."""
    names = list(known)
    if not names:
        return f"{what}, and there is none"
    likely = get_close_matches(name, names, 1)
    if likely:
        return f"{what}, such as {likely[0]}"
    shown = ", ".join(names[:20])
    return f"{what}: {shown}{', …' if len(names) > 20 else ''}"


def kind_of(value: object) -> str:
    """What something is called that should be something else: its class, or None."""
    return "None" if value is None else type(value).__name__


def dotted(path: Path) -> str:
    """A path as it is written in messages, and in `--set`; always one short line."""
    steps = [step if isinstance(step, int) or _is_plain(step) else shorten(step) for step in path]
    return ".".join(map(str, steps[:MAX_STEPS])) + (".…" if len(steps) > MAX_STEPS else "")


def _is_plain(step: str) -> bool:
    return step.isprintable() and 0 < len(step) <= 60 and " " not in step


def shorten(found: object, limit: int = 60) -> str:
    """`found` as it may stand in a message: on one line, printable, and not too long."""
    try:
        text = " ".join(repr(found).split())
    except Exception:
        text = f"an object of type {type(found).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"


class RunFailed(Exception):
    """A run came to no result, through no fault of its scenario; the message is one line."""


class PluginFailed(RunFailed):
    """Something that another plugged in failed. `line` says what, where and how; `details` is the
    traceback of its own frames, if there is one."""

    def __init__(self, line: str, details: str = "") -> None:
        super().__init__(line, details)
        self.line = line
        self.details = details

    def __str__(self) -> str:
        return self.line


def not_saved(whose: str, error: Exception) -> PluginFailed:
    """The state of `whose` cannot be written down, for what a part has in its attributes."""
    return PluginFailed(
        f"the state of {whose} cannot be saved: {error}; a part that you plugged in may keep "
        "numbers, texts, arrays, lists and objects of its own classes, and no locks, open files or "
        "lambdas"
    )


class InvalidPlugin(PluginFailed, ValueError):
    """There is no such part, or it cannot be made with these settings.

    `path` leads to the setting that is wrong, if one is.
    """

    def __init__(
        self, found: str, expected: str, path: tuple[str | int, ...] = (), details: str = ""
    ) -> None:
        name = ".".join(map(str, path))
        line = f"found {found}, expected {expected}"
        super().__init__(f"{name}: {line}" if name else line, details)
        self.args = (found, expected, path, details)
        self.found = found
        self.expected = expected
        self.path = path
