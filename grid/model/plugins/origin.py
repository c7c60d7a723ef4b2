"""Where a part comes from, and how what goes wrong in it is reported."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from dis import opmap
from functools import partial
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from grid.model.errors import PluginFailed

_RAISE = opmap["RAISE_VARARGS"]

Check = Callable[..., str | None]
"""What is wrong with an answer of a part, as the end of a sentence; None if nothing is. It is given
the answer, and what the part was given."""


@dataclass(frozen=True)
class Origin:
    """The part `name` of a kind, in `file`, which messages call `shown`; defined at `line`."""

    title: str
    name: str
    file: str
    shown: str
    line: int

    def __str__(self) -> str:
        return f"{self.shown}:{self.line}: {self.title} {self.name}"

    def failed(self, what: str, error: BaseException | None = None) -> PluginFailed:
        """What ends the run: one line, and the traceback of the part's own frames."""
        line, details = self.line, ""
        if error is not None:
            own = own_frames(error, self.file)
            line = own.tb_lineno if own is not None else line
            last = _last_line(error, self.file)
            line = last if last is not None else line
            details = shown_frames(error, own)
            what = f"{what} raised {said(error)}"
        return PluginFailed(f"{self.shown}:{line}: {self.title} {self.name}: {what}", details)

    def is_interrupted(self, error: BaseException) -> bool:
        """Whether that is Ctrl-C, which comes anywhere, and from no `raise` of the part's file."""
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        if not isinstance(error, KeyboardInterrupt) or last is None:
            return False
        code = last.tb_frame.f_code
        return code.co_filename != self.file or code.co_code[last.tb_lasti] != _RAISE


def said(error: BaseException) -> str:
    """An exception in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "with a message that cannot be read"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def own_frames(error: BaseException, file: str) -> TracebackType | None:
    """The traceback from the first frame on that stands in `file`."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != file:
        frame = frame.tb_next
    return frame


def _last_line(error: BaseException, file: str) -> int | None:
    """The innermost line of `file` that the error passed through."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    return lines[-1] if lines else None


def shown_frames(error: BaseException, first: TracebackType | None) -> str:
    """The traceback from `first` on, as Python prints it."""
    whole = traceback.TracebackException(type(error), error, first, compact=True)
    whole.__context__ = whole.__cause__ = None
    return "".join(whole.format()).rstrip()


def origin_of(title: str, name: str, target: Any, shown: str = "") -> Origin:
    """Where `target`, a class or function, is defined."""
    target = inspect.unwrap(target.func if isinstance(target, partial) else target)
    if not inspect.isroutine(target) and not inspect.isclass(target):
        target = type(target)
    code = getattr(target, "__code__", None)
    file, line = "<unknown>", 1
    if code is not None:
        file, line = code.co_filename, code.co_firstlineno
    else:
        with suppress(TypeError, OSError):
            file = inspect.getsourcefile(target) or inspect.getfile(target)
            line = max(1, inspect.getsourcelines(target)[1])
        code = _first_method(target) if inspect.isclass(target) else None
        if code is not None and code.co_filename != file:
            file, line = code.co_filename, code.co_firstlineno
    return Origin(title, name, file, shown or short_path(file), line)


def _first_method(target: Any) -> CodeType | None:
    """The first code in a class. It knows its file where `__main__`, of which the class was, is
    another one: on Ray actors."""
    methods = (inspect.unwrap(one) for one in vars(target).values() if inspect.isfunction(one))
    own = (one.__code__ for one in methods if one.__module__ == target.__module__)
    return next((code for code in own if not code.co_filename.startswith("<")), None)


def short_path(file: str | Path) -> str:
    """A path from the current folder, where it is below that."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(file)


def ask(origin: Origin, what: str, function: Callable[..., Any], check: Check, *given: Any) -> Any:
    """What a part answers. Raises PluginFailed where it fails, or `check` finds fault with it.

    One that ends its process fails, too: the run is not its own. Only Ctrl-C is not its failure.
    """
    try:
        answer = function(*given)
        problem = check(answer, *given)
    except PluginFailed:
        raise
    except BaseException as error:
        if origin.is_interrupted(error):
            raise
        raise origin.failed(what, error) from None
    if problem is not None:
        raise origin.failed(f"{what} {problem}")
    return answer


def is_whole(value: Any) -> bool:
    """Whether an answer is a whole number: of Python or of numpy, but no truth value."""
    return type(value) is not bool and hasattr(value, "__index__")


@dataclass(frozen=True)
class WithSettings:
    """A function with its settings; unlike `partial`, a journal can hold one."""

    function: Callable[..., Any]
    settings: dict[str, Any]

    def __call__(self, *given: Any) -> Any:
        return self.function(*given, **self.settings)


class Guarded:
    """A function that another plugs in, with its settings; what fails in it is reported."""

    def __init__(self, origin: Origin, what: str, function: Callable[..., Any], check: Check):
        self.origin = origin
        self._what = what
        self._function: Any = function
        self._check = check

    def __call__(self, *given: Any) -> Any:
        return ask(self.origin, self._what, self._function, self._check, *given)


def failed(part: Any, what: str) -> PluginFailed:
    """What ends the run where a made part is at fault; one of ours is named by `what` alone."""
    origin = getattr(part, "origin", None)
    return origin.failed(what) if isinstance(origin, Origin) else PluginFailed(what)


def label_of(part: Any) -> str:
    """What a made part is called where its answer is wrong."""
    origin = getattr(part, "origin", None)
    return str(origin) if isinstance(origin, Origin) else f"policy {type(part).__name__}"
