"""Errors: of input, in one line each; of runs; of plugins; of missing extras."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import requires
from resource import RUSAGE_SELF, getrusage

Path = tuple[str | int, ...]
"""The keys and positions that lead to a value."""
Problem = tuple[Path, str, str]
"""The path of an invalid value, what was found there, and what was expected."""

MAX_STEPS = 16
"""Steps of a path that an error shows; no key of a scenario is deeper."""


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """An error in input: its place, what was found there and what was expected."""

    file: str
    line: int | None
    field: str
    found: str
    expected: str
    details: str = dataclasses.field(default="", compare=False)
    """The traceback of a plugin that failed."""

    def __str__(self) -> str:
        # A path may have line ends.
        where = self.file if self.file.isprintable() else shorten(self.file)
        where += "" if self.line is None else f":{self.line}"
        name = f" {self.field}:" if self.field else ""
        verb = "" if self.found.startswith("no such ") else "found "
        return f"{where}:{name} {verb}{self.found}, expected {self.expected}"


class InputError(Exception):
    """An invalid scenario, trace or option. The CLI prints each error and exits with 2."""

    def __init__(self, problems: list[ErrorLine]) -> None:
        super().__init__(problems)
        self.errors = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.errors)


def input_error(field: str, found: str, expected: str, file: str = "") -> InputError:
    """A single error without a line: in a `file`, or in an argument called `field`."""
    if not file:
        file, field = field, ""
    return InputError([ErrorLine(file, None, field, found, expected)])


def raise_if(errors: list[ErrorLine]) -> None:
    """Raises InputError with the errors, if there are any."""
    if errors:
        raise InputError(errors)


def only_on_ray(**given: object) -> None:
    """Raises InputError for the first option that is given and that only runs on Ray have."""
    for name, value in given.items():
        if value is not None:
            raise input_error(
                name, shorten(value), "no value in a single-process run (without Ray)"
            )


def expected_name(name: str, known: Iterable[str], what: str) -> str:
    """What is expected instead of an unknown `name`: `what`, and the nearest or all of `known`."""
    names = list(known)
    if not names:
        return f"none, since there is no {what.partition(' ')[2]}"
    if likely := get_close_matches(name, names, 3):
        return f"{what} ({did_you_mean(likely)})"
    return f"{what}: {', '.join(names[:20])}{', …' if len(names) > 20 else ''}"


def did_you_mean(names: Sequence[str]) -> str:
    """A question that names one to three alternatives."""
    *others, last = names
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def kind_of(value: object) -> str:
    """The class of an invalid value, or None."""
    return "None" if value is None else type(value).__name__


def dotted(path: Path) -> str:
    """A path as errors and `--set` have it, in one short line."""
    steps = [step if isinstance(step, int) or _is_plain(step) else shorten(step) for step in path]
    return ".".join(map(str, steps[:MAX_STEPS])) + (".…" if len(steps) > MAX_STEPS else "")


def _is_plain(step: str) -> bool:
    return step.isprintable() and 0 < len(step) <= 60 and " " not in step


def shorten(found: object, limit: int = 60) -> str:
    """`found` on one printable line of at most `limit` characters."""
    try:
        text = " ".join(repr(found).split())
    except Exception:
        text = f"an object of type {type(found).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"


class RunFailed(Exception):
    """A run without a result, for a reason other than its input; the message is one line."""


class OutOfMemory(RunFailed):
    """The memory of a process was exhausted; `where` is the progress of the run."""

    def __init__(self, where: str) -> None:
        # In kilobytes on Linux.
        used_mb = getrusage(RUSAGE_SELF).ru_maxrss // 1024
        super().__init__(f"memory exhausted: {used_mb:,} MB used, {where}")


class PluginFailed(RunFailed):
    """A plugin failed. `line` states which plugin, where and how; `details` is the traceback of
    its own frames, if there is one."""

    def __init__(self, line: str, details: str = "") -> None:
        super().__init__(line, details)
        self.line = line
        self.details = details

    def __str__(self) -> str:
        return self.line


def not_saved(whose: str, error: Exception) -> PluginFailed:
    """The error if a state cannot be saved because of an attribute of a plugin."""
    return PluginFailed(
        f"the state of {whose} cannot be saved: {error}; a plugin may store numbers, strings, "
        f"arrays, lists and objects of its own classes, but no locks, open files or lambdas"
    )


class InvalidPlugin(PluginFailed, ValueError):
    """There is no such plugin, or it cannot be made with these settings.

    `path` leads to the invalid setting, if there is one.
    """

    def __init__(self, found: str, expected: str, path: Path = (), details: str = "") -> None:
        name = ".".join(map(str, path))
        line = f"found {found}, expected {expected}"
        super().__init__(f"{name}: {line}" if name else line, details)
        self.args = (found, expected, path, details)
        self.found = found
        self.expected = expected
        self.path = path


class MissingExtra(RunFailed, ImportError):
    """A module of an extra cannot be imported; the message has the command that installs it."""


def missing(what: str, extra: str, module: str) -> MissingExtra:
    """The error if `what` cannot be provided without a `module`."""
    # Names of packages are valid in a clone and next to an installed wheel.
    every = (one.replace("'", '"').partition(";") for one in requires("grid-emulator") or ())
    of_extra = [one.strip() for one, _, when in every if when.strip() == f'extra == "{extra}"']
    packages = " ".join(f'"{package}"' for package in of_extra)
    how = f"{sys.executable} -m pip install {packages}"
    return MissingExtra(f"{what} requires {module}, from the extra `{extra}`: {how}")


def need(what: str, extra: str, module: str) -> None:
    """Raises MissingExtra if the `module` cannot be imported."""
    try:
        import_module(module)
    except ImportError:
        raise missing(what, extra, module) from None
