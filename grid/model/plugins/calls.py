"""Calls of third-party plugins: what they raise or answer wrongly ends a run with one line."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from grid.model.errors import InvalidPlugin, PluginFailed, shorten

Check = Callable[..., str | None]
"""The error in an answer, as the end of a sentence; None if it is valid. Its arguments are
the answer and those of the call."""


def _no_check(*_: object) -> None:
    return None


class Call(NamedTuple):
    """A method that the emulator calls, or a function itself: its `arguments`, and its checks.

    `what` names the call in messages. `before` replaces the arguments, such as a table by a copy
    that the plugin may write to; `after` converts the answer, before `check` sees it.
    """

    what: str
    arguments: tuple[str, ...]
    check: Check = _no_check
    before: Callable[..., tuple[Any, ...]] | None = None
    after: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Origin:
    """The plugin `name` of a kind, in `file`, which messages call `shown`; defined at `line`."""

    title: str
    name: str
    file: str
    shown: str
    line: int

    def __str__(self) -> str:
        return f"{self.shown}:{self.line}: {self.title} {self.name}"

    @property
    def place(self) -> str:
        return f"{self.shown}:{self.line}"

    def failed(self, what: str, error: BaseException | None = None) -> PluginFailed:
        """The error that ends a run: one line, and the traceback of the plugin's own frames."""
        if error is None:
            return PluginFailed(f"{self}: {what}")
        line, details = frames_in(self.file, error)
        return PluginFailed(
            f"{self.shown}:{line or self.line}: {self.title} {self.name}: {what} raised "
            f"{in_one_line(error)}",
            details,
        )


def frames_in(file: str, error: BaseException) -> tuple[int | None, str]:
    """The innermost line of `file` in a traceback, and the traceback from that file on."""
    first = error.__traceback__
    while first is not None and first.tb_frame.f_code.co_filename != file:
        first = first.tb_next
    if first is None:
        return None, ""
    line = [one.lineno for one in traceback.extract_tb(first) if one.filename == file][-1]
    shown = traceback.TracebackException(type(error), error, first, compact=True)
    shown.__context__ = shown.__cause__ = None
    return line, "".join(shown.format()).rstrip()


def in_one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def origin_of(title: str, name: str, target: Any, shown: str = "") -> Origin:
    """Where `target`, a class, function or callable object, is defined."""
    target = inspect.unwrap(target.func if isinstance(target, partial) else target)
    if not inspect.isroutine(target) and not inspect.isclass(target):
        target = type(target)
    code = getattr(target, "__code__", None) or _first_code(target)
    if code is None:
        return Origin(title, name, "<unknown>", shown or "<unknown>", 1)
    file = code.co_filename
    return Origin(title, name, file, shown or short_path(file), code.co_firstlineno)


def _first_code(target: Any) -> CodeType | None:
    """The first code in a class, which names its file in every process.

    A class of a script that was sent to a Ray actor belongs to another `__main__` there.
    """
    for owner in getattr(target, "__mro__", ()):
        for method in vars(owner).values():
            code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
            if code is not None and not code.co_filename.startswith("<"):
                return code  # type: ignore[no-any-return]
    return None


def short_path(file: str | Path) -> str:
    """A path relative to the current folder if it is below that."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(file)


class PluginCall:
    """A function or method of a third-party plugin. Raises PluginFailed if it fails.

    `method` is empty for a function; its other attributes are those of the plugin.
    """

    def __init__(self, origin: Origin, call: Call, target: Any, method: str = "") -> None:
        self.origin = origin
        self.call = call
        self.target = target
        self.method = method

    def __call__(self, *given: Any) -> Any:
        call, function = self.call, self.target
        if self.method:
            function = partial(getattr(type(self.target), self.method), self.target)
        try:
            answer = function(*(given if call.before is None else call.before(*given)))
            if call.after is not None:
                answer = call.after(answer)
            problem = call.check(answer, *given)
        except (PluginFailed, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise self.origin.failed(call.what, error) from None
        if problem is not None:
            raise self.origin.failed(f"{call.what} {problem}")
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "target" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.target, name)


def with_checks(origin: Origin, made: Any, calls: Mapping[str, Call]) -> Any:
    """A plugin whose calls are checked: an object with checked methods, or a `PluginCall`.

    Raises InvalidPlugin if a method is missing.
    """
    for name, call in calls.items():
        if not callable(getattr(type(made), name, None)):
            found = f"{type(made).__name__} without {name} ({origin.place})"
            method = f"{name}({', '.join(('self', *call.arguments))})"
            raise InvalidPlugin(found, f"a {origin.title} with the method {method}")
    is_call = "__call__" in calls
    owner = PluginCall(origin, calls["__call__"], made) if is_call else made
    for name, call in calls.items():
        if name != "__call__":
            vars(owner)[name] = PluginCall(origin, call, made, name)
    vars(owner)["origin"] = origin
    return owner


def label_of(plugin: Any) -> str:
    """How errors name a plugin: by file and line if it is a third-party one."""
    origin = getattr(plugin, "origin", None)
    return str(origin) if isinstance(origin, Origin) else f"policy {type(plugin).__name__}"


def is_integer(value: Any) -> bool:
    """Whether an answer is an integer of Python or NumPy, and no bool."""
    return type(value) is not bool and hasattr(value, "__index__")


def expected_attribute(made: Any, name: str, is_valid: bool, expected: str) -> None:
    """Raises InvalidPlugin unless the attribute is valid."""
    if not is_valid:
        raise InvalidPlugin(f"{name} = {shorten(getattr(made, name, None))}", expected)


@dataclass(frozen=True)
class WithSettings:
    """A function with its settings; unlike `partial`, a journal can hold one."""

    function: Callable[..., Any]
    settings: dict[str, Any]

    def __call__(self, *given: Any) -> Any:
        return self.function(*given, **self.settings)
